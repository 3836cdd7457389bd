"""The schemes of a result against its first, or the same schemes of several results, seed by seed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import polars as pl

from narrows import cross_backend
from narrows.errors import bad_input
from narrows.measures.bottleneck import of_same_queue
from narrows.measures.named import MEASURES as KNOWN
from narrows.measures.named import value_if_any, why_unfinished
from narrows.measures.stats import ENOUGH_SEEDS, estimate, paired, paired_ratio
from narrows.results import mixed_versions, repeated_seeds
from narrows.runs import validity
from narrows.tables import Tabular

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from narrows.measures.stats import BySeed, Estimate
    from narrows.results import Results

TRANSFERS: Final = ("goodput_long", "jain_long", "request_mean", "request_p99", "request_timeouts")
"""Of flows without a size and of requests, where there are any."""
FLOWS: Final = ("fct_small_mean", "fct_small_p99", "fct_large_mean", "fct_mean")
MEASURES: Final = ("execution_time", *FLOWS, *TRANSFERS, "loss_dc", "loss_wan")

_NOT_SHOWN: Final = ("ratio", "common_seeds")
"""Fields of a row that a table has in other columns, or a notice tells."""


@dataclass(frozen=True)
class Row:
    """One measure of one scheme against the same measure elsewhere."""

    measure: str
    unit: str
    base: str
    other: str
    base_mean: float
    other_mean: float
    """Both over the seeds that both have."""
    ratio: Estimate | None
    """other / base within a seed. Seeds that repeat another's results on both sides count as one."""
    common_seeds: int
    """Seeds that both have. The ratio is over fewer where the base is 0 in some."""


class Comparison(Tabular):
    """Measures of schemes against those of a first, with ratios taken within each seed."""

    def __init__(self, results: Sequence[Results]) -> None:
        """Compares the schemes of one result, or the equal schemes of several. Raises `BadInput` where none can be."""
        first, *others = results
        if not others and len(first.frames.cases) == 1:
            raise bad_input(
                "only one scheme: nothing to compare it with; give a second result",
                f"narrows compare {first.entry.identifier} OTHER, or add a scheme to the experiment",
            )
        self.rows = within(first) if not others else [row for other in others for row in between(first, other)]
        if not self.rows:
            raise bad_input(
                "these runs have no scheme and seed in common", "compare runs whose schemes have the same names"
            )
        told = [
            mixed_versions(results),
            *(text for one in results for text in _notices(one, others if one is first else [first])),
            *map(_fewer_seeds, self.rows),
            *_unfinished(results),
        ]
        self.notices = tuple(dict.fromkeys(filter(None, told)))
        """What whoever reads the numbers has to know."""
        self.left_out = tuple(text for one in results if (text := validity.left_out(one.manifests)))
        """Which runs do not count, and why."""

    @property
    def heading(self) -> str:
        """How the table is to be read, and the notices."""
        own = (
            "Ratios are the mean of the per-seed ratios over seeds that both have; "
            f"with fewer than {ENOUGH_SEEDS} seeds: min–max."
        )
        return "\n".join([own, *(f"{text}; they are left out" for text in self.left_out), *self.notices])

    @property
    def table(self) -> pl.DataFrame:
        """A row for each measure and pair of schemes."""
        return pl.DataFrame([row_fields(row) for row in self.rows], infer_schema_length=None)


def row_fields(row: Row) -> dict[str, object]:
    """A row as plain values: `measure`, `unit`, `base`, `other`, their means, `ratio` and its interval."""
    ratio = row.ratio
    fields: dict[str, object] = {name: value for name, value in vars(row).items() if name not in _NOT_SHOWN}
    interval = {"low": ratio.low, "high": ratio.high, "interval": ratio.kind, "seeds": ratio.seeds} if ratio else {}
    return fields | {"ratio": ratio.mean if ratio else None, **interval}


def _fewer_seeds(row: Row) -> str:
    """A sentence where the ratio is not over all common seeds; else nothing."""
    ratio = row.ratio
    if ratio is None or ratio.seeds == row.common_seeds:
        return ""
    pair = f"{row.other} over {row.base}"
    return (
        f"{row.measure}: the ratio {pair} is over {ratio.seeds} of {row.common_seeds} seeds, where {row.base} is not 0"
    )


def _unfinished(results: Sequence[Results]) -> list[str]:
    """Sentences on measures that have no row, or no value for a scheme, because too much was left undone."""
    why: dict[str, dict[str, None]] = {}
    for one in results:
        for case in one.frames.cases:
            for name in MEASURES:
                if reason := why_unfinished(one.frames, name, (case,)):
                    why.setdefault(f"{case}: {reason}", {})[name] = None
    return [f"{', '.join(names)} without {told}" for told, names in why.items()]


def within(results: Results) -> list[Row]:
    """Every scheme against the first."""
    first, *others = results.frames.cases
    return [item for case in others for item in _pair(results, first, first, results, case, case)]


def between(one: Results, other: Results) -> list[Row]:
    """The schemes that both have."""
    common = [case for case in one.frames.cases if case in other.frames.cases]
    names = one.entry.identifier, other.entry.identifier
    if cross_backend.same_plans(one.entry, other.entry):
        names = one.entry.backend.value, other.entry.backend.value
    return [
        item for case in common for item in _pair(one, case, f"{names[0]} {case}", other, case, f"{names[1]} {case}")
    ]


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


def _pair(one: Results, case: str, label: str, other: Results, other_case: str, other_label: str) -> list[Row]:
    sides = ((one.frames, case), (other.frames, other_case))
    values = {name: tuple(value_if_any(own, name, (at,)) for own, at in sides) for name in MEASURES}
    found: list[Row] = []
    for name, both in (values | of_same_queue(*sides)).items():
        base, against = _in_pairs(one, other, *both)
        first, second = estimate(list(base.values())), estimate(list(against.values()))
        if first is None or second is None:
            continue  # no seed has it on both sides
        unit = KNOWN[name].unit if name in KNOWN else "ms"
        ratio = paired_ratio(against, base)
        if ratio is not None:
            # No measure here is negative, nor can its ratio be; the interval of the t distribution is symmetric.
            ratio = replace(ratio, low=max(0.0, ratio.low))
        found.append(Row(name, unit, label, other_label, first.mean, second.mean, ratio, len(base)))
    return found
