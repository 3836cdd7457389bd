"""Goodput of flows that come and go: a panel for each case, a line for each flow."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import altair as alt
import polars as pl

from narrows.figures import style
from narrows.measures.longlived import GOODPUT

if TYPE_CHECKING:
    from narrows.frames import Frames

_TALL: Final = 170


def over_time(frames: Frames, *, every: str = "1s") -> alt.VConcatChart:
    """The first seed's flows, means over `every` so long."""
    labels = (
        frames.long.filter(pl.col("seed") == frames.seeds[0])
        .sort("case", "start_ns")
        .select("case", pl.format("flow-{}", "flow").alias("entity"), pl.col("source").alias("sender"))
    )
    data = (
        frames.series.filter((pl.col("quantity") == GOODPUT) & (pl.col("seed") == frames.seeds[0]))
        .select(
            "case",
            "entity",
            pl.col("time_ns").cast(pl.Int64).cast(pl.Datetime("ns")).alias("at"),
            pl.col("value") / 1e6,
        )
        .join(labels.lazy(), on=["case", "entity"])
        .sort("case", "sender", "at")
        .group_by_dynamic("at", every=every, group_by=["case", "sender"])
        .agg(pl.col("value").mean())
        .with_columns((pl.col("at").cast(pl.Int64) / 1e9).alias("time"))
        .select("case", "sender", "time", "value")
        .collect()
    )
    senders = labels["sender"].unique(maintain_order=True).to_list()
    return style.stacked(_panel(data.filter(pl.col("case") == case), case, senders) for case in frames.cases)


def _panel(data: pl.DataFrame, case: str, senders: list[str]) -> alt.Chart:
    chart: alt.Chart = (
        alt.Chart(style.rows(data))
        .mark_line(strokeWidth=1.3)
        .encode(
            x=alt.X(
                "time:Q",
                title="time, s (first seed)",
                scale=alt.Scale(nice=False),
                axis=alt.Axis(tickCount=10, grid=False),
            ),
            y=alt.Y("value:Q", title="goodput, Mbit/s", axis=alt.Axis(tickCount=5, format=",~r")),
            color=alt.Color(
                "sender:N", scale=style.colour_scale(senders), legend=style.legend_of(senders, title="sender")
            ),
            tooltip=[
                alt.Tooltip("sender:N", title="sender"),
                alt.Tooltip("time:Q", title="time, s", format=".3~f"),
                alt.Tooltip("value:Q", title="goodput, Mbit/s", format=",.4~r"),
            ],
        )
        .properties(title=case, width=style.WIDTH - 70, height=_TALL)
    )
    return chart
