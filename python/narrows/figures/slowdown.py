"""Slowdown against flow size: how much longer than on an empty network, for flows of each size."""

from __future__ import annotations

from typing import TYPE_CHECKING

import altair as alt
import polars as pl

from narrows.figures import style
from narrows.figures.distribution import curve
from narrows.measures.tables import slowdown_by_size

if TYPE_CHECKING:
    from collections.abc import Sequence

    from narrows.frames import Frames


def bins_for(frames: Frames) -> int:
    """As many bins as leave 1000 flows in each, as a p99 needs; with fewer than 8 such bins, 200 flows; 4 to 20."""
    fewest = frames.flows.lazy().filter("finished").group_by("case").len().collect()["len"].min()
    flows = fewest if isinstance(fewest, int) else 0
    # Sizes repeat, so bins are not quite equal: a tenth more than needed.
    for_p99 = flows // 1100
    return min(20, for_p99) if for_p99 >= 8 else max(4, min(20, flows // 220))


def draw(frames: Frames) -> alt.HConcatChart | None:
    """p50, p95 and p99 side by side, those that are evaluable; `None` without any."""
    table = slowdown_by_size(frames, bins_for(frames))
    present = [name for name in ("p50", "p95", "p99") if name in table.columns and table[name].count() > 0]
    if not present:
        return None
    return style.side_by_side(_panel(table, name, present, frames.cases) for name in present)


def missing(frames: Frames) -> list[str]:
    """Percentiles that no bin has samples enough for."""
    table = slowdown_by_size(frames, bins_for(frames))
    return [name for name in ("p50", "p95", "p99") if name not in table.columns or table[name].count() == 0]


def _panel(
    table: pl.DataFrame, name: str, present: Sequence[str], cases: Sequence[str]
) -> alt.LayerChart | alt.FacetChart:
    data = table.select(
        "case", "size_bytes", "size_from_bytes", "size_to_bytes", "flows", pl.col(name).alias("value")
    ).drop_nulls("value")
    x = alt.X(
        "size_bytes:Q",
        scale=alt.Scale(type="log", nice=False),
        title="flow size",
        axis=style.log_axis(data["size_bytes"], "bytes"),
    )
    title = "slowdown" if name == present[0] else None
    y = alt.Y("value:Q", scale=alt.Scale(type="log", nice=False), title=title, axis=style.log_axis(data["value"]))
    tooltip = [
        alt.Tooltip("case:N", title="scheme"),
        alt.Tooltip("size_from_bytes:Q", title="from, bytes", format=","),
        alt.Tooltip("size_to_bytes:Q", title="to, bytes", format=","),
        alt.Tooltip("value:Q", title=f"slowdown, {name}", format=".4~r"),
        alt.Tooltip("flows:Q", title="flows", format=","),
    ]
    chart = curve(style.rows(data), cases, x, y, tooltip, order="size_bytes:Q")
    width = min(480, style.columns(len(present), label=60, gap=60))
    return chart.properties(title=f"Slowdown, {name}", width=width, height=230)
