"""DCTCP, Fig. 19: query delay and timeouts against the number of servers, dynamic buffers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from narrows.figures import requests, sweep

if TYPE_CHECKING:
    import altair as alt

    from narrows.results import Results

AXIS = "traffic.query.incast.count"
NAMES = {"dctcp": "DCTCP", "tcp": "TCP", "dctcp-linux-6": "DCTCP on Linux 6", "tcp-linux-6": "TCP on Linux 6"}


def draw(results: Results) -> alt.TopLevelMixin:
    """The paper's two panels, and the modern stack in them."""
    table = requests.by_servers(results.frames, NAMES, AXIS)
    panels = [
        sweep.Panel("Query delay, mean", "ms", table, "mean"),
        sweep.Panel("Queries with a timeout", "%", table, "percent"),
    ]
    return sweep.draw(panels, AXIS, tuple(NAMES.values()), title="number of servers")
