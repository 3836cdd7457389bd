"""The few numbers with which a run ends: a row for each scheme, a column for each measure that matters to it."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain, zip_longest
from typing import TYPE_CHECKING, Final

from narrows import wording
from narrows.measures.named import why_unfinished
from narrows.measures.registry import MAX_UNFINISHED
from narrows.measures.stats import ENOUGH_SEEDS, estimate
from narrows.report import headline, selection
from narrows.report.headline import COMPLETION, LONG, LOSS, PROGRAM, REQUESTS, WAN, WIRE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from narrows.frames import Frames
    from narrows.measures.stats import BySeed
    from narrows.report.headline import Quantity, Row
    from narrows.results import Results

MAX_COLUMNS: Final = 5
"""Measures that fit beside each other with their intervals."""
_SMALL, _SMALL_P99, _LARGE, _ALL = COMPLETION
_REQUEST_MEAN, _REQUEST_P99, _REQUEST_TIMEOUTS = REQUESTS
_DROPPED_WAN, _WAN_USE = WAN
_KINDS: Final = (
    (PROGRAM,),
    (_SMALL_P99, _ALL, _LARGE, _SMALL),
    LONG,
    (_REQUEST_P99, _REQUEST_MEAN, _REQUEST_TIMEOUTS),
    (_DROPPED_WAN, LOSS, WIRE),
    (_WAN_USE,),
)
"""Measures by what they are of; of each kind the first matters most."""
_ONLY_IF_ANY: Final = frozenset({LOSS, _DROPPED_WAN, WIRE, _REQUEST_TIMEOUTS})
"""Those that say nothing where they are 0 everywhere."""


@dataclass(frozen=True)
class Value:
    """A mean over seeds with its interval, as a program reads it."""

    case: str
    measure: str
    unit: str
    mean: float
    low: float
    high: float
    interval: str
    """As `Estimate.kind`."""
    seeds: int


@dataclass(frozen=True)
class Brief:
    """The headline numbers of some cases."""

    columns: tuple[Quantity, ...]
    rows: tuple[Row, ...]
    """Of cases, and of kinds of flows where a case has several; cells in the order of the columns."""
    values: tuple[Value, ...]
    without: str
    """Which cases are not among the rows; see `Selection.without`."""
    cases: int
    """Of all, shown or not."""
    remark: str
    """What the numbers are."""
    lacking: str
    """Which times are not given, as too many flows or requests did not finish; empty where none is missing so."""


def brief(results: Results) -> Brief:
    """The headline numbers of the cases that a report charts. Raises `BadInput` where a table is damaged."""
    members = results.entry.members
    chosen = selection.of(members)
    frames = (results if len(chosen.names) == len(members) else results.only(chosen.names)).frames
    found = headline.values(frames, headline.columns(frames))
    columns = _columns(found)
    rows = tuple(headline.rows_of(frames, columns, found))
    values = tuple(
        Value(
            case, quantity.measure, quantity.unit,
            value.mean, max(0.0, value.low), value.high, value.kind, value.seeds,
        )
        for case in frames.cases
        for quantity in columns
        if (value := estimate(list(found[quantity].get(case, {}).values()))) is not None
    )  # fmt: skip
    # Of rows for kinds of flows that is not looked up.
    few = any(value.interval != "t95" for value in values) or any(row.part for row in rows)
    return Brief(
        columns=columns,
        rows=rows,
        values=values,
        cases=len(members),
        without=chosen.without,
        remark=_remark(len(frames.seeds), few=few, repeated=bool(results.repeated)) + on_wires(frames, columns),
        lacking=_lacking(frames, found),
    )  # fmt: skip


def _columns(found: dict[Quantity, dict[str, BySeed]]) -> tuple[Quantity, ...]:
    """The first of each kind, then the second of each, while there is room; in the order of the report."""
    kinds = [[quantity for quantity in kind if _says_something(quantity, found)] for kind in _KINDS]
    ordered = [quantity for quantity in chain.from_iterable(zip_longest(*kinds)) if quantity is not None]
    chosen = ordered[:MAX_COLUMNS]
    return tuple(quantity for quantity in found if quantity in chosen)


def _says_something(quantity: Quantity, found: dict[Quantity, dict[str, BySeed]]) -> bool:
    values = [value for by_seed in found.get(quantity, {}).values() for value in by_seed.values()]
    return any(values) if quantity in _ONLY_IF_ANY else bool(values)


def _lacking(frames: Frames, found: dict[Quantity, dict[str, BySeed]]) -> str:
    """A sentence on the times that are not given, as too many flows or requests did not finish."""
    cases: dict[str, list[str]] = {}
    for case in frames.cases:
        lacked = [it for it in (_ALL, *COMPLETION, *REQUESTS) if it in found and not found[it].get(case)]
        # What all flows lack, those of one size need not be told of.
        of_flows = [_ALL] if _ALL in lacked else [it for it in lacked if it in COMPLETION]
        for quantity in (*of_flows, *(it for it in lacked if it in REQUESTS)):
            if why := why_unfinished(frames, quantity.measure, (case,)):
                cases.setdefault(why, []).append(case)
    if not cases:
        return ""
    told = [f"{why} ({wording.some(list(dict.fromkeys(own)))})" for why, own in cases.items()]
    return (
        f"{wording.some(told)}: their times are given where at most {wording.percent(MAX_UNFINISHED, 1)} do not; "
        "a longer run.drain lets them finish, unless more is offered than the network carries"
    )


def on_wires(frames: Frames, columns: Sequence[Quantity]) -> str:
    """What ports dropped is not all that was lost, where wires lose packets, too; empty where they do not."""
    drops = {quantity.measure for quantity in columns} & {"loss_dc", "loss_wan"}
    if not drops or WIRE in columns or "lost_on_wire_packets" not in frames.ports.columns:
        return ""
    lost = int(frames.ports["lost_on_wire_packets"].sum() or 0)
    return f"; dropped are those that ports drop: wires lost {wording.plural(lost, 'packet')} more" if lost else ""


def _remark(seeds: int, *, few: bool, repeated: bool) -> str:
    """Of so many seeds that count; `few` if values may be of fewer, `repeated` if others gave the same results."""
    if seeds == 1:
        return "all seeds give the same results: no intervals" if repeated else "one seed: no intervals"
    if seeds < ENOUGH_SEEDS:
        return f"means over {wording.plural(seeds, 'seed')}, with the smallest and the largest"
    return f"means over {wording.plural(seeds, 'seed')}, with 95 % confidence intervals" + (
        f"; if fewer than {ENOUGH_SEEDS} seeds have a value, with the smallest and the largest" if few else ""
    )
