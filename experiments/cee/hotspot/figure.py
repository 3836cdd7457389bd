"""Short and Fat, queue dynamics: the queue of one hot port, and who has most of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from narrows.figures import lossless, queues, style

if TYPE_CHECKING:
    import altair as alt

    from narrows.results import Results


def draw(results: Results) -> alt.TopLevelMixin:
    """The queue over 9 ms, with NewReno where packets count at the output; the largest flow's share."""
    frames = results.frames
    shown = lossless.as_schemes(frames, "output", "newreno", (200, 209))
    traces = queues.over_time(shown, ["leaf-1->l1-1"])
    title = "The queue of the hot port from 200 ms on, with NewReno. Packets count at the output"
    return style.stacked([
        traces.properties(title=title).resolve_scale(color="independent"),
        lossless.panels(lossless.measured(frames, "largest_share"), "Share of the goodput of the largest of ten flows"),
    ])  # fmt: skip
