"""The queue of the bottleneck in packets, as papers show it: how often it is so long, and how it goes over time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import altair as alt
import polars as pl

from narrows.figures import style
from narrows.figures.distribution import curve, curves
from narrows.measures.bottleneck import queue_samples

if TYPE_CHECKING:
    from collections.abc import Sequence

    from narrows.frames import Frames

MAX_POINTS: Final = 700
"""Samples of a line in time; of more, each stands for the mean of its bucket."""
_TICKS: Final = (0, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000)
"""Packets, on a logarithmic axis."""
_SHARES: Final = (*tuple(step / 100 for step in range(100)), 0.995, 0.999, 1.0)


def both(frames: Frames, *, seconds: float | None = None, log: bool = False) -> alt.VConcatChart:
    """The distribution over all seeds, and below the course of the first seed's first `seconds`."""
    samples = queue_samples(frames).collect()
    return style.stacked([distribution(samples, frames.cases, log=log), course(samples, frames.cases, seconds=seconds)])


def distribution(samples: pl.DataFrame, cases: Sequence[str], *, log: bool = False) -> alt.LayerChart | alt.FacetChart:
    """Cumulative: a curve for each case."""
    data = curves(samples, cases, _SHARES)
    largest = max(data["value"], default=0.0)
    ends = [0, next((tick for tick in _TICKS if tick >= largest), largest)]
    scale = alt.Scale(type="symlog", constant=1, nice=False, domain=ends) if log else alt.Scale(nice=False)
    axis = alt.Axis(values=_TICKS, format=",~r") if log else alt.Axis(tickCount=10, format=",~r")
    x = alt.X("value:Q", scale=scale, title="queue, packets", axis=axis)
    y = alt.Y(
        "share:Q", title="share of samples", axis=alt.Axis(format="%", tickCount=5), scale=alt.Scale(domain=[0, 1])
    )
    tooltip = [
        alt.Tooltip("case:N", title="scheme"),
        alt.Tooltip("share:Q", title="share of samples", format=".1%"),
        alt.Tooltip("value:Q", title="at most, packets", format=",.1f"),
    ]
    return curve(style.rows(data), cases, x, y, tooltip, legend=True).properties(
        title="How often the queue is at most so long", width=style.WIDTH - 70, height=250
    )


def course(
    samples: pl.DataFrame, cases: Sequence[str], *, seconds: float | None = None, references: pl.DataFrame | None = None
) -> alt.VConcatChart:
    """Over time, a panel for each case with its own scale; the first seed's first `seconds` after the warm-up.

    `references` are drawn dashed: rows of `case` and `value`, in packets.
    """
    first = samples.filter(pl.col("seed") == pl.col("seed").min())
    time = (pl.col("time_ns") - pl.col("time_ns").min()) / 1e9
    shown = first.with_columns(time.alias("time"))
    if seconds is not None:
        shown = shown.filter(pl.col("time") <= seconds)
    unit, factor = ("ms", 1e3) if (seconds or 1.0) < 0.5 else ("s", 1.0)
    reduced = pl.concat([_reduced(shown.filter(pl.col("case") == case)) for case in cases]).with_columns(
        pl.col("time") * factor
    )
    # Queues of another order have a scale of their own: a line at the bottom tells nothing.
    return alt.vconcat(
        *(
            _panel(
                reduced.filter(pl.col("case") == case),
                case,
                cases,
                f"time, {unit} (first seed)",
                references,
                last=case == cases[-1],
            )
            for case in cases
        ),
        spacing=12,
    )


def _panel(
    data: pl.DataFrame, case: str, cases: Sequence[str], x_title: str, references: pl.DataFrame | None, *, last: bool
) -> alt.LayerChart | alt.FacetChart:
    x_axis = alt.Axis(title=x_title if last else None, labels=last, ticks=last, tickCount=10, grid=False, format=",~r")
    x = alt.X("time:Q", axis=x_axis, scale=alt.Scale(nice=False))
    y = alt.Y("value:Q", title="packets", axis=alt.Axis(tickCount=4, format=",~r"), scale=alt.Scale(domainMin=0))
    tooltip = [
        alt.Tooltip("case:N", title="scheme"),
        alt.Tooltip("time:Q", title=x_title, format=".5~f"),
        alt.Tooltip("value:Q", title="queue, packets", format=",.4~r"),
    ]
    base = alt.Chart(style.rows(data)).encode(x=x, y=y, color=style.colour(cases))
    layers = [
        base.mark_line(strokeWidth=1.2, clip=True).encode(opacity=style.visible()),
        base.mark_point(filled=True, opacity=0).encode(
            tooltip=tooltip, size=style.visible(50, 0, channel=alt.SizeValue)
        ),
    ]
    own = pl.DataFrame() if references is None else references.filter(pl.col("case") == case)
    if not own.is_empty():
        rule = alt.Chart(style.rows(own)).mark_rule(strokeDash=[5, 4], strokeWidth=1.2, color=style.INK)
        layers.append(rule.encode(y=y))
    title = alt.TitleParams(case, fontSize=12)
    return alt.layer(*layers).properties(title=title, width=style.WIDTH - 70, height=84)


def _reduced(data: pl.DataFrame) -> pl.DataFrame:
    """At most so many points, each the mean of its bucket."""
    every = max(1, -(-len(data) // MAX_POINTS))
    return (
        data.sort("time_ns")
        .with_row_index("row")
        .group_by("case", pl.col("row") // every, maintain_order=True)
        .agg(pl.col("time").mean(), pl.col("value").mean())
        .drop("row")
    )
