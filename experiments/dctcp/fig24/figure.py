"""DCTCP, Fig. 24: 95th percentiles of short messages and of queries, ten times larger, in four variants."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import polars as pl

from narrows.figures import bars, requests
from narrows.measures.tables import fct_by_bin

if TYPE_CHECKING:
    import altair as alt

    from narrows.results import Results

ARMS = ("dctcp", "tcp", "tcp-deep", "tcp-red")


STATED = {"dctcp": 0.3, "tcp": 92.0, "tcp-deep": 1.0, "tcp-red": 95.0}
"""Per cent [DCTCP §4.3]: more than 92 with TCP, less than 1 with deep buffers."""


def draw(results: Results) -> alt.TopLevelMixin:
    """The paper's two panels, and the timeouts that its text tells of."""
    frames = results.frames
    messages = fct_by_bin(frames).filter(pl.col("bin") == "100 KB–1 MB")
    panels = [
        bars.Panel("Short messages, p95", "ms", bars.by_case(messages, "p95")),
        requests.panel(frames, "p95", "Queries, p95"),
        replace(requests.timeouts(frames, "Queries with a timeout"), stated=STATED),
    ]
    return bars.draw(panels, ARMS)
