"""Measures of what ports send over time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from narrows.measures.registry import NotEvaluable, by_seed, measure

if TYPE_CHECKING:
    from narrows.frames import Frames
    from narrows.measures.stats import BySeed


@measure("")
def burstiness_wan(frames: Frames, arm: str) -> BySeed:
    """Standard deviation over mean of what a WAN port sends in a bin, after the warm-up; mean over sampled ports."""
    wan = (
        frames.ports.filter((pl.col("case") == arm) & (pl.col("role") == "wan"))
        .select("seed", pl.col("name").alias("entity"), "measured_ns")
        .lazy()
    )
    last = pl.col("time_ns").max().over("seed", "entity")
    bins = (
        frames.series.filter((pl.col("quantity") == "sent_bps") & (pl.col("case") == arm))
        .join(wan, on=["seed", "entity"])
        .filter(pl.col("time_ns") + pl.col("measured_ns") > last)
        # Sums depend on their order in the last digits: the same runs are to give the same number.
        .sort("seed", "entity", "time_ns")
        .group_by("seed", "entity", maintain_order=True)
        .agg((pl.col("value").std(ddof=0) / pl.col("value").mean()).alias("value"))
        .filter(pl.col("value").is_finite())
        .group_by("seed", maintain_order=True)
        .agg(pl.col("value").mean())
        .collect()
    )
    if bins.is_empty():
        raise NotEvaluable(f"nothing that the WAN sent was sampled with {arm}")
    return by_seed(bins)
