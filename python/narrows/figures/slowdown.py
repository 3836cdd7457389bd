"""Slowdown against flow size: how much longer than on an empty network, for flows of each size."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import altair as alt
import polars as pl

from narrows import wording
from narrows.figures import bars, style
from narrows.figures.distribution import curve
from narrows.frames import in_words
from narrows.measures.tables import nearest_rank, slowdown_by_size

if TYPE_CHECKING:
    from collections.abc import Sequence

    from narrows.frames import Frames


_PERCENTILES: Final = {"p50": 50, "p95": 95, "p99": 99}


def bins_for(frames: Frames) -> int:
    """As many bins as leave 1000 flows in each, as a p99 needs; with fewer than 8 such bins, 200 flows; 4 to 20."""
    fewest = frames.flows.lazy().filter("finished").group_by("case").len().collect()["len"].min()
    flows = fewest if isinstance(fewest, int) else 0
    # Sizes repeat, so bins are not quite equal: a tenth more than needed.
    for_p99 = flows // 1100
    return min(20, for_p99) if for_p99 >= 8 else max(4, min(20, flows // 220))


def draw(frames: Frames) -> alt.HConcatChart | None:
    """p50, p95 and p99 side by side, those that are evaluable; `None` without any.

    Of flows that all have one size a bar for each case, with its interval over seeds: a curve would be a point.
    """
    table = slowdown_by_size(frames, bins_for(frames))
    present = [name for name in _PERCENTILES if name in table.columns and table[name].count() > 0]
    if not present:
        return None
    if table["size_from_bytes"].min() == table["size_to_bytes"].max():
        return _of_one_size(frames, int(table["size_bytes"][0]))
    return style.side_by_side(_panel(table, name, present, frames.cases) for name in present)


def _of_one_size(frames: Frames, size: int) -> alt.HConcatChart:
    def by(keys: list[str]) -> pl.DataFrame:
        percentiles = (nearest_rank(pl.col("slowdown"), at).alias(name) for name, at in _PERCENTILES.items())
        finished = frames.flows.lazy().filter("finished").group_by(keys, maintain_order=True).agg(*percentiles)
        return in_words(finished).collect()

    runs, together = by(frames.keys), by([key for key in frames.keys if key != "seed"])
    panels = []
    for name in _PERCENTILES:
        values = bars.by_case(runs, name)
        pooled = {case: found for case, found in bars.by_case(together, name).items() if values.get(case) is None}
        if values or pooled:
            title = f"Slowdown of flows of {wording.size(size)}, {name}"
            panels.append(bars.Panel(title, "1: as on an empty network", values | pooled, frozenset(pooled)))
    return bars.draw(panels, frames.cases, width=style.WIDTH * len(panels) // len(_PERCENTILES))


def missing(frames: Frames) -> list[str]:
    """Percentiles that no bin has samples enough for."""
    table = slowdown_by_size(frames, bins_for(frames))
    return [name for name in _PERCENTILES if name not in table.columns or table[name].count() == 0]


def _panel(
    table: pl.DataFrame, name: str, present: Sequence[str], cases: Sequence[str]
) -> alt.LayerChart | alt.FacetChart:
    data = table.select(
        "case", "size_bytes", "size_from_bytes", "size_to_bytes", "flows", pl.col(name).alias("value")
    ).drop_nulls("value")
    x = alt.X(
        "size_bytes:Q",
        scale=style.log_domain(data["size_bytes"]),
        title="flow size",
        axis=style.log_axis(data["size_bytes"], "bytes"),
    )
    title = "slowdown, 1: as on an empty network" if name == present[0] else None
    y = alt.Y("value:Q", scale=style.log_domain(data["value"]), title=title, axis=style.log_axis(data["value"]))
    tooltip = [
        alt.Tooltip("case:N", title="scheme"),
        alt.Tooltip("size_from_bytes:Q", title="from, bytes", format=","),
        alt.Tooltip("size_to_bytes:Q", title="to, bytes", format=","),
        alt.Tooltip("value:Q", title=f"slowdown, {name}", format=".4~r"),
        alt.Tooltip("flows:Q", title="flows", format=","),
    ]
    chart = curve(style.rows(data), cases, x, y, tooltip, order="size_bytes:Q")
    # A case whose flows have one size has no line.
    if not (alone := data.filter(pl.len().over("case") == 1)).is_empty():
        points = alt.Chart(style.rows(alone)).mark_point(filled=True, size=50).encode(
            x=x, y=y, color=style.colour(cases), opacity=style.visible(), tooltip=tooltip
        )  # fmt: skip
        chart = alt.layer(chart, points)
    width = min(480, style.columns(len(present), label=60, gap=60))
    return chart.properties(title=f"Slowdown, {name}", width=width, height=230)
