"""Short and Fat, commercial workload with UDP: requests, and who loses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from narrows.figures import lossless, style

if TYPE_CHECKING:
    import altair as alt

    from narrows.results import Results


def draw(results: Results) -> alt.TopLevelMixin:
    """Completion of requests above, dropped payload below."""
    frames = results.frames
    return style.stacked([
        lossless.panels(lossless.measured(frames, "request_mean"), "Mean completion time of requests, ms"),
        lossless.panels(lossless.measured(frames, "dropped"), "Dropped payload, MB"),
    ])  # fmt: skip
