"""GEMINI, Fig. 5: goodput and RTT of DCTCP against its threshold, inside a datacenter and across."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from narrows.figures import sweep
from narrows.measures import longlived

if TYPE_CHECKING:
    import altair as alt

    from narrows.results import Results

AXIS = "fabric.aqm.threshold.mark-at"
PLACES = ("intra", "inter")


def draw(results: Results) -> alt.TopLevelMixin:
    """Throughput and latency, as in the paper, a column each; dashed, across with hosts that do not burst."""
    runs = longlived.by_seed(results.frames, ("case", "arm", AXIS))
    shown = runs.filter(pl.col("arm").is_in(PLACES))
    panels = [
        sweep.Panel("Throughput, all flows; dashed: hosts without offloads", "Mbit/s", shown, "total_mbps"),
        sweep.Panel("RTT, mean", "ms", shown, "rtt_ms", log=True),
    ]
    smooth = runs.filter(pl.col("arm") == "inter-smooth").with_columns(pl.lit("inter").alias("arm"))
    references = sweep.means(smooth, AXIS, ("total_mbps", "rtt_ms"))
    return sweep.draw(panels, AXIS, PLACES, title="threshold K, packets", log=True, references=references)
