"""A loop near the source beside GEMINI, in Fig. 13's setting: completion times of small, large and all flows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from narrows.figures.completion import four_panels

if TYPE_CHECKING:
    import altair as alt

    from narrows.results import Results

TITLE = "Beyond Fig. 13: a loop near the source, between the datacenters, 1 Gbit/s"


def draw(results: Results) -> alt.TopLevelMixin:
    """Its four panels: small average, small p99, large average, all average."""
    return four_panels(results.frames, TITLE)
