"""The port whose queue an experiment is about, and the samples of that queue."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

if TYPE_CHECKING:
    from narrows.results import Frames

PACKET_BYTES: Final = 1500
"""IP bytes of a full packet."""


def bottlenecks(frames: Frames) -> pl.DataFrame:
    """Of each case and seed the sampled port with the longest mean queue; of all switches' ports where none is."""
    sampled = frames.series.filter(pl.col("quantity") == "queue_bytes").select("entity").unique().collect()["entity"]
    inside = pl.col("role") != "host"
    chosen = pl.col("name").is_in(sampled.implode()) if len(sampled) else inside
    ports = frames.ports.filter(chosen).sort("queue_mean_bytes", descending=True, maintain_order=True)
    return ports.group_by(frames.keys, maintain_order=True).first()


def queue_samples(frames: Frames) -> pl.LazyFrame:
    """Samples of the bottlenecks after the warm-up, in packets: `case`, `seed`, `time_ns`, `value`."""
    ports = bottlenecks(frames).select("case", "seed", pl.col("name").alias("entity"), "measured_ns").lazy()
    last = pl.col("time_ns").max().over("case", "seed")
    return (
        frames.series.filter(pl.col("quantity") == "queue_bytes")
        .join(ports, on=["case", "seed", "entity"])
        .filter(pl.col("time_ns") + pl.col("measured_ns") > last)
        .select("case", "seed", "time_ns", pl.col("value") / PACKET_BYTES)
    )
