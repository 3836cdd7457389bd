"""Flows without a size: which they are, and the goodput of each after the warm-up."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from narrows.frames import DATAGRAM

if TYPE_CHECKING:
    from collections.abc import Sequence

    from narrows.experiment.summary import LongFlow
    from narrows.frames import Frames

GOODPUT: Final = "goodput_bps"
WINDOW: Final = "window_packets"
LIVE_LATE_NS: Final = 100_000_000
"""Later than the plan says a flow may start on a real kernel; a run in which many do does not count."""
GROUP: Final = ("case", "workload", "controller")
_STATED: Final = {
    "workload": pl.String, "source": pl.String, "destination": pl.String, "from_ns": pl.UInt64, "to_ns": pl.UInt64,
    "stop_ns": pl.UInt64, "base_rtt_ns": pl.UInt64,
}  # fmt: skip
"""What a plan says of each, which its traffic, its ends and its start name in the table of flows."""


def measured(flows: pl.LazyFrame, stated: Sequence[LongFlow], measured_ns: int, *, late_ns: int = 0) -> pl.LazyFrame:
    """Those of a run's flows that are `stated` without a size, whenever they began, with their `goodput_mbps`.

    `due_ns` is when they were to start at the earliest, and `late_ns` how much later than stated they may have started;
    `stop_ns` is when they are stopped (null: at the run's end), `base_rtt_ns` their RTT when nothing queues.
    """
    delivered = pl.col("delivered_after_warmup_bytes").cast(pl.Float64)
    known = pl.DataFrame(stated, schema=_STATED).unique(maintain_order=True)
    # Where there are none, only the columns are wanted, of what may be millions of rows.
    flows = flows if stated else flows.limit(0)
    named = flows.join(known.lazy(), on=("workload", "source", "destination"))
    in_time = named.filter(pl.col("start_ns").is_between("from_ns", pl.col("to_ns") + late_ns))
    own = in_time.group_by("flow").agg(
        pl.col("from_ns").first().alias("due_ns"), pl.col("stop_ns", "base_rtt_ns").first()
    )
    return flows.join(own, on="flow", maintain_order="left").with_columns(
        (8e3 * delivered / max(1, measured_ns)).alias("goodput_mbps")
    )


def present(frames: Frames) -> bool:
    """Whether there is anything to show of them."""
    return not frames.long.is_empty() and (frames.long["goodput_mbps"].sum() > 0 or sampled(frames, GOODPUT))


def sampled(frames: Frames, quantity: str) -> bool:
    """Whether the quantity was sampled."""
    return not frames.series.filter(pl.col("quantity") == quantity).head(1).collect().is_empty()


def by_group(frames: Frames) -> pl.DataFrame:
    """Per case, workload and controller, means over seeds of what `by_seed` gives; `flows` of a seed."""
    per_seed = by_seed(frames, GROUP)
    return per_seed.group_by(GROUP, maintain_order=True).agg(
        pl.col("flows").max(), pl.col("goodput_mbps", "jain", "rtt_ms", "retransmitted").mean()
    )


def by_seed(frames: Frames, keys: tuple[str, ...] = ("case",)) -> pl.DataFrame:
    """Per seed and keys: mean goodput of a flow, Jain's index over flows, mean RTT, share of retransmitted bytes."""
    x = pl.col("goodput_mbps")
    squares = (x * x).sum()
    sent, again = pl.col("size_bytes").sum(), pl.col("retransmitted_bytes").sum()
    retransmits = (pl.col("transport") != DATAGRAM).any()
    return frames.long.group_by([*keys, "seed"], maintain_order=True).agg(
        pl.len().alias("flows"),
        x.mean(),
        x.sum().alias("total_mbps"),
        pl.when(squares > 0).then(x.sum() ** 2 / (pl.len() * squares)).alias("jain"),
        (pl.col("rtt_mean_ns").cast(pl.Float64).mean() / 1e6).alias("rtt_ms"),
        pl.when((sent > 0) & retransmits).then(again / sent).alias("retransmitted"),
    )
