"""Measures of how flows without a size share capacity: by RTT, and while groups of them come and go.

Those that look at a whole sweep take any of its cases and are of all cases of that case's scheme.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import polars as pl

from narrows.measures import longlived, tables
from narrows.measures.registry import NotEvaluable, by_seed, measure

if TYPE_CHECKING:
    from narrows.frames import Frames
    from narrows.measures.stats import BySeed

EQUAL: Final = (0.5, 2.3)
"""Between these ratios of goodputs, flows count as sharing equally: what gem-066 accepts."""
NEAR: Final = 0.2
"""A flow has come to its share when it is so near to it [gem-065]."""


def payload_share(frames: Frames, case: str) -> float:
    """Of a line's bits, those of a full segment's payload; framing, headers and timestamps are the rest."""
    mtu = frames.mtu_of(case)
    return (mtu - 52) / (mtu + 38)


@measure("")
def inter_over_intra(frames: Frames, arm: str) -> BySeed:
    """Mean goodput of a flow that crosses datacenters over that of one that does not."""
    return _ratio(_of(frames, arm), "goodput_mbps")


@measure("")
def round_trip_ratio(frames: Frames, arm: str) -> BySeed:
    """RTT without queues of flows that cross datacenters over that of those that do not."""
    return _ratio(_of(frames, arm), "base_rtt_ns")


@measure("")
def shared_equally_up_to(frames: Frames, arm: str) -> BySeed:
    """Over the sweep: the largest ratio of RTTs up to which all flows share equally; 1 if there is none."""
    best: BySeed = {}
    unequal: set[int] = set()
    cases = [(round_trip_ratio(frames, case), inter_over_intra(frames, case)) for case in _sweep(frames, arm)]
    for ratios, shares in sorted(cases, key=lambda pair: sorted(pair[0].values())):
        for seed, ratio in ratios.items():
            best.setdefault(seed, 1.0)
            if not EQUAL[0] <= shares.get(seed, math.nan) <= EQUAL[1]:
                unequal.add(seed)
            elif seed not in unequal:
                best[seed] = ratio
    return best


@measure("")
def jain_all(frames: Frames, arm: str) -> BySeed:
    """Mean of Jain's index over the bins of goodput in which no flow is yet to come and none has been stopped."""
    long = _of(frames, arm)
    last, first = long["due_ns"].max(), long["stop_ns"].min()
    if not isinstance(last, int):
        raise NotEvaluable(f"no flow of {arm} lasts")
    table = tables.jain(frames, from_ns=last, to_ns=first if isinstance(first, int) else None)
    return by_seed(table.filter(pl.col("case") == arm), "jain")


@measure("s")
def time_to_share(frames: Frames, arm: str) -> BySeed:
    """From when flows come or go until all are within 20 % of their shares in one bin; the longest over the changes.

    Infinite if that does not happen before the next change.
    """
    return by_seed(convergence(frames, arm).group_by("seed").agg(pl.col("seconds").max()), "seconds")


def convergence(frames: Frames, case: str) -> pl.DataFrame:
    """Per seed and moment at which flows come or go: `seconds` until all flows are near their shares in one bin.

    The share is the WAN's rate over the number of flows that are there then.
    """
    line = frames.ports.filter(pl.col("role") == "wan")["rate_bps"].max()
    if not isinstance(line, int):
        raise NotEvaluable("there is no WAN")
    long = _of(frames, case)
    samples = (
        frames.series.filter((pl.col("quantity") == longlived.GOODPUT) & (pl.col("case") == case))
        .select("seed", "time_ns", "entity", "value")
        .collect()
    )
    if samples.is_empty():
        raise NotEvaluable("goodput was not sampled")
    moments = sorted({*long["due_ns"], *long["stop_ns"].drop_nulls()})
    parts = []
    for change, until in zip(moments, [*moments[1:], samples["time_ns"].max()], strict=True):
        there = long.filter((pl.col("due_ns") <= change) & (pl.col("stop_ns").is_null() | (pl.col("stop_ns") > change)))
        if there.is_empty():
            continue
        flows = there.select("seed", pl.format("flow-{}", "flow").alias("entity"))
        share = payload_share(frames, case) * line / pl.len().over("seed")
        near = (pl.col("value") / pl.col("share") - 1).abs() <= NEAR
        reached = (
            samples.filter((pl.col("time_ns") > change) & (pl.col("time_ns") <= until))
            .join(flows.with_columns(share.alias("share")), on=["seed", "entity"])
            .group_by("seed", "time_ns")
            .agg(near.all().alias("near"))
            .filter("near")
            .group_by("seed")
            .agg((pl.col("time_ns").min() - change).alias("took_ns"))
        )
        took = flows.select("seed").unique().join(reached, on="seed", how="left")
        took = took.with_columns((pl.col("took_ns") / 1e9).fill_null(math.inf).alias("seconds"))
        parts.append(took.select("seed", pl.lit(change / 1e9).alias("change"), "seconds"))
    return pl.concat(parts).sort("seed", "change")


def _sweep(frames: Frames, arm: str) -> list[str]:
    """Every case of the scheme that this case belongs to."""
    arms = frames.ports.select("case", "arm").unique(maintain_order=True)
    own = arms.filter(pl.col("case") == arm)["arm"].implode()
    return arms.filter(pl.col("arm").is_in(own))["case"].to_list()


def _of(frames: Frames, case: str) -> pl.DataFrame:
    if not longlived.present(frames):
        raise NotEvaluable("every flow has a size")
    return frames.long.filter(pl.col("case") == case)


def _ratio(flows: pl.DataFrame, column: str) -> BySeed:
    """Mean of flows that cross datacenters over that of those that do not."""
    across, within = (
        pl.col(column).cast(pl.Float64).filter(pl.col("class") == name).mean() for name in ("inter", "intra")
    )
    return by_seed(flows.group_by("seed").agg((across / within).alias("value")))
