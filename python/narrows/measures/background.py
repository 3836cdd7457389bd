"""Measures of the flows that are no answers to requests, by size: short messages, updates [DCTCP §2.2]."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from narrows.measures.registry import NotEvaluable, by_seed, measure, measures
from narrows.measures.tables import fct_by_bin

if TYPE_CHECKING:
    from narrows.frames import Frames
    from narrows.measures.stats import BySeed


SHORT: Final = "100 KB–1 MB"
"""The size bin of short messages [DCTCP §2.2]."""


def _message(frames: Frames, arm: str, column: str) -> BySeed:
    own = fct_by_bin(frames).filter((pl.col("case") == arm) & (pl.col("bin") == SHORT))
    found = by_seed(own, column)
    if not found:
        most = max(own["flows"].to_list(), default=0)
        raise NotEvaluable(f"not evaluable: {most} short messages per seed, too few for a {column}")
    return found


measures("ms", _message, {
    "message_mean": ("mean", "Mean completion time of short messages, 100 KB to 1 MB."),
    "message_p95": ("p95", "95th percentile of the completion time of short messages, 100 KB to 1 MB."),
})  # fmt: skip


@measure("")
def background_timeouts(frames: Frames, arm: str) -> BySeed:
    """Retransmission timeouts of all flows that are no responses."""
    flows = frames.flows.filter(pl.col("case") == arm)
    return by_seed(flows.group_by("seed").agg(pl.col("timeouts").sum()), "timeouts")


@measure("", together=True)
def gain_rank_of_messages(frames: Frames, cases: tuple[str, ...]) -> BySeed:
    """Place of the short messages among the size bins under 10 MB, by how much less the mean of the second case is.

    Of gains that are means over the seeds: one place, the same for each seed.
    """
    slow, fast = cases
    table = fct_by_bin(frames).filter(pl.col("size_to_bytes") <= 10_000_000).drop_nulls("mean")
    pairs = (table.filter(pl.col("case") == case).select("seed", "bin", "mean") for case in (slow, fast))
    both = next(pairs).join(next(pairs), on=["seed", "bin"], suffix="_fast")
    gains = dict(both.group_by("bin").agg((pl.col("mean") - pl.col("mean_fast")).mean()).iter_rows())
    if SHORT not in gains:
        raise NotEvaluable("no short message was finished")
    place = 1.0 + sum(gain > gains[SHORT] for gain in gains.values())
    return dict.fromkeys(frames.seeds, place)
