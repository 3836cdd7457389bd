"""The schemes of a result against its first, or the same schemes of several results, seed by seed.

Schemes of a sweep are compared within each configuration: with the first scheme at the same values of the axes. Along
an axis, each scheme is compared with itself at the axis' first value.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import polars as pl

from narrows import cross_backend, wording
from narrows.configurations import Configurations, short_names
from narrows.errors import bad_input
from narrows.experiment import SEPARATOR
from narrows.measures.bottleneck import of_same_queue
from narrows.measures.named import MEASURES as KNOWN
from narrows.measures.named import value_if_any, why_unfinished
from narrows.measures.stats import ENOUGH_SEEDS, estimate, geometric_mean, geometric_ratio, paired
from narrows.results import mixed_versions, repeated_seeds
from narrows.runs import validity
from narrows.tables import Tabular

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from narrows.measures.stats import BySeed, Estimate
    from narrows.results import Results

TRANSFERS: Final = ("goodput_long", "jain_long", "request_mean", "request_p99", "request_timeouts")
"""Of flows without a size and of requests, where there are any."""
FLOWS: Final = ("fct_small_mean", "fct_small_p99", "fct_large_mean", "fct_mean")
MEASURES: Final = ("execution_time", *FLOWS, *TRANSFERS, "loss_dc", "loss_wan")

_NAMED: Final = 3
"""Sentences on cases of which a measure has no value; of more they say how many."""


@dataclass(frozen=True)
class Row:
    """One measure of one scheme against the same measure elsewhere."""

    measure: str
    unit: str
    configuration: tuple[tuple[str, str], ...]
    """The values of the sweep's axes; none without a sweep."""
    base: str
    other: str
    base_mean: float
    other_mean: float
    """Both over the seeds that both have."""
    ratio: Estimate | None
    """other / base within a seed, geometric mean. Seeds that repeat another's results on both sides count as one."""
    common_seeds: int
    """Seeds that both have. The ratio is over fewer where one side is 0 or infinite in some."""


@dataclass(frozen=True)
class Summary:
    """One measure of one scheme against the same measure elsewhere, over all configurations of a sweep."""

    measure: str
    base: str
    other: str
    ratio: float
    """Geometric mean of the ratios of the configurations."""
    low: float
    high: float
    """The smallest and the largest ratio of a configuration."""
    lower: int
    higher: int
    """Configurations in which the whole interval of the ratio is below 1, or above 1; a ratio of one seed has none."""
    ratios: int
    """Configurations that have a ratio."""
    configurations: int
    """Configurations in which both sides have the measure."""


class Comparison(Tabular):
    """Measures of schemes against those of a first, with ratios taken within each seed and configuration."""

    def __init__(self, results: Sequence[Results], along: str | None = None) -> None:
        """Compares the schemes of one result, or the equal schemes of several, or one result's values of an axis.

        Raises `BadInput` where there is nothing to compare.
        """
        first, *others = results
        if along is not None and others:
            raise bad_input(
                "values of an axis are compared within one result", "leave out --along, or all results but one"
            )
        if along is None and not others and len(first.frames.cases) == 1:
            raise bad_input(
                "only one scheme: nothing to compare it with; give a second result",
                f"narrows compare {first.entry.identifier} OTHER, or add a scheme to the experiment",
            )
        axis = _axis(first, along) if along is not None else None
        if axis is not None:
            self.rows = along_axis(first, axis)
        else:
            self.rows = within(first) if not others else [row for other in others for row in between(first, other)]
        if not self.rows:
            raise bad_input(
                "these runs have no scheme and seed in common", "compare runs whose schemes have the same names"
            )
        self.axes = tuple(dict.fromkeys(axis for row in self.rows for axis, _ in row.configuration))
        """The axes of the sweep by which rows are told apart."""
        told = [
            mixed_versions(results),
            *(text for one in results for text in _notices(one, others if one is first else [first])),
            *([_without_base(first)] if not others and axis is None else []),
            *([_without_first(first, axis)] if axis is not None else []),
            *_fewer_seeds(self.rows),
            *_without_congestion(results),
            *_unfinished(results),
            *(_of_several_kinds(one) for one in results),
        ]
        self.notices = tuple(dict.fromkeys(filter(None, told)))
        """What whoever reads the numbers has to know."""
        self.left_out = tuple(text for one in results if (text := validity.left_out(one.manifests)))
        """Which runs do not count, and why."""

    @property
    def heading(self) -> str:
        """How the table is to be read, and the notices."""
        own = (
            "Ratios are geometric means of the per-seed ratios over seeds that both have, with 95 % intervals on the "
            f"log scale; with fewer than {ENOUGH_SEEDS} seeds: min–max."
        )
        return "\n".join([own, *(f"{text}; they are left out" for text in self.left_out), *self.notices])

    @property
    def table(self) -> pl.DataFrame:
        """A row for each measure, pair of schemes and configuration of a sweep, which has a column for each axis."""
        rows = [_flat(row_fields(row), self.axes) for row in self.rows]
        return pl.DataFrame(rows, infer_schema_length=None)

    @property
    def summary(self) -> list[Summary]:
        """Each measure and pair of schemes over the configurations of a sweep; nothing without a sweep."""
        return [] if not self.axes else [_summary(rows) for rows in _grouped(self.rows).values()]


def row_fields(row: Row) -> dict[str, object]:
    """A row as plain values: `measure`, `unit`, `axes`, `base`, `other`, their means, `ratio` and its interval."""
    ratio = row.ratio
    interval = {"low": ratio.low, "high": ratio.high, "interval": ratio.kind, "seeds": ratio.seeds} if ratio else {}
    return {
        "measure": row.measure,
        "unit": row.unit,
        "axes": dict(row.configuration),
        "base": row.base,
        "other": row.other,
        "base_mean": row.base_mean,
        "other_mean": row.other_mean,
        "ratio": ratio.mean if ratio else None,
        **interval,
    }


def _flat(fields: dict[str, object], axes: Sequence[str]) -> dict[str, object]:
    """The same with a column for each axis, which has a prefix where it is called like another column."""
    own: Mapping[str, str] = fields.pop("axes")  # type: ignore[assignment]  # as `row_fields` makes it
    columns = {(f"axis_{axis}" if axis in fields else axis): own.get(axis) for axis in axes}
    return {"measure": fields.pop("measure"), "unit": fields.pop("unit"), **columns, **fields}


def _grouped(rows: Iterable[Row]) -> dict[tuple[str, str, str], list[Row]]:
    """By measure and pair of schemes."""
    found: dict[tuple[str, str, str], list[Row]] = {}
    for row in rows:
        found.setdefault((row.measure, row.base, row.other), []).append(row)
    return found


def _summary(rows: Sequence[Row]) -> Summary:
    ratios = [row.ratio for row in rows if row.ratio is not None]
    means = [ratio.mean for ratio in ratios]
    overall = geometric_mean(means)
    first = rows[0]
    return Summary(
        measure=first.measure,
        base=first.base,
        other=first.other,
        ratio=math.nan if overall is None else overall.mean,
        low=min(means, default=math.nan),
        high=max(means, default=math.nan),
        lower=sum(ratio.high < 1 for ratio in ratios if ratio.kind != "none"),
        higher=sum(ratio.low > 1 for ratio in ratios if ratio.kind != "none"),
        ratios=len(ratios),
        configurations=len(rows),
    )


def _without_congestion(results: Sequence[Results]) -> Iterator[str]:
    """A sentence where packets were counted, and none was marked, sampled, late or lost, in the warm-up neither.

    Ports count after the warm-up; a flow's numbers are of its whole life.
    """
    signs = (
        "marked_packets",
        "congestion_samples",
        "dropped_packets",
        "lost_on_wire_packets",
        "lost_in_outage_packets",
        "late_packets",
    )
    ports = [one.frames.ports for one in results]
    if not all({"sent_packets", *signs} <= set(table.columns) for table in ports):
        return
    sums = [table.select("sent_packets", *signs).sum().row(0) for table in ports]
    if not any(sent for sent, *_ in sums) or any(any(counts) for _, *counts in sums):
        return
    if not any(_had_losses(one) for one in results):
        yield (
            "no packet was marked or lost in any of these runs: controllers that respond to marks and losses alone had "
            "nothing to respond to"
        )


def _had_losses(results: Results) -> bool:
    """Whether a flow, from its start on, was marked, notified or lost something, or took something for lost."""
    signs = (
        "marked_bytes",
        "retransmitted_bytes",
        "timeouts",
        "dropped_packets",
        "near_source_cuts",
        "syn_retransmits",
    )
    flows = results.scan("flows")
    known = [sign for sign in signs if sign in flows.collect_schema().names()]
    return bool(known) and any(flows.select(pl.col(known).sum()).collect().row(0))


def _fewer_seeds(rows: Sequence[Row]) -> Iterator[str]:
    """Sentences where ratios are not over all common seeds."""
    for (measure, base, other), own in _grouped(rows).items():
        pair = f"{measure}: the ratio {other} over {base}"
        without = "0 or infinite" if any(math.inf in (row.base_mean, row.other_mean) for row in own) else "0"
        if not own[0].configuration:
            for ratio, common in ((row.ratio, row.common_seeds) for row in own):
                if ratio is not None and ratio.seeds < common:
                    yield f"{pair} is over {ratio.seeds} of {common} seeds, where neither is {without}"
            continue
        fewer = sum(row.ratio is not None and row.ratio.seeds < row.common_seeds for row in own)
        none = sum(row.ratio is None and max(row.base_mean, row.other_mean) > 0 for row in own)
        told = [f"is over fewer seeds in {fewer}"] if fewer else []
        told += [f"is absent in {none}"] if none else []
        if told:
            of = f"of {len(own)} configurations"
            yield f"{pair} {' and '.join(told)} {of}: seeds in which one of them is {without} have none"


def _unfinished(results: Sequence[Results]) -> list[str]:
    """Sentences on measures that have no row, or no value for a scheme, because too much was left undone."""
    why: dict[str, dict[str, None]] = {}
    for one in results:
        for case in one.frames.cases:
            for name in MEASURES:
                if reason := why_unfinished(one.frames.of([case]), name, (case,)):
                    why.setdefault(f"{case}: {reason}", {})[name] = None
    by_names: dict[tuple[str, ...], list[str]] = {}
    for told, names in why.items():
        by_names.setdefault(tuple(names), []).append(told)
    made: list[str] = []
    for measures, cases in by_names.items():
        listed = ", ".join(measures)
        made += [f"{listed} without {text}" for text in cases[:_NAMED]]
        if len(cases) > _NAMED:
            made.append(f"{listed} without {wording.whole(len(cases) - _NAMED)} more, for the same reason")
    return made


def within(results: Results) -> list[Row]:
    """Every scheme against the first, in each configuration; of a single scheme every case against the first."""
    found = Configurations.of(results.frames)
    if len(found.schemes) == 1:
        base, *others = results.frames.cases
        return [row for case in others for row in _pair((results, base, base), (results, case, case))]
    first, *schemes = found.schemes
    # A configuration is told by the axes that the two have; those of a third scheme alone do not repeat the pair.
    pairs: dict[tuple[str, str], tuple[tuple[str, str], ...]] = {}
    for point in found.points:
        at = found.at(point)
        for scheme in schemes if first in at else ():
            if scheme in at:
                of_both = (found.cases[at[name]][1] for name in (first, scheme))
                axes = [axis for axis, *values in zip(found.axes, *of_both, strict=True) if any(values)]
                named = found.named(point)
                pairs.setdefault((at[first], at[scheme]), tuple((axis, named[axis]) for axis in axes))
    return [
        row
        for (base, case), point_of in pairs.items()
        for row in _pair((results, base, first), (results, case, found.cases[case][0]), point_of)
    ]


def _axis(results: Results, name: str) -> str:
    """The axis of a sweep that is called so, whole or by the last part of its path. Raises `BadInput`."""
    axes = Configurations.of(results.frames).axes
    if name in axes:
        return name
    if not axes:
        raise bad_input(
            f"'{results.entry.identifier}' is no sweep: it has no axis to compare along",
            "give the experiment a [sweep]",
        )
    found = [axis for axis, short in short_names(axes).items() if short == name]
    if not found:
        raise bad_input(f"'{name}' is no axis of '{results.entry.identifier}'", f"its axes are {', '.join(axes)}")
    return found[0]


def along_axis(results: Results, axis: str) -> list[Row]:
    """Every scheme at each value of an axis against itself at the first, the other axes being equal.

    Configurations of which the first value has no runs are left out. Raises `BadInput` where none is left.
    """
    found = Configurations.of(results.frames)
    short, first = short_names(found.axes)[axis], found.values[axis][0]
    alike = _alike(found, axis).items()
    pairs = [(of, cases[first], cases) for of, cases in alike if first in cases and len(cases) > 1]
    if not pairs:
        raise bad_input(
            f"no two configurations of '{results.entry.identifier}' differ in {axis} alone, one of them with {first}",
            "compare along another axis, or leave --along out",
        )

    def side(scheme: str, value: str, case: str) -> _Side:
        return results, case, SEPARATOR.join([scheme, f"{short}={value}"])

    return [
        row
        for (scheme, elsewhere), base, cases in pairs
        for value, case in cases.items()
        if value != first
        for row in _pair(side(scheme, first, base), side(scheme, value, case), tuple(found.named(elsewhere).items()))
    ]


def _alike(found: Configurations, axis: str) -> dict[tuple[str, tuple[str | None, ...]], dict[str, str]]:
    """By scheme and point without the axis: the case at each of the axis' values. A scheme without it has none."""
    place = found.axes.index(axis)
    alike: dict[tuple[str, tuple[str | None, ...]], dict[str, str]] = {}
    for case, (scheme, point) in found.cases.items():
        if (value := point[place]) is not None:
            elsewhere = (*point[:place], None, *point[place + 1 :])
            alike.setdefault((scheme, elsewhere), {})[value] = case
    return alike


def _without_first(results: Results, axis: str) -> str:
    """A sentence where the first value of an axis is missing in configurations that have others; else nothing."""
    found = Configurations.of(results.frames)
    first = found.values[axis][0]
    without = sum(first not in cases for cases in _alike(found, axis).values())
    left_out = f"{wording.plural(without, 'configuration')} without {axis}={first} to compare with: left out"
    return left_out if without else ""


def _without_base(results: Results) -> str:
    """A sentence where the first scheme is missing in configurations that others have; else nothing."""
    found = Configurations.of(results.frames)
    without = sum(found.schemes[0] not in found.at(point) for point in found.points)
    if not without:
        return ""
    return (
        f"{wording.whole(without)} of {wording.plural(len(found.points), 'configuration')} have no {found.schemes[0]} "
        "to compare with; they are left out"
    )


def between(one: Results, other: Results) -> list[Row]:
    """The schemes that both have, each in the same configuration."""
    common = [case for case in one.frames.cases if case in other.frames.cases]
    names = one.entry.identifier, other.entry.identifier
    if cross_backend.same_plans(one.entry, other.entry):
        names = one.entry.backend.value, other.entry.backend.value
    found = Configurations.of(one.frames)
    made: list[Row] = []
    for case in common:
        scheme, point = found.cases[case]
        sides = (one, case, f"{names[0]} {scheme}"), (other, case, f"{names[1]} {scheme}")
        made += _pair(*sides, tuple(found.named(point).items()))
    return made


def _of_several_kinds(one: Results) -> str | None:
    """Where means over long-lived flows are over those of several controllers."""
    mixed = [case for case in one.frames.cases if one.frames.of([case]).long["controller"].n_unique() > 1]
    if not mixed:
        return None
    which = mixed[0] if len(mixed) == 1 else f"{mixed[0]} and {wording.plural(len(mixed) - 1, 'other scheme')}"
    return (
        f"{which}: goodput_long, jain_long and the like are over flows of several controllers; `narrows show "
        f"{one.entry.identifier}` and the report have each kind"
    )


def _notices(one: Results, partners: Sequence[Results]) -> list[str]:
    """Those of a result that is compared with these."""
    if all(_as_one(one, partner) for partner in partners):
        return list(one.notices)
    consequence = "each is paired with the same seed of the other results"
    paired_each = f"'{one.entry.identifier}': {repeated_seeds(one.repeated, consequence)}"
    return [paired_each if text == repeated_seeds(one.repeated) else text for text in one.notices]


def _as_one(one: Results, other: Results) -> bool:
    """Whether seeds that repeat one another's results in `one` do so in the other, too."""
    common = {*one.entry.seeds, *one.repeated} & {*other.entry.seeds, *other.repeated}
    return len(_counting(one, other, common)) == len({one.repeated.get(seed, seed) for seed in common})


def _counting(one: Results, other: Results, seeds: Iterable[int]) -> list[int]:
    """Of common seeds those that count: the first of each group that repeats one another's results on both sides."""
    first: dict[tuple[int, int], int] = {}
    for seed in sorted(seeds):
        first.setdefault((one.repeated.get(seed, seed), other.repeated.get(seed, seed)), seed)
    return list(first.values())


def _in_pairs(one: Results, other: Results, base: BySeed, against: BySeed) -> tuple[BySeed, BySeed]:
    """Both over the common seeds that count. A seed that repeats another's results has that one's value."""
    base, against = paired(_with_repeated(base, one), _with_repeated(against, other))
    seeds = _counting(one, other, base)
    return {seed: base[seed] for seed in seeds}, {seed: against[seed] for seed in seeds}


def _with_repeated(values: BySeed, results: Results) -> BySeed:
    return values | {seed: values[first] for seed, first in results.repeated.items() if first in values}


_Side = tuple["Results", str, str]
"""A result, one of its cases, and what rows call its scheme."""


def _pair(base: _Side, other: _Side, configuration: tuple[tuple[str, str], ...] = ()) -> list[Row]:
    """A row for each measure that both sides have in some seed."""
    # Each measure looks through all rows that it is given.
    sides = tuple((results.frames.of([case]), case) for results, case, _ in (base, other))
    values = {name: tuple(value_if_any(own, name, (at,)) for own, at in sides) for name in MEASURES}
    found: list[Row] = []
    for name, both in (values | of_same_queue(*sides)).items():
        of_base, against = _in_pairs(base[0], other[0], *both)
        first, second = estimate(list(of_base.values())), estimate(list(against.values()))
        if first is None or second is None:
            continue  # no seed has it on both sides
        unit = KNOWN[name].unit if name in KNOWN else "ms"
        ratio = geometric_ratio(against, of_base)
        means = (first.mean, second.mean)
        found.append(Row(name, unit, configuration, base[2], other[2], *means, ratio, len(of_base)))
    return found
