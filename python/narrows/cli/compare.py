"""`narrows compare RUN…`: the arms of a run against its first, or the same arms of several runs, seed by seed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Final

import typer
from rich.markup import escape
from rich.table import Table

from narrows import validity, wording
from narrows.cli import options
from narrows.cli.exits import codes
from narrows.cli.output import OUT, line
from narrows.errors import bad_input

if TYPE_CHECKING:
    from narrows.results import Results
    from narrows.stats import BySeed, Estimate

TRANSFERS: Final = ("goodput_long", "jain_long", "request_mean", "request_p99", "request_timeouts")
"""Of flows without a size and of requests, where there are any."""
MEASURES: Final = ("fct_small_avg", "fct_small_p99", "fct_large", "fct_all", *TRANSFERS, "plr_dcn", "plr_wan")


@dataclass(frozen=True)
class Comparison:
    """One measure of one arm against the same measure elsewhere."""

    measure: str
    unit: str
    base: str
    other: str
    base_mean: float
    other_mean: float
    """Both over the seeds that both have."""
    ratio: Estimate | None
    """other / base within a seed."""


def compare(
    runs: Annotated[list[str], typer.Argument(metavar="RUN...", help="Results by name, or by their experiment file.")],
    out: options.Out = options.DEFAULT_OUT,
    json: options.Json = False,
) -> None:
    """Compares arms, or runs, seed by seed.

    Of one RUN, every arm with the first; of several, equal arms with those of the first. Ratios of completion times and
    losses within a seed, with their intervals.
    """
    from narrows import api
    from narrows.results import mixed_versions

    with codes():
        results = [api.load(name, out=out) for name in runs]
        if len(results) == 1 and len(results[0].frames.cases) == 1:
            raise bad_input(
                "only one arm: nothing to compare it with; give a second result",
                f"narrows compare {results[0].entry.identifier} OTHER, or add an arm to the experiment",
            )
        found = (
            within(results[0])
            if len(results) == 1
            else [item for other in results[1:] for item in between(results[0], other)]
        )
        if not found:
            raise bad_input("these runs have no arm and seed in common", "compare runs whose arms have the same names")
        notices = dict.fromkeys([mixed_versions(results), *(text for one in results for text in one.notices)])
        left_out = (f"{text}; they are left out" for one in results if (text := validity.left_out(one.manifests)))
        for item in found if json else ():
            line(event="comparison", **_fields(item))
        for text in filter(None, notices) if json else ():
            line(event="notice", text=text)
        if not json:
            OUT.print(_table(found))
            for text in (*left_out, *(f"note: {text}" for text in notices if text)):
                OUT.print(text, markup=False, soft_wrap=True)
            OUT.print(
                "[dim]means and ratios within a seed are over the common seeds; below 5 seeds smallest to largest[/]"
            )


def within(results: Results) -> list[Comparison]:
    """Every arm against the first."""
    first, *others = results.frames.cases
    return [item for case in others for item in _pair(results, first, first, results, case, case)]


def between(one: Results, other: Results) -> list[Comparison]:
    """The arms that both have."""
    from narrows.beside import same_plans

    common = [case for case in one.frames.cases if case in other.frames.cases]
    names = one.entry.identifier, other.entry.identifier
    if same_plans(one.entry, other.entry):
        names = one.entry.backend.value, other.entry.backend.value
    return [
        item for case in common for item in _pair(one, case, f"{names[0]} {case}", other, case, f"{names[1]} {case}")
    ]


def _pair(one: Results, case: str, label: str, other: Results, other_case: str, other_label: str) -> list[Comparison]:
    from narrows.bottleneck import of_same_queue
    from narrows.claims.measures import MEASURES as KNOWN
    from narrows.claims.measures import NotEvaluable, value_by_seed
    from narrows.stats import estimate, paired, paired_ratio

    values: list[tuple[str, str, BySeed, BySeed]] = []
    for name in MEASURES:
        try:
            base = value_by_seed(one.frames, name, (case,))
            against = value_by_seed(other.frames, name, (other_case,))
        except NotEvaluable:
            continue
        values.append((name, KNOWN[name].unit, base, against))
    same_queue = of_same_queue((one.frames, case), (other.frames, other_case))
    values += [(name, "ms", base, against) for name, (base, against) in same_queue.items()]
    found: list[Comparison] = []
    for name, unit, *both in values:
        base, against = paired(*both)
        means = estimate(list(base.values())), estimate(list(against.values()))
        if means[0] is None or means[1] is None:
            continue  # no seed has it on both sides
        ratio = paired_ratio(against, base)
        found.append(Comparison(name, unit, label, other_label, means[0].mean, means[1].mean, ratio))
    return found


def _fields(item: Comparison) -> dict[str, object]:
    ratio = item.ratio
    interval = {"low": ratio.low, "high": ratio.high, "interval": ratio.kind, "seeds": ratio.seeds} if ratio else {}
    return {
        "measure": item.measure,
        "unit": item.unit,
        "base": item.base,
        "other": item.other,
        "base_mean": item.base_mean,
        "other_mean": item.other_mean,
        "ratio": ratio.mean if ratio else None,
        **interval,
    }


def _table(found: list[Comparison]) -> Table:
    table = Table(box=None, header_style="dim", pad_edge=False)
    for heading in ("measure", "unit", "base", "", "other", "", "ratio", "interval"):
        table.add_column(heading, no_wrap=heading == "interval", overflow="fold")
    for item in found:
        ratio = item.ratio
        interval = (
            f"{wording.number(ratio.low)} – {wording.number(ratio.high)}" if ratio and ratio.kind != "none" else ""
        )
        table.add_row(
            item.measure,
            item.unit,
            escape(item.base),
            wording.number(item.base_mean),
            escape(item.other),
            wording.number(item.other_mean),
            wording.number(ratio.mean) if ratio else "–",
            interval,
        )
    return table
