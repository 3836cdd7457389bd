"""DCTCP, Table 2: queries with and without long flows on other ports of the switch."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from narrows.figures import bars, requests

if TYPE_CHECKING:
    import altair as alt

    from narrows.results import Results

ARMS = ("tcp", "tcp-background", "dctcp", "dctcp-background")


P95 = {"tcp": 9.87, "tcp-background": 46.94, "dctcp": 9.17, "dctcp-background": 9.09}
"""Milliseconds [DCTCP, Table 2]."""
TIMEOUTS = {"tcp-background": 7.0, "dctcp-background": 0.08}
"""Per cent, of the queries beside long flows [DCTCP §4.2]."""


def draw(results: Results) -> alt.TopLevelMixin:
    """The table's 95th percentiles, and the timeouts that the text tells of."""
    frames = results.frames
    return bars.draw(
        [
            replace(requests.panel(frames, "p95", "Query completion, p95"), stated=P95),
            replace(requests.timeouts(frames, "Queries with a timeout"), stated=TIMEOUTS),
        ],
        ARMS,
    )
