"""Quantities with units, exact: as other tools write them, and as an experiment file does."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

PS_PER_S: Final = 10**12
PS_PER_MS: Final = 10**9
TIME_UNITS: Final = {"ps": 1, "ns": 10**3, "us": 10**6, "ms": PS_PER_MS, "s": PS_PER_S}
"""Picoseconds in each unit of time."""
RATE_UNITS: Final = {
    prefix + unit: scale
    for prefix, scale in (("", 1), ("k", 10**3), ("K", 10**3), ("M", 10**6), ("G", 10**9), ("T", 10**12))
    for unit in ("bps", "b/s")
}
"""Bits per second in each unit of a rate."""
BYTE_RATE_UNITS: Final = {
    prefix + unit: 8 * scale
    for prefix, scale in (("", 1), ("k", 10**3), ("K", 10**3), ("M", 10**6), ("G", 10**9))
    for unit in ("Bps", "B/s")
}
"""The same of units of bytes per second, as ns-3 has them [ns-3 DataRate]."""
_SIZE_UNITS: Final = {"B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_NUMBER: Final = re.compile(r"\d{1,18}(\.\d{1,18})?(e[+-]?\d{1,2})?", re.ASCII | re.IGNORECASE)


def number(text: str) -> Fraction | None:
    """A decimal number from 0 on, exact; `None` if the text is none."""
    return Fraction(text) if _NUMBER.fullmatch(text) else None


def quantity(text: str, units: Mapping[str, int]) -> Fraction | None:
    """A number and a unit, `0.001ms`, in the smallest unit; `None` if the text is none, or has no unit of these."""
    match = _NUMBER.match(text)
    scale = units.get(text[match.end() :].strip()) if match else None
    value = number(match.group()) if match else None
    return None if value is None or scale is None else value * scale


def time_text(ps: int) -> str:
    """`1us`, `4.89ms`: exact, as an experiment file has it."""
    return "0s" if ps == 0 else _text(ps, TIME_UNITS)


def rate_text(bps: int) -> str:
    """`10Gbps`, `12.304Mbps`."""
    return _text(bps, {"bps": 1, "Kbps": 10**3, "Mbps": 10**6, "Gbps": 10**9, "Tbps": 10**12})


def size_text(size: int) -> str:
    """`2MB`, `1460B`; 1 KB is 1000 B."""
    return _text(size, _SIZE_UNITS)


def seconds_text(ps: int) -> str:
    """Seconds without their unit, exact: `2.005`."""
    return _decimal(ps, PS_PER_S)


def _text(value: int, units: Mapping[str, int]) -> str:
    """In the largest unit of which there is at least one."""
    name, scale = max((item for item in units.items() if item[1] <= value), key=lambda item: item[1])
    return _decimal(value, scale) + name


def _decimal(value: int, scale: int) -> str:
    """One number over another, exact, where `scale` is a power of ten."""
    whole, rest = divmod(value, scale)
    digits = f"{rest:0{len(str(scale)) - 1}d}".rstrip("0") if rest else ""
    return f"{whole}.{digits}" if digits else str(whole)
