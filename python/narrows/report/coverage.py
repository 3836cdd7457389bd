"""What carried the traffic of live runs, and how well this machine kept the plan's time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from narrows import wording
from narrows.runs import validity
from narrows.runs.backends import Backend

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from narrows.results import Results


@dataclass(frozen=True)
class Carried:
    """The live runs of a case, all seeds together."""

    case: str
    kernel: str
    controllers: str
    """`gemini as narrows_gemini`."""
    lateness: tuple[tuple[str, str], ...]
    """What is measured, and the worst of all its runs: `packets, p99` and `9.86 µs`."""
    near_source: tuple[tuple[str, str], ...]
    """What became of the notifications of near-source switches; nothing where no host listened."""
    connections_failed: str
    flows_without_ecn: str
    left_out: str
    """How many of its runs do not count, and why; empty where all do."""


_CLOCKS: Final = {
    Backend.GUEST: (
        "In a guest the clock counts instructions, and the emulated network keeps that clock's time: however busy this "
        "machine is, nothing there is later for it."
    ),
    Backend.HOST: (
        "With this machine's own kernel the network between them is emulated in real time: what else goes on here "
        "makes packets late."
    ),
}
_REPEATED: Final = {
    Backend.SIM: "in the simulator the same version, plan and seed give the same results to the byte",
    Backend.GUEST: "in a guest they do with the same kernel, narrowsd and QEMU",
    Backend.HOST: "on this machine's own kernel what is the same are the flows and when they begin",
}
_PARTS: Final = {"deliveries": "packets", "applications": "hosts' actions"}
_STATISTICS: Final = {"p50_ns": "median", "p99_ns": "p99", "max_ns": "largest"}
_COUNTS: Final = {"lost_outside_packets": "packets lost outside", "ran_dry": "flows held up"}
"""Of what narrowsd notes, that a page shows, and what it is called there."""


def clocks(backends: Iterable[Backend]) -> str:
    """What time is to the live ones of these."""
    return " ".join(_CLOCKS[backend] for backend in backends if backend in _CLOCKS)


def repeated(backends: Iterable[Backend]) -> str:
    """What running it again gives, of each."""
    text = "; ".join(_REPEATED[backend] for backend in backends)
    return f"{text[0].upper()}{text[1:]}."


def table(results: Results) -> list[Carried]:
    """One row for each case that a real kernel carried."""
    live = [manifest for manifest in results.manifests if manifest["backend"] != "sim"]
    return [_row(case, [manifest for manifest in live if manifest["case"] == case])
            for case in dict.fromkeys(manifest["case"] for manifest in live)]  # fmt: skip


def _row(case: str, manifests: Sequence[Mapping[str, Any]]) -> Carried:
    return Carried(
        case=case,
        kernel=", ".join(dict.fromkeys(str(manifest["kernel"]) for manifest in manifests)),
        controllers=", ".join(_controllers(manifests)),
        lateness=tuple(_lateness(manifests)),
        near_source=tuple(_near_source(manifests)),
        connections_failed=_total(manifests, "connections_failed"),
        flows_without_ecn=_total(manifests, "flows_without_ecn"),
        left_out=validity.left_out(manifests),
    )


def _controllers(manifests: Sequence[Mapping[str, Any]]) -> list[str]:
    named = {(str(plan), str(kernel)) for one in manifests for plan, kernel in _object(one, "controllers").items()}
    return [plan if plan == kernel else f"{plan} as {kernel}" for plan, kernel in sorted(named)]


def _lateness(manifests: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, str]]:
    """The largest of each number; nothing of those that no run has."""
    found = [_object(manifest, "lateness") for manifest in manifests]
    for part, what in _PARTS.items():
        for key, statistic in _STATISTICS.items():
            values = _numbers((_object(one, part) for one in found), key)
            if values:
                yield f"{what}, {statistic}", _short(max(values))
    for key, what in _COUNTS.items():
        values = _numbers(found, key)
        if values:
            yield what, wording.whole(max(values))


def _near_source(manifests: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, str]]:
    """Counts of all runs, and the worst of their times."""
    found = [heard for one in manifests if (heard := _object(one, "near_source"))]
    if not found:
        return
    for key in ("sent", "taken"):
        yield key, wording.whole(sum(int(count) for count in _numbers(found, key)))
    refused = [_object(heard, "refused") for heard in found]
    for reason in sorted({reason for one in refused for reason in one}):
        yield f"refused, {reason}", wording.whole(sum(int(count) for count in _numbers(refused, reason)))
    for key, statistic in _STATISTICS.items():
        if values := _numbers((_object(heard, "reaction") for heard in found), key):
            yield f"to the new rate, {statistic}", _short(max(values))


def _numbers(objects: Iterable[Mapping[str, Any]], key: str) -> list[float]:
    values = [one.get(key) for one in objects]
    return [value for value in values if isinstance(value, (int, float)) and not isinstance(value, bool)]


def _short(ns: float) -> str:
    """`9.86 µs`, `2.10 ms`."""
    return f"{wording.number(ns / 1e6)} ms" if ns >= 1e6 else f"{wording.number(ns / 1e3)} µs"


def _object(manifest: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    found = manifest.get(key)
    return found if isinstance(found, dict) else {}


def _total(manifests: Sequence[Mapping[str, Any]], key: str) -> str:
    counts = [value for manifest in manifests if isinstance(value := manifest.get(key), int)]
    return wording.whole(sum(counts)) if counts else "–"
