"""DCTCP, Fig. 20: all-to-all incast, distribution of response times."""

from __future__ import annotations

from typing import TYPE_CHECKING

from narrows.figures import bars, requests, style

if TYPE_CHECKING:
    import altair as alt

    from narrows.results import Results

ARMS = ("dctcp", "tcp", "dctcp-linux-6", "tcp-linux-6")


def draw(results: Results) -> alt.TopLevelMixin:
    """The paper's distribution; beside it the timeouts that it tells of."""
    frames = results.frames
    return style.side_by_side(
        [
            requests.distribution(frames, ARMS, "Response time of 1 MB from 40 servers"),
            bars.draw([requests.timeouts(frames, "Queries with a timeout")], ARMS, width=420),
        ]
    )
