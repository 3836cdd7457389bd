"""GEMINI, Fig. 5: goodput and round trip of DCTCP against its threshold, inside a datacenter and across."""

from __future__ import annotations

from typing import TYPE_CHECKING

from narrows import longlived
from narrows.figures import sweep

if TYPE_CHECKING:
    import altair as alt

    from narrows.results import Results

AXIS = "fabric.aqm.threshold.mark-at"


def draw(results: Results) -> alt.TopLevelMixin:
    """Throughput and latency, as in the paper; a column each."""
    frames = results.frames
    runs = longlived.by_seed(frames, ("case", "arm", AXIS))
    panels = [
        sweep.Panel("Throughput, all flows", "Mbit/s", runs, "total_mbps"),
        sweep.Panel("Round trip, mean", "ms", runs, "rtt_ms", log=True),
    ]
    return sweep.draw(panels, AXIS, ("intra", "inter"), title="threshold K, packets", log=True)
