"""A quantity against an axis of the sweep: a line for each scheme, its interval over seeds as a rule."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Final

import altair as alt
import polars as pl

from narrows.figures import style
from narrows.measures.named import TRAFFIC, of_traffic
from narrows.measures.stats import estimate
from narrows.wording import number

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from narrows.frames import Frames
    from narrows.measures.stats import BySeed

_TICKS = 5
_LEADING_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e-?\d+)?")
_PREFIXES: Final = {"": 1, "k": 10**3, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_SPANS: Final = {
    "ps": 1,
    "ns": 10**3,
    "us": 10**6,
    "µs": 10**6,
    "μs": 10**6,
    "ms": 10**9,
    "s": 10**12,
    "min": 60 * 10**12,
}
_RATES: Final = {f"{prefix}{unit}": factor for prefix, factor in _PREFIXES.items() for unit in ("bps", "bit/s", "b/s")}
_SIZES: Final = {f"{prefix}B": factor for prefix, factor in _PREFIXES.items()} | {
    f"{prefix}iB": 1024**power for power, prefix in enumerate("KMGT", 1)
}
_DIMENSIONS: Final = (_SPANS, _RATES, _SIZES)
"""Units of experiment files by their size; those of one dimension can stand on one axis."""


@dataclass(frozen=True)
class Panel:
    """What one panel shows."""

    title: str
    unit: str
    table: pl.DataFrame
    """A row for each run: `arm`, the axis, `seed`, and the quantity."""
    column: str
    """The quantity's name in the table."""
    log: bool = False
    """A logarithmic scale; means of zero are left out then. What is infinite is left out in any case."""
    low: float | None = None
    """Where the scale begins (default: zero)."""
    high: float | None = None
    """Where the scale ends (default: the largest value)."""


def number_of(text: str, unit: str = "") -> float:
    """The number that a value begins with, in `unit` if there is one: 20 for `20pkt`, 0.3 for `300us` in `ms`."""
    number, own = _parts(text)
    if not unit or not own:
        return number
    for units in _DIMENSIONS:
        if unit in units and own in units:
            # Exactly: 300 us are 0.3 ms and not a little more.
            return float(Fraction(text.removesuffix(own).strip()) * units[own] / units[unit])
    raise ValueError(f"'{text}' cannot stand on an axis in {unit}")


def numbers_of(values: Sequence[str]) -> tuple[dict[str, float], str] | None:
    """Values of an axis as numbers in one unit, that of the largest; `None` where some are no such numbers."""
    try:
        parts = {value: _parts(value) for value in values}
    except ValueError:
        return None
    units = {unit for _, unit in parts.values()}
    if any(character.isdigit() for unit in units for character in unit):  # an address, a range
        return None
    if len(units) == 1:
        return {value: number for value, (number, _) in parts.items()}, units.pop()
    known = next((sizes for sizes in _DIMENSIONS if units <= sizes.keys()), None)
    if known is None:
        return None
    largest = max(parts.values(), key=lambda part: part[0] * known[part[1]])[1]
    return {value: number_of(value, largest) for value in values}, largest


def _parts(text: str) -> tuple[float, str]:
    """The number that a text begins with, and the unit behind it."""
    found = _LEADING_NUMBER.match(text)
    if found is None:
        raise ValueError(f"'{text}' does not begin with a number")
    return float(found[0]), text[found.end() :].strip()


def _unit(title: str, values: Sequence[str]) -> str:
    """The unit of an axis: the one that its title ends with, else that of its first value; nothing for any other."""
    named = title.rpartition(", ")[2]
    first = next((_parts(value)[1] for value in values), "")
    return next((unit for unit in (named, first) if any(unit in units for units in _DIMENSIONS)), "")


def means(table: pl.DataFrame, axis: str, columns: Sequence[str]) -> pl.DataFrame:
    """Means over seeds of these columns of a table of runs, as the rows that `draw` takes for references."""
    long = table.unpivot(on=list(columns), index=["arm", axis, "seed"], variable_name="column")
    return long.group_by("column", "arm", axis, maintain_order=True).agg(pl.col("value").mean())


def measured(frames: Frames, axis: str, columns: Mapping[str, str]) -> pl.DataFrame:
    """Named measures of every run of a sweep: `arm`, the axis, `seed`, and a column for each, as `column: measure`.

    `fct_mean / web` is the measure of one traffic's flows. What cannot be measured of a case is null there.
    """
    rows: list[dict[str, object]] = []
    for case, arm, at in frames.ports.select("case", "arm", axis).unique(maintain_order=True).iter_rows():
        found = {column: by_seed(frames, case, name) for column, name in columns.items()}
        for seed in sorted({seed for values in found.values() for seed in values}):
            values = {column: values.get(seed) for column, values in found.items()}
            rows.append({"arm": arm, axis: at, "seed": seed, **values})
    schema = {"arm": pl.String, axis: pl.String, "seed": pl.UInt64, **dict.fromkeys(columns, pl.Float64)}
    return pl.DataFrame(rows, schema=schema)


def by_seed(frames: Frames, case: str, measure: str) -> BySeed:
    """A measure of a case, `fct_mean / web` of one traffic's flows; empty where it cannot be measured."""
    name, _, traffic = measure.partition(TRAFFIC)
    return of_traffic(frames, case, name, traffic)


def draw(
    panels: Sequence[Panel],
    axis: str,
    arms: Sequence[str],
    *,
    title: str,
    log: bool = False,
    references: pl.DataFrame | None = None,
    broken: Sequence[str] = (),
) -> alt.HConcatChart:
    """The panels in a row, all against `axis`, whose `title` ends with its unit: times, rates and sizes are told in it.

    `references` are drawn dashed in every panel that has their `column`: rows of `column`, `arm`, the axis and `value`.
    Later schemes lie on earlier ones; those that are `broken` are dotted and have small points, so that both are seen.
    """
    width = style.columns(len(panels), label=44, gap=64)
    unit = _unit(title, [value for panel in panels for value in panel.table[axis].drop_nulls()])
    drawn = [
        _panel(panel, axis, arms, title, width, unit, log=log, references=references, broken=broken) for panel in panels
    ]
    chart: alt.HConcatChart = alt.hconcat(*drawn, spacing=24).resolve_scale(color="shared")
    return chart


def _panel(
    panel: Panel,
    axis: str,
    arms: Sequence[str],
    x_title: str,
    width: int,
    unit: str,
    *,
    log: bool,
    references: pl.DataFrame | None,
    broken: Sequence[str],
) -> alt.LayerChart | alt.FacetChart:
    place = {arm: number for number, arm in enumerate(arms)}
    data = _summary(panel, axis, unit).sort(pl.col("case").replace_strict(place, default=len(arms)), "x")
    ticks = sorted(set(data["x"].to_list()))
    # What is as good as none is told as that.
    none = "" if log or not ticks else f"datum.value && abs(datum.value) < {max(map(abs, ticks)) / 1000!r} ? '≈ 0' : "
    x = alt.X(
        "x:Q",
        title=x_title,
        scale=alt.Scale(type="log" if log else "linear", nice=False, zero=False, padding=12),
        # Vega rounds what its own `format` shows to the distance of the ticks: 65 would be 70.
        axis=alt.Axis(
            values=ticks if len(ticks) <= 9 else alt.Undefined, labelExpr=f"{none}format(datum.value, '~r')", grid=False
        ),
    )
    floor = panel.low if panel.low is not None else 0.0
    top = alt.Undefined if panel.high is None else panel.high
    # The scale ends at a tick, so that titles of panels in a row stand at one height.
    linear = alt.Scale(domainMin=floor, domainMax=top, zero=False, nice=_TICKS)
    reach = pl.concat([data["low"], data["high"]])
    y_scale = style.log_scale(reach) if panel.log else linear
    y_axis = style.log_axis(reach) if panel.log else alt.Axis(tickCount=_TICKS, format=",~r")
    y = alt.Y("mean:Q", title=panel.unit, scale=y_scale, axis=y_axis)
    legend = style.legend_of(arms) if len(arms) > 1 else None
    colour = alt.Color("case:N", scale=style.colour_scale(arms), title=None, legend=legend)
    tooltip = [
        alt.Tooltip("case:N", title="scheme"),
        alt.Tooltip("at:N", title=x_title),
        alt.Tooltip("shown:N", title=panel.title),
        alt.Tooltip("range:N", title="interval"),
    ]
    base = alt.Chart(style.rows(data)).encode(x=x, color=colour)
    is_broken = alt.FieldOneOfPredicate(field="case", oneOf=list(broken))
    line = base.mark_line(strokeWidth=1.8).encode(y=y, opacity=style.visible())
    rule = base.mark_rule(strokeWidth=1.3).encode(y="low:Q", y2="high:Q", opacity=style.visible(0.7))
    point = base.mark_point(filled=True, size=38).encode(y="mean:Q", tooltip=tooltip, opacity=style.visible())
    if broken:
        line = line.encode(strokeDash=alt.condition(is_broken, alt.value([2, 4]), alt.value([1, 0])))
        point = point.encode(size=alt.condition(is_broken, alt.value(14), alt.value(38)))
    layers: list[alt.Chart] = [line, rule, point]
    if references is not None:
        own = references.filter(pl.col("column") == panel.column).select(
            pl.col("arm").alias("case"), _numbers(axis, unit).alias("x"), pl.col("value").alias("mean")
        )
        if not own.is_empty():
            dashed = alt.Chart(style.rows(own.sort("case", "x"))).mark_line(strokeWidth=1.2, strokeDash=[5, 4])
            layers.append(dashed.encode(x=x, y=y, color=colour, opacity=style.visible(0.8)))
    return alt.layer(*layers).properties(title=panel.title, width=width, height=230)


def _summary(panel: Panel, axis: str, axis_unit: str) -> pl.DataFrame:
    """Mean and interval over seeds, for each scheme and value of the axis."""
    grouped = (
        panel.table.select("arm", axis, panel.column)
        .drop_nulls()
        .group_by("arm", axis, maintain_order=True)
        .agg(panel.column)
    )
    rows = []
    for arm, at, values in grouped.iter_rows():
        found = estimate(values)
        if found is None or not math.isfinite(found.mean) or (panel.log and found.mean <= 0):
            continue
        unit = f" {panel.unit}" if panel.unit else ""
        interval = "none" if found.kind == "none" else f"{number(found.low, 4)} to {number(found.high, 4)}{unit}"
        rows.append({
            "case": arm, "at": at, "x": number_of(at, axis_unit),
            "mean": found.mean, "low": found.low, "high": found.high,
            "shown": f"{number(found.mean, 4)}{unit}", "range": interval,
        })  # fmt: skip
    schema = {"case": pl.String, "at": pl.String, "x": pl.Float64, "mean": pl.Float64, "low": pl.Float64,
              "high": pl.Float64, "shown": pl.String, "range": pl.String}  # fmt: skip
    made = pl.DataFrame(rows, schema=schema).sort("case", "x")
    if not panel.log:
        return made
    # An interval that reaches below zero goes down to the least that the scale shows.
    least = pl.concat([made["mean"], made["low"].filter(made["low"] > 0)]).min()
    return made.with_columns(pl.when(pl.col("low") > 0).then("low").otherwise(least).alias("low"))


def _numbers(axis: str, unit: str) -> pl.Expr:
    return pl.col(axis).map_elements(lambda text: number_of(text, unit), return_dtype=pl.Float64)
