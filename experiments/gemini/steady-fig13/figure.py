"""Mean completion time of all flows, and unfinished work, against the length of the run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from narrows.figures import bars, style
from narrows.measures.named import value_by_seed

if TYPE_CHECKING:
    import altair as alt

    from narrows.frames import Frames
    from narrows.results import Results


def draw(results: Results) -> alt.TopLevelMixin:
    """A panel for each measure, a bar for each scheme and length."""
    frames = results.frames
    panels = [
        bars.Panel("Completion time, mean of all flows", "ms", _by_case(frames, "fct_mean")),
        bars.Panel("Unfinished work, mean over time", "MB", _by_case(frames, "unfinished_work")),
    ]
    return bars.draw(panels, frames.cases, width=style.WIDTH // 2)


def _by_case(frames: Frames, measure: str) -> pl.DataFrame:
    rows = [
        (case, value) for case in frames.cases for value in value_by_seed(frames.of([case]), measure, (case,)).values()
    ]
    return bars.by_case(pl.DataFrame(rows, schema={"case": pl.String, measure: pl.Float64}, orient="row"), measure)
