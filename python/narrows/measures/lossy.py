"""Measures of a path that loses packets whatever is sent over it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import polars as pl

from narrows.measures import longlived
from narrows.measures.registry import NotEvaluable, measure
from narrows.measures.sharing import payload_share

if TYPE_CHECKING:
    from narrows.frames import Frames
    from narrows.measures.stats import BySeed

GIVEN_UP: Final = 0.5
"""Below this share of what the losses leave of the line, a sender has reduced its rate."""


def goodput_of_what_is_left(frames: Frames) -> pl.DataFrame:
    """Per run of the flows without a size: `lost`, the share of packets lost on the wire, and `share`.

    That is their goodput over what the losses leave of the line: its rate, less framing and headers, times 1 − lost.
    """
    if not longlived.present(frames):
        raise NotEvaluable("every flow has a size")
    wire = pl.col("lost_on_wire_packets") / pl.col("sent_packets")
    worst = frames.ports.filter(pl.col("sent_packets") > 0).group_by(frames.keys, maintain_order=True).agg(
        wire.max().alias("lost"), pl.col("rate_bps").get(wire.arg_max()).alias("line")
    )  # fmt: skip
    goodput = frames.long.group_by(frames.keys).agg(pl.col("goodput_mbps").sum())
    shares = {case: payload_share(frames, case) for case in frames.cases}
    share = pl.col("case").replace_strict(shares, return_dtype=pl.Float64)
    left = share * pl.col("line") / 1e6 * (1 - pl.col("lost"))
    return worst.join(goodput, on=frames.keys, maintain_order="left").with_columns(
        (pl.col("goodput_mbps") / left).alias("share")
    )


@measure("")
def loss_that_slows(frames: Frames, arm: str) -> BySeed:
    """Over the sweep: the least share of packets lost on the wire at which goodput is below half of what they leave.

    Infinite for a seed in which no loss is so high that it slows the sender.
    Takes any case of the sweep and is of all cases of that case's scheme.
    """
    table = goodput_of_what_is_left(frames)
    own = table.filter(pl.col("case") == arm)["arm"].implode()
    slow = table.filter(pl.col("arm").is_in(own) & (pl.col("share") < GIVEN_UP))
    least = dict(slow.group_by("seed").agg(pl.col("lost").min()).iter_rows())
    return {seed: float(least.get(seed, math.inf)) for seed in frames.seeds}
