"""Measures of programs: ranks that compute, send and wait."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from narrows import wording
from narrows.measures.registry import NotEvaluable, Unfinished, by_seed, measure, refuse_unfinished
from narrows.measures.tables import NS_PER_MS, in_class, nearest_rank

if TYPE_CHECKING:
    from narrows.frames import Frames
    from narrows.measures.stats import BySeed

_LASTED: Final = (pl.col("end_ns").max() - pl.col("start_ns").min()).cast(pl.Float64) / NS_PER_MS
_EXECUTION: Final = pl.when(pl.col("finished").all()).then(_LASTED)
"""Of a program's ranks: null if one of them did not end."""
_COMPUTE, _WAIT = (pl.col(name).cast(pl.Float64) / NS_PER_MS for name in ("compute_ns", "wait_ns"))
_WAITING: Final = _WAIT.sum() / (_WAIT.sum() + _COMPUTE.sum())


def by_run(frames: Frames) -> pl.DataFrame:
    """Per run and program: its `ranks`; in ms `execution`, null if one of them did not end, and `first`, until one did.

    `compute` and `wait` of a rank, mean in ms, and `waiting`, the share of the time of all ranks.
    """
    return frames.ranks.group_by([*frames.keys, "workload", "controller"], maintain_order=True).agg(
        pl.len().alias("ranks"),
        _EXECUTION.alias("execution"),
        ((pl.col("end_ns").min() - pl.col("start_ns").min()).cast(pl.Float64) / NS_PER_MS).alias("first"),
        _COMPUTE.mean().alias("compute"),
        _WAIT.mean().alias("wait"),
        _WAITING.alias("waiting"),
    )


@measure("ms")
def execution_time(frames: Frames, arm: str) -> BySeed:
    """Execution time of the program, from its start to the end of its last rank; of several, the longest."""
    own = _ranks(frames, arm)
    programs = own.group_by("seed", "workload").agg(_EXECUTION.alias("value"))
    if late := programs.filter(pl.col("value").is_null())["workload"].unique().to_list():
        raise Unfinished(f"not evaluable: {wording.some(sorted(late))} did not end before the end of the run")
    return by_seed(programs.group_by("seed").agg(pl.col("value").max()))


@measure("")
def waiting_share(frames: Frames, arm: str) -> BySeed:
    """Share of the ranks' time in which none of a rank's processors computed, until its last operation ended."""
    return by_seed(_ranks(frames, arm).group_by("seed").agg(_WAITING.alias("value")))


@measure("ms")
def fct_small_p99_during(frames: Frames, arm: str) -> BySeed:
    """99th percentile of the completion time of other flows under 100 KB that started while a program ran."""
    ranks = _ranks(frames, arm)
    # One that did not end ran until the end of the run, after which no flow starts.
    last = pl.when(pl.col("finished").all()).then(pl.col("end_ns").max())
    running = ranks.group_by("seed").agg(pl.col("start_ns").min().alias("from"), last.alias("to"))
    own = pl.col("workload").cast(pl.String).is_in(ranks["workload"].unique().to_list())
    beside = frames.of([arm]).flows.filter(~own & in_class("small") & pl.col("sized")).join(running, on="seed")
    is_while = (pl.col("start_ns") >= pl.col("from")) & (pl.col("to").is_null() | (pl.col("start_ns") <= pl.col("to")))
    during = beside.filter(is_while)
    refuse_unfinished(int((~during["finished"]).sum()), len(during), "small flows beside the program")
    fct = nearest_rank(pl.col("fct_ns").cast(pl.Float64) / NS_PER_MS, 99)
    found = by_seed(during.group_by("seed").agg(fct.alias("value")))
    if not found:
        raise NotEvaluable(f"not evaluable: {len(during)} small flows in all (1000 needed in a seed)")
    return found


def _ranks(frames: Frames, arm: str) -> pl.DataFrame:
    own = frames.ranks.filter(pl.col("case") == arm)
    if own.is_empty():
        raise NotEvaluable(f"no program runs with {arm}")
    return own
