"""Measures of the flows that are no answers to requests, by size: short messages, updates [DCTCP §2.2]."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from narrows.claims.measures import NotEvaluable, measure, measure_together
from narrows.results import background, fct_by_bin

if TYPE_CHECKING:
    from narrows.results import Frames
    from narrows.stats import BySeed


@measure("ms")
def message_mean(frames: Frames, arm: str) -> BySeed:
    """Mean completion time of short messages, 100 KB to 1 MB."""
    return _message(frames, arm, "mean")


@measure("ms")
def message_p95(frames: Frames, arm: str) -> BySeed:
    """95th percentile of the completion time of short messages, 100 KB to 1 MB."""
    return _message(frames, arm, "p95")


@measure("")
def background_timeouts(frames: Frames, arm: str) -> BySeed:
    """Retransmission timeouts of all flows that answer no request."""
    flows = background(frames).filter(pl.col("case") == arm)
    counts = flows.group_by("seed").agg(pl.col("timeouts").sum()).sort("seed")
    return {int(seed): float(count) for seed, count in counts.iter_rows()}


@measure_together("")
def gain_rank_of_messages(frames: Frames, cases: tuple[str, ...]) -> BySeed:
    """Place of the short messages among the size bins under 10 MB, by how much less the mean of the second case is."""
    slow, fast = cases
    table = fct_by_bin(frames).filter(pl.col("size_to_bytes") <= 10_000_000)
    gains: dict[int, dict[str, float]] = {}
    rows = table.select("case", "seed", "bin", "mean").drop_nulls().iter_rows()
    means = {(case, seed, name): mean for case, seed, name, mean in rows}
    for (case, seed, name), mean in means.items():
        if case == slow and (fast, seed, name) in means:
            gains.setdefault(int(seed), {})[name] = mean - means[fast, seed, name]
    own = "100 KB–1 MB"
    ranks = {seed: 1.0 + sum(gain > of[own] for gain in of.values()) for seed, of in gains.items() if own in of}
    if not ranks:
        raise NotEvaluable("no short message was finished")
    return ranks


def _message(frames: Frames, arm: str, column: str) -> BySeed:
    own = fct_by_bin(frames).filter((pl.col("case") == arm) & (pl.col("bin") == "100 KB–1 MB")).sort("seed")
    found = {int(seed): float(value) for seed, value in own.select("seed", column).drop_nulls().iter_rows()}
    if not found:
        most = max(own["flows"].to_list(), default=0)
        raise NotEvaluable(f"not evaluable: {most} short messages per seed, too few for a {column}")
    return found
