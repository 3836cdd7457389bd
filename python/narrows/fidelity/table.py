"""Simulator and kernel side by side: as a table for a terminal and as an object for programs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from rich.markup import escape
from rich.table import Table

from narrows import wording
from narrows.fidelity.judge import UNITS, inside

if TYPE_CHECKING:
    from collections.abc import Sequence

    from narrows.fidelity.catalogue import Comparison, Tolerance
    from narrows.fidelity.judge import ArmVerdict, Key, Quantity, ScenarioVerdict
    from narrows.fidelity.observed import Observed

TITLES: Final[dict[Key, str]] = {
    "goodput": "goodput",
    "queue-delay": "queueing delay",
    "fct-p99": "p99 completion",
    "finished": "finished",
    "drops": "dropped",
    "retransmissions": "retransmitted",
    "marks": "marked",
    "share": "share",
}
_STYLES: Final = {"inside": "green", "outside": "bold red", "not judged": "dim"}
ABSENT: Final = "–"
"""Where there is no number."""


def rules(tolerance: Tolerance) -> str:
    """What is near enough, in a sentence."""
    goodput, queue, fct = (100 * share for share in (tolerance.goodput, tolerance.queue_delay, tolerance.fct_p99))
    packets = ", ".join(
        f"{what} within {100 * share:g} % or {least:g}"
        for what, share, least in (
            ("drops", tolerance.drops, tolerance.drops_packets),
            ("retransmissions", tolerance.retransmissions, tolerance.retransmissions_packets),
            ("marks", tolerance.marks, tolerance.marks_packets),
        )
    )
    return (
        f"Inside: goodput within {goodput:g} % of the kernel's; queueing delay within {queue:g} % or, where "
        f"that is more, {tolerance.queue_delay_packets:g} packets' time; p99 completion within {fct:g} %; "
        f"the same flows finish; packets per run: {packets}; the share of each kind of traffic within "
        f"{100 * tolerance.share:g} % of the goodput."
    )


def difference(quantity: Quantity) -> str:
    """`+31.4 %` of the kernel's; nothing where there is none."""
    if quantity.difference is None:
        return ""
    percent = 100 * quantity.difference
    return "0 %" if abs(percent) < 0.05 else f"{'+' if percent > 0 else '−'}{wording.number(abs(percent))} %"


def command(names: Sequence[str], *, quick: bool) -> str:
    """What makes the runs and the table."""
    return f"narrows reproduce {' '.join(names)}{' --quick' if quick else ''}"


def table(verdicts: Sequence[ScenarioVerdict]) -> Table:
    """For a terminal: simulator / kernel."""
    made = Table("scenario", "scheme", *(heading(key) for key in TITLES), "", box=None, header_style="dim")
    for verdict in verdicts:
        if not verdict.arms:
            made.add_row(escape(verdict.scenario.name), *[ABSENT] * (1 + len(TITLES)), _styled(verdict.word))
        for place, arm in enumerate(verdict.arms):
            name = escape(verdict.scenario.name) if place == 0 else ""
            shown = [f"[bold red]{text}[/]" if outside else text for text, outside in cells(arm)]
            made.add_row(name, escape(arm.arm), *shown, _styled(arm.word))
    return made


def _styled(word: str) -> str:
    return f"[{_STYLES[word]}]{word}[/]"


def heading(key: Key) -> str:
    """`goodput, Mbit/s`."""
    return f"{TITLES[key]}, {UNITS[key]}"


def cells(arm: ArmVerdict) -> list[tuple[str, bool]]:
    """Of each quantity its text, and whether it lies outside."""
    found: list[tuple[str, bool]] = [(_cell(one), one.inside is False) for one in arm.quantities]
    return found or [(ABSENT, False)] * len(TITLES)


def _cell(quantity: Quantity) -> str:
    """`94.1 / 94.2`, with the difference where it is outside."""
    if quantity.inside is None:
        return ABSENT
    both = f"{_value(quantity, quantity.sim)} / {_value(quantity, quantity.kernel)}"
    if quantity.key == "share":
        return f"{both} {quantity.said}"
    if quantity.inside:
        return both
    return f"{both}, {quantity.said or difference(quantity)}".removesuffix(", ")


def _value(quantity: Quantity, value: float | None) -> str:
    return wording.number(value) if value is None or quantity.key != "finished" else wording.whole(value)


def remarks(verdicts: Sequence[ScenarioVerdict]) -> list[str]:
    """A line for each quantity outside, then why; what was left out; what was not judged."""
    lines = []
    for verdict in verdicts:
        name = verdict.scenario.name
        lines += [f"{name}, {arm.arm}: {_told(one)}" for arm in verdict.arms for one in arm.outside]
        if verdict.word == "outside" and verdict.scenario.note:
            lines.append(f"{name}: {verdict.scenario.note}")
        lines += [
            f"{name}, {arm.arm}: not judged, no seed counts in both worlds" for arm in verdict.arms if not arm.seeds
        ]
        if verdict.left_out:
            lines.append(f"{name}: {verdict.left_out}")
        if verdict.reason:
            lines.append(f"{name}: not judged, {verdict.reason}")
    return lines


def _told(quantity: Quantity) -> str:
    """`queueing delay 5.76 ms in the simulator, 2.16 ms in the kernel, +166.7 %`."""
    unit = UNITS[quantity.key]
    worlds = [
        f"{_value(quantity, value)}{f' {unit}' if value is not None else ''} in the {world}"
        for value, world in ((quantity.sim, "simulator"), (quantity.kernel, "kernel"))
    ]
    apart = difference(quantity) if quantity.key not in ("finished", "share") else ""
    return ", ".join([f"{TITLES[quantity.key]} {worlds[0]}", worlds[1], *filter(None, (apart, quantity.said))])


def card(comparison: Comparison, verdicts: Sequence[ScenarioVerdict], *, quick: bool) -> dict[str, Any]:
    """Everything for a program."""
    tolerance = comparison.tolerance
    return {
        "comparison": comparison.name,
        "quick": quick,
        "command": command([comparison.name], quick=quick),
        "tolerance": vars(tolerance),
        "units": UNITS,
        "inside": inside(verdicts),
        "of": len(verdicts),
        "scenarios": [record(verdict) for verdict in verdicts],
    }


def record(verdict: ScenarioVerdict) -> dict[str, Any]:
    """A scenario for a program."""
    return {
        "scenario": verdict.scenario.label,
        "about": verdict.scenario.about,
        "verdict": verdict.word,
        "reason": verdict.reason,
        "note": verdict.scenario.note,
        "held_out": verdict.scenario.held_out,
        "left_out": verdict.left_out,
        "made_by": verdict.made_by,
        "kernels": list(verdict.kernels),
        "arms": [_arm(arm) for arm in verdict.arms],
    }


def _arm(arm: ArmVerdict) -> dict[str, Any]:
    quantities = {
        one.key: {"sim": one.sim, "kernel": one.kernel, "difference": one.difference, "inside": one.inside,
                  "said": one.said}
        for one in arm.quantities
    }  # fmt: skip
    worlds = {name: _world(world) for name, world in (("sim", arm.sim), ("kernel", arm.kernel)) if world is not None}
    return {
        "arm": arm.arm,
        "verdict": arm.word,
        "seeds": arm.seeds,
        "port": arm.port,
        "quantities": quantities,
    } | worlds


def _world(world: Observed) -> dict[str, float | None]:
    """What is not judged."""
    return {
        "queue_packets": world.queue_packets,
        "completions": world.completions,
        "lost_on_wire_packets": world.lost,
    }
