"""Programs of ranks: how long they took, and how long each of their ranks computed and waited."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import altair as alt
import polars as pl

from narrows.figures import bars, style
from narrows.measures.programs import by_run
from narrows.measures.tables import NS_PER_MS

if TYPE_CHECKING:
    from narrows.frames import Frames

MAX_PROGRAMS: Final = 4
"""Programs that are drawn: the first of the file."""
MAX_BINS: Final = 64
"""Bars of a panel: with more ranks neighbours share one, so that a chart of thousands is no larger."""
_PER_ROW: Final = 4
_LATE: Final = "#b42318"


def drawn(frames: Frames) -> list[str]:
    """Names of the programs that the charts show."""
    return frames.ranks["workload"].unique(maintain_order=True).to_list()[:MAX_PROGRAMS]


def execution(frames: Frames) -> alt.VConcatChart:
    """Execution time, and how long a rank computed and waited: a row of bars for each program."""
    runs = by_run(frames)
    return style.stacked(_execution(runs.filter(pl.col("workload") == name), name, frames) for name in drawn(frames))


def _execution(runs: pl.DataFrame, name: str, frames: Frames) -> alt.HConcatChart:
    unit, scale = _unit(runs)
    # The mean over the seeds in which it ended would be too small.
    ended = runs.filter(pl.col("execution").is_not_null().all().over("case"))
    absent = "did not end" if runs["case"].n_unique() == len(frames.cases) else "none"
    panels = [
        bars.Panel(title, unit, bars.by_case(table, column, scale), absent=absent)
        for title, column, table in (
            (f"Execution time of {name}", "execution", ended),
            ("Computing, mean of ranks", "compute", runs),
            ("Waiting, mean of ranks", "wait", runs),
        )
    ]
    return bars.draw(panels, frames.cases)


def _unit(runs: pl.DataFrame) -> tuple[str, float]:
    """Seconds where ranks take more than one."""
    longest = max((runs["compute"] + runs["wait"]).to_list(), default=0.0)
    return ("s", 1e-3) if longest >= 1000 else ("ms", 1.0)


def by_rank(frames: Frames) -> alt.VConcatChart:
    """A panel for each case: how long each rank computed, and after it how long it waited until it ended."""
    return style.stacked(_by_rank(frames, name) for name in drawn(frames))


def _by_rank(frames: Frames, name: str) -> alt.FacetChart:
    own = frames.ranks.filter(pl.col("workload") == name)
    unit, scale = _unit(by_run(frames).filter(pl.col("workload") == name))
    data = bins(own, scale / NS_PER_MS)
    cases = [case for case in frames.cases if case in set(own["case"])]
    headers = style.headers(cases)
    across = headers.across(len(cases), least=150, most=_PER_ROW, room=style.WIDTH - 62, gap=30)
    tooltip = [
        alt.Tooltip("case:N", title="scheme"),
        alt.Tooltip("ranks:N", title="rank"),
        alt.Tooltip("node:N", title="on"),
        alt.Tooltip("compute:Q", title=f"computed, {unit}", format=",.4~r"),
        alt.Tooltip("wait:Q", title=f"waited, {unit}", format=",.4~r"),
        alt.Tooltip("range:N", title=f"ended after, {unit}"),
        alt.Tooltip("late:Q", title="did not end, runs"),
    ]
    base = alt.Chart().encode(
        x=alt.X("from:Q", title="rank", scale=alt.Scale(nice=False), axis=alt.Axis(grid=False, tickMinStep=1)),
        x2="to:Q",
        tooltip=tooltip,
    )
    y = alt.Y("compute:Q", title=f"time, {unit}", axis=alt.Axis(tickCount=4, format=",~r"))
    colour = style.colour(frames.cases)
    computing = base.mark_rect().encode(y=y, y2=alt.Y2Datum(0), color=colour, opacity=style.visible(0.9))
    waiting = base.mark_rect().encode(y=y, y2="total:Q", color=colour, opacity=style.visible(0.3))
    middle = alt.Chart().encode(x=alt.X("rank:Q"))
    spread = middle.mark_rule(color=style.INK, strokeWidth=0.8).encode(
        y="low:Q", y2="high:Q", opacity=style.visible(0.7), tooltip=tooltip
    )
    late = middle.transform_filter("datum.late > 0").mark_point(filled=True, size=14, color=_LATE, opacity=1).encode(
        y="total:Q", tooltip=tooltip
    )  # fmt: skip
    facet = alt.Facet("case:N", sort=cases, header=headers.header)
    layers = alt.layer(computing, waiting, spread, *([late] if data["late"].sum() else []))
    return (
        layers.properties(width=max(150, (style.WIDTH - 62) // across - 30), height=140)
        .facet(facet=facet, columns=across, data=style.rows(data), spacing=14)
        .properties(title=alt.TitleParams(name, fontSize=12))
    )


def bins(ranks: pl.DataFrame, scale: float) -> pl.DataFrame:
    """A program's ranks, at most `MAX_BINS` in a case: means over seeds and over the ranks of a bin, times a scale.

    `total` is from the program's start to the rank's end; `low` and `high` are of all seeds and ranks of the bin.
    """
    count = pl.col("rank").max().over("case") + 1
    width = (count + MAX_BINS - 1) // MAX_BINS
    computed, waited = (pl.col(column).cast(pl.Float64) * scale for column in ("compute_ns", "wait_ns"))
    first, last = pl.col("rank").min(), pl.col("rank").max()
    return (
        ranks.with_columns((pl.col("rank") // width).alias("bin"), (computed + waited).alias("total"))
        .group_by("case", "bin", maintain_order=True)
        .agg(
            (first.cast(pl.Float64) - 0.5).alias("from"),
            (last.cast(pl.Float64) + 0.5).alias("to"),
            pl.when(first == last)
            .then(first.cast(pl.String))
            .otherwise(pl.format("{} to {}", first, last))
            .alias("ranks"),
            pl.when(pl.col("node").n_unique() == 1)
            .then(pl.col("node").first())
            .otherwise(pl.format("{} to {}", pl.col("node").first(), pl.col("node").last()))
            .alias("node"),
            computed.mean().alias("compute"),
            waited.mean().alias("wait"),
            pl.col("total").mean(),
            pl.col("total").min().alias("low"),
            pl.col("total").max().alias("high"),
            (~pl.col("finished")).sum().alias("late"),
        )
        .with_columns(
            ((pl.col("from") + pl.col("to")) / 2).alias("rank"),
            pl.format("{} to {}", pl.col("low").round_sig_figs(4), pl.col("high").round_sig_figs(4)).alias("range"),
        )
        .drop("bin")
    )
