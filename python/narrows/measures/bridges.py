"""Measures of bridges: routers at both ends of a WAN that choose what may be lost, and repair it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from narrows.measures.registry import NotEvaluable, by_seed, measure
from narrows.measures.tables import fct_by_bin

if TYPE_CHECKING:
    from narrows.frames import Frames
    from narrows.measures.stats import BySeed


@measure("")
def marked_share(frames: Frames, arm: str) -> BySeed:
    """Of the packets with data that edge routers received from their own sites, the share made loss-eligible."""
    own = frames.bridges.filter(pl.col("case") == arm)
    if own.is_empty() or not own["data_packets"].sum():
        raise NotEvaluable(f"no edge pair carries data with {arm}")
    share = pl.col("marked_packets").sum() / pl.col("data_packets").sum()
    return by_seed(own.group_by("seed").agg(share.alias("value")))


@measure("")
def lost_on_wire(frames: Frames, arm: str) -> BySeed:
    """Of the packets that the busiest WAN port's queue sent, the share that its wire lost; repairs apart."""
    busiest = pl.col("sent_bytes").arg_max()
    lost, sent = (pl.col(name).get(busiest) for name in ("lost_on_wire_packets", "sent_packets"))
    ports = frames.ports.filter((pl.col("case") == arm) & (pl.col("role") == "wan"))
    return by_seed(ports.group_by("seed").agg((lost / sent).alias("value")))


@measure("")
def window_cuts(frames: Frames, arm: str) -> BySeed:
    """How often a sampled window is below nine tenths of the one before it, over all flows."""
    windows = frames.series.filter((pl.col("case") == arm) & (pl.col("quantity") == "window_packets"))
    cut = pl.col("value") < 0.9 * pl.col("value").shift(1).over("seed", "entity")
    table = windows.sort("seed", "entity", "time_ns").group_by("seed").agg(cut.sum().alias("value")).collect()
    if table.is_empty():
        raise NotEvaluable("windows were not sampled")
    return by_seed(table)


@measure("")
def cuts_per_loss(frames: Frames, arm: str) -> BySeed:
    """Cuts of a sampled window, as `window_cuts`, for each packet that a wire lost."""
    lost = dict(
        frames.ports.filter(pl.col("case") == arm)
        .group_by("seed")
        .agg(pl.col("lost_on_wire_packets").sum())
        .iter_rows()
    )
    found = {seed: cuts / lost[seed] for seed, cuts in window_cuts(frames, arm).items() if lost.get(seed)}
    if not found:
        raise NotEvaluable(f"no packet was lost with {arm}")
    return found


@measure("", together=True)
def completion_reduced_most(frames: Frames, cases: tuple[str, ...]) -> BySeed:
    """1 less the ratio of the second case's mean completion time to the first's, in the size bin where it is largest.

    The bin is that of the largest mean reduction over the seeds, the same for each seed.
    """
    table = fct_by_bin(frames).drop_nulls("mean")
    slow, fast = (table.filter(pl.col("case") == case).select("seed", "bin", "mean") for case in cases)
    both = slow.join(fast, on=["seed", "bin"], suffix="_fast")
    reduced = both.with_columns((1 - pl.col("mean_fast") / pl.col("mean")).alias("value"))
    if reduced.is_empty():
        raise NotEvaluable("no size bin has enough flows of both schemes")
    best = reduced.group_by("bin").agg(pl.col("value").mean()).sort("value", "bin").row(-1)[0]
    return by_seed(reduced.filter(pl.col("bin") == best))
