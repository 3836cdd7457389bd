"""Measures of a queue: of the port that is sampled, or of the longest of them. Packets are full ones, 1500 bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from narrows.measures.bottleneck import PACKET_BYTES, bottlenecks, queue_samples
from narrows.measures.registry import NotEvaluable, measure

if TYPE_CHECKING:
    from narrows.frames import Frames
    from narrows.measures.stats import BySeed


@measure("packets")
def queue_median(frames: Frames, arm: str) -> BySeed:
    """Median of the queue's samples after the warm-up."""
    return _sampled(frames, arm, pl.col("value").median())


@measure("packets")
def queue_spread(frames: Frames, arm: str) -> BySeed:
    """95th minus 5th percentile of the queue's samples after the warm-up."""
    return _sampled(frames, arm, _percentile(0.95) - _percentile(0.05))


@measure("packets")
def queue_std(frames: Frames, arm: str) -> BySeed:
    """Standard deviation of the queue's samples after the warm-up."""
    return _sampled(frames, arm, pl.col("value").std())


@measure("packets")
def queue_range(frames: Frames, arm: str) -> BySeed:
    """Largest minus smallest of the queue's samples after the warm-up: the amplitude of its sawtooth."""
    return _sampled(frames, arm, pl.col("value").max() - pl.col("value").min())


@measure("packets")
def queue_mean(frames: Frames, arm: str) -> BySeed:
    """The queue's mean over time after the warm-up."""
    return _of_port(frames, arm, pl.col("queue_mean_bytes") / PACKET_BYTES)


@measure("packets")
def queue_max(frames: Frames, arm: str) -> BySeed:
    """The longest queue after the warm-up, of every arrival and not of samples only."""
    return _of_port(frames, arm, pl.col("queue_max_bytes") / PACKET_BYTES)


@measure("")
def utilisation_line(frames: Frames, arm: str) -> BySeed:
    """Utilisation of the line behind the queue; less than 10⁻⁴ is a packet at either end of the time that counts."""
    return _of_port(frames, arm, pl.col("utilisation").round(4))


def _percentile(share: float) -> pl.Expr:
    return pl.col("value").quantile(share, interpolation="nearest")


def _sampled(frames: Frames, arm: str, value: pl.Expr) -> BySeed:
    samples = queue_samples(frames).filter(pl.col("case") == arm).sort("seed", "time_ns")
    found = _by_seed(samples.group_by("seed", maintain_order=True).agg(value.alias("value")).collect())
    if not found:
        raise NotEvaluable("no queue was sampled")
    return found


def _of_port(frames: Frames, arm: str, value: pl.Expr) -> BySeed:
    return _by_seed(bottlenecks(frames).filter(pl.col("case") == arm).select("seed", value.alias("value")))


def _by_seed(table: pl.DataFrame) -> BySeed:
    return {int(seed): float(value) for seed, value in table.select("seed", "value").drop_nulls().sort("seed").rows()}
