"""Annulus, A-3: what is dropped of the flows across, and what both kinds wait, with one queue for both and with two."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from narrows.figures import bars, style, sweep
from narrows.measures.stats import estimate

if TYPE_CHECKING:
    import altair as alt

    from narrows.results import Results

ARMS: Final = ("shared", "isolated", "annulus")
PANELS: Final = (
    ("Dropped of what flows across send", "per 100 000 bytes", "dropped_across"),
    ("Requests across, 10 MB: mean", "ms", "fct_all / wan/1-2"),
    ("Dropped at ports inside, of both kinds", "per 100 000 packets", "plr_dcn"),
    ("Requests inside, 64 KB: p99", "ms", "fct_small_p99"),
)


def draw(results: Results) -> alt.TopLevelMixin:
    """Above what is dropped and how long is waited across, below the same of all and inside."""
    panels = [
        bars.Panel(title, unit, {arm: estimate([*sweep.by_seed(results.frames, arm, of).values()]) for arm in ARMS})
        for title, unit, of in PANELS
    ]
    return style.stacked([bars.draw(panels[:2], ARMS), bars.draw(panels[2:], ARMS)])
