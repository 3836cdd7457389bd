"""GEMINI, Fig. 14: completion times of small, large and all flows, 10 Gbit/s, all flows between the datacenters."""

from __future__ import annotations

from typing import TYPE_CHECKING

from narrows.figures.completion import four_panels

if TYPE_CHECKING:
    import altair as alt

    from narrows.results import Results

TITLE = "Fig. 14: completion time by scheme, between the datacenters, 10 Gbit/s"


def draw(results: Results) -> alt.TopLevelMixin:
    """The paper's four panels: small average, small p99, large average, all average."""
    return four_panels(results.frames, TITLE)
