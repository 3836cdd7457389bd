"""DCTCP, Fig. 20: all-to-all incast, distribution of response times."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from narrows.figures import bars, requests, style

if TYPE_CHECKING:
    import altair as alt

    from narrows.results import Results

ARMS = ("dctcp", "tcp", "dctcp-linux-6", "tcp-linux-6")


STATED = {"tcp": 55.0, "dctcp": 0.0}
"""Per cent [DCTCP §4.2]: more than 55 with TCP."""


def draw(results: Results) -> alt.TopLevelMixin:
    """The paper's distribution; beside it the timeouts that it tells of."""
    frames = results.frames
    return style.side_by_side(
        [
            requests.distribution(frames, ARMS, "Response time of 1 MB from 40 servers"),
            bars.draw([replace(requests.timeouts(frames, "Queries with a timeout"), stated=STATED)], ARMS, width=420),
        ]
    )
