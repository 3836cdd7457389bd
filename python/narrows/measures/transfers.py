"""Measures of flows without a size."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from narrows.measures import longlived
from narrows.measures.registry import NotEvaluable, by_seed, measures

if TYPE_CHECKING:
    from narrows.frames import Frames
    from narrows.measures.stats import BySeed


def _long(frames: Frames, arm: str, column: str) -> BySeed:
    if not longlived.present(frames):
        raise NotEvaluable("every flow has a size")
    return by_seed(longlived.by_seed(frames).filter(pl.col("case") == arm), column)


measures("Mbit/s", _long, {
    "goodput_long": ("goodput_mbps", "Mean goodput of a flow without a size, after the warm-up."),
    "goodput_total": ("total_mbps", "Goodput of all flows without a size together, after the warm-up."),
})  # fmt: skip
measures("ms", _long, {
    "rtt_long": ("rtt_ms", "Mean over the flows without a size of their mean RTT, of their whole life."),
})  # fmt: skip
measures("", _long, {"jain_long": ("jain", "Jain's index over the goodputs of the flows without a size.")})
