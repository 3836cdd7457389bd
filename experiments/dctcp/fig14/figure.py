"""DCTCP, Fig. 14: throughput of two long flows against the marking threshold, 10 Gbit/s and 1 Gbit/s."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from narrows.figures import sweep
from narrows.measures import longlived

if TYPE_CHECKING:
    import altair as alt

    from narrows.results import Results

AXIS = "fabric.aqm.threshold.mark-at"
AT_10G, AT_1G = ("dctcp", "tcp"), ("dctcp-1g",)


def draw(results: Results) -> alt.TopLevelMixin:
    """The paper's panel, and beside it what the text says of 1 Gbit/s."""
    runs = longlived.by_seed(results.frames, ("case", "arm", AXIS)).with_columns(
        (pl.col("total_mbps") / 1000).alias("total_gbps")
    )
    panels = [
        sweep.Panel("10 Gbit/s", "goodput, Gbit/s", runs.filter(pl.col("arm").is_in(AT_10G)), "total_gbps"),
        sweep.Panel("1 Gbit/s", "goodput, Gbit/s", runs.filter(pl.col("arm").is_in(AT_1G)), "total_gbps"),
    ]
    return sweep.draw(panels, AXIS, (*AT_10G, *AT_1G), title="threshold K, packets")
