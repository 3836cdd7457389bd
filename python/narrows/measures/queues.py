"""Measures of a queue: of the port that is sampled, or of the longest of them. Packets are full ones, 1500 bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from narrows.measures.bottleneck import PACKET_BYTES, bottlenecks, queue_samples
from narrows.measures.registry import NotEvaluable, by_seed, measures

if TYPE_CHECKING:
    from narrows.frames import Frames
    from narrows.measures.stats import BySeed

_VALUE = pl.col("value")


def _percentile(share: float) -> pl.Expr:
    return _VALUE.quantile(share, interpolation="nearest")


def _sampled(frames: Frames, arm: str, value: pl.Expr) -> BySeed:
    samples = queue_samples(frames).filter(pl.col("case") == arm).sort("seed", "time_ns")
    found = by_seed(samples.group_by("seed", maintain_order=True).agg(value.alias("value")).collect())
    if not found:
        raise NotEvaluable("no queue was sampled")
    return found


def _of_port(frames: Frames, arm: str, value: pl.Expr) -> BySeed:
    return by_seed(bottlenecks(frames).filter(pl.col("case") == arm).select("seed", value.alias("value")))


measures("packets", _sampled, {
    "queue_median": (_VALUE.median(), "Median of the queue's samples after the warm-up."),
    "queue_spread": (
        _percentile(0.95) - _percentile(0.05), "95th minus 5th percentile of the queue's samples after the warm-up."
    ),
    "queue_std": (_VALUE.std(), "Standard deviation of the queue's samples after the warm-up."),
    "queue_range": (
        _VALUE.max() - _VALUE.min(),
        "Largest minus smallest of the queue's samples after the warm-up: the amplitude of its sawtooth.",
    ),
})  # fmt: skip
measures("packets", _of_port, {
    "queue_mean": (pl.col("queue_mean_bytes") / PACKET_BYTES, "The queue's mean over time after the warm-up."),
    "queue_max": (
        pl.col("queue_max_bytes") / PACKET_BYTES,
        "The longest queue after the warm-up, of every arrival and not of samples only.",
    ),
})  # fmt: skip
measures("", _of_port, {
    "utilisation_line": (
        pl.col("utilisation").round(4),
        "Utilisation of the line behind the queue; less than 10⁻⁴ is a packet at either end of the time that counts.",
    ),
})  # fmt: skip
