"""DCTCP, Table 2: queries with and without long flows on other ports of the switch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from narrows.figures import bars, requests

if TYPE_CHECKING:
    import altair as alt

    from narrows.results import Results

ARMS = ("tcp", "tcp-background", "dctcp", "dctcp-background")


def draw(results: Results) -> alt.TopLevelMixin:
    """The table's 95th percentiles, and the timeouts that the text tells of."""
    frames = results.frames
    return bars.draw(
        [requests.panel(frames, "p95", "Query completion, p95"), requests.timeouts(frames, "Queries with a timeout")],
        ARMS,
    )
