"""What a report shows of a sweep: measures against its axes, and which scheme is best in each configuration."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeVar

from narrows import wording
from narrows.configurations import Configurations, short_names
from narrows.figures import axes as drawn
from narrows.measures.bottleneck import SAME_QUEUE, same_queue_by_seed
from narrows.measures.direction import better
from narrows.measures.named import NotEvaluable, measure_called, value_if_any
from narrows.measures.stats import estimate, geometric_ratio
from narrows.report import headline

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import altair as alt

    from narrows.experiment import ReportChoice
    from narrows.frames import Frames
    from narrows.measures.stats import BySeed, Estimate
    from narrows.results import Results

_Item = TypeVar("_Item")

MAX_MEASURES: Final = 4
"""Measures that are drawn if the experiment chooses none."""
_FIRST: Final = ("execution_time", "fct_small_p99", "request_p99", "goodput_long", "fct_mean", "loss_wan", "loss_dc")
"""Those of the headline that are drawn before its others: of each kind one."""
MAX_SCHEMES: Final = 12
MAX_PANELS: Final = 12
MAX_CHARTS: Final = 4
"""Charts of a measure, each of one combination of the values of the axes that are neither `x` nor panels."""
MAX_ALL_CHARTS: Final = 16
"""Charts of lines and heat maps of all measures together: a page with more takes seconds to open."""
MAX_ROWS: Final = 1000
"""Configurations in the table of the best schemes."""
FEW_ROWS: Final = 24
"""Configurations up to which the table is unfolded."""


@dataclass(frozen=True)
class Chart:
    """A chart of a measure."""

    identifier: str
    label: str
    """What it shows, for those who cannot see it."""
    drawn: alt.TopLevelMixin


@dataclass(frozen=True)
class Drawn:
    """A measure with its charts."""

    name: str
    unit: str
    about: str
    parts: tuple[tuple[str, tuple[Chart, ...]], ...]
    """The values of the other axes, `limit=50pkt`, and the charts with these: lines, and heat maps."""


@dataclass(frozen=True)
class Best:
    """Who is best in one measure in one configuration."""

    scheme: str
    """Several where they are equal; nothing where fewer than two schemes have a value."""
    value: str
    second: str
    """The next scheme with its value."""
    rank: str
    """`best`: its interval does not overlap the second's; `tied`: it does, or they are equal; nothing of one seed."""


@dataclass(frozen=True)
class Table:
    """The best scheme of each measure in each configuration."""

    axes: tuple[str, ...]
    measures: tuple[tuple[str, str], ...]
    """Name, and which values are better."""
    rows: tuple[tuple[tuple[str, ...], tuple[Best, ...]], ...]
    """The axes' values and the best of each measure."""
    tally: tuple[tuple[str, tuple[str, ...]], ...]
    """In how many configurations each scheme is the best, by measure."""
    configurations: int
    left_out: int
    """Configurations without a row."""


@dataclass(frozen=True)
class Sweep:
    """The section on a sweep."""

    x: str
    panels: str
    base: str
    schemes: tuple[str, ...]
    measures: tuple[Drawn, ...]
    absent: tuple[str, ...]
    """Measures that were asked for and have no finite value in any configuration."""
    left_out: tuple[str, ...]
    """Sentences on what has no chart."""
    best: Table | None
    """Nothing with a single scheme, or where no measure has a better direction."""

    @property
    def charts(self) -> list[Chart]:
        """Of all measures."""
        return [chart for measure in self.measures for _, own in measure.parts for chart in own]


@dataclass(frozen=True)
class Layout:
    """Which axis is where."""

    x: str
    panels: str
    """Nothing where the sweep has a single axis."""
    others: tuple[str, ...]


def of(results: Results) -> Sweep | None:
    """The section; nothing where fewer than two configurations are compared along an axis."""
    frames = results.frames
    found = Configurations.of(frames)
    columns = dict(zip(results.entry.axes, results.axes, strict=True))
    layout = layout_of(found.values, results.entry.report, columns)
    if layout is None:
        return None
    names = short_names(found.axes)
    asked = results.entry.report.y
    measured = {name: _values(frames, name) for name in asked or _usual(frames)}
    measured = {name: own for name, own in measured.items() if _has_finite(own)}
    values = {name: measured[name] for name in measured if asked or name in _drawn_by_default(list(measured))}
    schemes = found.schemes[:MAX_SCHEMES]
    panels, left_panels = _spread(found.values[layout.panels], MAX_PANELS) if layout.panels else ([""], [])
    each = 2 if layout.panels else 1
    room = max(1, min(MAX_CHARTS, MAX_ALL_CHARTS // (each * max(1, len(values)))))
    combinations = list(itertools.product(*(found.values[axis] for axis in layout.others)))
    shown, left = _spread(combinations, room)
    not_drawn = (
        _rest_of("measure", [name for name in measured if name not in values]),
        _rest_of("scheme", list(found.schemes[MAX_SCHEMES:])),
        _rest_of("panel", [f"{names[layout.panels]}={value}" for value in left_panels]),
        _rest_of("combination", [_told(layout.others, own, names) for own in left]),
    )
    figure = _Figure(found, layout, names, schemes, panels)
    return Sweep(
        x=names[layout.x],
        panels=names.get(layout.panels, ""),
        base=found.schemes[0],
        schemes=schemes,
        measures=tuple(_drawn(figure, place, name, own, shown) for place, (name, own) in enumerate(values.items(), 1)),
        absent=tuple(name for name in asked if name not in measured),
        left_out=tuple(text for text in not_drawn if text),
        best=best(frames, measured),
    )


def layout_of(values: Mapping[str, Sequence[str]], choice: ReportChoice, columns: Mapping[str, str]) -> Layout | None:
    """Where the axes stand that have several values; `None` where none has.

    By default the axis with the most numbers is the horizontal one, and the next one in the file has the panels.
    `columns` are what tables call the axes of the file.
    """
    swept = [axis for axis, own in values.items() if len(own) > 1]
    if not swept:
        return None
    x, panels = columns.get(choice.x, ""), columns.get(choice.panels, "")
    panels = panels if panels in swept and len(swept) > 1 else ""
    if x not in swept:
        free = [axis for axis in swept if axis != panels]
        numbers = [axis for axis in free if drawn.Axis(axis, tuple(values[axis])).numbers is not None]
        x = max(numbers or free, key=lambda axis: len(values[axis]))
    if not panels:
        panels = next((axis for axis in swept if axis != x), "")
    return Layout(x, panels, tuple(axis for axis in swept if axis not in (x, panels)))


def _spread(items: Sequence[_Item], room: int) -> tuple[list[_Item], list[_Item]]:
    """So many items, evenly spread from the first to the last, and the others."""
    if len(items) <= room:
        return list(items), []
    places = {round(place * (len(items) - 1) / max(1, room - 1)) for place in range(room)}
    return (
        [item for place, item in enumerate(items) if place in places],
        [item for place, item in enumerate(items) if place not in places],
    )


def _rest_of(kind: str, texts: Sequence[str]) -> str:
    return f"{wording.plural(len(texts), kind)} ({wording.some(texts)})" if texts else ""


def _told(axes: Sequence[str], values: Sequence[str], names: Mapping[str, str]) -> str:
    return ", ".join(f"{names[axis]}={value}" for axis, value in zip(axes, values, strict=True))


def _usual(frames: Frames) -> list[str]:
    """The measures of the headline that are not the same in all configurations."""
    chosen = headline.columns(frames)
    found = headline.values(frames, chosen)
    return [
        quantity.measure
        for quantity in chosen
        if len({value for by_seed in found[quantity].values() for value in by_seed.values()}) > 1
    ]


def _drawn_by_default(measures: Sequence[str]) -> list[str]:
    first = [name for name in _FIRST if name in measures]
    return [*first, *(name for name in measures if name not in first)][:MAX_MEASURES]


def _values(frames: Frames, measure: str) -> dict[str, BySeed]:
    """A measure by case, of those that have it."""
    if measure in SAME_QUEUE:
        found = {case: _of_same_queue(frames, measure, case) for case in frames.cases}
    else:
        found = {case: value_if_any(frames.of([case]), measure, (case,)) for case in frames.cases}
    return {case: by_seed for case, by_seed in found.items() if by_seed}


def _has_finite(values: Mapping[str, BySeed]) -> bool:
    """Whether a chart can show a mean of some case: `time_to_share` may be infinite everywhere."""
    means = (estimate(list(by_seed.values())) for by_seed in values.values())
    return any(mean is not None and math.isfinite(mean.mean) for mean in means)


def _of_same_queue(frames: Frames, measure: str, case: str) -> BySeed:
    try:
        return same_queue_by_seed(frames, measure, case)
    except NotEvaluable:
        return {}


@dataclass(frozen=True)
class _Figure:
    """What the charts of all measures share."""

    found: Configurations
    layout: Layout
    names: Mapping[str, str]
    schemes: tuple[str, ...]
    panels: Sequence[str]

    def axis(self, axis: str) -> drawn.Axis:
        return drawn.Axis(self.names[axis], self.found.values[axis])

    def points(self, values: Mapping[str, BySeed], others: Sequence[str]) -> list[drawn.Point]:
        """A measure in every configuration with these values of the other axes."""
        axes, layout = self.found.axes, self.layout
        fixed = dict(zip(layout.others, others, strict=True))
        constant = {axis: own[0] for axis, own in self.found.values.items() if len(own) == 1}
        made: list[drawn.Point] = []
        for panel, x in itertools.product(self.panels, self.found.values[layout.x]):
            chosen = constant | fixed | {layout.x: x} | ({layout.panels: panel} if layout.panels else {})
            at = self.found.at(tuple(chosen.get(axis) for axis in axes))
            base = values.get(at.get(self.found.schemes[0], ""), {})
            for scheme in self.schemes:
                if scheme in at:
                    own = values.get(at[scheme], {})
                    flat = self.found.cases[at[scheme]][1][axes.index(layout.x)] is None
                    ratio = geometric_ratio(own, base)
                    made.append(drawn.Point(scheme, x, panel, estimate(list(own.values())), ratio, flat))
        return made


def _drawn(
    figure: _Figure, place: int, name: str, values: Mapping[str, BySeed], shown: Sequence[tuple[str, ...]]
) -> Drawn:
    layout, names = figure.layout, figure.names
    x = figure.axis(layout.x)
    panels = figure.axis(layout.panels) if layout.panels else None
    unit, about = _described(name)
    parts = []
    for number, others in enumerate(shown, 1):
        points = figure.points(values, others)
        if not any(point.value and math.isfinite(point.value.mean) for point in points):
            continue
        told = _told(layout.others, others, names)
        where = f", {told}" if told else ""
        charts = [
            Chart(
                f"sweep-{place}-{number}",
                f"{name} against {x.name}" + (f", a panel for each {panels.name}" if panels else "") + where,
                drawn.lines(points, figure.schemes, x, panels, unit or name),
            )
        ]
        if panels is not None:
            charts.append(
                Chart(
                    f"sweep-{place}-{number}-map",
                    f"{name} by {x.name} and {panels.name}, and its ratio to that of {figure.found.schemes[0]}{where}",
                    drawn.heat_maps(points, figure.schemes, x, panels, unit, figure.found.schemes[0]),
                )
            )
        parts.append((told, tuple(charts)))
    return Drawn(name, unit, about, tuple(parts))


def _described(name: str) -> tuple[str, str]:
    """Unit and meaning of a measure."""
    found = measure_called(name)
    return ("ms", SAME_QUEUE[name]) if found is None else (found.unit, found.about)


def best(frames: Frames, values: Mapping[str, Mapping[str, BySeed]]) -> Table | None:
    """The best scheme of each measure in each configuration, of values by measure and case.

    Where several backends stand side by side, each is a configuration of its own. Measures of which neither lower nor
    higher values are better have no column.
    """
    found = Configurations.of(frames, backends_apart=True)
    ranked = {name: direction for name in values if (direction := better(name))}
    if len(found.schemes) < 2 or not ranked:
        return None
    shown = [axis for axis, own in found.values.items() if len(own) > 1]
    names = short_names(shown)
    estimates = {
        name: {case: made for case, by_seed in values[name].items() if (made := estimate(list(by_seed.values())))}
        for name in ranked
    }
    rows = [
        (
            tuple(found.named(point).get(axis, "–") for axis in shown),
            tuple(_best(estimates[name], found.at(point), direction) for name, direction in ranked.items()),
        )
        for point in found.points
    ]
    columns = list(zip(*(cells for _, cells in rows), strict=True))
    tally = [(scheme, tuple(_tally(column, scheme) for column in columns)) for scheme in found.schemes]
    return Table(
        axes=tuple(names[axis] for axis in shown),
        measures=tuple(ranked.items()),
        rows=tuple(rows[:MAX_ROWS]),
        tally=tuple(tally),
        configurations=len(rows),
        left_out=max(0, len(rows) - MAX_ROWS),
    )


def _best(estimates: Mapping[str, Estimate], at: Mapping[str, str], direction: str) -> Best:
    own = {scheme: estimates[case] for scheme, case in at.items() if case in estimates}
    own = {scheme: made for scheme, made in own.items() if not math.isnan(made.mean)}
    if len(own) < 2:
        return Best("", "–", "", "")
    sign = -1 if direction == "higher" else 1
    first, second, *others = sorted(own, key=lambda scheme: sign * own[scheme].mean)
    equal = [scheme for scheme in (first, second, *others) if own[scheme].mean == own[first].mean]
    value = wording.number(own[first].mean)
    if len(equal) > 1:
        return Best(", ".join(equal) if len(equal) < len(own) else "all equal", value, "", "tied")
    told = f"{second} {wording.number(own[second].mean)}"
    if "none" in (own[first].kind, own[second].kind):
        return Best(first, value, told, "")
    apart = own[first].high < own[second].low if sign > 0 else own[first].low > own[second].high
    return Best(first, value, told, "best" if apart else "tied")


def _tally(column: Sequence[Best], scheme: str) -> str:
    """`7, of which 5 clear`; equal schemes are not counted."""
    own = [cell for cell in column if cell.scheme == scheme]
    clear = sum(cell.rank == "best" for cell in own)
    return wording.whole(len(own)) + (f" ({wording.whole(clear)})" if any(cell.rank for cell in own) else "")
