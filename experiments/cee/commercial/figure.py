"""Short and Fat, commercial workload: how long requests take with each TCP and scheme."""

from __future__ import annotations

from typing import TYPE_CHECKING

from narrows.figures import lossless

if TYPE_CHECKING:
    import altair as alt

    from narrows.results import Results


def draw(results: Results) -> alt.TopLevelMixin:
    """A panel for each TCP, a row for each reading."""
    return lossless.explained(
        lossless.panels(lossless.measured(results.frames, "request_mean"), "Mean completion time of requests", "ms")
    )
