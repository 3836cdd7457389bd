"""DCTCP, Fig. 12: the queue of the simulation against the extremes of the analysis, 2, 10 and 40 flows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from narrows.figures import occupancy
from narrows.measures import analysis
from narrows.measures.bottleneck import queue_samples

if TYPE_CHECKING:
    import altair as alt

    from narrows.results import Results

SHOWN_SECONDS = 0.007


def draw(results: Results) -> alt.TopLevelMixin:
    """A panel for each number of flows, as in the paper; dashed: the longest and shortest queue of the analysis."""
    frames = results.frames
    capacity = analysis.packets_per_second(10e9)
    teeth = {case: analysis.Sawtooth(float(case.rpartition("=")[2]), capacity, 100e-6, 40.0) for case in frames.cases}
    extremes = [
        (case, value)
        for case, tooth in teeth.items()
        for value in (tooth.highest, tooth.highest - tooth.printed_amplitude)
    ]
    references = pl.DataFrame(extremes, schema=["case", "value"], orient="row")
    samples = queue_samples(frames).collect()
    return occupancy.course(samples, frames.cases, seconds=SHOWN_SECONDS, references=references)
