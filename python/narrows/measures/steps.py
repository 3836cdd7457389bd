"""Measures of flows that come and go: how soon they share the line, how evenly, and how steadily."""

from __future__ import annotations

import math
import statistics
from typing import TYPE_CHECKING

import polars as pl

from narrows.measures import intervals
from narrows.measures.longlived import WINDOW
from narrows.measures.registry import NotEvaluable, by_seed, measure

if TYPE_CHECKING:
    from collections.abc import Callable

    from narrows.frames import Frames
    from narrows.measures.intervals import Step
    from narrows.measures.stats import BySeed


@measure("ms")
def convergence(frames: Frames, arm: str) -> BySeed:
    """Median over the steps of the time from a change of who sends until all hold their shares; never is infinite."""

    def time(step: Step) -> float:
        return math.inf if step.converged_after_ns is None else step.converged_after_ns / 1e6

    return {seed: statistics.median(times) for seed, times in _over_steps(frames, arm, time).items()}


@measure("")
def steps_converged(frames: Frames, arm: str) -> BySeed:
    """Share of the steps in which the flows come to hold their shares."""
    return _mean(frames, arm, lambda step: step.converged_after_ns is not None)


@measure("")
def jain_steps(frames: Frames, arm: str) -> BySeed:
    """Jain's index over the flows that are active, in the steady part of each step, mean over the steps."""
    return _mean(frames, arm, lambda step: step.jain)


@measure("Mbit/s")
def goodput_std(frames: Frames, arm: str) -> BySeed:
    """Standard deviation of a flow's goodput of 100 ms in the steady part of each step, mean over flows and steps."""
    return _mean(frames, arm, lambda step: step.deviation / 1e6)


@measure("")
def first_cut(frames: Frames, arm: str) -> BySeed:
    """By which share the window falls when it first falls, until it rises or stays for a base RTT; mean over flows.

    A sender reduces at once, or over as many acknowledgements as a window has: either way it is one cut.
    """
    flows = frames.long.filter(pl.col("case") == arm).select(
        "seed", pl.format("flow-{}", "flow").alias("entity"), "base_rtt_ns"
    )
    before = pl.col("value").shift(1).over("seed", "entity")
    next_ns = pl.col("time_ns").shift(-1).over("seed", "entity").fill_null(pl.col("last_ns"))
    stays = (next_ns - pl.col("time_ns") >= pl.col("base_rtt_ns")).alias("stays")
    changes = (
        frames.series.filter((pl.col("quantity") == WINDOW) & (pl.col("case") == arm))
        .join(flows.lazy(), on=["seed", "entity"])
        .sort("seed", "entity", "time_ns")
        .with_columns(before.alias("before"), pl.col("time_ns").max().over("seed", "entity").alias("last_ns"))
        .filter(pl.col("before").is_null() | (pl.col("before") != pl.col("value")))
        .with_columns(stays, (pl.col("value") < pl.col("before")).fill_null(value=False).alias("falls"))
    )
    since = changes.filter(pl.col("falls").cum_max().over("seed", "entity"))
    # The fall is over where the window stays, or before it rises; one that falls to the last sample has no end.
    over = pl.col("stays") | ~pl.col("falls").shift(-1)
    table = (
        since.group_by("seed", "entity", maintain_order=True)
        .agg((1.0 - pl.col("value").filter(over).first() / pl.col("before").first()).alias("value"))
        .drop_nulls("value")
        .group_by("seed", maintain_order=True)
        .agg(pl.col("value").mean())
        .collect()
    )
    found = by_seed(table)
    if not found:
        raise NotEvaluable("no window was sampled that falls and stays")
    return found


def _mean(frames: Frames, arm: str, value: Callable[[Step], float]) -> BySeed:
    return {seed: sum(values) / len(values) for seed, values in _over_steps(frames, arm, value).items()}


def _over_steps(frames: Frames, arm: str, value: Callable[[Step], float]) -> dict[int, list[float]]:
    found: dict[int, list[float]] = {}
    for step in intervals.steps(frames, arm):
        found.setdefault(step.seed, []).append(float(value(step)))
    if not found:
        raise NotEvaluable("no goodput was sampled while the same two flows were sending")
    return found
