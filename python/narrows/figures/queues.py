"""Backlog of the ports that matter: those of the WAN, and the fabric's hottest."""

from __future__ import annotations

from typing import TYPE_CHECKING

import altair as alt
import polars as pl

from narrows.figures import events, style
from narrows.figures.distribution import curve, curves
from narrows.frames import kept

if TYPE_CHECKING:
    from narrows.frames import Frames

HOTTEST_FABRIC = 2
MAX_WAN = 2
FEW = 8
"""Ports that are all shown, whoever chose them."""
MAX_PORTS = 24
"""Ports that are shown at most: a page with more is neither read nor mailed."""
BUCKETS = 110
"""Points of a line in time; each stands for the mean and the largest sample of its bucket."""
MIN_BYTES = 1500.0
"""Bytes that an axis of backlog reaches at least, a packet: a queue that was always empty has an axis, too."""
_LABELS = 76
"""Pixels of what stands left of the panels."""
_LEAST = 86
"""Pixels of a panel that is wide enough for its axis."""
_SHARES = (*tuple(step / 50 for step in range(50)), 0.99, 0.999, 1.0)


@kept
def sampled_ports(frames: Frames) -> list[str]:
    """Those whose backlog was sampled: the WAN's, then those with most drops, then with the longest queue."""
    sampled = frames.series.filter(pl.col("quantity") == "queue_bytes").select("entity").unique().collect()
    ports = (
        frames.ports.filter(pl.col("name").is_in(sampled["entity"].implode()))
        .group_by("name", "role")
        .agg(pl.col("dropped_packets").sum(), pl.col("queue_p99_bytes").max())
        .sort(["dropped_packets", "queue_p99_bytes", "name"], descending=[True, True, False])
    )
    wan = sorted(ports.filter(pl.col("role") == "wan")["name"].to_list())
    return [*wan, *ports.filter(pl.col("role") != "wan")["name"].to_list()]


def ports_that_matter(frames: Frames) -> list[str]:
    """All that were chosen to be watched; of those that are watched by default the WAN's and the hottest."""
    ports = sampled_ports(frames)
    if len(ports) <= FEW or set(ports) != _by_default(frames):
        return ports[:MAX_PORTS]
    wan = set(frames.ports.filter(pl.col("role") == "wan")["name"])
    return [
        *[port for port in ports if port in wan][:MAX_WAN],
        *[port for port in ports if port not in wan][:HOTTEST_FABRIC],
    ]


def _by_default(frames: Frames) -> set[str]:
    """Ports that are watched unless an experiment says which: between switches, or towards hosts of the only one."""
    between = set(frames.ports.filter(pl.col("role").is_in(["fabric", "wan"]))["name"])
    return between or set(frames.ports.filter(pl.col("role") == "edge")["name"])


def over_time(frames: Frames, ports: list[str]) -> alt.VConcatChart:
    """Small multiples of the first seed: a row per port, a column per case; of many cases several such blocks."""
    seed = frames.first_seed
    samples = (
        frames.series.filter(
            (pl.col("quantity") == "queue_bytes") & (pl.col("seed") == seed) & pl.col("entity").is_in(ports)
        )
        .select("case", "entity", "time_ns", "value")
        .collect()
    )
    last = samples["time_ns"].max()
    width_ns = max(1, (int(last) if isinstance(last, int) else 0) // BUCKETS + 1)
    reduced = (
        samples.group_by("case", "entity", pl.col("time_ns") // width_ns, maintain_order=True)
        .agg(pl.col("value").mean().alias("mean"), pl.col("value").max().alias("max"))
        .with_columns(((pl.col("time_ns") + 0.5) * width_ns / 1e9).alias("time"))
        .drop("time_ns")
        .sort("case", "entity", "time")
    )
    headers = style.headers(frames.cases)
    across = headers.across(len(frames.cases), least=_LEAST, most=len(frames.cases), room=style.WIDTH - _LABELS, gap=12)
    marks = events.marks(frames)
    return alt.vconcat(
        *(
            _row(
                pl.concat([reduced.filter(pl.col("entity") == port), marks], how="diagonal"), port, frames.cases, cases,
                first=not place, last=port == ports[-1],
            )
            for cases in (frames.cases[begin : begin + across] for begin in range(0, len(frames.cases), across))
            for place, port in enumerate(ports)
        ),
        spacing=14,
    )  # fmt: skip


def _row(
    data: pl.DataFrame, port: str, every: tuple[str, ...], cases: tuple[str, ...], *, first: bool, last: bool
) -> alt.FacetChart:
    """Of some cases; `every` decides on their colours, and the axis is that of all, so that blocks can be compared."""
    largest = max(_largest(data, "max"), MIN_BYTES)
    axis = alt.Y("max:Q", title="backlog", axis=style.bytes_axis(largest), scale=alt.Scale(domain=[0, largest]))
    begin, end = style.ends(data["time"])
    data = data.filter(pl.col("case").is_in(cases))
    width = (style.WIDTH - _LABELS) // len(cases) - 12
    time_axis = style.linear_axis(
        begin, end, title="time, s" if last else None, labels=last, ticks=last, grid=False, labelFlush=True
    )
    x = alt.X("time:Q", axis=time_axis, scale=alt.Scale(nice=False, domain=[begin, end]))
    tooltip = [
        alt.Tooltip("case:N", title="scheme"),
        alt.Tooltip("time:Q", title="time, s", format=".3~f"),
        alt.Tooltip("mean:Q", title="mean backlog, bytes", format=",.0f"),
        alt.Tooltip("max:Q", title="largest, bytes", format=",.0f"),
    ]
    base = alt.Chart().encode(x=x, color=style.colour(every))
    area = base.mark_area(opacity=0.22).encode(y=axis)
    line = base.mark_line(strokeWidth=1.1).encode(y=alt.Y("mean:Q"), opacity=style.visible(1.0, 0.15))
    points = base.mark_bar(width=max(1, width // BUCKETS + 1), opacity=0).encode(y=alt.Y("max:Q"), tooltip=tooltip)
    header = style.headers(cases, labels=first).header
    return (
        alt.layer(*events.lines(data), area, line, points)
        .properties(width=width, height=76)
        .facet(column=alt.Column("case:N", sort=list(cases), header=header), data=style.rows(data), spacing=10)
        .properties(
            title=alt.TitleParams(style.port(port), fontSize=12, fontWeight="normal", color=style.FAINT, offset=4)
        )
    )


def distributions(frames: Frames, ports: list[str]) -> alt.VConcatChart:
    """How often the backlog is at most so long: all samples after the start, all seeds; square-root axis."""
    pairs = [ports[place : place + 2] for place in range(0, len(ports), 2)]
    return style.stacked(style.side_by_side(_distribution(frames, port) for port in pair) for pair in pairs)


def _distribution(frames: Frames, port: str) -> alt.LayerChart | alt.FacetChart:
    samples = (
        frames.series.filter((pl.col("quantity") == "queue_bytes") & (pl.col("entity") == port))
        .select("case", "value")
        .collect()
    )
    largest = max(_largest(samples), MIN_BYTES)
    scale = alt.Scale(type="sqrt", nice=False, domain=[0, largest])
    x = alt.X("value:Q", scale=scale, title="backlog", axis=style.root_axis(largest))
    y = alt.Y(
        "share:Q", title="share of samples", axis=alt.Axis(format="%", tickCount=5), scale=alt.Scale(domain=[0, 1])
    )
    tooltip = [
        alt.Tooltip("case:N", title="scheme"),
        alt.Tooltip("share:Q", title="share of samples", format=".1%"),
        alt.Tooltip("value:Q", title="at most, bytes", format=",.0f"),
    ]
    chart = curve(style.rows(curves(samples, frames.cases, _SHARES)), frames.cases, x, y, tooltip, legend=True)
    title = alt.TitleParams(style.port(port), fontSize=12)
    return chart.properties(title=title, width=style.columns(2, label=124), height=190)


def _largest(samples: pl.DataFrame, column: str = "value") -> float:
    largest = samples[column].max()
    return float(largest) if isinstance(largest, (int, float)) else 0.0
