"""Who yields: goodput of long-lived flows inside and across that share a port, and the port's queue, over time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import altair as alt
import polars as pl

from narrows import wording
from narrows.figures import style
from narrows.measures import longlived

if TYPE_CHECKING:
    from narrows.frames import Frames

WHO: Final = {"intra": "inside", "inter": "across"}
SCALES: Final = {"Gbit/s": 1e9, "Mbit/s": 1e6}


@dataclass(frozen=True)
class Window:
    """What is shown of a run's first seed."""

    from_s: float
    to_s: float
    unit: str
    """Of goodput: `Gbit/s` or `Mbit/s`."""


def draw(frames: Frames, window: Window) -> alt.TopLevelMixin:
    """A column for each scheme: above what both kinds get, below the queue at the port; a row for each backend."""
    rates = pl.concat([_rates(frames, case, window) for case in frames.cases])
    # What a hole held back comes at once when it is filled: such a bin may be ten times the line.
    top = float(rates["rate"].quantile(0.98) or 1) * 1.25
    rows = []
    for backend in dict.fromkeys(frames.backends.values()):
        cases = [case for case in frames.cases if frames.backends[case] == backend]
        width = max(150, (style.WIDTH - 62) // len(cases) - 62)
        columns = [_column(frames, case, rates, window, width, top, first=case == cases[0]) for case in cases]
        rows.append(alt.hconcat(*columns, spacing=18))
    notes = ["Each queue has a scale of its own."]
    if cut := [rate for rate in rates["rate"] if rate > top]:
        notes.append(
            f"Goodput above {wording.number(top)} {window.unit} is cut off: bytes that waited behind a hole and came "
            f"at once, up to {wording.number(max(cut))}."
        )
    noted = style.captioned(alt.vconcat(*rows, spacing=24), " ".join(notes))
    return noted.resolve_scale(color="shared")  # type: ignore[no-any-return]  # untyped in the library


def _column(
    frames: Frames, case: str, rates: pl.DataFrame, window: Window, width: int, top: float, *, first: bool
) -> alt.VConcatChart:
    x = alt.X(
        "time:Q",
        axis=style.linear_axis(window.from_s, window.to_s, title="time, s (first seed)", grid=False),
        scale=alt.Scale(domain=[window.from_s, window.to_s], nice=False),
    )
    colour = alt.Color(
        "who:N",
        scale=alt.Scale(domain=list(WHO.values()), range=["#009e73", "#56b4e9"]),
        legend=alt.Legend(orient="top", title=None, labelLimit=300),
    )
    y = alt.Y(
        "rate:Q",
        title=f"goodput, {window.unit}" if first else None,
        scale=alt.Scale(domain=[0, top], nice=False),
    )
    drawn = (
        alt.Chart(style.rows(rates.filter(pl.col("case") == case)))
        .mark_line(strokeWidth=1.3, clip=True)
        .encode(x=x, y=y, color=colour)
        .properties(width=width, height=150, title=alt.TitleParams(case, fontSize=12, anchor="middle"))
    )
    queue = (
        alt.Chart(style.rows(_queue(frames, case, window)))
        .mark_line(strokeWidth=1.1, color="#555555")
        .encode(x=x, y=alt.Y("kb:Q", title="queue, KB" if first else None))
        .properties(width=width, height=110)
    )
    return alt.vconcat(drawn, queue, spacing=10)


def _shown(frames: Frames, case: str, quantity: str, window: Window) -> pl.LazyFrame:
    time = pl.col("time_ns") / 1e9
    chosen = (pl.col("quantity") == quantity) & (pl.col("case") == case) & (pl.col("seed") == frames.first_seed)
    return frames.series.filter(chosen & time.is_between(window.from_s, window.to_s)).with_columns(time.alias("time"))


def _rates(frames: Frames, case: str, window: Window) -> pl.DataFrame:
    """Sums by kind; nothing where none of a kind is there."""
    flows = frames.long.filter((pl.col("case") == case) & (pl.col("seed") == frames.first_seed))
    named = flows.select(pl.format("flow-{}", "flow").alias("entity"), pl.col("class").replace_strict(WHO).alias("who"))
    samples = _shown(frames, case, longlived.GOODPUT, window).join(named.lazy(), on="entity").collect()
    sums = samples.group_by("who", "time").agg((pl.col("value").sum() / SCALES[window.unit]).alias("rate"))
    every = samples.select("time").unique().join(samples.select("who").unique(), how="cross")
    filled = every.join(sums, on=["who", "time"], how="left").with_columns(pl.col("rate").fill_null(0.0))
    return filled.select(pl.lit(case).alias("case"), "who", "time", "rate").sort("who", "time")


def _queue(frames: Frames, case: str, window: Window) -> pl.DataFrame:
    shown = _shown(frames, case, "queue_bytes", window).select("time", (pl.col("value") / 1e3).alias("kb"))
    return shown.sort("time").collect()
