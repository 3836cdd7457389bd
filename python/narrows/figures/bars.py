"""A panel of horizontal bars, one per case: the mean over seeds with its interval."""

from __future__ import annotations

import math
import textwrap
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import altair as alt
import polars as pl

from narrows.figures import style
from narrows.measures.named import value_if_any
from narrows.measures.stats import Estimate, estimate
from narrows.wording import number

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from narrows.frames import Frames

_ROW = 22
_CHARACTER = 6
"""Pixels that a letter takes at most, on average."""
_ROOM_FOR_LABELS = 1.22


@dataclass(frozen=True)
class Panel:
    """What one panel shows."""

    title: str
    unit: str
    values: Mapping[str, Estimate | None]
    """By case; `None` where there is no value, which the panel says."""
    pooled: frozenset[str] = frozenset()
    """Cases whose value is of all seeds together and has no interval: drawn hollow."""
    reason: str = ""
    """Why there is no value where there is none."""
    absent: str = "not evaluable"
    """What stands in the place of a bar that is missing."""
    stated: Mapping[str, float] = field(default_factory=dict)
    """What a paper states, by case: drawn as a diamond, of which the title tells."""


def by_case(table: pl.DataFrame, column: str, scale: float = 1.0) -> dict[str, Estimate | None]:
    """A column of a table of runs, times a scale, as an estimate for each case."""
    grouped = table.select("case", column).drop_nulls().group_by("case", maintain_order=True).agg(column)
    return scaled({case: estimate(values) for case, values in grouped.iter_rows()}, scale)


def of_measure(frames: Frames, measure: str) -> dict[str, Estimate | None]:
    """A named measure of each case; nothing where a case has none."""
    return {case: estimate(list(value_if_any(frames.of([case]), measure, (case,)).values())) for case in frames.cases}


def scaled(values: Mapping[str, Estimate | None], scale: float) -> dict[str, Estimate | None]:
    """The same in another unit."""
    return {case: found and found.scaled(scale) for case, found in values.items()}


def draw(panels: Sequence[Panel], cases: Sequence[str], *, width: int = style.WIDTH) -> alt.HConcatChart:
    """The panels in a row; the first bears the cases' names."""
    each = style.columns(len(panels), width, label=style.label_width(cases))
    return style.side_by_side(_panel(panel, cases, each, labels=not place) for place, panel in enumerate(panels))


def _panel(panel: Panel, cases: Sequence[str], width: int, *, labels: bool) -> alt.LayerChart | alt.FacetChart:
    data = style.rows(pl.DataFrame([_row(panel, case) for case in cases], infer_schema_length=None))
    beside = style.beside(cases)
    axis = beside.axis if labels else None
    drawn = [panel.values.get(case) for case in cases]
    y = alt.Y("case:N", sort=list(cases), title=None, axis=axis)
    empty = all(found is None for found in drawn)
    x_axis = None if empty else alt.Axis(tickCount=4, title=panel.unit, format=",~f")
    reach = max((found.high for found in drawn if found and math.isfinite(found.high)), default=1.0)
    stated = {} if empty else {case: panel.stated[case] for case in cases if case in panel.stated}
    reach = max([reach, *stated.values()])
    base = alt.Chart(data).encode(y=y)
    tooltip = [
        alt.Tooltip("case:N", title="scheme"),
        alt.Tooltip("shown:N", title=panel.title),
        alt.Tooltip("range:N", title="interval"),
        alt.Tooltip("kind:N", title="which is"),
    ]
    # Channels as objects: altair takes 10 ms to find out what a text or a dictionary is.
    x = alt.X("mean:Q", axis=x_axis, scale=alt.Scale(domain=[0, _ROOM_FOR_LABELS * (reach or 1.0)], nice=False))
    bar = base.mark_bar(height=13, cornerRadiusEnd=2).encode(
        x=x, color=style.colour(cases), opacity=style.visible(0.88), tooltip=tooltip
    )
    hollow = base.transform_filter("datum.pooled").mark_bar(height=11, fill="white", fillOpacity=0.72).encode(
        x=x, tooltip=tooltip
    )  # fmt: skip
    interval = base.mark_rule(color=style.INK, strokeWidth=1.3).encode(
        x=alt.X("low:Q"), x2=alt.X2("high:Q"), opacity=style.visible(0.9), tooltip=tooltip
    )
    label = base.transform_filter("datum.mean !== null").mark_text(
        align="left", dx=5, fontSize=10.5, color=style.INK
    ).encode(x=alt.X("high:Q"), text=alt.Text("label:N"), opacity=style.visible(0.9))  # fmt: skip
    absent = base.transform_filter("datum.mean === null").mark_text(
        align="left", dx=4, fontSize=11, color=style.FAINT, text=panel.absent
    ).encode(x=alt.value(0))  # fmt: skip
    if empty and panel.reason:
        lines = textwrap.wrap(panel.reason, max(12, width // _CHARACTER))
        absent = alt.Chart(alt.InlineData(values=[{}])).mark_text(
            align="left", baseline="top", dx=4, fontSize=11, lineHeight=15, color=style.FAINT, text=lines
        ).encode(x=alt.value(0), y=alt.value(4))  # fmt: skip
    layers = [] if empty else [bar, interval]
    layers += [hollow] if panel.pooled else []
    layers += [] if empty else [label]
    layers += [absent] if None in drawn else []
    layers += [_stated(stated, panel.unit, y)] if stated else []
    title = f"{panel.title}; diamond: the paper's" if stated else panel.title
    return alt.layer(*layers).properties(
        title=alt.TitleParams(style.wrapped(title, width)),
        width=width,
        height=max(_ROW, beside.height) * len(cases),
    )


def _stated(stated: Mapping[str, float], unit: str, y: alt.Y) -> alt.Chart:
    """A diamond for each value of the paper."""
    of_unit = f" {unit}" if unit else ""
    rows = [{"case": case, "stated": value, "text": f"{number(value, 4)}{of_unit}"} for case, value in stated.items()]
    mark = alt.Chart(style.rows(pl.DataFrame(rows))).mark_point(
        shape="diamond", filled=True, size=70, color=style.INK, stroke="white", strokeWidth=1, opacity=1
    )  # fmt: skip
    tooltip = [alt.Tooltip("case:N", title="scheme"), alt.Tooltip("text:N", title="stated in the paper")]
    drawn: alt.Chart = mark.encode(x=alt.X("stated:Q"), y=y, tooltip=tooltip)
    return drawn


def _row(panel: Panel, case: str) -> dict[str, object]:
    found = panel.values.get(case)
    if found is None:
        words = dict.fromkeys(("shown", "label", "range", "kind"), "")
        return {"case": case, **dict.fromkeys(("mean", "low", "high")), **words, "pooled": False}
    pooled = case in panel.pooled
    unit = f" {panel.unit}" if panel.unit else ""
    return {
        "case": case,
        "mean": found.mean,
        "low": max(0.0, found.low),
        "high": found.high,
        "label": number(found.mean),
        "shown": number(found.mean, 4) + unit,
        "range": "none" if pooled else f"{number(found.low, 4)} to {number(found.high, 4)}{unit}",
        "kind": "all seeds together" if pooled else found.kind_words,
        "pooled": pooled,
    }
