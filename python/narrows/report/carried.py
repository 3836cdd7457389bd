"""What carried the traffic of live runs, and how well this machine kept the plan's time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from narrows import validity, wording

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from narrows.results import Results


@dataclass(frozen=True)
class Carried:
    """The live runs of a case, all seeds together."""

    case: str
    kernel: str
    controllers: str
    """`gemini as narrows_gemini`."""
    lateness: str
    """The worst of all its runs, by what is measured."""
    connections_failed: str
    flows_without_ecn: str
    left_out: str
    """How many of its runs do not count, and why; empty where all do."""


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
        lateness=", ".join(_lateness(manifests)),
        connections_failed=_total(manifests, "connections_failed"),
        flows_without_ecn=_total(manifests, "flows_without_ecn"),
        left_out=validity.left_out(manifests),
    )


def _controllers(manifests: Sequence[Mapping[str, Any]]) -> list[str]:
    named = {(str(plan), str(kernel)) for one in manifests for plan, kernel in _object(one, "controllers").items()}
    return [plan if plan == kernel else f"{plan} as {kernel}" for plan, kernel in sorted(named)]


def _lateness(manifests: Sequence[Mapping[str, Any]]) -> list[str]:
    """`deliveries p99 41.0 us`: the largest of each number, by the names that narrowsd gives them."""
    worst: dict[str, float] = {}
    for manifest in manifests:
        lateness = _object(manifest, "lateness")
        parts = [(f"{part} ", numbers) for part, numbers in lateness.items() if isinstance(numbers, dict)]
        for before, numbers in (*parts, ("", lateness)):
            for name, value in numbers.items():
                if isinstance(value, (int, float)) and not isinstance(value, bool) and name != "count":
                    worst[before + name] = max(worst.get(before + name, value), value)
    return [_told(name, value) for name, value in worst.items()]


def _told(name: str, value: float) -> str:
    quantity, _, unit = name.rpartition("_")
    if unit not in ("ns", "us", "ms"):
        quantity, unit = name, ""
    if unit == "ns":
        value, unit = value / 1000, "us"
    return f"{quantity.replace('_', ' ')} {wording.number(value)} {unit}".rstrip()


def _object(manifest: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    found = manifest.get(key)
    return found if isinstance(found, dict) else {}


def _total(manifests: Sequence[Mapping[str, Any]], key: str) -> str:
    counts = [value for manifest in manifests if isinstance(value := manifest.get(key), int)]
    return wording.whole(sum(counts)) if counts else "–"
