"""GEMINI, Fig. 10: goodput and RTT across the WAN against the delay threshold T, a line for each cut β."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from narrows.figures import sweep
from narrows.measures import longlived
from narrows.wording import number

if TYPE_CHECKING:
    import altair as alt

    from narrows.results import Results

T, BETA = "cc.gemini.t", "cc.gemini.beta"


def draw(results: Results) -> alt.TopLevelMixin:
    """Throughput and latency, as in the paper; CUBIC, which has neither parameter, dashed."""
    every = longlived.by_seed(results.frames, ("case", "arm", T, BETA))
    cubic = every.filter(pl.col("arm") == "cubic")
    runs = every.drop_nulls(T).with_columns(("β = " + pl.col(BETA)).alias("arm"))
    panels = [
        sweep.Panel("Throughput, all flows", "Mbit/s", runs, "total_mbps", low=700),
        sweep.Panel(f"RTT, mean; CUBIC's is {_mean(cubic, 'rtt_ms')} ms", "ms", runs, "rtt_ms", low=10),
    ]
    flat = runs.select(T).unique().with_columns(
        pl.lit("total_mbps").alias("column"),
        pl.lit("cubic").alias("arm"),
        pl.lit(cubic["total_mbps"].mean()).alias("value"),
    )  # fmt: skip
    arms = [*runs["arm"].unique(maintain_order=True), "cubic"]
    return sweep.draw(panels, T, arms, title="delay threshold T, ms", log=True, references=flat)


def _mean(table: pl.DataFrame, column: str) -> str:
    mean = table[column].mean()
    assert isinstance(mean, float)
    return number(mean)
