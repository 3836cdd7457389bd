"""Goodput and window of flows without a size, over time: small multiples of the first seed, a line for each flow."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import altair as alt
import polars as pl

from narrows import wording
from narrows.figures import events, style
from narrows.measures.longlived import GOODPUT

if TYPE_CHECKING:
    from narrows.frames import Frames

MAX_FLOWS: Final = 12
"""Lines in a panel: the first flows to begin."""
BUCKETS: Final = 110
PER_ROW: Final = 4


def over_time(frames: Frames, quantity: str) -> alt.FacetChart | None:
    """A panel for each case; `None` without samples."""
    data = _reduced(frames, quantity)
    if data.is_empty():
        return None
    title, unit = ("goodput", "Mbit/s") if quantity == GOODPUT else ("window", "packets")
    several = data.group_by("case").agg(pl.col("controller").n_unique())["controller"].max() != 1
    tooltip = [
        alt.Tooltip("case:N", title="scheme"),
        alt.Tooltip("flow:N", title="flow"),
        alt.Tooltip("workload:N", title="traffic"),
        alt.Tooltip("controller:N", title="controller"),
        alt.Tooltip("time:Q", title="time, s", format=".3~f"),
        alt.Tooltip("value:Q", title=f"{title}, {unit}", format=",.4~r"),
    ]
    across = _across(frames)
    told = pl.concat([data, events.marks(frames)], how="diagonal")
    ends = style.ends(told["time"])
    base = alt.Chart().encode(
        x=alt.X(
            "time:Q",
            axis=style.linear_axis(*ends, title="time, s", grid=False, labelFlush=True),
            scale=alt.Scale(nice=False, domain=ends),
        ),
        y=alt.Y("value:Q", title=f"{title}, {unit}", axis=alt.Axis(tickCount=4, format=",~r")),
        color=_coloured(data, "controller") if several else style.colour(frames.cases),
        detail="flow:N",
    )
    line = base.mark_line(strokeWidth=1.2).encode(opacity=style.visible(0.85))
    points = base.mark_point(filled=True, opacity=0).encode(
        tooltip=tooltip, size=style.visible(50, 0, channel=alt.SizeValue)
    )
    return _panels(told, frames, across, *events.lines(told), line, points, spacing=14)


def one_of_each(frames: Frames) -> alt.FacetChart:
    """Goodput over time of the first flow of each traffic, first seed: a panel for each case."""
    seed = frames.first_seed
    first = (
        frames.long.filter(pl.col("seed") == seed)
        .sort("case", "flow")
        .unique(["case", "workload"], keep="first", maintain_order=True)
        .select("case", "workload", pl.format("flow-{}", "flow").alias("entity"))
    )
    data = (
        frames.series.filter((pl.col("quantity") == GOODPUT) & (pl.col("seed") == seed))
        .join(first.lazy(), on=["case", "entity"])
        .select("case", "workload", (pl.col("time_ns") / 1e9).alias("time"), (pl.col("value") / 1e6).alias("mbps"))
        .sort("case", "workload", "time")
        .collect()
    )
    tooltip = [
        alt.Tooltip("case:N", title="scheme"),
        alt.Tooltip("workload:N", title="traffic"),
        alt.Tooltip("time:Q", title="time, s"),
        alt.Tooltip("mbps:Q", title="goodput, Mbit/s", format=",.4~r"),
    ]
    across = _across(frames)
    base = alt.Chart().encode(
        x=alt.X(
            "time:Q", axis=alt.Axis(title="time, s (first seed)", tickCount=5, grid=False), scale=alt.Scale(nice=False)
        ),
        y=alt.Y("mbps:Q", title="goodput, Mbit/s", axis=alt.Axis(tickCount=4, format=",~r")),
        color=_coloured(first, "workload"),
    )
    line = base.mark_line(strokeWidth=1.4)
    points = base.mark_point(filled=True, opacity=0, size=40).encode(tooltip=tooltip)
    panels = _panels(data, frames, across, line, points, spacing=24)
    return panels.resolve_axis(x="independent", y="independent")  # type: ignore[no-any-return]  # untyped in the library


def _coloured(data: pl.DataFrame, column: str) -> alt.Color:
    """Names by their colours, with a legend."""
    names = data[column].unique(maintain_order=True).to_list()
    return alt.Color(f"{column}:N", scale=style.colour_scale(names), legend=style.legend_of(names))


def _across(frames: Frames) -> int:
    return style.headers(frames.cases).across(len(frames.cases), least=150, most=PER_ROW, room=style.WIDTH - 62, gap=30)


def _panels(data: pl.DataFrame, frames: Frames, across: int, *layers: alt.Chart, spacing: int) -> alt.FacetChart:
    """A panel for each case, so many in a row."""
    facet = alt.Facet("case:N", sort=list(frames.cases), header=style.headers(frames.cases).header)
    drawn = alt.layer(*layers).properties(width=max(150, (style.WIDTH - 62) // across - 30), height=150)
    return drawn.facet(facet=facet, columns=across, data=style.rows(data), spacing=spacing)


def _reduced(frames: Frames, quantity: str) -> pl.DataFrame:
    """Means over equal times of the first seed's samples."""
    seed = frames.first_seed
    flows = (
        frames.long.filter(pl.col("seed") == seed)
        .sort("case", "flow")
        .group_by("case", maintain_order=True)
        .head(MAX_FLOWS)
        .select(
            "case",
            "workload",
            pl.col("controller").replace("none", wording.DATAGRAMS),
            "flow",
            pl.format("flow-{}", "flow").alias("entity"),
        )
    )
    samples = (
        frames.series.filter((pl.col("quantity") == quantity) & (pl.col("seed") == seed))
        .select("case", "entity", "time_ns", "value")
        .join(flows.lazy(), on=["case", "entity"])
        .collect()
    )
    last = samples["time_ns"].max()
    width_ns = max(1, (int(last) if isinstance(last, int) else 0) // BUCKETS + 1)
    unit = 1e-6 if quantity == GOODPUT else 1.0
    return (
        samples.group_by("case", "workload", "controller", "flow", pl.col("time_ns") // width_ns)
        .agg(pl.col("value").mean() * unit)
        .with_columns(((pl.col("time_ns") + 0.5) * width_ns / 1e9).alias("time"))
        .drop("time_ns")
        .sort("case", "flow", "time")
    )
