"""DCTCP, §3.1: the window of a flow, the packets of whose first window are all marked, from its start."""

from __future__ import annotations

from typing import TYPE_CHECKING

import altair as alt
import polars as pl

from narrows.figures import style
from narrows.measures.longlived import WINDOW

if TYPE_CHECKING:
    from narrows.results import Results

SHOWN_NS = 2_000_000


def draw(results: Results) -> alt.TopLevelMixin:
    """The late flow's window, packets, of every seed, over the first two milliseconds after its start."""
    frames = results.frames
    late = frames.long.filter(pl.col("workload") == "late").select(
        "seed", "start_ns", pl.format("flow-{}", "flow").alias("entity")
    )
    windows = (
        frames.series.filter(pl.col("quantity") == WINDOW)
        .join(late.lazy(), on=["seed", "entity"])
        .with_columns((pl.col("time_ns") - pl.col("start_ns")).alias("age_ns"))
        .filter(pl.col("age_ns") <= SHOWN_NS)
        .select("case", "seed", (pl.col("age_ns") / 1e6).alias("age"), "value")
        .sort("seed", "age")
        .collect()
    )
    return (
        alt.Chart(style.rows(windows))
        .mark_line(interpolate="step-after", strokeWidth=1.2, opacity=0.7)
        .encode(
            x=alt.X("age:Q", title="time since its start, ms", axis=alt.Axis(grid=False)),
            y=alt.Y("value:Q", title="window, packets", scale=alt.Scale(domain=[0, 40])),
            detail="seed:N",
            color=style.colour(frames.cases),
        )
        .properties(title="Window of a flow whose first window is all marked, a line per seed", width=700, height=260)
    )
