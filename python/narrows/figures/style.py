"""What all charts share: fonts, grid, the colour of a case, and how a reader isolates one."""

from __future__ import annotations

import json
import math
import textwrap
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Final, Literal

import altair as alt
from altair.utils import schemapi

from narrows.experiment import SEPARATOR
from narrows.figures.palette import colours, dashes, live

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import polars as pl

FONT: Final = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"
INK: Final = "#1f2933"
FAINT: Final = "#52606d"
GRID: Final = "#e4e7eb"
AXIS: Final = "#9aa5b1"
"""Of an axis' line and ticks."""
PAPER: Final = "#ffffff"
ON_PALE: Final = "rgb(31,41,51)"
ON_DEEP: Final = "rgb(255,255,255)"
"""Of letters on what is pale or deep in both modes of a page, such as a map's cells: dark mode keeps them."""
WIDTH: Final = 1000
"""Pixels of a figure: those that a report's column offers in a window of 1280, less what letters stand over."""
LABEL_MOST: Final = 300
"""Pixels of a case's name beside bars; what is longer has several lines."""
ISOLATE: Final = "isolate"
"""Name of the signal: the cases to be seen; all of them while it is empty."""

_CAPTION_SIZE, _CAPTION_LINE, _CAPTION_CHARACTERS = 10.5, 14, 125
"""Pixels of a caption's letters and lines, and how many characters a line has."""

_LETTER: Final = 7.3
"""Pixels of a letter of a title or a header at most, on average."""
_NARROW: Final = 1.3
"""Largest over least value of a logarithmic axis, at least."""
_MIN_TICKS: Final = 3
"""Labels of an axis, at least."""
_NICE: Final = (1.0, 2.0, 2.5, 5.0)
"""Distances of ticks, times a power of ten."""
_BESIDE_LINE: Final = 12
"""Pixels of a line of a name beside bars."""
_HEADER_LINES, _HEADER_MOST = 3, 44
"""Lines of a panel's header, and characters of a line."""

VEGA_LITE: Final = ".".join(alt.SCHEMA_VERSION.removeprefix("v").split(".")[:2])

_CONFIG: Final[dict[str, Any]] = {
    "locale": {"number": {"decimal": ".", "thousands": "\u202f", "grouping": [3], "currency": ["", ""]}},
    "font": FONT,
    "background": PAPER,
    "view": {"stroke": None},
    "axis": {
        "labelColor": FAINT, "titleColor": FAINT, "titleFontWeight": "normal", "labelSeparation": 6,
        "labelFontSize": 11, "titleFontSize": 11, "titlePadding": 8, "gridColor": GRID, "domainColor": AXIS,
        "tickColor": AXIS,
    },
    "axisY": {"domain": False, "ticks": False, "labelPadding": 6},
    "header": {"labelColor": INK, "labelFontSize": 12, "labelFontWeight": 600, "titleColor": FAINT},
    "title": {"color": INK, "fontSize": 13, "fontWeight": 600, "anchor": "start", "subtitleColor": FAINT, "offset": 8},
    "legend": {"labelFontSize": 12, "titleFontSize": 12, "symbolStrokeWidth": 3},
}  # fmt: skip


_BYTES: Final = (
    "datum.value >= 1e6 ? format(datum.value / 1e6, '~r') + ' MB' : "
    "datum.value >= 1e3 ? format(datum.value / 1e3, '~r') + ' KB' : format(datum.value, '~r') + ' B'"
)
_MILLISECONDS: Final = "datum.value >= 1e3 ? format(datum.value / 1e3, '~r') + ' s' : format(datum.value, '~r') + ' ms'"
_LABELS: Final = {"bytes": _BYTES, "ms": _MILLISECONDS}


def bytes_axis(largest: float) -> alt.Axis:
    """An axis of sizes from 0: `50 KB`, `15 MB`; 1 KB is 1000 B."""
    return linear_axis(0.0, largest, labelExpr=_BYTES)


def ends(times: pl.Series) -> tuple[float, float]:
    """The ends of an axis of times: the first and the last; of none, or of one alone, any two."""
    first, last = times.min(), times.max()
    if not (isinstance(first, float) and isinstance(last, float)):
        return 0.0, 1.0
    return (first, last) if first < last else (first, first + 1.0)


def linear_axis(low: float, high: float, **properties: Any) -> alt.Axis:
    """A linear axis between these ends, with the ticks of `linear_ticks`."""
    return _axis(linear_ticks(low, high), **({"format": ",~r"} | properties))


def _axis(at: list[float], **properties: Any) -> alt.Axis:
    """With ticks at these values, however small the axis: by default Vega drops some where it finds them many."""
    chosen: dict[str, Any] = {"values": at, "tickCount": len(at)} if at else {}
    return alt.Axis(**chosen, **properties)


def linear_ticks(low: float, high: float) -> list[float]:
    """Ticks of a linear axis between these ends: at least three, and as few as round numbers allow.

    None for ends that are no interval.
    """
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        return []
    power = math.floor(math.log10(high - low))
    for decade in (power, power - 1):
        for nice in reversed(_NICE):
            step = nice * 10.0**decade
            # Ends that are ticks count, whatever their last digit has become.
            first, last = math.ceil(low / step - 1e-6), math.floor(high / step + 1e-6)
            if last - first + 1 >= _MIN_TICKS:
                return [float(f"{place * step:.12g}") for place in range(first, last + 1)]
    return []


def root_axis(largest: float) -> alt.Axis:
    """An axis of sizes under a square root: 0, and 1, 2, 5 of the two decades below the largest."""
    top = math.floor(math.log10(max(largest, 1.0)))
    ticks = [0.0, *(step * 10.0**decade for decade in (top - 1, top) for step in (1, 2, 5))]
    return _axis([tick for tick in ticks if tick <= largest], labelExpr=_BYTES)


def log_axis(values: pl.Series, unit: Literal["bytes", "ms"] | None = None, *, percent: bool = False) -> alt.Axis:
    """A logarithmic axis over these values: ticks at 1, 2, 5 of each decade; over three decades at 1, 3; then at 1."""
    ticks = _log_ticks(values)
    if unit is not None:
        return _axis(ticks, labelExpr=_LABELS[unit])
    return _axis(ticks, format="~%" if percent else ",~r")


def log_scale(values: pl.Series) -> alt.Scale:
    """A logarithmic scale over these values whose ends are ticks of `log_axis`: both are labelled."""
    least, largest = _ends(values)
    ticks = _log_ticks(values)
    low = max((tick for tick in ticks if tick <= least), default=ticks[0])
    high = min((tick for tick in ticks if tick >= largest and tick > low), default=max(ticks[-1], 10 * low))
    return alt.Scale(type="log", nice=False, domain=[low, high])


def _ends(values: pl.Series) -> tuple[float, float]:
    """Least and largest, both above zero; of no values any two."""
    present = values.drop_nulls()
    low, high = (float(present.min()), float(present.max())) if len(present) else (1.0, 10.0)  # type: ignore[arg-type]
    return max(low, 1e-9), max(high, 1e-9)


def log_domain(values: pl.Series) -> alt.Scale:
    """A logarithmic scale from the least to the largest of these values, made wider where they are nearly the same."""
    low, high = _ends(values)
    if high / low < _NARROW:
        middle = math.sqrt(low * high)
        low, high = middle / math.sqrt(_NARROW), middle * math.sqrt(_NARROW)
    return alt.Scale(type="log", nice=False, domain=[low, high])


def _log_ticks(values: pl.Series) -> list[float]:
    """Ticks of the decades of these values, or nearer ones, so that at least three are between `log_domain`'s ends."""
    low, high = log_domain(values).domain
    decades = math.log10(high / low)
    steps: tuple[float, ...] = (1, 2, 5) if decades <= 3 else (1, 3) if decades <= 5 else (1,)
    span = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for tried in (steps, (1, 1.5, 2, 3, 4, 5, 7), tuple(1 + place / 4 for place in range(36))):
        ticks = [float(f"{step}e{decade}") for decade in span for step in tried]
        if sum(low <= tick <= high for tick in ticks) >= _MIN_TICKS:
            return ticks
    ticks = linear_ticks(low, high)
    step = ticks[1] - ticks[0]
    return [tick for tick in (ticks[0] - step, *ticks, ticks[-1] + step) if tick > 0]


def port(name: str) -> str:
    """A port's name as it is shown: `border-a → border-b`."""
    return name.replace("->", " → ")


def rows(frame: pl.DataFrame) -> alt.InlineData:
    """The frame as inline data; floats keep five digits, which no screen shows more of."""
    # A tuple: Altair copies lists, each time that a chart becomes part of another.
    values = tuple({key: _short(value) for key, value in row.items()} for row in frame.iter_rows(named=True))
    return alt.InlineData(values=values)


def _short(value: object) -> object:
    if not isinstance(value, float):
        return value
    return float(f"{value:.5g}") if math.isfinite(value) else None


def colour(cases: Sequence[str], *, legend: bool = False) -> alt.Color:
    """The colour of a case, with a legend above if there is no other."""
    return alt.Color("case:N", scale=colour_scale(cases), title=None, legend=legend_of(cases) if legend else None)


def colour_scale(names: Sequence[str]) -> alt.Scale:
    """Names to their colours."""
    chosen = colours(names)
    return alt.Scale(domain=list(chosen), range=list(chosen.values()))


def legend_of(names: Sequence[str], *, width: int = WIDTH, title: str | None = None) -> alt.Legend:
    """Above the chart, in rows that are no wider than `width`."""
    each = 7 * max(map(len, names), default=1) + 35
    return alt.Legend(orient="top", columns=max(1, width // each), labelLimit=width - 35, title=title)


def dash(cases: Sequence[str], *, legend: bool = False) -> Any:
    """How lines are broken: what a real kernel ran beside the simulated is, and cases that share a colour are.

    Lines that agree are both to be seen, and no two lines look the same.
    """
    if dashed := live(cases):
        return alt.condition(alt.FieldOneOfPredicate("case", dashed), alt.value([5, 3]), alt.value([1, 0]))
    found = dashes(cases)
    if not any(found.values()):
        return alt.Undefined
    scale = alt.Scale(domain=list(found), range=[list(own) or [1, 0] for own in found.values()])
    return alt.StrokeDash("case:N", scale=scale, title=None, legend=legend_of(cases) if legend else None)


@dataclass(frozen=True)
class Headers:
    """How small multiples are called: names in lines, and what room the longest line takes."""

    header: alt.Header
    width: int
    """Pixels of the longest line."""

    def across(self, count: int, *, least: int, most: int, room: int, gap: int) -> int:
        """Panels in a row, of so many: as many as fit with their names, and rows alike."""
        fit = max(1, min(most, (room + gap) // (max(least, self.width) + gap)))
        return -(-count // -(-count // fit))


def headers(cases: Sequence[str], **properties: Any) -> Headers:
    """Names above panels, each in at most three lines, broken between words."""
    longest = max((len(word) for case in cases for word in case.split()), default=1)
    length = min(longest, _HEADER_MOST)
    while length < _HEADER_MOST and any(len(_lines(case, length)) > _HEADER_LINES for case in cases):
        length += 1
    lines = {case: _lines(case, length) for case in cases}
    properties = {"title": None, "labelFontSize": 12, "labelPadding": 4, "labelLimit": 0} | properties
    if any(own != [case] for case, own in lines.items()):
        properties["labelExpr"] = f"({json.dumps(lines)})[datum.label]"
        properties["labelLineHeight"] = 14
    return Headers(
        alt.Header(**properties), round(_LETTER * max((len(part) for own in lines.values() for part in own), default=1))
    )


def _lines(case: str, length: int) -> list[str]:
    """Where cases say what ran them, that is on a line of its own."""
    parts = case.rsplit(SEPARATOR, 1) if live([case]) else [case]
    return [line.removesuffix(SEPARATOR.rstrip()) for part in parts for line in textwrap.wrap(part, length)]


def wrapped(title: str, width: int) -> list[str]:
    """A panel's title in lines no wider than the panel."""
    return textwrap.wrap(title, max(8, int(width / _LETTER)))


@cache
def visible(strong: float = 1.0, faint: float = 0.07, *, channel: Any = alt.OpacityValue) -> Any:
    """Opacity, or what else the channel is: faint while others are isolated."""
    test = f"length({ISOLATE}) == 0 || indexof({ISOLATE}, datum.case) >= 0"
    # As an object: Altair takes 10 ms to find out what a dictionary is.
    return channel.from_dict(alt.condition(test, alt.value(strong), alt.value(faint)))


@cache
def visible_scheme(strong: float = 1.0, faint: float = 0.07) -> Any:
    """The same of what stands for a scheme in all configurations: to be seen if one of these is isolated."""
    begins = f"indexof('\\n' + join({ISOLATE}, '\\n'), '\\n' + datum.case + {json.dumps(SEPARATOR)}) >= 0"
    test = f"length({ISOLATE}) == 0 || indexof({ISOLATE}, datum.case) >= 0 || {begins}"
    opacity: Any = alt.OpacityValue
    return opacity.from_dict(alt.condition(test, alt.value(strong), alt.value(faint)))


_assembling: Final = ContextVar("assembling", default=False)
_altair_copy: Final = schemapi.SchemaBase.copy


def _copy(self: Any, deep: Any = None, ignore: Any = None) -> Any:
    """As altair's, but where nobody says how deep and a chart is assembled: then the parts are shared."""
    return _altair_copy(self, deep=not _assembling.get() if deep is None else deep, ignore=ignore)


schemapi.SchemaBase.copy = _copy  # type: ignore[method-assign]


@contextmanager
def assembling() -> Iterator[None]:
    """Within it charts are made quickly: altair neither checks a part against Vega-Lite's schema nor copies it whole.

    It copies a chart with its rows and channels each time that the chart becomes a part of another, and then changes
    attributes of the copy alone, so that a shallow copy does. Who changes parts of parts asks for `copy(deep=True)`.
    """
    before = _assembling.set(True)
    try:
        with schemapi.debug_mode(False):
            yield
    finally:
        _assembling.reset(before)


def finished(chart: alt.TopLevelMixin) -> dict[str, Any]:
    """The specification of a chart: configured, and with the signal that isolates cases."""
    made: dict[str, Any] = chart.to_dict(validate=False)
    made["config"] = _CONFIG
    made.setdefault("params", []).append({"name": ISOLATE, "value": []})
    made.pop("$schema", None)
    return made


def shows_intervals(chart: alt.TopLevelMixin) -> bool:
    """Whether it draws an estimate's `low` and `high` somewhere."""
    return '"field": "low"' in chart.to_json(validate=False)


def captioned(chart: alt.TopLevelMixin, text: str) -> alt.VConcatChart:
    """The chart with a text in small type below it."""
    lines = textwrap.wrap(text, _CAPTION_CHARACTERS)
    below = (
        alt.Chart(alt.InlineData(values=[{}]))
        .mark_text(
            align="left", baseline="top", fontSize=_CAPTION_SIZE, lineHeight=_CAPTION_LINE, color=FAINT, text=lines
        )
        .encode(x=alt.value(0), y=alt.value(0))
        .properties(width=1, height=_CAPTION_LINE * len(lines))
    )
    return alt.vconcat(chart, below, spacing=18)  # type: ignore[arg-type]  # any chart can be concatenated


def headed(chart: alt.TopLevelMixin, title: str) -> alt.VConcatChart:
    """The chart, which may be of several panels, under a title."""
    return alt.vconcat(chart, title=alt.Title(title, anchor="start"))  # type: ignore[arg-type]  # any chart can be concatenated


def columns(count: int, width: int = WIDTH, *, gap: int = 30, label: int = 80) -> int:
    """Width of each of several panels side by side, when only the first bears labels."""
    return max(90, (width - label - gap * (count - 1)) // count)


@dataclass(frozen=True)
class Beside:
    """Names of cases beside their bars."""

    axis: alt.Axis
    height: int
    """Pixels of the name with most lines."""


def beside(cases: Sequence[str]) -> Beside:
    """Names in as few lines as `LABEL_MOST` allows, broken between words; a word that is longer is cut."""
    lines = {case: textwrap.wrap(case, int(LABEL_MOST / _LETTER), break_long_words=False) or [""] for case in cases}
    most = max(map(len, lines.values()), default=1)
    properties: dict[str, Any] = {"labelFontSize": 12, "labelColor": INK, "labelLimit": LABEL_MOST}
    if most > 1:
        properties |= {"labelFontSize": 11, "labelLineHeight": _BESIDE_LINE}
        properties["labelExpr"] = f"({json.dumps(lines)})[datum.label]"
    return Beside(alt.Axis(**properties), _BESIDE_LINE * most + 6)


def label_width(cases: Sequence[str]) -> int:
    """Room for the names of cases beside bars."""
    return max(80, min(LABEL_MOST, max((7 * len(case) for case in cases), default=0)))


def side_by_side(charts: Iterable[alt.TopLevelMixin]) -> alt.HConcatChart:
    """Panels in a row."""
    return alt.hconcat(*charts, spacing=24)  # type: ignore[arg-type]  # any chart can be concatenated


def stacked(charts: Iterable[alt.TopLevelMixin]) -> alt.VConcatChart:
    """Panels above each other."""
    return alt.vconcat(*charts, spacing=26)  # type: ignore[arg-type]  # any chart can be concatenated
