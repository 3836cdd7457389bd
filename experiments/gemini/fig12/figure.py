"""GEMINI, Fig. 12: goodput of flows that leave the datacenter and of flows that stay, by the ratio of RTTs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from narrows.figures import style, sweep
from narrows.measures import longlived

if TYPE_CHECKING:
    import altair as alt

    from narrows.results import Results

RATIO = "RTTs"
TITLE = "RTT, inter over intra"
EVEN = "even (dashed)"


def draw(results: Results) -> alt.TopLevelMixin:
    """A panel for each scheme, as in the paper; below them the ratio of the two."""
    frames = results.frames
    flows = longlived.by_seed(frames, ("case", "arm", "class", "base_rtt_ns")).sort("base_rtt_ns")
    wide = flows.pivot(on="class", index=["case", "arm", "seed"], values=["goodput_mbps", "base_rtt_ns"]).with_columns(
        (pl.col("base_rtt_ns_inter") / pl.col("base_rtt_ns_intra")).round(1).cast(pl.String).alias(RATIO),
        (pl.col("goodput_mbps_inter") / pl.col("goodput_mbps_intra")).alias("share"),
    )
    shown = flows.select("case", "seed", pl.col("class").alias("arm"), "goodput_mbps").join(
        wide.select("case", "seed", RATIO, pl.col("arm").alias("scheme")), on=["case", "seed"]
    )
    schemes = list(dict.fromkeys(frames.long["arm"]))
    panels = [
        sweep.Panel(
            scheme, "goodput of a flow, Mbit/s", shown.filter(pl.col("scheme") == scheme), "goodput_mbps", high=240
        )
        for scheme in schemes
    ]
    share = sweep.Panel("Goodput, inter over intra", "ratio", wide, "share", log=True)
    even = pl.DataFrame({"column": "share", "arm": EVEN, RATIO: wide[RATIO].unique(), "value": 1.0})
    return style.stacked((
        sweep.draw(panels, RATIO, ("intra", "inter"), title=TITLE, log=True),
        sweep.draw([share], RATIO, (*schemes, EVEN), title=TITLE, log=True, references=even),
    )).resolve_scale(color="independent")  # fmt: skip
