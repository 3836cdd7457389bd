"""The numbers that a reader looks for first: a table of all schemes, and who is best in what."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import polars as pl

from narrows import wording
from narrows.configurations import Configurations
from narrows.frames import in_words
from narrows.measures import longlived
from narrows.measures.completion import fct_of_parts
from narrows.measures.named import value_if_any
from narrows.measures.registry import PART
from narrows.measures.stats import BySeed, Estimate, estimate, geometric_ratio, paired_difference
from narrows.measures.transfers import long_of_parts
from narrows.runs.backends import AXIS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from narrows.frames import Frames


@dataclass(frozen=True)
class Quantity:
    """A column of the table."""

    title: str
    unit: str
    measure: str
    scale: float = 1.0
    smaller_is_better: bool = True


COMPLETION: Final = (
    Quantity("Small flows, mean", "ms", "fct_small_mean"),
    Quantity("Small flows, p99", "ms", "fct_small_p99"),
    Quantity("Large flows, mean", "ms", "fct_large_mean"),
    Quantity("All flows, mean", "ms", "fct_mean"),
)
LONG: Final = (
    Quantity("Goodput of a long-lived flow", "Mbit/s", "goodput_long", smaller_is_better=False),
    Quantity("Jain's index", "of long-lived flows", "jain_long", smaller_is_better=False),
)
REQUESTS: Final = (
    Quantity("Requests, mean", "ms", "request_mean"),
    Quantity("Requests, p99", "ms", "request_p99"),
    Quantity("Timeouts", "per 1000 requests", "request_timeouts"),
)
PROGRAM: Final = Quantity("Execution time", "ms, mean", "execution_time")
LOSS: Final = Quantity("Dropped in datacenters", "per 100 000", "loss_dc")
WIRE: Final = Quantity("Lost on the WAN's wire", "per 100 000", "lost_on_wire", scale=1e5)
WAN: Final = (
    Quantity("Dropped in WAN", "per 100 000", "loss_wan"),
    Quantity("WAN in use", "%, busiest port", "utilisation_wan_busiest", scale=100.0, smaller_is_better=False),
)


_UNFINISHED: Final = (pl.col("sized") & ~pl.col("finished")).sum()
"""A flow without a size goes on until it is stopped."""


@dataclass(frozen=True)
class Cell:
    """A value, its interval in words, and whether it is the best or not significantly different from it."""

    text: str
    interval: str
    rank: str
    """`best`, `tied` or nothing."""


@dataclass(frozen=True)
class Row:
    """A scheme, or one workload and controller of it."""

    case: str
    part: str
    cells: tuple[Cell, ...]
    flows: str
    unfinished: str


@dataclass(frozen=True)
class Card:
    """Who is best in one thing."""

    title: str
    winner: str
    value: str
    remark: str


def table(frames: Frames) -> list[Row]:
    """One row per case, in the order of the file."""
    chosen = columns(frames)
    return rows_of(frames, chosen, values(frames, chosen))


def rows_of(frames: Frames, chosen: tuple[Quantity, ...], found: Mapping[Quantity, Mapping[str, BySeed]]) -> list[Row]:
    """A row per case with these of its values, and below it one for each kind of its flows, if it has several."""
    against = rivals(frames)
    made = [column_of(frames.cases, quantity, found[quantity], against) for quantity in chosen]
    rows: list[Row] = []
    for case in frames.cases:
        flows, unfinished = _counts(frames.of([case]))
        parts = _parts(frames, case, chosen)
        # Over flows of several kinds, of which some may come and go, neither a mean nor a fairness says anything.
        mixed = bool(parts) and frames.of([case]).long["workload"].n_unique() > 1
        cells = tuple(
            Cell("–", "by kind, below", "") if mixed and quantity in LONG else column[case]
            for quantity, column in zip(chosen, made, strict=True)
        )
        rows.append(Row(case, "", cells, wording.whole(flows), wording.whole(unfinished)))
        rows += parts
    return rows


def _counts(frames: Frames) -> tuple[int, int]:
    """Flows after the warm-up, answers to requests among them, and how many of those with a size are unfinished."""
    flows, unfinished = len(frames.flows), int(frames.flows.select(_UNFINISHED).item())
    if not frames.answers.is_empty():
        flows += int(frames.answers["flows"].sum())
        unfinished += int(frames.answers["unfinished"].sum())
    return flows, unfinished


def columns(frames: Frames) -> tuple[Quantity, ...]:
    """Those that this network and its traffic can have."""
    long, wan = longlived.present(frames), "wan" in frames.ports["role"]
    completion = bool(frames.flows["finished"].any()) or not (long or len(frames.requests))
    return (
        *(() if frames.ranks.is_empty() else (PROGRAM,)),
        *(COMPLETION if completion else ()),
        *(LONG if long else ()),
        *(() if frames.requests.is_empty() else REQUESTS),
        LOSS,
        *(WAN if wan else ()),
        *((WIRE,) if wan and _lost_on_wires(frames) else ()),
    )


def _lost_on_wires(frames: Frames) -> bool:
    """Whether any WAN link lost a packet on its wire, not only in an outage."""
    wan = frames.ports.filter(pl.col("role") == "wan")
    lost, outages = (
        0 if (column := wan.get_column(name, default=None)) is None else int(column.sum())
        for name in ("lost_on_wire_packets", "lost_in_outage_packets")
    )
    return lost > outages


def _parts(frames: Frames, case: str, chosen: tuple[Quantity, ...]) -> list[Row]:
    """A row for each workload and controller of a scheme that runs several controllers; losses are of all together."""
    keys = list(PART)
    sources = (frames.flows.lazy(), frames.long.lazy())
    of_case = (in_words(flows.filter(pl.col("case") == case).select(keys).unique()) for flows in sources)
    named = pl.concat(of_case).unique().sort(keys).collect()
    if named["controller"].n_unique() < 2:
        return []
    # All parts at once: a sweep over many hosts has thousands of them.
    own = frames.of([case])
    counts = {part[:2]: part[2:] for part in _counts_of_parts(own).iter_rows()}
    found = {quantity: fct_of_parts(own, case, quantity.measure) for quantity in chosen if quantity in COMPLETION}
    found |= {quantity: long_of_parts(own, case, quantity.measure) for quantity in chosen if quantity in LONG}
    rows: list[Row] = []
    for part in named.iter_rows():
        cells = tuple(
            _cell(found[quantity].get(part, {}), quantity)
            if quantity in found
            else Cell("–", "of the scheme as a whole", "")
            for quantity in chosen
        )
        flows, unfinished = counts.get(part, (0, 0))
        rows.append(Row(case, _named(*part), cells, wording.whole(flows), wording.whole(unfinished)))
    return rows


def _named(workload: str, controller: str) -> str:
    return f"{workload}, {wording.controller(controller)}"


def _counts_of_parts(frames: Frames) -> pl.DataFrame:
    """Workload, controller, flows and unfinished ones; answers to requests are not among them."""
    counts = (pl.len(), _UNFINISHED.alias("unfinished"))
    return in_words(frames.flows.lazy().group_by(PART).agg(counts)).collect()


def _cell(values: BySeed, quantity: Quantity) -> Cell:
    made = estimate([quantity.scale * value for value in values.values()])
    return Cell("–", "not evaluable", "") if made is None else cell(made)


def cards(frames: Frames) -> list[Card]:
    """The best scheme for programs, small flows, large flows, all flows and requests, and how far the next one is.

    Where several backends stand side by side there are cards for each: a backend is no contender. Of a sweep it is the
    scheme that is best in most configurations.
    """
    if len(frames.cases) < 2:
        return []
    chosen = [quantity for quantity in columns(frames) if quantity in COMPLETION or quantity in REQUESTS]
    chosen = [quantity for quantity in chosen if quantity.title.endswith("mean")]
    chosen = [*(() if frames.ranks.is_empty() else (PROGRAM,)), *chosen]
    found = values(frames, chosen)
    if is_within_configurations(frames):
        return _cards_of_sweep(frames, found)
    made = []
    for quantity, by_case in found.items():
        for backend in dict.fromkeys(frames.backends.values()):
            own = {case: column for case, column in by_case.items() if frames.backends[case] == backend}
            made.append(_card(quantity, own, backend))
    return [card for card in made if card is not None]


def values(frames: Frames, quantities: Sequence[Quantity]) -> dict[Quantity, dict[str, BySeed]]:
    """By quantity and case, where there is a value."""
    found: dict[Quantity, dict[str, BySeed]] = {quantity: {} for quantity in quantities}
    for case in frames.cases:
        # Each measure looks through all rows it is given: over hundreds of cases that would take minutes.
        own = frames.of([case])
        for quantity in quantities:
            if by_seed := value_if_any(own, quantity.measure, (case,)):
                found[quantity][case] = {seed: quantity.scale * value for seed, value in by_seed.items()}
    return found


def is_within_configurations(frames: Frames) -> bool:
    """Whether there are several schemes in several configurations: only those of one configuration are rivals."""
    found = Configurations.of(frames, backends_apart=True)
    return len(found.schemes) > 1 and any(len(own) > 1 for axis, own in found.values.items() if axis != AXIS)


def rivals(frames: Frames) -> list[list[str]]:
    """Cases of which one may be the best: those of a configuration, of one scheme all, of one backend in any case."""
    if is_within_configurations(frames):
        found = Configurations.of(frames, backends_apart=True)
        return [list(found.at(point).values()) for point in found.points]
    backends = dict.fromkeys(frames.backends.values())
    return [[case for case in frames.cases if frames.backends[case] == backend] for backend in backends]


def column_of(
    cases: Sequence[str], quantity: Quantity, values: Mapping[str, BySeed], rivals: Sequence[Sequence[str]]
) -> dict[str, Cell]:
    """The cells of a column; the best is that of rivals. A case that has several sets of rivals is best among all."""
    estimates = {case: made for case, column in values.items() if (made := estimate(list(column.values())))}
    ranks: dict[str, set[str]] = {}
    for group in rivals:
        own = [case for case in group if case in estimates]
        if quantity.smaller_is_better and len(own) > 1:
            best = min(own, key=lambda case: estimates[case].mean)
            for case in own:
                ranks.setdefault(case, set()).add(_rank(case, best, values))
    return {
        case: cell(estimates[case], _least(ranks.get(case, {""}))) if case in estimates else _cell({}, quantity)
        for case in cases
    }


def _least(ranks: set[str]) -> str:
    return next(rank for rank in ("", "tied", "best") if rank in ranks)


def cell(found: Estimate, rank: str = "") -> Cell:
    """An estimate as it is shown; nothing that is counted or timed has an interval below 0."""
    if found.kind == "none":
        return Cell(wording.number(found.mean), "", rank)
    low, high = max(0.0, found.low), found.high
    same = f"in all {found.seeds} seeds"
    return Cell(
        wording.number(found.mean), same if low == high else f"{wording.number(low)} – {wording.number(high)}", rank
    )


def _rank(case: str, best: str, values: Mapping[str, BySeed]) -> str:
    return "best" if case == best else "tied" if _tied(values[best], values[case]) else ""


def _tied(best: BySeed, other: BySeed) -> bool:
    """Whether paired seeds do not tell them apart.

    By their ratios, as `compare` has them; where a value is 0 or infinite, by their differences.
    """
    ratio, common = geometric_ratio(other, best), best.keys() & other.keys()
    if ratio is not None and ratio.seeds == len(common):
        return ratio.kind != "none" and ratio.low <= 1.0
    difference = paired_difference(other, best)
    return difference is not None and difference.kind != "none" and difference.low <= 0.0


def _cards_of_sweep(frames: Frames, found: Mapping[Quantity, Mapping[str, BySeed]]) -> list[Card]:
    """Who has the best mean in most configurations."""
    swept = Configurations.of(frames, backends_apart=True)
    made = []
    for quantity, by_case in found.items():
        means = {case: estimate(list(column.values())) for case, column in by_case.items()}
        first: Counter[str] = Counter()
        for point in swept.points:
            own = {scheme: each.mean for scheme, case in swept.at(point).items() if (each := means.get(case))}
            least = [scheme for scheme in own if own[scheme] == min(own.values())]
            if len(own) > 1 and len(least) == 1:
                first[least[0]] += 1
        if not first:
            continue
        (winner, count), *others = first.most_common()
        total = wording.whole(len(swept.points))
        remark = (
            f"next is {others[0][0]}, best in {wording.whole(others[0][1])}" if others else "no other scheme is best"
        )
        made.append(
            Card(quantity.title, winner, f"best in {wording.whole(count)} of {total}", f"configurations; {remark}")
        )
    return made


def _card(quantity: Quantity, values: Mapping[str, BySeed], backend: str) -> Card | None:
    means = {case: made for case, column in values.items() if (made := estimate(list(column.values())))}
    if len(means) < 2:
        return None
    first, second = sorted(means, key=lambda case: means[case].mean)[:2]
    gap = means[second].mean / means[first].mean - 1.0 if means[first].mean else 0.0
    if _tied(values[first], values[second]):
        remark = f"{second} is not significantly different: {wording.milliseconds(means[second].mean)}"
    else:
        remark = f"next is {second}: {wording.milliseconds(means[second].mean)}, {wording.percent(gap, 2)} longer"
    title = f"{quantity.title} · {backend}" if backend else quantity.title
    return Card(title, first, wording.milliseconds(means[first].mean), remark)
