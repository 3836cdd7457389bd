"""Annulus, A-1: goodput of the flow across and of the four inside, and the queue that they share, over time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import altair as alt
import polars as pl

from narrows import longlived
from narrows.figures import style

if TYPE_CHECKING:
    from narrows.results import Frames, Results

FROM_S, TO_S = 0.28, 0.46
"""The first of four times, and what comes after it."""
WHO: Final = {"intra": "four flows inside, DCTCP", "inter": "one flow across, BBR"}


def draw(results: Results) -> alt.TopLevelMixin:
    """A column for each arm: above what both kinds get, below the queue at the port."""
    frames = results.frames
    columns = [_column(frames, case, first=place == 0) for place, case in enumerate(frames.cases)]
    return alt.hconcat(*columns, spacing=18).resolve_scale(color="shared")


def _column(frames: Frames, case: str, *, first: bool) -> alt.VConcatChart:
    width = max(150, (style.WIDTH - 62) // len(frames.cases) - 62)
    x = alt.X(
        "time:Q",
        axis=alt.Axis(title="time, s (first seed)", tickCount=4, grid=False),
        scale=alt.Scale(domain=[FROM_S, TO_S], nice=False),
    )
    colour = alt.Color(
        "who:N",
        scale=alt.Scale(domain=list(WHO.values()), range=["#009e73", "#56b4e9"]),
        legend=alt.Legend(orient="top", title=None, labelLimit=300),
    )
    rates = (
        alt.Chart(style.rows(_rates(frames, case)))
        .mark_line(strokeWidth=1.3)
        .encode(
            x=x,
            y=alt.Y("gbps:Q", title="goodput, Gbit/s" if first else None, scale=alt.Scale(domain=[0, 10])),
            color=colour,
        )
        .properties(width=width, height=150, title=alt.TitleParams(case, fontSize=12, anchor="middle"))
    )
    queue = (
        alt.Chart(style.rows(_queue(frames, case)))
        .mark_line(strokeWidth=1.1, color="#555555")
        .encode(x=x, y=alt.Y("kb:Q", title="queue, KB" if first else None))
        .properties(width=width, height=110)
    )
    return alt.vconcat(rates, queue, spacing=10)


def _shown(frames: Frames, case: str, quantity: str) -> pl.LazyFrame:
    seed = frames.first_seed
    time = pl.col("time_ns") / 1e9
    chosen = (pl.col("quantity") == quantity) & (pl.col("case") == case) & (pl.col("seed") == seed)
    return frames.series.filter(chosen & time.is_between(FROM_S, TO_S)).with_columns(time.alias("time"))


def _rates(frames: Frames, case: str) -> pl.DataFrame:
    flows = frames.long.filter((pl.col("case") == case) & (pl.col("seed") == frames.first_seed))
    named = flows.select(pl.format("flow-{}", "flow").alias("entity"), pl.col("class").replace_strict(WHO).alias("who"))
    return (
        _shown(frames, case, longlived.GOODPUT)
        .join(named.lazy(), on="entity")
        .group_by("who", "time")
        .agg((pl.col("value").sum() / 1e9).alias("gbps"))
        .sort("who", "time")
        .collect()
    )


def _queue(frames: Frames, case: str) -> pl.DataFrame:
    shown = _shown(frames, case, "queue_bytes").select("time", (pl.col("value") / 1e3).alias("kb"))
    return shown.sort("time").collect()
