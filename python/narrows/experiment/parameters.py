"""A plan's controllers as people write them: integers of the plan back to `0.2`, `5ms`, `50pkt`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from narrows.experiment import Pairs


@dataclass(frozen=True)
class ControllerUse:
    """Which controller a traffic entry runs, with which parameters."""

    traffic: str
    name: str
    ecn: bool
    parameters: Pairs


def uses_of(plan: Mapping[str, Any], registry: Sequence[Mapping[str, Any]]) -> tuple[ControllerUse, ...]:
    """The controllers of a plan's body, one per traffic entry."""
    specs = {str(spec["name"]): spec["parameters"] for spec in registry}
    return tuple(
        ControllerUse(
            traffic=str(traffic["name"]),
            name=str(traffic["controller"]["name"]),
            ecn=bool(traffic["controller"]["ecn"]),
            parameters=_parameters(specs.get(str(traffic["controller"]["name"]), []), traffic["controller"]["values"]),
        )
        for traffic in plan["traffic"]
    )


def _parameters(specs: Sequence[Mapping[str, Any]], values: Sequence[object]) -> Pairs:
    return tuple(
        (str(spec["name"]), value_text(value, spec["kind"])) for spec, value in zip(specs, values, strict=True)
    )


def value_text(value: object, kind: object) -> str:
    """One value: `"auto"` or `{variant: integer}`, in the plan's own units (ps, bit/s, packets, bytes, 2⁻ᵇⁱᵗˢ)."""
    if not isinstance(value, Mapping):
        return str(value)
    (variant, raw), *_ = value.items()
    match variant:
        case "switch":
            return "true" if raw else "false"
        case "span":
            return _span(int(raw))
        case "rate":
            return _scaled(int(raw), (("Gbps", 10**9), ("Mbps", 10**6), ("kbps", 10**3)), "bps")
        case "packets":
            return f"{raw}pkt"
        case "bytes":
            return _scaled(int(raw), (("GB", 10**9), ("MB", 10**6), ("KB", 10**3)), "B")
        case "real":
            bits = _detail(kind, "real", "bits")
            return _real(int(raw), bits) if isinstance(bits, int) else str(raw)
        case "choice":
            names = _detail(kind, "choice", None)
            return str(names[raw]) if isinstance(names, list) and raw < len(names) else str(raw)
    return str(raw)


def _detail(kind: object, variant: str, key: str | None) -> object:
    if not isinstance(kind, Mapping):
        return None
    inner = kind.get(variant)
    if key is None:
        return inner
    return inner.get(key) if isinstance(inner, Mapping) else None


def _real(scaled: int, bits: int) -> str:
    """The shortest decimal that is held as this integer: what was written, not what scaling made of it."""
    value = scaled / 2**bits
    texts = (f"{value:.{digits}g}" for digits in range(1, 18))
    return next((text for text in texts if round(float(text) * 2**bits) == scaled), repr(value)).replace("e-0", "e-")


def _span(picoseconds: int) -> str:
    return _scaled(picoseconds, (("s", 10**12), ("ms", 10**9), ("us", 10**6), ("ns", 10**3)), "ps")


def _scaled(value: int, units: tuple[tuple[str, int], ...], smallest: str) -> str:
    for name, size in units:
        if value >= size:
            return f"{value / size:.10g}{name}"
    return f"{value}{smallest}"
