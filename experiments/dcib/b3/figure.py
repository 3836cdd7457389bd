"""DCIB, experiment III: completion times by size of the flow."""

from __future__ import annotations

from typing import TYPE_CHECKING

from narrows.figures import size_bins

if TYPE_CHECKING:
    import altair as alt

    from narrows.results import Results


def draw(results: Results) -> alt.TopLevelMixin:
    """The mean for each bin of sizes; a thousand flows are too few for tails."""
    frames = results.frames
    return size_bins.panel(frames, frames.cases, "mean", "Mean completion time by size")
