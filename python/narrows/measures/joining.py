"""Measures of who yields when flows inside a datacenter join one that crosses to another, at a port near both.

Goodput is counted where it arrives: what flows inside send is there within its own bin, what crosses half an RTT
later.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import polars as pl

from narrows.measures import longlived
from narrows.measures.bottleneck import queue_samples
from narrows.measures.registry import NotEvaluable, by_seed, measure
from narrows.measures.sharing import payload_share

if TYPE_CHECKING:
    from narrows.frames import Frames
    from narrows.measures.stats import BySeed

AFTER_NS: Final = 1_000_000
"""A hundred RTTs of 10 µs: what counts as the first of the contention."""
PEAK_NS: Final = 20_000_000
"""Two RTTs of 10 ms: by then the flow that crosses has heard of it."""


@measure("")
def cut_inside(frames: Frames, arm: str) -> BySeed:
    """Share of the line's payload that joining flows inside do not get in the first ms; mean over the times."""
    line = payload_share(frames, arm) * _line(frames, arm)
    joins = _joins(frames, arm)
    got = _goodput(frames, arm, "intra").join(joins, on="seed")
    first = (pl.col("time_ns") > pl.col("at_ns")) & (pl.col("time_ns") <= pl.col("at_ns") + AFTER_NS)
    each = got.filter(first).group_by("seed", "at_ns").agg(pl.col("value").sum())
    return _mean(each.with_columns((1 - pl.col("value") / line).alias("cut")))


@measure("")
def cut_across(frames: Frames, arm: str) -> BySeed:
    """Share of its goodput that the flow that crosses loses in the first ms after others join; mean over the times.

    Against the millisecond before; both are looked at half its RTT later.
    """
    long = _of(frames, arm)
    trip = long.filter(pl.col("class") == "inter")["base_rtt_ns"].max()
    if not isinstance(trip, int | float):
        raise NotEvaluable(f"no flow of {arm} crosses")
    late_ns = math.ceil(trip / 2 / AFTER_NS) * AFTER_NS
    joins = _joins(frames, arm).with_columns((pl.col("at_ns") + late_ns).alias("seen_ns"))
    rates = _goodput(frames, arm, "inter").join(joins, on="seed")
    at = pl.col("time_ns").cast(pl.Int64) - pl.col("seen_ns").cast(pl.Int64)
    each = rates.group_by("seed", "at_ns").agg(
        pl.col("value").filter((at > -AFTER_NS) & (at <= 0)).sum().alias("before"),
        pl.col("value").filter((at > 0) & (at <= AFTER_NS)).sum().alias("after"),
    )
    return _mean(each.filter(pl.col("before") > 0).with_columns((1 - pl.col("after") / pl.col("before")).alias("cut")))


@measure("KB")
def peak_queue(frames: Frames, arm: str) -> BySeed:
    """The longest queue sampled within 20 ms after others join, mean over the times."""
    joins = _joins(frames, arm)
    samples = queue_samples(frames).filter(pl.col("case") == arm).collect().join(joins, on="seed")
    if samples.is_empty():
        raise NotEvaluable("no queue was sampled")
    soon = (pl.col("time_ns") >= pl.col("at_ns")) & (pl.col("time_ns") <= pl.col("at_ns") + PEAK_NS)
    each = samples.filter(soon).group_by("seed", "at_ns").agg((pl.col("value").max() * 1.5).alias("cut"))
    return _mean(each)


def _of(frames: Frames, arm: str) -> pl.DataFrame:
    return frames.long.filter(pl.col("case") == arm)


def _joins(frames: Frames, arm: str) -> pl.DataFrame:
    """Per seed the moments at which flows inside are to begin: `seed`, `at_ns`."""
    inside = _of(frames, arm).filter(pl.col("class") == "intra")
    if inside.is_empty():
        raise NotEvaluable(f"no flow of {arm} stays inside")
    return inside.select("seed", pl.col("due_ns").alias("at_ns")).unique().sort("seed", "at_ns")


def _goodput(frames: Frames, arm: str, where: str) -> pl.DataFrame:
    """Goodput, bit/s, of all flows of a class together, by bin: `seed`, `time_ns`, `value`."""
    flows = (
        _of(frames, arm).filter(pl.col("class") == where).select("seed", pl.format("flow-{}", "flow").alias("entity"))
    )
    samples = (
        frames.series.filter((pl.col("quantity") == longlived.GOODPUT) & (pl.col("case") == arm))
        .join(flows.lazy(), on=["seed", "entity"])
        .group_by("seed", "time_ns")
        .agg(pl.col("value").sum())
        .collect()
    )
    if samples.is_empty():
        raise NotEvaluable("goodput was not sampled")
    return samples


def _line(frames: Frames, arm: str) -> float:
    """Rate of the line behind the sampled queue, bit/s."""
    sampled = frames.series.filter(pl.col("quantity") == "queue_bytes").select("entity").unique().collect()["entity"]
    line = frames.ports.filter((pl.col("case") == arm) & pl.col("name").is_in(sampled.implode()))["rate_bps"].min()
    if not isinstance(line, int):
        raise NotEvaluable("no queue was sampled")
    return float(line)


def _mean(each: pl.DataFrame) -> BySeed:
    return by_seed(each.group_by("seed").agg(pl.col("cut").mean()), "cut")
