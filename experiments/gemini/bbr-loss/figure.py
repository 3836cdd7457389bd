"""BBR's goodput against the loss of the path, and what the losses leave of the line."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from narrows.figures import sweep
from narrows.measures.lossy import goodput_of_what_is_left

if TYPE_CHECKING:
    import altair as alt

    from narrows.results import Results

AXIS = "links.wan.forward.loss"


def draw(results: Results) -> alt.TopLevelMixin:
    """Goodput, and its share of what is left; dashed: all of it."""
    table = goodput_of_what_is_left(results.frames)
    left = (pl.col("goodput_mbps") / pl.col("share")).mean().alias("value")
    line = table.group_by("arm", AXIS).agg(left).with_columns(pl.lit("goodput_mbps").alias("column"))
    panels = [
        sweep.Panel("Goodput; dashed: what the losses leave of the line", "Mbit/s", table, "goodput_mbps"),
        sweep.Panel("Goodput over what the losses leave", "ratio", table, "share", log=True),
    ]
    return sweep.draw(panels, AXIS, ("bbr",), title="loss of the path, %", references=line)
