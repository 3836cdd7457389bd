"""The port whose queue an experiment is about, the samples of that queue, and what it adds to the RTT."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from narrows.measures.registry import NotEvaluable, UnknownScheme, by_seed

if TYPE_CHECKING:
    from narrows.frames import Frames
    from narrows.measures.stats import BySeed

PACKET_BYTES: Final = 1500
"""IP bytes of a full packet."""


SAME_QUEUE: Final = {"rtt_mean": "RTT, mean", "queue_p50": "Queue, median", "queue_p99": "Queue, p99"}
"""What `of_same_queue` gives, all in ms, and what a page calls it."""
ABOUT: Final = {
    "rtt_mean": "Mean over flows of the mean RTT of each. For comparisons, not for claims.",
    "queue_p50": "Median backlog of the sampled port that the first scheme uses most, as time at its rate.",
    "queue_p99": "99th percentile of the same backlog.",
}
"""What each of them is."""


def watched(ports: pl.DataFrame) -> str | None:
    """Of the ports that are sampled the one that is used most; `None` where none is sampled."""
    used = (
        ports.filter(pl.col("queue_p50_bytes").is_not_null())
        .group_by("name", maintain_order=True)
        .agg(pl.col("utilisation").mean())
        .sort("utilisation", descending=True, maintain_order=True)
    )
    return None if used.is_empty() else str(used["name"][0])


def of_same_queue(one: tuple[Frames, str], other: tuple[Frames, str]) -> dict[str, tuple[BySeed, BySeed]]:
    """By its name in `SAME_QUEUE` what two cases had: the mean RTT of their flows, and the backlog of a port.

    The port is the same for both, the one that is watched in the first; its backlog is time at its rate. ms.
    """
    sides = [frames.of([case]) for frames, case in (one, other)]
    name = watched(sides[0].ports)
    found = [
        {"rtt_mean": _rtt_ms(side), "queue_p50": _backlog_ms(side, name, 50), "queue_p99": _backlog_ms(side, name, 99)}
        for side in sides
    ]
    return {quantity: (found[0][quantity], found[1][quantity]) for quantity in SAME_QUEUE}


def same_queue_by_seed(frames: Frames, name: str, case: str) -> BySeed:
    """One of `SAME_QUEUE` of a case; the port is the one that is watched in the first case. Raises `NotEvaluable`."""
    if case not in frames.cases:
        raise UnknownScheme(f"no scheme is called {case}")
    _, values = of_same_queue((frames, frames.cases[0]), (frames, case))[name]
    if not values:
        raise NotEvaluable("no port is sampled" if name.startswith("queue") else "there are no flows")
    return values


def _rtt_ms(frames: Frames) -> BySeed:
    """Mean over flows of the mean of each; those without a size count whenever they began."""
    columns = ("seed", "flow", "rtt_mean_ns")
    parts = [part.select(columns) for part in (frames.flows, frames.long) if not part.is_empty()]
    if not parts:
        return {}
    mean = (pl.col("rtt_mean_ns").cast(pl.Float64).mean() / 1e6).alias("value")
    return by_seed(pl.concat(parts).unique(("seed", "flow"), maintain_order=True).group_by("seed").agg(mean))


def _backlog_ms(frames: Frames, port: str | None, percent: int) -> BySeed:
    if port is None:
        return {}
    backlog = pl.col(f"queue_p{percent}_bytes").cast(pl.Float64)
    own = frames.ports.filter(pl.col("name") == port)
    return by_seed(own.select("seed", (8e3 * backlog / pl.col("rate_bps")).alias("value")))


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
