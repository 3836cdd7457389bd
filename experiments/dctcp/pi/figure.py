"""DCTCP, §3.5: TCP under PI and DCTCP, few flows and many: the queue, and how much of the line is used."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from narrows.figures import bars, occupancy, style
from narrows.measures.bottleneck import bottlenecks, queue_samples

if TYPE_CHECKING:
    import altair as alt

    from narrows.results import Results


def draw(results: Results) -> alt.TopLevelMixin:
    """Utilisation and the queue's deviation, then its distribution and course; the paper has no figure of it."""
    frames = results.frames
    samples = queue_samples(frames).collect()
    spread = samples.group_by("case", "seed", maintain_order=True).agg(pl.col("value").std())
    used = bottlenecks(frames).with_columns((100 * pl.col("utilisation")).alias("percent"))
    panels = [
        bars.Panel("Utilisation", "% of line rate", bars.by_case(used, "percent")),
        bars.Panel("Standard deviation of the queue", "packets", bars.by_case(spread, "value")),
    ]
    return style.stacked([
        bars.draw(panels, frames.cases),
        occupancy.distribution(samples, frames.cases),
        occupancy.course(samples, frames.cases, seconds=1.0),
    ])  # fmt: skip
