"""What a named measure is: frames and a scheme to one value per seed. Each file beside this one registers some."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, TypeVar, cast

import polars as pl

from narrows.errors import bad_input
from narrows.frames import kept
from narrows.measures.stats import BySeed

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from narrows.errors import BadInput
    from narrows.frames import Frames

OfCase = Callable[["Frames", str], BySeed]
OfCases = Callable[["Frames", tuple[str, ...]], BySeed]
Compute = TypeVar("Compute", OfCase, OfCases)


class NotEvaluable(Exception):
    """The runs do not hold what the measure needs; the message says what."""


class Unfinished(NotEvaluable):
    """Too much was left undone: a mean over the rest flatters what was slow."""


@dataclass(frozen=True)
class Measure:
    """A named quantity."""

    name: str
    unit: str
    about: str
    compute: OfCase | OfCases
    together: bool = False
    """It is computed of several cases together; else of each, and the mean is taken."""


MAX_UNFINISHED: Final = 1e-3
"""Share of flows or requests that may be left undone."""
PART: Final = ("workload", "controller")
"""Columns that name the flows of a case which are told apart where it runs several controllers."""
TRAFFIC: Final = " / "
"""Between a scheme and a traffic."""

ALIASES: Final = {
    "fct_small_avg": "fct_small_mean",
    "fct_large": "fct_large_mean",
    "fct_all": "fct_mean",
    "plr": "loss",
    "plr_dcn": "loss_dc",
    "plr_wan": "loss_wan",
    "dcn_share_of_losses": "dc_share_of_losses",
}
"""Names that claims may use for a measure, and its own."""

MEASURES: Final[dict[str, Measure]] = {}


def measure(unit: str, *, together: bool = False) -> Callable[[Compute], Compute]:
    """Registers a measure under its function's name; the docstring is its description.

    One of several cases `together` is of those named, or of all that a scheme has in a sweep.
    """

    def register(compute: Compute) -> Compute:
        about = " ".join((compute.__doc__ or "").split())
        MEASURES[compute.__name__] = Measure(compute.__name__, unit, about, compute, together)
        return compute

    return register


def measures(unit: str, compute: Callable[..., BySeed], chosen: Mapping[str, tuple[object, ...]]) -> None:
    """Registers measures that differ in what `compute` gets after frames and scheme: name to that, and the text."""
    for name, (*arguments, about) in chosen.items():
        MEASURES[name] = Measure(name, unit, str(about), _with(compute, arguments))


def _with(compute: Callable[..., BySeed], arguments: Sequence[object]) -> OfCase:
    return lambda frames, arm: compute(frames, arm, *arguments)


def by_seed(table: pl.DataFrame, column: str = "value") -> BySeed:
    """A column of a table that has a row for each seed, without those that have no value."""
    rows = table.select("seed", column).drop_nulls().sort("seed").iter_rows()
    return {int(seed): float(value) for seed, value in rows}


class UnknownScheme(NotEvaluable):
    """No scheme or configuration is called so."""


def measure_called(name: str) -> Measure | None:
    """The measure of this name, or of one that claims may use for it."""
    return MEASURES.get(ALIASES.get(name, name))


def unknown(name: str, *, also: Iterable[str] = ()) -> BadInput:
    """The error where no measure is called so. `also` are names that are taken where it was given."""
    return bad_input(f"there is no measure called {name}", nearest(name, also=also))


def nearest(name: str, *, also: Iterable[str] = ()) -> str:
    """Help where no measure is called so."""
    near = difflib.get_close_matches(name, [*MEASURES, *ALIASES, *also], n=3)
    listed = "`narrows show measure` lists all"
    return f"the nearest: {', '.join(near)}; {listed}" if near else listed


def value_by_seed(frames: Frames, name: str, arms: tuple[str, ...]) -> BySeed:
    """A measure on a scheme, or without a scheme the mean over all schemes, for every seed. Raises `NotEvaluable`.

    `ARM / TRAFFIC` is the scheme with the flows of one traffic only, in all of its directions. A measure of several
    cases together may also be given what a sweep's cases begin with: `tcp · min-rto=10ms`.
    """
    found = _value_or_why(frames, name, arms)
    if isinstance(found, NotEvaluable):
        raise found.with_traceback(None)
    return dict(found)


@kept
def _value_or_why(frames: Frames, name: str, arms: tuple[str, ...]) -> BySeed | NotEvaluable:
    try:
        return _value_by_seed(frames, name, arms)
    except NotEvaluable as why:
        return why.with_traceback(None)  # a traceback would keep what was at hand


def _value_by_seed(frames: Frames, name: str, arms: tuple[str, ...]) -> BySeed:
    found = measure_called(name)
    if found is None:
        raise NotEvaluable(f"there is no measure called {name}")
    if found.together:
        cases = tuple(case for arm in arms for case in _sweep(frames, arm))
        return cast("OfCases", found.compute)(frames, cases or frames.cases)
    compute = cast("OfCase", found.compute)
    columns = [compute(*_chosen(frames, arm)) for arm in arms or frames.cases]
    common = set.intersection(*(set(column) for column in columns))
    if not common:
        raise NotEvaluable(f"{name} has no value in any seed")
    return {seed: sum(column[seed] for column in columns) / len(columns) for seed in sorted(common)}


def value_if_any(frames: Frames, name: str, arms: tuple[str, ...]) -> BySeed:
    """The same; nothing where it cannot be measured."""
    try:
        return value_by_seed(frames, name, arms)
    except NotEvaluable:
        return {}


def of_traffic(frames: Frames, case: str, name: str, traffic: str) -> BySeed:
    """A measure of a case, of one traffic's flows if any is named; nothing where it cannot be measured."""
    return value_if_any(frames, name, (f"{case}{TRAFFIC}{traffic}" if traffic else case,))


def why_unfinished(frames: Frames, name: str, arms: tuple[str, ...]) -> str:
    """What was left undone, where a measure has no value for that reason; else nothing."""
    found = _value_or_why(frames, name, arms)
    return str(found).removeprefix("not evaluable: ") if isinstance(found, Unfinished) else ""


def _sweep(frames: Frames, arm: str) -> list[str]:
    """The case of this name, or those of a sweep that begin with it."""
    own = [arm] if arm in frames.cases else [case for case in frames.cases if case.startswith(f"{arm} · ")]
    if not own:
        raise UnknownScheme(f"no scheme is called {arm}")
    return own


def _chosen(frames: Frames, arm: str) -> tuple[Frames, str]:
    """What an argument names: the case, and the frames that its flows are read from."""
    if arm in frames.cases:
        return frames, arm
    case, _, traffic = arm.rpartition(TRAFFIC)
    if case not in frames.cases:
        raise UnknownScheme(f"no scheme is called {case or arm}")
    # A traffic with several directions has a name for each: `web/1-2`.
    every = {str(name) for part in (frames.flows, frames.long, frames.answers) for name in part["workload"].unique()}
    names = [name for name in every if name == traffic or name.startswith(f"{traffic}/")]
    own = pl.col("workload").is_in(names)
    long, answers = (part.filter(own) for part in (frames.long, frames.answers))
    if not names:
        raise NotEvaluable(f"no flow belongs to a traffic called {traffic}")
    # Of flows those of the case alone: the traffic's in all cases may be a copy of gigabytes.
    return replace(frames, flows=frames.of([case]).flows.filter(own), long=long, answers=answers), case


def refuse_unfinished(unfinished: int, of: int, what: str) -> None:
    """Raises `NotEvaluable` where so many are not done that a mean over the others flatters what was slow."""
    if unfinished > MAX_UNFINISHED * of:
        raise Unfinished(f"not evaluable: {unfinished} of {of} {what} did not finish")
