"""Measures of completion times, losses and utilisation."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from narrows.measures import tables
from narrows.measures.registry import NotEvaluable, measure, refuse_unfinished

if TYPE_CHECKING:
    from narrows.frames import Frames
    from narrows.measures.stats import BySeed
    from narrows.measures.tables import SizeClass


@measure("ms")
def fct_small_mean(frames: Frames, arm: str) -> BySeed:
    """Mean completion time of flows under 100 KB."""
    return _fct(frames, arm, "small", "mean")


@measure("ms")
def fct_small_p99(frames: Frames, arm: str) -> BySeed:
    """99th percentile of the completion time of flows under 100 KB."""
    return _fct(frames, arm, "small", "p99")


@measure("ms")
def fct_large_mean(frames: Frames, arm: str) -> BySeed:
    """Mean completion time of flows over 10 MB."""
    return _fct(frames, arm, "large", "mean")


@measure("ms")
def fct_mean(frames: Frames, arm: str) -> BySeed:
    """Mean completion time of all flows."""
    return _fct(frames, arm, "all", "mean")


@measure("Mbit/s")
def goodput_large(frames: Frames, arm: str) -> BySeed:
    """Mean over flows above 10 MB of size over completion time."""
    bits_per_us = 8e3 * pl.col("size_bytes").cast(pl.Float64) / pl.col("fct_ns").cast(pl.Float64)
    flows = _of(frames.flows, arm).filter(tables.in_class("large") & pl.col("finished"))
    return _by_seed(flows.group_by("seed").agg(bits_per_us.mean().alias("value")), "value")


@measure("1e-5")
def loss(frames: Frames, arm: str) -> BySeed:
    """Packets dropped anywhere per packet that a host sent."""
    return _by_seed(tables.loss_overall(_only(frames, arm)), "loss")


@measure("1e-5")
def loss_dc(frames: Frames, arm: str) -> BySeed:
    """Packets dropped inside the datacenters per packet that a host sent."""
    return _segment(frames, arm, "dcn", "loss")


@measure("1e-5")
def loss_wan(frames: Frames, arm: str) -> BySeed:
    """Packets dropped at the WAN ports per packet that a host sent."""
    return _segment(frames, arm, "wan", "loss")


@measure("1e-5")
def dropped_across(frames: Frames, arm: str) -> BySeed:
    """Payload of flows between datacenters that the network dropped, wherever, per byte that their senders sent.

    That of their requests counts as dropped, too, though the other end sends it.
    """
    flows = _of(frames.flows, arm).filter(pl.col("class") == "inter")
    refuse_unfinished(int((~flows["finished"]).sum()), len(flows), "flows between datacenters")
    # A flow that has finished has sent each of its bytes once, and some again.
    sent = pl.col("size_bytes").sum() + pl.col("retransmitted_bytes").sum()
    share = pl.col("dropped_bytes").sum() / sent / tables.LOSS_UNIT
    known = pl.col("dropped_bytes").is_not_null().all()
    found = _by_seed(flows.group_by("seed").agg(pl.when(known).then(share).alias("value")), "value")
    if not found:
        raise NotEvaluable(f"no flow crosses datacenters, or what is dropped of one is not known, with {arm}")
    return found


@measure("")
def dc_share_of_losses(frames: Frames, arm: str) -> BySeed:
    """Of all dropped packets, the share dropped inside the datacenters."""
    dcn, wan = _segment(frames, arm, "dcn", "dropped"), _segment(frames, arm, "wan", "dropped")
    shares = {seed: dcn[seed] / (dcn[seed] + wan[seed]) for seed in dcn if dcn[seed] + wan[seed] > 0}
    if not shares:
        raise NotEvaluable(f"no packet was lost with {arm}")
    return shares


@measure("")
def utilisation_wan(frames: Frames, arm: str) -> BySeed:
    """Mean utilisation of the WAN ports."""
    return _by_seed(tables.utilisation(_only(frames, arm), "wan"), "utilisation")


@measure("")
def utilisation_wan_busiest(frames: Frames, arm: str) -> BySeed:
    """Utilisation of the WAN port that is used most: of two directions the busier."""
    return _by_seed(tables.busiest(_only(frames, arm), "wan"), "utilisation")


@measure("")
def utilisation_fabric(frames: Frames, arm: str) -> BySeed:
    """Mean utilisation of the ports between ToR and border switches."""
    return _by_seed(tables.utilisation(_only(frames, arm), "fabric"), "utilisation")


@measure("")
def utilisation_hosts(frames: Frames, arm: str) -> BySeed:
    """Mean utilisation of the ports of hosts that sent flows."""
    return _by_seed(tables.utilisation(_only(frames, arm), "host"), "utilisation")


@measure("")
def share_of_small_flows(frames: Frames, arm: str) -> BySeed:
    """Share of flows under 100 KB."""
    flows = _of(frames.flows, arm).group_by("seed").agg(tables.in_class("small").mean().alias("value"))
    return _by_seed(flows, "value")


@measure("MB")
def payload(frames: Frames, arm: str) -> BySeed:
    """Size of all flows together."""
    return _by_seed(
        _of(frames.flows, arm).group_by("seed").agg((pl.col("size_bytes").sum() / 1e6).alias("value")), "value"
    )


@measure("")
def share_of_bytes_in_largest_tenth(frames: Frames, arm: str) -> BySeed:
    """Share of bytes in the tenth of flows that are largest."""
    size = pl.col("size_bytes")
    largest = size.top_k(pl.len() // 10).sum() / size.sum()
    return _by_seed(_of(frames.flows, arm).group_by("seed").agg(largest.alias("value")), "value")


def _fct(frames: Frames, arm: str, size_class: SizeClass, column: str) -> BySeed:
    table = tables.fct_ms(_only(frames, arm), size_class)
    refuse_unfinished(
        int(table["unfinished"].sum()),
        int(table["flows"].sum()),
        "flows" if size_class == "all" else f"{size_class} flows",
    )
    values = _by_seed(table, column)
    if not values:
        most = int(table["flows"].sum()) // max(1, len(table))
        need = " (1000 needed for a 99th percentile)" if column == "p99" else ""
        raise NotEvaluable(f"not evaluable: {most} {size_class} flows per seed{need}")
    return values


def _segment(frames: Frames, arm: str, segment: str, column: str) -> BySeed:
    table = tables.loss_by_segment(_only(frames, arm)).filter(pl.col("segment") == segment)
    return _by_seed(table, column)


def _of(frame: pl.DataFrame, arm: str) -> pl.DataFrame:
    return frame.filter(pl.col("case") == arm)


def _only(frames: Frames, arm: str) -> Frames:
    return frames.of([arm])


def _by_seed(table: pl.DataFrame, column: str) -> BySeed:
    rows = table.select("seed", column).drop_nulls().sort("seed").iter_rows()
    return {int(seed): float(value) for seed, value in rows}
