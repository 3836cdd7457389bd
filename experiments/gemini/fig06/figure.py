"""GEMINI, Fig. 6: what larger delay thresholds give Vegas' large flows, and what they cost inside the datacenters."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from narrows.figures import sweep
from narrows.measures.tables import fct_ms, loss_by_segment

if TYPE_CHECKING:
    import altair as alt

    from narrows.results import Results

AXIS = "N"


def draw(results: Results) -> alt.TopLevelMixin:
    """Large flows' completion time, and packets lost, against N: Vegas-N has α = 2N and β = 4N packets."""
    frames = results.frames
    large = fct_ms(frames, "large").with_columns((pl.col("mean") / 1e3).alias("seconds"))
    lost = loss_by_segment(frames).filter(pl.col("segment") == "dcn")
    panels = [
        sweep.Panel("Large flows, mean completion time", "s", _against_n(large), "seconds"),
        sweep.Panel("Lost inside the datacenters, of 100 000 packets", "packets", _against_n(lost), "loss"),
    ]
    return sweep.draw(panels, AXIS, ("vegas",), title="N, times Vegas' default α = 2 and β = 4 packets")


def _against_n(table: pl.DataFrame) -> pl.DataFrame:
    """The schemes `vegas-N` as one scheme with an axis."""
    return table.with_columns(pl.col("arm").str.strip_prefix("vegas-").alias(AXIS), pl.lit("vegas").alias("arm"))
