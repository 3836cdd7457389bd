"""GEMINI, Fig. 4: completion times under the schemes that were there before GEMINI, same runs as Fig. 13."""

from __future__ import annotations

from typing import TYPE_CHECKING

from narrows.figures.completion import four_panels

if TYPE_CHECKING:
    import altair as alt

    from narrows.results import Results

TITLE = "Fig. 4: completion time by scheme, between the datacenters, 1 Gbit/s"


def draw(results: Results) -> alt.TopLevelMixin:
    """The paper's four panels: small average, small p99, large average, all average."""
    return four_panels(results.frames, TITLE)
