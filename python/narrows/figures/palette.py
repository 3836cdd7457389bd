"""One colour per scheme, everywhere the same, and safe for the colour-blind [Okabe and Ito 2008; Tol 2021]."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from narrows.experiment import SEPARATOR
from narrows.runs.backends import Backend

if TYPE_CHECKING:
    from collections.abc import Sequence

KNOWN: Final = {
    "gemini": "#0072b2",
    "cubic": "#d55e00",
    "cubic-ecn": "#e69f00",
    "dctcp": "#009e73",
    "vegas": "#cc79a7",
    "vegas-10": "#882255",
    "bbr": "#56b4e9",
    "dcqcn": "#999933",
    "annulus": "#332288",
    "newreno": "#aa4499",
    "reno": "#aa4499",
    "tcp": "#aa4499",
}
"""What the papers call TCP is NewReno."""
_BEFORE: Final = "dcib+"
"""What stands before a scheme whose packets two edge routers repair: it is the scheme still."""
_FREE: Final = ("#cc6677", "#44aa99", "#117733", "#ddcc77", "#777777")
_OTHERS: Final = (*_FREE, *dict.fromkeys(KNOWN.values()))
"""Colours that no scheme has come first."""
_BLACK, _WHITE = (0, 0, 0), (255, 255, 255)
_SHADES: Final = (0.0, 0.4, -0.5)
DARK_PAPER: Final = "#14181d"
"""Background of a page in dark mode."""
_CONTRAST: Final = 3.5
"""Of a colour with `DARK_PAPER`, at least; graphics need 3 [WCAG 2.2, 1.4.11]."""
_STEPS: Final = 50
_DARKEST, _LIGHTEST = -0.6, 0.6
_DASHES: Final = ((), (6, 3), (2, 2), (8, 3, 2, 3), (12, 3), (1, 3))
_BACKENDS: Final = {"": 0.0, Backend.SIM: 0.0, Backend.GUEST: 0.4, Backend.HOST: -0.45}
"""How dark or light what ran a case makes its colour."""


def colours(cases: Sequence[str]) -> dict[str, str]:
    """A colour for each case: its scheme's, a shade of it where a scheme has several cases, else one that is free.

    What ran a case, where cases say it, is a shade of the scheme's colour: the simulator's is the full one.
    """
    said = {case: _backend(case) for case in cases}
    # Where what ran them is told by shades, schemes' several cases cannot be.
    told = any(backend for _, backend in said.values())
    chosen = _of_arms(list(dict.fromkeys(arm for arm, _ in said.values())), shaded=not told)
    return {case: _shade(chosen[arm], _BACKENDS[backend]) for case, (arm, backend) in said.items()}


def dashes(cases: Sequence[str]) -> dict[str, tuple[int, ...]]:
    """How the lines of cases are broken, none for whole ones: where there are more cases than colours, they repeat."""
    seen: dict[str, int] = {}
    made: dict[str, tuple[int, ...]] = {}
    for case, colour in colours(cases).items():
        place = seen[colour] = seen.get(colour, -1) + 1
        made[case] = _DASHES[place % len(_DASHES)]
    return made


def on_dark(colour: str) -> str:
    """The colour, as `#rrggbb`, as dark mode shows it: mixed with white, as little as its contrast needs."""
    mixed = (_shade(colour, step / _STEPS) for step in range(_STEPS + 1))
    return next(found for found in mixed if contrast(found, DARK_PAPER) >= _CONTRAST)


def contrast(one: str, other: str) -> float:
    """The contrast ratio of two colours, from 1 to 21 [WCAG 2.2, contrast ratio]."""
    low, high = sorted((_luminance(one), _luminance(other)))
    return (high + 0.05) / (low + 0.05)


def _luminance(colour: str) -> float:
    """Relative luminance, from 0 to 1 [WCAG 2.2, relative luminance]."""
    parts = (int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5))
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def live(cases: Sequence[str]) -> list[str]:
    """Those that say that a real kernel ran them."""
    return [case for case in cases if _backend(case)[1] not in ("", Backend.SIM)]


def _backend(case: str) -> tuple[str, str]:
    """`gemini · guest` as the scheme and what ran it; nothing where it does not say."""
    arm, _, last = case.rpartition(SEPARATOR)
    return (arm, last) if arm and last in _BACKENDS else (case, "")


def _of_arms(cases: Sequence[str], *, shaded: bool) -> dict[str, str]:
    families: dict[str, list[str]] = {}
    for case in sorted(cases, key=lambda case: case.lower() not in KNOWN):
        if (scheme := _scheme(case)) and (shaded or KNOWN[scheme] not in families):
            families.setdefault(KNOWN[scheme], []).append(case)
    chosen = {
        case: _shade(colour, amount)
        for colour, own in families.items()
        for case, amount in zip(own, _amounts(len(own)), strict=True)
    }
    free = [colour for colour in _OTHERS if colour not in families]
    for position, case in enumerate(case for case in cases if case not in chosen):
        chosen[case] = free[position % len(free)] if free else _OTHERS[position % len(_OTHERS)]
    return {case: chosen[case] for case in cases}


def _scheme(case: str) -> str | None:
    """The longest known name that a case begins with: that of `dctcp-linux-6`, `DCTCP, 10 ms`, `dctcp · flows=2`."""
    text = case.lower().removeprefix(_BEFORE)
    found = [name for name in KNOWN if re.match(rf"{re.escape(name)}(?![0-9a-z])", text)]
    return max(found, key=len, default=None)


def _amounts(count: int) -> list[float]:
    """How dark (below 0) or light each of several shades is: its own colour first, or many from dark to light."""
    if count <= len(_SHADES):
        return list(_SHADES[:count])
    return [_DARKEST + (_LIGHTEST - _DARKEST) * place / (count - 1) for place in range(count)]


def _shade(colour: str, amount: float) -> str:
    parts = (int(colour[place : place + 2], 16) for place in (1, 3, 5))
    towards = _BLACK if amount < 0 else _WHITE
    mixed = (round(part + (end - part) * abs(amount)) for part, end in zip(parts, towards, strict=True))
    return "#" + "".join(f"{part:02x}" for part in mixed)
