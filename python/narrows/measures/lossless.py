"""Measures of networks with and without pauses: how long the work takes, who loses, how long queues and RTTs become."""

from __future__ import annotations

from statistics import geometric_mean
from typing import TYPE_CHECKING, Final

import polars as pl

from narrows.measures.bottleneck import PACKET_BYTES, bottlenecks, queue_samples
from narrows.measures.programs import execution_time
from narrows.measures.registry import NotEvaluable, by_seed, measure, measures
from narrows.measures.requests import request_value
from narrows.measures.sharing import payload_share
from narrows.measures.tables import NS_PER_MS

if TYPE_CHECKING:
    from narrows.frames import Frames
    from narrows.measures.stats import BySeed

NEAR_PAUSE: Final = (80e3, 102.4e3)
"""Bytes: from where a port of 100 KiB is resumed to where it is full [CEE]."""
CONGESTED_BYTES: Final = 25_600
"""A queue is congested beyond a quarter of 100 KiB: there RED begins to mark [CEE]."""
_WIRE_PER_IP: Final = 1538 / 1500
"""A full packet is 1500 bytes of a queue and takes its line 38 bytes longer."""
_KEYS: Final = ("seed", "entity")


@measure("ms", together=True)
def completion(frames: Frames, cases: tuple[str, ...]) -> BySeed:
    """How long the work takes, requests in the mean or a program from start to end: geometric mean over the cases.

    The ratio of two such means is the geometric mean of the ratios, case by case.
    """
    columns = [_work(frames, case) for case in cases]
    common = set.intersection(*(set(column) for column in columns))
    return {seed: geometric_mean(column[seed] for column in columns) for seed in sorted(common)}


def _work(frames: Frames, case: str) -> BySeed:
    if frames.requests.filter(pl.col("case") == case).is_empty():
        return execution_time(frames, case)
    return request_value(frames, case, "mean")


def _of_flows(frames: Frames, arm: str, value: pl.Expr) -> BySeed:
    """A sum over all flows that started after the warm-up, answers to requests among them."""
    parts = [
        part.filter(pl.col("case") == arm).select("seed", value.cast(pl.Float64).alias("value"))
        for part in (frames.flows, frames.answers)
        if not part.is_empty()
    ]
    if not parts:
        raise NotEvaluable("there are no flows")
    return by_seed(pl.concat(parts).group_by("seed").agg(pl.col("value").sum()))


@measure("")
def flow_count(frames: Frames, arm: str) -> BySeed:
    """Number of flows that are no responses."""
    own = frames.flows.filter(pl.col("case") == arm)
    return by_seed(own.group_by("seed").agg(pl.len().alias("value")))


@measure("ms")
def timeout_wait(frames: Frames, arm: str) -> BySeed:
    """Retransmission timeouts that all flows have waited for, together: those of SYNs and requests among them."""
    return _of_flows(frames, arm, pl.col("rto_wait_ns") / NS_PER_MS)


@measure("MB")
def dropped(frames: Frames, arm: str) -> BySeed:
    """Payload of all flows in packets that the network dropped, each time that one was dropped."""
    return _of_flows(frames, arm, pl.col("dropped_bytes") / 1e6)


@measure("us")
def handshake_mean(frames: Frames, arm: str) -> BySeed:
    """Mean time until a flow's connection is established, of flows that open one and lose no SYN."""
    own, alone = frames.flows.filter(pl.col("case") == arm), pl.col("syn_retransmits") == 0
    of_flows = (
        own.filter(alone)
        .group_by("seed")
        .agg(pl.col("handshake_ns").sum(), pl.col("handshake_ns").count().alias("handshakes"))
    )
    parts = [of_flows.select("seed", pl.all().exclude("seed").cast(pl.Float64))]
    if not frames.answers.is_empty():
        sums = frames.answers.filter(pl.col("case") == arm)
        parts.append(sums.select("seed", pl.col("handshake_ns", "handshakes").cast(pl.Float64)))
    both = pl.concat(parts).group_by("seed").sum()
    mean = pl.col("handshake_ns") / pl.col("handshakes") / 1e3
    return by_seed(both.filter(pl.col("handshakes") > 0).select("seed", mean.alias("value")))


@measure("ms")
def rtt_largest(frames: Frames, arm: str) -> BySeed:
    """Largest of the flows' mean RTTs."""
    own = frames.flows.filter(pl.col("case") == arm)
    return by_seed(own.group_by("seed").agg((pl.col("rtt_mean_ns").max() / NS_PER_MS).alias("value")))


@measure("ms")
def queueing_delay_largest(frames: Frames, arm: str) -> BySeed:
    """The longest queue of any switch port, of every arrival, as time at the line's rate, framing included."""
    ports = frames.ports.filter((pl.col("case") == arm) & (pl.col("role") != "host"))
    wait = 1e3 * 8 * _WIRE_PER_IP * pl.col("queue_max_bytes") / pl.col("rate_bps")
    return by_seed(ports.group_by("seed").agg(wait.max().alias("value")))


@measure("KB")
def queue_p99_watched(frames: Frames, arm: str) -> BySeed:
    """Mean over the watched switch ports of the backlog that 99 % of a port's samples do not exceed."""
    ports = frames.ports.filter((pl.col("case") == arm) & pl.col("queue_p99_bytes").is_not_null())
    if ports.is_empty():
        raise NotEvaluable("no queue was sampled")
    return by_seed(ports.group_by("seed").agg((pl.col("queue_p99_bytes").mean() / 1e3).alias("value")))


@measure("")
def queue_near_pause(frames: Frames, arm: str) -> BySeed:
    """Of the samples after the warm-up that find a queue, the share from 80 to 102.4 KB, where pauses hold a port."""
    value = pl.col("value") * PACKET_BYTES
    busy = queue_samples(frames).filter((pl.col("case") == arm) & (value > 0))
    return by_seed(busy.group_by("seed").agg(value.is_between(*NEAR_PAUSE).mean().alias("value")).collect())


def _episodes(frames: Frames, arm: str, value: pl.Expr) -> BySeed:
    """Of the samples of all watched ports, by port and time; `congested` says of each whether its queue is.

    Of a program those count that were taken before it ended.
    """
    samples = frames.series.filter((pl.col("quantity") == "queue_bytes") & (pl.col("case") == arm))
    if frames.requests.filter(pl.col("case") == arm).is_empty() and not frames.ranks.is_empty():
        own = frames.ranks.filter(pl.col("case") == arm)
        ends = own.group_by("seed").agg(pl.col("end_ns").max()).lazy()
        samples = samples.join(ends, on="seed").filter(pl.col("time_ns") <= pl.col("end_ns"))
    runs = samples.sort(*_KEYS, "time_ns").with_columns(
        congested=pl.col("value") > CONGESTED_BYTES, step=pl.col("time_ns").diff().over(_KEYS)
    )
    told = runs.with_columns(first=pl.col("congested") & ~pl.col("congested").shift(1, fill_value=False).over(_KEYS))
    return by_seed(told.group_by("seed").agg(value.alias("value")).collect())


measures("", _episodes, {
    "congested_share": (
        pl.col("congested").mean(),
        "Share of the watched ports where more than 25.6 KB wait, mean over the samples; of a program until it ends.",
    ),
})  # fmt: skip
measures("us", _episodes, {
    "congested_time": (
        pl.when(pl.col("first").sum() > 0).then(
            pl.col("congested").sum() * pl.col("step").median() / pl.col("first").sum() / 1e3
        ).otherwise(0.0),
        "Mean time for which more than 25.6 KB wait at a watched port without a break; of a program until it ends.",
    ),
})  # fmt: skip


def _winner(frames: Frames, arm: str, value: pl.Expr) -> BySeed:
    """Of the flows without a size, of which the one with the highest goodput is the first.

    `capacity` is the payload that the watched port with the longest queue could carry, Mbit/s.
    """
    own = frames.long.filter(pl.col("case") == arm)
    if own.is_empty():
        raise NotEvaluable("every flow has a size")
    ports = bottlenecks(frames).filter(pl.col("case") == arm)
    capacity = payload_share(frames, arm) * pl.col("rate_bps") / 1e6
    joined = own.sort("goodput_mbps", descending=True).join(ports.select("seed", capacity=capacity), on="seed")
    return by_seed(joined.group_by("seed", maintain_order=True).agg(value.alias("value")))


_LOST: Final = pl.col("dropped_bytes").cast(pl.Float64) / 1e6
measures("", _winner, {
    "largest_share": (
        pl.col("goodput_mbps").first() / pl.col("capacity").first(),
        "Of the payload that the busiest watched port could carry, the share of the largest flow without a size.",
    ),
})  # fmt: skip
measures("MB", _winner, {
    "dropped_of_largest": (_LOST.first(), "Payload dropped of the flow without a size that has the highest goodput."),
    "dropped_of_others": (_LOST.slice(1).sum(), "Payload dropped of all other flows without a size."),
})  # fmt: skip
