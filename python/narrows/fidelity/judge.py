"""Whether simulator and kernel agree: each quantity of each scheme, and from these each scenario."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from narrows.fidelity.observed import Observed, Runs, asks_several, bottleneck, observe, packet_ms

if TYPE_CHECKING:
    from collections.abc import Sequence

    from narrows.fidelity.catalogue import Scenario, Tolerance

Word = Literal["inside", "outside", "not judged"]
Key = Literal["goodput", "queue-delay", "fct-p99", "finished", "drops", "retransmissions", "marks", "share"]

UNITS: Final[dict[Key, str]] = {
    "goodput": "Mbit/s",
    "queue-delay": "ms",
    "fct-p99": "ms",
    "finished": "flows",
    "drops": "packets",
    "retransmissions": "packets",
    "marks": "packets",
    "share": "%",
}
"""Of each quantity that is judged."""
_ROUNDING: Final = 1 + 1e-9
"""Queues are whole packets: a difference that is just allowed is to be allowed in binary, too."""


@dataclass(frozen=True)
class Quantity:
    """One number in both worlds."""

    key: Key
    sim: float | None
    kernel: float | None
    inside: bool | None
    """`None` where neither world has it: nothing is judged."""
    said: str = ""
    """What the two numbers do not say."""

    @property
    def difference(self) -> float | None:
        """The simulator's beyond the kernel's, as a share of the kernel's; `None` where there is none."""
        if self.sim is None or not self.kernel:
            return None
        return self.sim / self.kernel - 1


@dataclass(frozen=True)
class ArmVerdict:
    """One scheme."""

    arm: str
    seeds: tuple[int, ...]
    """Those whose runs count in both worlds."""
    quantities: tuple[Quantity, ...]
    """None without such seeds."""
    sim: Observed | None
    kernel: Observed | None
    port: str | None
    """Whose queue it is."""

    @property
    def word(self) -> Word:
        """Of all its quantities."""
        if not self.seeds:
            return "not judged"
        return "outside" if self.outside else "inside"

    @property
    def outside(self) -> tuple[Quantity, ...]:
        """The quantities that are too far apart."""
        return tuple(quantity for quantity in self.quantities if quantity.inside is False)


@dataclass(frozen=True)
class ScenarioVerdict:
    """One scenario."""

    scenario: Scenario
    arms: tuple[ArmVerdict, ...] = ()
    reason: str = ""
    """Why there are none."""
    left_out: str = ""
    """How many runs do not count, and why; empty where all do."""
    made_by: str = ""
    """Both worlds' programs, with their versions."""
    kernels: tuple[str, ...] = ()
    """Releases of the kernels that carried the traffic."""

    @property
    def word(self) -> Word:
        """Inside if all schemes are."""
        return worst([arm.word for arm in self.arms])


def worst(words: Sequence[Word]) -> Word:
    """A scenario's verdict, from those of its schemes."""
    order: tuple[Word, ...] = ("outside", "not judged", "inside")
    return next((word for word in order if word in words), "not judged")


def judge(arm: str, sim: Runs, kernel: Runs, tolerance: Tolerance) -> ArmVerdict:
    """A scheme, from the seeds that count in both worlds."""
    seeds = tuple(seed for seed in sim.seeds if seed in kernel.seeds)
    if not seeds:
        return ArmVerdict(arm, (), (), None, None, None)
    worlds = sim.of(seeds), kernel.of(seeds)
    port, several = bottleneck(worlds[0]), any(map(asks_several, worlds))
    ours, theirs = (observe(runs, port=port, of_requests=several) for runs in worlds)
    packets_ms = tolerance.queue_delay_packets * packet_ms(worlds[0], port)
    quantities = (
        _near("goodput", ours.goodput_mbps, theirs.goodput_mbps, share=tolerance.goodput),
        _near("queue-delay", ours.queue_ms, theirs.queue_ms, share=tolerance.queue_delay, least=packets_ms),
        _near("fct-p99", ours.fct_p99_ms, theirs.fct_p99_ms, share=tolerance.fct_p99),
        _finished(ours, theirs),
        _counted("drops", ours.drops, theirs.drops, share=tolerance.drops, least=tolerance.drops_packets),
        _counted(
            "retransmissions",
            ours.retransmissions,
            theirs.retransmissions,
            share=tolerance.retransmissions,
            least=tolerance.retransmissions_packets,
        ),
        _counted("marks", ours.marks, theirs.marks, share=tolerance.marks, least=tolerance.marks_packets),
        _share(ours, theirs, tolerance.share),
    )
    return ArmVerdict(arm, seeds, quantities, ours, theirs, port)


def _near(key: Key, sim: float | None, kernel: float | None, *, share: float, least: float = 0.0) -> Quantity:
    """Inside if it differs by no more than a share of the kernel's, or than what is allowed at least."""
    if sim is None and kernel is None:
        return Quantity(key, None, None, None)
    if sim is None or kernel is None:
        return Quantity(key, sim, kernel, False, f"only the {'kernel' if sim is None else 'simulator'} has it")
    return Quantity(key, sim, kernel, abs(sim - kernel) <= max(share * kernel, least) * _ROUNDING)


def _counted(key: Key, sim: float, kernel: float, *, share: float, least: float) -> Quantity:
    """The same of packets, of which neither world may have any."""
    return _near(key, sim, kernel, share=share, least=least) if sim or kernel else Quantity(key, None, None, None)


def _share(sim: Observed, kernel: Observed, most: float) -> Quantity:
    """Inside if no kind of traffic has a share of the goodput that differs more; the one that differs most."""
    kinds = sorted(sim.shares.keys() | kernel.shares.keys())
    pairs = [(kind, sim.shares.get(kind, 0.0), kernel.shares.get(kind, 0.0)) for kind in kinds]
    if not pairs:
        return Quantity("share", None, None, None)
    kind, ours, theirs = max(pairs, key=lambda pair: abs(pair[1] - pair[2]))
    return Quantity("share", 100 * ours, 100 * theirs, abs(ours - theirs) <= most * _ROUNDING, f"of {kind}")


def _finished(sim: Observed, kernel: Observed) -> Quantity:
    """Inside if the same flows finished."""
    counts = sim.finished.total(), kernel.finished.total()
    if not any(counts):
        return Quantity("finished", None, None, None)
    alone = (sim.finished - kernel.finished).total(), (kernel.finished - sim.finished).total()
    said = [
        f"{number} in the {world} alone" for number, world in zip(alone, ("simulator", "kernel"), strict=True) if number
    ]
    return Quantity("finished", *counts, not said, ", ".join(said))


def inside(verdicts: Sequence[ScenarioVerdict]) -> int:
    """How many scenarios are."""
    return sum(verdict.word == "inside" for verdict in verdicts)


def summary(verdicts: Sequence[ScenarioVerdict]) -> str:
    """`11 of 13 scenarios inside, 1 not judged; of the 2 held out 1 inside`."""
    return summary_of([(verdict.word, verdict.scenario.held_out) for verdict in verdicts])


def summary_of(words: Sequence[tuple[Word, bool]]) -> str:
    """The same of the verdicts' words, each with whether its scenario is held out."""
    good = [held_out for word, held_out in words if word == "inside"]
    unjudged = sum(word == "not judged" for word, _ in words)
    things = "scenario" if len(words) == 1 else "scenarios"
    held_out = sum(held for _, held in words)
    return (
        f"{len(good)} of {len(words)} {things} inside"
        + (f", {unjudged} not judged" if unjudged else "")
        + (f"; of the {held_out} held out {sum(good)} inside" if held_out else "")
    )
