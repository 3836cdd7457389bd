"""DCTCP, Fig. 18: query delay and timeouts against the number of servers, 100 packets of buffer for each port."""

from __future__ import annotations

from typing import TYPE_CHECKING

from narrows.figures import requests, style, sweep

if TYPE_CHECKING:
    from collections.abc import Sequence

    import altair as alt
    import polars as pl

    from narrows.results import Results

AXIS = "traffic.query.incast.count"
PAPER = ("DCTCP, 300 ms", "DCTCP, 10 ms", "TCP, 300 ms", "TCP, 10 ms")
MODERN = tuple(name.replace("CP,", "CP on Linux 6,") for name in PAPER)
NAMES = {
    f"{arm}{stack} · min-rto={rto}ms": f"{name}{'' if not stack else ' on Linux 6'}, {rto} ms"
    for arm, name in (("dctcp", "DCTCP"), ("tcp", "TCP"))
    for stack in ("", "-linux-6")
    for rto in (300, 10)
}


def draw(results: Results) -> alt.TopLevelMixin:
    """The paper's two panels and four lines, dotted with the short minimum; below, the same on a modern stack."""
    table = requests.by_servers(results.frames, NAMES, AXIS)
    return style.stacked(_row(table, lines) for lines in (PAPER, MODERN)).resolve_scale(color="independent")


def _row(table: pl.DataFrame, lines: Sequence[str]) -> alt.HConcatChart:
    own = table.filter(table["arm"].is_in(list(lines)))
    panels = [
        sweep.Panel("Query delay, mean; dotted: least timeout 10 ms", "ms", own, "mean", log=True),
        sweep.Panel("Queries with a timeout", "%", own, "percent"),
    ]
    short = [name for name in lines if name.endswith(", 10 ms")]
    return sweep.draw(panels, AXIS, lines, title="number of servers", broken=short)
