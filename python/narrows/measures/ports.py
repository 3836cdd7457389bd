"""Measures of the switches' ports: how long a packet waits there, and how busy they are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from narrows.measures.registry import NotEvaluable, by_seed, measure

if TYPE_CHECKING:
    from narrows.frames import Frames
    from narrows.measures.stats import BySeed

_WIRE_PER_IP: Final = 1538 / 1500
"""A full packet is 1500 bytes of a queue and takes its line 38 bytes longer."""


@measure("ms")
def queueing_delay(frames: Frames, arm: str) -> BySeed:
    """Mean wait at the switch port where it is longest: the mean backlog over the line's rate, framing included."""
    wait = 1e3 * 8 * _WIRE_PER_IP * pl.col("queue_mean_bytes") / pl.col("rate_bps")
    return _largest(frames, arm, wait)


@measure("")
def utilisation_bottleneck(frames: Frames, arm: str) -> BySeed:
    """Utilisation of the busiest switch port; at most 1, for a packet that straddles the warm-up's end counts whole."""
    return _largest(frames, arm, pl.min_horizontal(pl.col("utilisation"), 1.0))


@measure("")
def utilisation_watched(frames: Frames, arm: str) -> BySeed:
    """Mean utilisation of the watched switch ports inside the datacenters: what several equal ports have in common."""
    watched = pl.col("role").is_in(["fabric", "edge"]) & pl.col("queue_p50_bytes").is_not_null()
    ports = frames.ports.filter((pl.col("case") == arm) & watched)
    if ports.is_empty():
        raise NotEvaluable(f"no port inside the datacenters was watched with {arm}")
    return by_seed(ports.group_by("seed").agg(pl.col("utilisation").mean()), "utilisation")


def _largest(frames: Frames, arm: str, value: pl.Expr) -> BySeed:
    ports = frames.ports.filter((pl.col("case") == arm) & (pl.col("role") != "host"))
    return by_seed(ports.group_by("seed").agg(value.max().alias("value")))
