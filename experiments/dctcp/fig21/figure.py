"""DCTCP, Fig. 21: queue build-up, distribution of the completion times of 20 KB beside two long flows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from narrows.figures import bars, requests, style

if TYPE_CHECKING:
    import altair as alt

    from narrows.results import Results

ARMS = ("dctcp", "tcp", "dctcp-linux-6", "tcp-linux-6")


def draw(results: Results) -> alt.TopLevelMixin:
    """The paper's distribution; beside it the medians."""
    frames = results.frames
    return style.side_by_side(
        [
            requests.distribution(frames, ARMS, "Completion time of 20 KB"),
            bars.draw([requests.panel(frames, "p50", "Median")], ARMS, width=420),
        ]
    )
