"""Numbers as people read them: three digits, a unit, thin spaces between thousands."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

_THIN = "\u202f"
_PLAIN = str.maketrans({_THIN: None, "├": "|", "│": "|", "└": "`", "─": "-"})
DATAGRAMS = "datagrams"
"""What stands for a controller where there is none."""
_MAX_NAMED = 3
"""Names in a sentence."""


def number(value: float | None, digits: int = 3) -> str:
    """`0.0123`, `45.7`, `12 300`; `–` for nothing."""
    if value is None or math.isnan(value):
        return "–"
    if math.isinf(value):
        return "∞"
    if value == 0:
        return "0"
    rounded = round(value, digits - 1 - math.floor(math.log10(abs(value))))
    size = math.floor(math.log10(abs(rounded)))  # of 0.9996, which is 1.00
    text = f"{rounded:,.{max(0, digits - 1 - size)}f}"
    return text.replace(",", _THIN)


def plain(text: str) -> str:
    """The same for a file or another program: no separators between thousands, and trees drawn in ASCII."""
    return text.translate(_PLAIN)


def whole(value: float) -> str:
    """`20 427`."""
    return f"{round(value):,}".replace(",", _THIN)


def controller(name: str) -> str:
    """What a flow is driven by; `web, none` is of a workload and its controller."""
    return DATAGRAMS if name == "none" else f"{name[:-6]}, {DATAGRAMS}" if name.endswith(", none") else name


def count(value: float, digits: int = 3) -> str:
    """`4 950`, `36.6 million`, `1.2 billion`."""
    for unit, scale in (("billion", 1e9), ("million", 1e6)):
        if value >= scale:
            return f"{number(value / scale, digits)} {unit}"
    return whole(value)


def plural(value: int, thing: str) -> str:
    """`1 seed`, `3 seeds`."""
    return f"{whole(value)} {thing}{'' if value == 1 else 's'}"


def some(texts: Sequence[str]) -> str:
    """`a, b, c and 2 more`."""
    return ", ".join(texts[:_MAX_NAMED]) + (f" and {len(texts) - _MAX_NAMED} more" if len(texts) > _MAX_NAMED else "")


def milliseconds(value: float | None) -> str:
    """`18.9 ms`, `1.24 s`."""
    if value is None:
        return "–"
    return f"{number(value / 1000)} s" if value >= 1000 else f"{number(value)} ms"


def size(value: float) -> str:
    """`675 KB`; 1 KB is 1000 B."""
    for unit, scale in (("GB", 1e9), ("MB", 1e6), ("KB", 1e3)):
        if value >= scale:
            return f"{number(value / scale)} {unit}"
    return f"{whole(value)} B"


def rate(bps: float) -> str:
    """`12.3 Mbit/s`, `100 Gbit/s`."""
    for unit, scale in (("Tbit/s", 1e12), ("Gbit/s", 1e9), ("Mbit/s", 1e6), ("kbit/s", 1e3)):
        if bps >= scale:
            return f"{float(number(bps / scale).replace(_THIN, '')):g} {unit}"
    return f"{whole(bps)} bit/s"


def duration(seconds: float) -> str:
    """`50 ms`, `42 s`, `3 min 20 s`, `1 h 5 min`."""
    if 0 < seconds < 0.1:
        return f"{float(number(1000 * seconds)):g} ms"
    if seconds < 10 or (seconds < 60 and (2 * seconds) % 1 == 0):
        return f"{float(number(seconds)):g} s"
    rounded = round(seconds)
    if rounded < 60:
        return f"{rounded} s"
    if rounded < 3600:
        return f"{rounded // 60} min {rounded % 60} s".removesuffix(" 0 s")
    return f"{rounded // 3600} h {rounded % 3600 // 60} min".removesuffix(" 0 min")


def delay(seconds: float) -> str:
    """`24 µs`, `10.2 ms`."""
    return f"{float(number(1e6 * seconds)):g} µs" if 0 < seconds < 1e-3 else duration(seconds)


def percent(share: float, digits: int = 3) -> str:
    """`90.1 %` of a share between 0 and 1."""
    return f"{number(100 * share, digits)} %"
