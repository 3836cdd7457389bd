"""Flows without a size: which they are, how long their paths are, and the goodput of each after the warm-up."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import polars as pl

from narrows.measures import paths

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from narrows.frames import Frames

GOODPUT: Final = "goodput_bps"
WINDOW: Final = "window_packets"
LIVE_LATE_NS: Final = 100_000_000
"""Later than the plan says a flow may start on a real kernel; a run in which many do does not count."""
GROUP: Final = ("case", "workload", "controller")


def stated(plan: Mapping[str, Any]) -> pl.DataFrame:
    """The flows that a plan's body gives no size, by what names them in the table of flows.

    With when they may start, when they are stopped (null: at the run's end), and their RTT without queues, ns.
    """
    nodes = plan["network"]["nodes"]
    base_rtt = paths.round_trips(plan["network"])
    rows = [
        (
            name,
            nodes[flow["source"]]["name"],
            nodes[flow["destination"]]["name"],
            flow["at"] // 1000,
            (flow["at"] + flow.get("spread", 0)) // 1000,
            None if flow.get("stop") is None else flow["stop"] // 1000,
            base_rtt(flow["source"], flow["destination"]),
        )
        for name, flow in _sizeless(plan)
    ]
    schema = {"workload": pl.String, "source": pl.String, "destination": pl.String, "from": pl.UInt64, "to": pl.UInt64,
              "stop_ns": pl.UInt64, "base_rtt_ns": pl.UInt64}  # fmt: skip
    return pl.DataFrame(rows, schema=schema, orient="row").unique(maintain_order=True)


def any_in(plan: Mapping[str, Any]) -> bool:
    """Whether a plan's body has a flow without a size."""
    return next(_sizeless(plan), None) is not None


def _sizeless(plan: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """With the name of their traffic."""
    for traffic in plan["traffic"]:
        for flow in traffic["pattern"].get("list", ()):
            if flow["size"] is None:
                yield traffic["name"], flow


def measured(flows: pl.LazyFrame, plan: Mapping[str, Any], measured_ns: int, *, late_ns: int = 0) -> pl.LazyFrame:
    """Those of a run's flows that have no size, whenever they began, with their `goodput_mbps`.

    `due_ns` is when they were to start at the earliest, and `late_ns` how much later than stated they may have started;
    `stop_ns` and `base_rtt_ns` are as in `stated`.
    """
    delivered = pl.col("delivered_after_warmup_bytes").cast(pl.Float64)
    named = flows.join(stated(plan).lazy(), on=("workload", "source", "destination"))
    in_time = named.filter(pl.col("start_ns").is_between("from", pl.col("to") + late_ns))
    own = in_time.group_by("flow").agg(pl.col("from").first().alias("due_ns"), pl.col("stop_ns", "base_rtt_ns").first())
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
    return frames.long.group_by([*keys, "seed"], maintain_order=True).agg(
        pl.len().alias("flows"),
        x.mean(),
        x.sum().alias("total_mbps"),
        pl.when(squares > 0).then(x.sum() ** 2 / (pl.len() * squares)).alias("jain"),
        (pl.col("rtt_mean_ns").cast(pl.Float64).mean() / 1e6).alias("rtt_ms"),
        pl.when(sent > 0).then(again / sent).alias("retransmitted"),
    )
