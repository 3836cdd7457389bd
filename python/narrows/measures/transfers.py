"""Measures of flows without a size."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from narrows.measures import longlived
from narrows.measures.registry import NotEvaluable, measure

if TYPE_CHECKING:
    from narrows.frames import Frames
    from narrows.measures.stats import BySeed


@measure("Mbit/s")
def goodput_long(frames: Frames, arm: str) -> BySeed:
    """Mean goodput of a flow without a size, after the warm-up."""
    return _long(frames, arm, "goodput_mbps")


@measure("Mbit/s")
def goodput_total(frames: Frames, arm: str) -> BySeed:
    """Goodput of all flows without a size together, after the warm-up."""
    return _long(frames, arm, "total_mbps")


@measure("ms")
def rtt_long(frames: Frames, arm: str) -> BySeed:
    """Mean over the flows without a size of their mean RTT, of their whole life."""
    return _long(frames, arm, "rtt_ms")


@measure("")
def jain_long(frames: Frames, arm: str) -> BySeed:
    """Jain's index over the goodputs of the flows without a size."""
    return _long(frames, arm, "jain")


def _long(frames: Frames, arm: str, column: str) -> BySeed:
    if not longlived.present(frames):
        raise NotEvaluable("every flow has a size")
    return _by_seed(longlived.by_seed(frames), arm, column)


def _by_seed(table: pl.DataFrame, arm: str, column: str) -> BySeed:
    rows = table.filter(pl.col("case") == arm).select("seed", column).drop_nulls().sort("seed").iter_rows()
    return {int(seed): float(value) for seed, value in rows}
