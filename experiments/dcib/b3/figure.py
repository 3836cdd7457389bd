"""DCIB, experiment III: completion times by size of the flow."""

from __future__ import annotations

from typing import TYPE_CHECKING

from narrows.figures import size_bins, style

if TYPE_CHECKING:
    import altair as alt

    from narrows.results import Results


ARMS = ("cubic", "dcib+cubic")


def draw(results: Results) -> alt.TopLevelMixin:
    """Mean and 95th percentile."""
    frames = results.frames
    return style.side_by_side([
        size_bins.panel(frames, ARMS, "mean", "Mean"),
        size_bins.panel(frames, ARMS, "p95", "95th percentile", legend=False),
    ])
