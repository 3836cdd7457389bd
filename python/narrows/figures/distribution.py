"""Cumulative distributions of completion times, reduced to the points that a screen can show."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import altair as alt
import polars as pl

from narrows.figures import style
from narrows.results import NS_PER_MS, Frames, SizeClass, in_class

if TYPE_CHECKING:
    from collections.abc import Sequence

_TAIL: Final = (0.992, 0.995, 0.998, 0.999, 0.9995, 0.9999, 1.0)
SHARES: Final = (*tuple(step / 100 for step in range(100)), 0.99, *_TAIL)


def quantiles(values: pl.Series, shares: Sequence[float] = SHARES) -> pl.DataFrame:
    """(share, value) pairs of the empirical distribution, each share once."""
    ordered = values.sort()
    last = len(ordered) - 1
    picked = [(share, float(ordered[round(share * last)])) for share in dict.fromkeys(shares)]
    return pl.DataFrame(picked, schema={"share": pl.Float64, "value": pl.Float64}, orient="row")


def completion(frames: Frames) -> alt.HConcatChart:
    """Completion times of small flows and of all flows, all seeds together; logarithmic time."""
    panels = [_panel(frames, "small", "Small flows, under 100 KB"), _panel(frames, "all", "All flows")]
    return style.side_by_side(panels)


def _panel(frames: Frames, size_class: SizeClass, title: str) -> alt.LayerChart | alt.FacetChart:
    finished = frames.flows.filter(in_class(size_class) & pl.col("finished"))
    parts = [
        quantiles(part["fct_ns"].cast(pl.Float64) / NS_PER_MS).with_columns(pl.lit(case).alias("case"))
        for case in frames.cases
        if not (part := finished.filter(pl.col("case") == case)).is_empty()
    ]
    data = (
        pl.concat(parts)
        if parts
        else pl.DataFrame(schema={"share": pl.Float64, "value": pl.Float64, "case": pl.String})
    )
    x = alt.X(
        "value:Q",
        scale=alt.Scale(type="log", nice=False),
        title="completion time, ms",
        axis=style.log_axis(data["value"]),
    )
    y = alt.Y("share:Q", title="share of flows", axis=alt.Axis(format="%", tickCount=5), scale=alt.Scale(domain=[0, 1]))
    tooltip = [
        alt.Tooltip("case:N", title="arm"),
        alt.Tooltip("share:Q", title="share of flows", format=".2%"),
        alt.Tooltip("value:Q", title="finished within, ms", format=",.4~r"),
    ]
    width = style.columns(2, label=124)
    return curve(style.rows(data), frames.cases, x, y, tooltip).properties(title=title, width=width, height=250)


def curve(
    data: alt.Data, cases: Sequence[str], x: alt.X, y: alt.Y, tooltip: list[alt.Tooltip], *, order: str = "share:Q"
) -> alt.LayerChart | alt.FacetChart:
    """Lines, and unseen points on them that answer to the pointer."""
    base = alt.Chart(data).encode(x=x, y=y, color=style.colour(cases))
    line = base.mark_line(strokeWidth=1.8, clip=True).encode(order=alt.Order(order), opacity=style.visible())
    points = base.mark_point(filled=True, opacity=0, clip=True).encode(tooltip=tooltip, size=style.visible(70, 0))
    return alt.layer(line, points)
