"""GEMINI, Fig. 11: goodput of one flow of each group over time, and how evenly all share while all are there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from narrows.figures import bars, longlived, style
from narrows.measures.named import NotEvaluable
from narrows.measures.sharing import jain_all

if TYPE_CHECKING:
    import altair as alt

    from narrows.frames import Frames
    from narrows.measures.stats import BySeed
    from narrows.results import Results

BESIDE = ("gemini-opened", "gemini-opened-together")
"""Not judged: connections that are opened with each flow."""


def draw(results: Results) -> alt.TopLevelMixin:
    """A panel for each scheme, as in the paper; below them Jain's index over all 30 flows, of the others too."""
    frames = results.frames
    rows = [(case, jain) for case in frames.cases for jain in _jain(frames, case).values()]
    table = pl.DataFrame(rows, schema={"case": pl.String, "jain": pl.Float64}, orient="row")
    panel = bars.Panel("Jain's index over all flows, bins of 1 s", "1 is even", bars.by_case(table, "jain"))
    even = bars.draw([panel], frames.cases, width=style.WIDTH // 2)
    schemes = frames.of([case for case in frames.cases if case not in BESIDE])
    return style.stacked((longlived.one_of_each(schemes), even)).resolve_scale(color="independent")


def _jain(frames: Frames, case: str) -> BySeed:
    """By seed; nothing where the runs do not hold it, which the panel says."""
    try:
        return jain_all(frames, case)
    except NotEvaluable:
        return {}
