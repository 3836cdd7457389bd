"""Measures of programs: ranks that compute, send and wait."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from narrows import wording
from narrows.measures.registry import NotEvaluable, by_seed, measure
from narrows.measures.tables import NS_PER_MS

if TYPE_CHECKING:
    from narrows.frames import Frames
    from narrows.measures.stats import BySeed


@measure("ms")
def execution_time(frames: Frames, arm: str) -> BySeed:
    """Execution time of the program, from its start to the end of its last rank; of several, the longest."""
    own = _ranks(frames, arm)
    time = (pl.col("end_ns").max() - pl.col("start_ns").min()).cast(pl.Float64) / NS_PER_MS
    programs = own.group_by("seed", "workload").agg(time.alias("value"), pl.col("finished").all())
    if late := programs.filter(~pl.col("finished"))["workload"].unique().to_list():
        raise NotEvaluable(f"not evaluable: {wording.some(sorted(late))} did not end before the end of the run")
    return by_seed(programs.group_by("seed").agg(pl.col("value").max()))


@measure("")
def waiting_share(frames: Frames, arm: str) -> BySeed:
    """Share of the ranks' time in which none of a rank's processors computed, until its last operation ended."""
    own = _ranks(frames, arm)
    wait, compute = (pl.col(name).sum().cast(pl.Float64) for name in ("wait_ns", "compute_ns"))
    return by_seed(own.group_by("seed").agg((wait / (wait + compute)).alias("value")))


def _ranks(frames: Frames, arm: str) -> pl.DataFrame:
    own = frames.ranks.filter(pl.col("case") == arm)
    if own.is_empty():
        raise NotEvaluable(f"no program runs with {arm}")
    return own
