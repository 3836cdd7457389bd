"""A measure over the axes of a sweep: lines in panels, and heat maps of its value and of its ratio to a scheme's."""

from __future__ import annotations

import itertools
import json
import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import altair as alt
import polars as pl

from narrows.figures import style, sweep
from narrows.wording import number

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from narrows.measures.stats import Estimate

_LOG_SPREAD: Final = 20
"""Largest over least value from which a scale of positive values is logarithmic."""
_TOO_NEAR: Final = 1 / 20
"""Share of an axis: numbers of which two are nearer to each other than this stand on a logarithmic one."""
_MAX_TICKS: Final = 9
_TICKS: Final = 5
_GAP: Final = 28
_LABELS: Final = 64
"""Pixels of the vertical axis with its title."""
_CELL_HEIGHT: Final = 22
_MIN_CELL, _MAX_CELL = 6, 64
_CELL_FOR_TEXT: Final = 32
_LEGEND: Final = 90
_SAME: Final = math.log2(1.25)
"""The least end of a scale of ratios: a few percent are to look like little."""


@dataclass(frozen=True)
class Axis:
    """An axis of the sweep as charts show it."""

    name: str
    """What titles call it."""
    values: tuple[str, ...]
    """In the order of the file."""

    @cached_property
    def numbers(self) -> dict[str, float] | None:
        """Its values as numbers in one unit; `None` where they are none."""
        found = sweep.numbers_of(self.values)
        return None if found is None else found[0]

    @property
    def title(self) -> str:
        """`delay, ms`."""
        found = sweep.numbers_of(self.values)
        return f"{self.name}, {found[1]}" if found is not None and found[1] else self.name

    @property
    def ordered(self) -> list[str]:
        """Its values from the least to the largest, or in the order of the file."""
        numbers = self.numbers
        return list(self.values) if numbers is None else sorted(self.values, key=lambda value: numbers[value])

    @property
    def is_log(self) -> bool:
        """Whether its numbers would stand on each other on a linear axis."""
        found = sorted((self.numbers or {}).values())
        if len(found) < 3 or found[0] <= 0:
            return False
        gaps = [high - low for low, high in itertools.pairwise(found)]
        return min(gaps) < _TOO_NEAR * (found[-1] - found[0])


@dataclass(frozen=True)
class Point:
    """A measure of one scheme in one configuration."""

    scheme: str
    x: str
    panel: str
    value: Estimate | None
    ratio: Estimate | None = None
    """To the first scheme's, within seeds."""
    flat: bool = False
    """Whether the scheme does not have the axis `x`, and is the same at all of its values."""


def lines(
    points: Sequence[Point], schemes: Sequence[str], x: Axis, panels: Axis | None, unit: str
) -> alt.TopLevelMixin:
    """The measure against `x`, a line with intervals for each scheme, and a panel for each value of `panels`.

    A scheme that does not have the axis `x` is a dashed horizontal line. Panels share their axes.
    """
    data = pl.DataFrame([_line_row(point, x, unit) for point in points if _is_shown(point)], schema=_LINE).unique(
        maintain_order=True
    )
    reach = pl.concat([data["mean"], data["low"], data["high"]])
    log = _is_log(data["mean"])
    if log:
        least = float(data["mean"].min())  # type: ignore[arg-type]  # of numbers
        reach = pl.Series([value if value > 0 else least for value in reach])
        data = data.with_columns(pl.when(pl.col("low") > 0).then("low").otherwise(least).alias("low"))
    y = alt.Y(
        "mean:Q",
        title=unit or None,
        scale=style.log_scale(reach) if log else alt.Scale(domainMin=0, zero=True, nice=_TICKS),
        axis=style.log_axis(reach) if log else alt.Axis(tickCount=_TICKS, format=",~r"),
    )
    colour = style.colour(schemes, legend=len(schemes) > 1)
    dashes = style.dash(schemes)
    tooltip = _tooltip(x, panels)
    base = alt.Chart().transform_filter("datum.flat == false").encode(x=_x(x), color=colour)
    line = base.mark_line(strokeWidth=1.8).encode(y=y, strokeDash=dashes, opacity=style.visible_scheme())
    rule = base.mark_rule(strokeWidth=1.3).encode(y="low:Q", y2="high:Q", opacity=style.visible_scheme(0.7))
    dot = base.mark_point(filled=True, size=38).encode(y=y, tooltip=tooltip, opacity=style.visible_scheme())
    layers: list[alt.Chart] = [line, rule, dot]
    if data["flat"].any():
        flat = alt.Chart().transform_filter("datum.flat").mark_rule(strokeWidth=1.8, strokeDash=[6, 4])
        layers.append(flat.encode(y=y, color=colour, tooltip=tooltip, opacity=style.visible_scheme()))
    if panels is None:
        return alt.layer(*layers, data=style.rows(data)).properties(width=style.columns(1, label=_LABELS), height=260)
    shown = [value for value in panels.ordered if value in set(data["panel"])]
    header = style.headers([f"{panels.name}={value}" for value in shown])
    across = header.across(len(shown), least=210, most=4, room=style.WIDTH - _LABELS, gap=_GAP)
    names = pl.concat_str(pl.lit(f"{panels.name}="), "panel").alias("panel")
    layered = alt.layer(*layers, data=style.rows(data.with_columns(names))).properties(
        width=style.columns(across, label=_LABELS, gap=_GAP), height=220 if len(shown) <= across else 170
    )
    order = [f"{panels.name}={value}" for value in shown]
    return layered.facet(
        facet=alt.Facet("panel:N", sort=order, header=header.header, title=None), columns=across, spacing=_GAP
    )


def heat_maps(
    points: Sequence[Point], schemes: Sequence[str], x: Axis, panels: Axis, unit: str, base: str
) -> alt.VConcatChart:
    """A map for each scheme, `x` by `panels`: the measure above, and below it its ratio to the `base` scheme's."""
    values = pl.DataFrame([_value_row(point, unit) for point in points], schema=_cells("value"))
    made = [_maps(values, schemes, x, panels, _values_shade(values["value"], unit), "value")]
    ratios = pl.DataFrame([_ratio_row(point, base) for point in points if point.scheme != base], schema=_cells("ratio"))
    if ratios["ratio"].count():
        others = [scheme for scheme in schemes if scheme != base]
        made.append(_maps(ratios, others, x, panels, _ratios_shade(ratios["ratio"], base), f"over {base}"))
    chart: alt.VConcatChart = alt.vconcat(*made, spacing=22).resolve_scale(color="independent")
    return chart


_LINE: Final = {
    "case": pl.String, "panel": pl.String, "x": pl.Float64, "at": pl.String, "flat": pl.Boolean, "mean": pl.Float64,
    "low": pl.Float64, "high": pl.Float64, "shown": pl.String, "range": pl.String,
}  # fmt: skip


def _cells(quantity: str) -> Mapping[str, type[pl.DataType]]:
    numbers = dict.fromkeys((quantity, "low", "high"), pl.Float64)
    return (
        dict.fromkeys(("case", "x", "y"), pl.String) | numbers | dict.fromkeys(("label", "shown", "range"), pl.String)
    )


def _is_shown(point: Point) -> bool:
    """Whether there is a value; what is infinite has no place on an axis."""
    return point.value is not None and math.isfinite(point.value.mean)


def _line_row(point: Point, x: Axis, unit: str) -> dict[str, object]:
    found = point.value
    assert found is not None
    place = x.numbers[point.x] if x.numbers else float(x.values.index(point.x))
    return {
        "case": point.scheme,
        "panel": point.panel,
        "x": None if point.flat else place,
        "at": "all" if point.flat else point.x,
        "flat": point.flat,
        "mean": found.mean,
        "low": max(0.0, found.low),
        "high": found.high if math.isfinite(found.high) else found.mean,
        **_words(found, unit),
    }


def _words(found: Estimate, unit: str) -> dict[str, str]:
    own = f" {unit}" if unit else ""
    interval = "none" if found.kind == "none" else f"{number(max(0.0, found.low), 4)} to {number(found.high, 4)}{own}"
    return {"shown": f"{number(found.mean, 4)}{own}", "range": interval}


def _value_row(point: Point, unit: str) -> dict[str, object]:
    return _cell(point, "value", point.value if _is_shown(point) else None, unit)


def _ratio_row(point: Point, base: str) -> dict[str, object]:
    ratio = point.ratio
    has_logarithm = ratio is not None and 0 < ratio.mean < math.inf
    return _cell(point, "ratio", ratio if has_logarithm else None, f"of {base}")


def _cell(point: Point, quantity: str, found: Estimate | None, unit: str) -> dict[str, object]:
    own = {"case": point.scheme, "x": point.x, "y": point.panel}
    if found is None:
        return {
            **own,
            quantity: None,
            "low": None,
            "high": None,
            "label": "–",
            "shown": "not evaluable",
            "range": "none",
        }
    numbers = {quantity: found.mean, "low": max(0.0, found.low), "high": found.high}
    return {**own, **numbers, "label": number(found.mean, 3), **_words(found, unit)}


def _is_log(values: pl.Series) -> bool:
    present = values.drop_nulls()
    if present.is_empty():
        return False
    least, largest = float(present.min()), float(present.max())  # type: ignore[arg-type]  # of numbers
    return least > 0 and largest > _LOG_SPREAD * least


def _x(x: Axis) -> alt.X:
    if x.numbers is None:  # in the order of the file, at even distances
        places, named = list(range(len(x.values))), f"({json.dumps(list(x.values))})[datum.value]"
        names = alt.Axis(values=places, labelExpr=named, grid=False, labelOverlap=True)
        return alt.X("x:Q", title=x.title, axis=names, scale=alt.Scale(nice=False, zero=False, padding=14))
    ticks = sorted(x.numbers.values())
    return alt.X(
        "x:Q",
        title=x.title,
        scale=alt.Scale(type="log" if x.is_log else "linear", nice=False, zero=False, padding=12),
        axis=alt.Axis(
            values=ticks if len(ticks) <= _MAX_TICKS else alt.Undefined,
            labelExpr="format(datum.value, '~r')",
            grid=False,
            labelOverlap=True,
        ),
    )


def _tooltip(x: Axis, panels: Axis | None) -> list[alt.Tooltip]:
    return [
        alt.Tooltip("case:N", title="scheme"),
        alt.Tooltip("at:N", title=x.name),
        *([] if panels is None else [alt.Tooltip("panel:N", title="panel")]),
        alt.Tooltip("shown:N", title="mean"),
        alt.Tooltip("range:N", title="interval"),
    ]


_OF_OBJECTS: Final = frozenset({
    "constructor", "hasOwnProperty", "isPrototypeOf", "propertyIsEnumerable", "toLocaleString", "toString", "valueOf",
})  # fmt: skip
"""Names of properties that every object of JavaScript has."""


@dataclass(frozen=True)
class _Shade:
    """How a map's cells are coloured, as expressions: the data have what is told of a cell, and no more."""

    colour: alt.Color
    """Of the field `shade`."""
    shade: str
    present: str
    """Whether a cell has a value."""
    deep: str
    """Whether a cell is so dark that its number is white."""


def _values_shade(values: pl.Series, unit: str) -> _Shade:
    log = _is_log(values)
    scale = alt.Scale(scheme="blues", type="log" if log else "linear", nice=False)
    legend = alt.Legend(title=unit or "value", format=",~r", gradientLength=90, tickCount=3)
    present = values.drop_nulls()
    least, largest = (float(present.min()), float(present.max())) if len(present) else (0.0, 0.0)  # type: ignore[arg-type]
    from_here = least**0.4 * largest**0.6 if log else 0.4 * least + 0.6 * largest
    return _Shade(
        alt.Color("shade:Q", scale=scale, legend=legend),
        shade="datum.value",
        present="isValid(datum.value)",
        deep=f"datum.value > {from_here!r}" if least < largest else "false",
    )


def _ratios_shade(ratios: pl.Series, base: str) -> _Shade:
    """Blue below 1, orange above; colours are of the logarithm, so that half and double are as far from white."""
    end = max(_SAME, float(ratios.log(2).abs().max()))  # type: ignore[arg-type]  # of numbers
    legend = alt.Legend(
        title=f"over {base}",
        labelExpr="format(pow(2, datum.value), '.3~r')",
        gradientLength=90,
        values=[-end, 0, end],
    )
    shade = "log(datum.ratio) / LN2"
    return _Shade(
        alt.Color("shade:Q", scale=alt.Scale(scheme="blueorange", domain=[-end, 0, end]), legend=legend),
        shade=shade,
        present="isValid(datum.ratio)",
        deep=f"abs({shade}) > {0.72 * end!r}",
    )


def _maps(
    data: pl.DataFrame, schemes: Sequence[str], x: Axis, panels: Axis, shade: _Shade, title: str
) -> alt.FacetChart:
    columns = max(1, len(x.values))
    longest = max(map(len, panels.values))
    labels = 7 * longest + 40
    header = style.headers(list(schemes))
    widest = style.WIDTH - _LEGEND - labels
    cell = max(_MIN_CELL, min(_MAX_CELL, widest // (columns * min(len(schemes), 3)) - 4))
    across = header.across(len(schemes), least=cell * columns, most=6, room=widest, gap=16)
    sort_x, sort_y = x.ordered, list(reversed(panels.ordered))
    step: Any = alt.Step(cell)
    base = alt.Chart().encode(
        x=alt.X("x:N", sort=sort_x, title=x.name, axis=alt.Axis(labelOverlap=True, labelAngle=0, ticks=False)),
        y=alt.Y("y:N", sort=sort_y, title=panels.name, axis=alt.Axis(domain=False)),
        tooltip=[
            alt.Tooltip("case:N", title="scheme"),
            alt.Tooltip("x:N", title=x.name),
            alt.Tooltip("y:N", title=panels.name),
            alt.Tooltip("shown:N", title=title),
            alt.Tooltip("range:N", title="interval"),
        ],
    )
    rect = (
        base.transform_filter(shade.present)
        .transform_calculate(shade=shade.shade)
        .mark_rect(stroke="white", strokeWidth=1)
        .encode(color=shade.colour, opacity=style.visible_scheme())
    )
    layers: list[alt.Chart] = [rect]
    if cell >= _CELL_FOR_TEXT:
        text = base.mark_text(fontSize=10).encode(text="label:N", opacity=style.visible_scheme())
        ink = alt.condition(shade.deep, alt.value(style.ON_DEEP), alt.value(style.ON_PALE))
        layers.append(text.transform_filter(shade.present).encode(color=ink))
        layers.append(text.transform_filter(f"!{shade.present}").encode(color=alt.value(style.INK)))
    places = pl.DataFrame({"case": schemes, "place": range(len(schemes))})
    rows = style.rows(data.join(places, on="case", maintain_order="left"))
    layered = alt.layer(*layers, data=rows).properties(width=step, height=alt.Step(_CELL_HEIGHT))
    # A sort by names puts these into expressions, in which Vega fails at what every object of JavaScript has.
    by_place = not _OF_OBJECTS.isdisjoint(schemes)
    order: Any = alt.EncodingSortField("place", op="min") if by_place else list(schemes)
    facet = alt.Facet("case:N", sort=order, header=header.header, title=None)
    return layered.facet(facet=facet, columns=across, spacing=16, title=title)
