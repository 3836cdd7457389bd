"""GEMINI, Fig. 9: goodput and RTT of DCTCP and GEMINI against the threshold, inside a datacenter and across."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from narrows.figures import style, sweep
from narrows.measures import longlived

if TYPE_CHECKING:
    import altair as alt

    from narrows.results import Results

AXIS = "fabric.aqm.threshold.mark-at"
SCHEMES = ("dctcp", "gemini")


def draw(results: Results) -> alt.TopLevelMixin:
    """Throughput and latency, a row for each place; dashed, hosts without offloads that acknowledge every packet."""
    runs = longlived.by_seed(results.frames, ("case", "arm", AXIS))
    inside = _row(runs, "intra", "inside the datacenter", 0)
    return style.stacked((inside, _row(runs, "inter", "across; dashed: hosts without offloads", 10)))


def _row(runs: pl.DataFrame, place: str, words: str, least_ms: float) -> alt.HConcatChart:
    own = _of(runs, f"-{place}")
    panels = [
        sweep.Panel(f"Throughput, all flows, {words}", "Mbit/s", own, "total_mbps"),
        sweep.Panel("RTT, mean", "ms", own, "rtt_ms", low=least_ms),
    ]
    references = sweep.means(_of(runs, f"-{place}-smooth"), AXIS, ("total_mbps", "rtt_ms"))
    return sweep.draw(panels, AXIS, SCHEMES, title="threshold K, packets", log=True, references=references)


def _of(runs: pl.DataFrame, suffix: str) -> pl.DataFrame:
    """The runs of the schemes whose names end like this, without that ending."""
    wanted = {f"{scheme}{suffix}": scheme for scheme in SCHEMES}
    return runs.filter(pl.col("arm").is_in(list(wanted))).with_columns(pl.col("arm").replace_strict(wanted))
