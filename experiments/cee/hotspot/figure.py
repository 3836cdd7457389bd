"""Short and Fat, queue dynamics: the queue of one hot port, and who has most of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from narrows.figures import lossless, style

if TYPE_CHECKING:
    import altair as alt

    from narrows.results import Results


def draw(results: Results) -> alt.TopLevelMixin:
    """The queue over 9 ms with NewReno, with and without pauses; the largest flow's share."""
    frames = results.frames
    share = lossless.measured(frames, "largest_share", 100)
    drawn = style.stacked([
        lossless.queue_over_time(frames, "leaf-1->l1-1", "newreno", (200, 209)),
        lossless.panels(
            share, "What the largest of ten flows gets of the line", "% of the line", line=lossless.Line(10, "equal")
        ),
    ])  # fmt: skip
    return lossless.explained(
        drawn,
        "Dashed, above: what RED or QCN asks for; the memory, or the pause and resume thresholds, where they limit "
        "this queue. The shape of the queue is judged by output port. Dashed, below: equal shares.",
    )
