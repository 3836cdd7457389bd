"""Measures of flows without a size."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import polars as pl

from narrows.frames import DATAGRAM
from narrows.measures import longlived
from narrows.measures.registry import PART, NotEvaluable, by_seed, measures

if TYPE_CHECKING:
    from narrows.frames import Frames
    from narrows.measures.stats import BySeed


def _long(frames: Frames, arm: str, column: str) -> BySeed:
    if not longlived.present(frames):
        raise NotEvaluable("every flow has a size")
    return by_seed(longlived.by_seed(frames).filter(pl.col("case") == arm), column)


def _governed(frames: Frames, arm: str, column: str) -> BySeed:
    """The same without datagrams, whose rate no controller chooses, unless there is nothing else."""
    own = frames.long.filter(pl.col("case") == arm)
    if own["transport"].n_unique() > 1:
        frames = replace(frames, long=own.filter(pl.col("transport") != DATAGRAM))
    return _long(frames, arm, column)


def long_of_parts(frames: Frames, arm: str, name: str) -> dict[tuple[str, str], BySeed]:
    """A measure of `LONG` of the flows of each workload and controller of a case, where it can be measured."""
    own = frames.of([arm])
    table = longlived.by_seed(own, longlived.GROUP)
    # Where others deliver, a part that delivers nothing is starved, which is its value.
    if table["total_mbps"].sum() == 0 and not longlived.sampled(own, longlived.GOODPUT):
        return {}
    parts = table.partition_by(PART, as_dict=True)
    return {(workload, controller): by_seed(part, LONG[name]) for (workload, controller), part in parts.items()}


LONG: Final = {"goodput_long": "goodput_mbps", "jain_long": "jain"}
"""Columns of `longlived.by_seed` that are measured of parts of a case, too."""
measures("Mbit/s", _governed, {
    "goodput_long": (
        "goodput_mbps",
        "Mean goodput of a flow without a size, after the warm-up; of TCP alone where there are datagrams, too.",
    ),
})  # fmt: skip
measures("Mbit/s", _long, {
    "goodput_total": ("total_mbps", "Goodput of all flows without a size together, after the warm-up."),
})  # fmt: skip
measures("ms", _long, {
    "rtt_long": ("rtt_ms", "Mean over the flows without a size of their mean RTT, of their whole life."),
})  # fmt: skip
measures("", _governed, {
    "jain_long": (
        "jain",
        "Jain's index over the goodputs of the flows without a size; of TCP alone where there are datagrams, too.",
    ),
})  # fmt: skip
