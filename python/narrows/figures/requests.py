"""Requests of one client to many servers: the distribution of their completion times, and how many suffer timeouts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from narrows.figures import bars, style
from narrows.figures.distribution import axes, curve, curves
from narrows.measures.tables import NS_PER_MS, REQUEST_PERCENTILES, SAMPLES_BEYOND, request_ms, samples_needed
from narrows.wording import whole

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import altair as alt

    from narrows.frames import Frames


def distribution(
    frames: Frames, cases: Sequence[str], title: str, *, tail: bool = False, width: int = 440
) -> alt.LayerChart | alt.FacetChart:
    """Completion times of all seeds together; with `tail`, who takes longer, down to where ten samples are left."""
    finished = frames.requests.drop_nulls("completion_ns")
    milliseconds = finished.select("case", (pl.col("completion_ns").cast(pl.Float64) / NS_PER_MS).alias("value"))
    data = curves(milliseconds, cases, tail=tail)
    x, y, tooltip = axes(data, tail=tail)
    drawn = curve(style.rows(data), cases, x, y, tooltip, order="value:Q", legend=True)
    return drawn.properties(title=title, width=width, height=230)


def draw(frames: Frames) -> alt.VConcatChart:
    """All cases: the distribution of completion times, its tail, and below it the requests with a timeout."""
    width = style.columns(2, label=124)
    slowest = frames.requests.drop_nulls("completion_ns")["case"].value_counts()["count"].max()
    tail = isinstance(slowest, int) and slowest >= 2 * SAMPLES_BEYOND
    curves = style.side_by_side(
        distribution(frames, frames.cases, title, tail=tail, width=width)
        for title, tail in (("Requests", False), *((("Requests: the tail", True),) if tail else ()))
    )
    # Bars have no legend: with a scale of their own they do not take away that of the curves.
    below = style.stacked([curves, bars.draw([timeouts(frames)], frames.cases)])
    return below.resolve_scale(color="independent")  # type: ignore[no-any-return]  # untyped in the library


def panel(frames: Frames, column: str, title: str, unit: str = "ms", *, scale: float = 1.0) -> bars.Panel:
    """Bars of a column of the table of requests."""
    return bars.Panel(title, unit, bars.by_case(request_ms(frames), column, scale), reason=_reason(column))


def _reason(column: str) -> str:
    if column not in REQUEST_PERCENTILES:
        return ""
    percent = REQUEST_PERCENTILES[column]
    return f"too few requests for a p{percent:g}: {whole(samples_needed(percent))} in each seed are needed"


def timeouts(frames: Frames, title: str = "Requests with a timeout") -> bars.Panel:
    """Share of requests with at least one retransmission timeout."""
    return panel(frames, "share", title, "%", scale=100.0)


def by_servers(frames: Frames, names: Mapping[str, str], axis: str) -> pl.DataFrame:
    """The table of requests for a sweep over servers: `arm` is what `names` calls a case without its last axis."""
    table = request_ms(frames).with_columns((100.0 * pl.col("share")).alias("percent"))
    line = pl.col("case").str.replace(r" · [^·]*$", "")
    return table.with_columns(line.replace(names).alias("arm")).select("arm", axis, "seed", "mean", "percent")
