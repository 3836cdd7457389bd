"""GEMINI, beside Table II: packets lost inside the datacenters and between them, by scheme."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from narrows.figures import bars
from narrows.measures.tables import loss_by_segment

if TYPE_CHECKING:
    import altair as alt

    from narrows.results import Results


STATED = {
    "dcn": {"cubic": 78, "cubic-ecn": 24, "dctcp": 19, "cubic-fq": 66},
    "wan": {"cubic": 10, "cubic-ecn": 6},
}
"""Packets of 100 000 [GEMINI, Table II and §II-B]; less than 1 of DCTCP's in the WAN."""


def draw(results: Results) -> alt.TopLevelMixin:
    """Lost per 100 000 packets, a panel for each segment."""
    frames = results.frames
    table = loss_by_segment(frames)
    panels = [
        bars.Panel(
            title,
            "per 100 000 packets",
            bars.by_case(table.filter(pl.col("segment") == segment), "loss"),
            stated={case: value for case in frames.cases if (value := STATED[segment].get(case.partition(" · ")[0]))},
        )
        for segment, title in (("dcn", "Lost inside the datacenters"), ("wan", "Lost in the WAN"))
    ]
    return bars.draw(panels, frames.cases)
