"""Short and Fat, scientific workload: how long programs take with each TCP and scheme."""

from __future__ import annotations

from typing import TYPE_CHECKING

from narrows.figures import lossless

if TYPE_CHECKING:
    import altair as alt

    from narrows.results import Results


def draw(results: Results) -> alt.TopLevelMixin:
    """A panel for each TCP, a row for each reading."""
    frames = results.frames
    title = "Execution time, geometric mean of five programs"
    drawn = lossless.panels(lossless.measured(frames, "completion"), title, "times the best", best=True)
    return lossless.explained(drawn, "The best is that of all schemes and TCPs of a row.")
