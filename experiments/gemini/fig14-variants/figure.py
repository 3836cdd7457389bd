"""GEMINI's Fig. 14, one thing changed at a time: completion times of small, medium, large and all flows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from narrows.figures.completion import means

if TYPE_CHECKING:
    import altair as alt

    from narrows.results import Results

TITLE = "Fig. 14, one thing changed at a time: 10 Gbit/s, all flows cross the WAN"


def draw(results: Results) -> alt.TopLevelMixin:
    """Four panels: the mean of each size of flows, and of all; a bar for each variant."""
    return means(results.frames, TITLE)
