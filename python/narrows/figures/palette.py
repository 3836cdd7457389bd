"""One colour per controller, everywhere the same, and safe for the colour-blind [Okabe and Ito 2008; Tol 2021]."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

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
    "newreno": "#555555",
}
_OTHERS: Final = (
    "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#882255", "#332288", "#999933", "#44aa99",
    "#aa4499", "#117733", "#555555",
)  # fmt: skip


def colours(cases: Sequence[str]) -> dict[str, str]:
    """A colour for each case: the controller's own, else the next one that is free."""
    chosen = {case: KNOWN[case.lower()] for case in cases if case.lower() in KNOWN}
    free = [colour for colour in _OTHERS if colour not in chosen.values()]
    for position, case in enumerate(case for case in cases if case not in chosen):
        chosen[case] = free[position % len(free)] if free else _OTHERS[position % len(_OTHERS)]
    return {case: chosen[case] for case in cases}
