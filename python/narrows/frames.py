"""What measures and figures read: every row knows its case, its scheme, its seed and the sweep's axes."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property, wraps
from typing import TYPE_CHECKING, Any, Concatenate, Final, ParamSpec, TypeVar, cast

import polars as pl
from polars import selectors

from narrows.runs.backends import AXIS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

COUNTED: Final = (
    "flow", "source", "class", "workload", "controller", "size_bytes", "start_ns", "fct_ns", "slowdown", "rtt_mean_ns",
    "retransmitted_bytes", "timeouts", "dropped_bytes", "finished", "handshake_ns", "syn_retransmits", "rto_wait_ns",
    "path_changes",
)  # fmt: skip
"""Columns of flows that measures and figures read. Of tens of millions of flows the others take too much memory."""


DATAGRAM: Final = "datagram"
"""The transport of flows that send at a rate of their own: no controller governs them, and nothing is retransmitted."""

_Arguments = ParamSpec("_Arguments")
_Found = TypeVar("_Found")

_PARTS: Final = ("ports", "requests", "long", "answers", "events", "bridges", "ranks")
"""Tables of `Frames` beside the flows and the series."""


def _none() -> pl.DataFrame:
    return pl.DataFrame(schema=dict.fromkeys(("case", "workload", "controller", "transport"), pl.String))


def ethernet(_case: str) -> int:
    """The MTU of plans that state none, bytes."""
    return 1500


class _WhenRead:
    """A table that may be given as a function, which is called when the table is first read: it may be gigabytes."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._key = f"_{name}"

    def __get__(self, instance: object, owner: type | None = None) -> pl.DataFrame:
        if instance is None:
            raise AttributeError(self._key)  # to a dataclass this says that there is no default
        given = instance.__dict__[self._key]
        if not isinstance(given, pl.DataFrame):
            given = instance.__dict__[self._key] = given()
        return cast("pl.DataFrame", given)

    def __set__(self, instance: object, value: pl.DataFrame | Callable[[], pl.DataFrame]) -> None:
        instance.__dict__[self._key] = value


def when_read(make: Callable[[], pl.DataFrame]) -> pl.DataFrame:
    """What `Frames` takes in place of its flows, to make them when they are first read."""
    return cast("pl.DataFrame", make)


@dataclass(frozen=True)
class Frames:
    """What measures read. `flows` and `requests` hold what started after the warm-up.

    A flow that answers a request is none of `flows`: its completion time counts with its request. There may be hundreds
    of millions, so that only sums of them are here.

    `flows` is compact: it has the columns `COUNTED` and `sized`, whether a flow has a size, and names as numbers
    (`Enum`, `Categorical`). They compare, sort and print as text does, but polars joins them with text only after a
    cast; tables made of flows have text. It is read when it is first asked for.
    """

    if TYPE_CHECKING:
        flows: pl.DataFrame
    else:
        flows: _WhenRead = _WhenRead()
    ports: pl.DataFrame
    series: pl.LazyFrame
    requests: pl.DataFrame
    axes: tuple[str, ...] = ()
    long: pl.DataFrame = field(default_factory=_none)
    """Flows without a size, with `goodput_mbps`; whenever they began, for what counts is what they delivered after the
    warm-up."""
    answers: pl.DataFrame = field(default_factory=_none)
    """Flows that answer a request, summed by `source` and `workload`: see `Results.answers`."""
    events: pl.DataFrame = field(default_factory=_none)
    """Changes of links at stated times."""
    bridges: pl.DataFrame = field(default_factory=_none)
    """Ends of bridges between routers."""
    mtu_of: Callable[[str], int] = field(default_factory=lambda: ethernet)
    """The network's largest IP packet, bytes, by case."""
    ranks: pl.DataFrame = field(default_factory=_none)
    """Ranks of programs."""
    series_of: Callable[[Sequence[str]], pl.LazyFrame] | None = None
    """The series of some cases, without those of all: a plan over thousands of files takes seconds."""
    work_of: Callable[[str], pl.DataFrame | None] | None = None
    """Mean unfinished work of a case by `seed` and `batch`, in `bytes`; `None` if its traffic comes not at random."""
    memory: dict[object, Any] = field(default_factory=dict, init=False, repr=False, compare=False)
    """What has been computed of these frames: see `kept`."""

    @property
    def keys(self) -> list[str]:
        """Columns that name a run: the case, its scheme, the axes, the seed."""
        return ["case", "arm", *self.axes, "seed"]

    def of(self, cases: Sequence[str]) -> Frames:
        """Those of some cases, the same each time; they keep what is computed of one case."""
        chosen = tuple(cases)
        if self.cases and set(self.cases) <= set(chosen):
            return self
        key = (Frames.of, chosen)
        whole: Frames = self.memory.get("whole", self)
        if len(chosen) == 1 and whole is not self and chosen[0] in self.cases:
            return whole.of(chosen)
        if key not in self.memory:
            tables: dict[str, Any] = {name: of_cases(getattr(self, name), chosen) for name in _PARTS}
            if self.series_of is not None and chosen and set(chosen) <= set(self.cases):
                series = self.series_of(chosen)
            else:
                series = self.series.filter(pl.col("case").is_in(list(chosen)))
            made = replace(self, flows=when_read(lambda: of_cases(self.flows, chosen)), series=series, **tables)
            made.memory["whole"] = whole
            self.memory[key] = made
        found: Frames = self.memory[key]
        return found

    @cached_property
    def backends(self) -> dict[str, str]:
        """What ran each case, where several backends stand side by side; else nothing is said of it."""
        if AXIS not in self.axes:
            return dict.fromkeys(self.cases, "")
        return dict(self.ports.select("case", AXIS).unique(maintain_order=True).iter_rows())

    @cached_property
    def cases(self) -> tuple[str, ...]:
        """Every case, in the order of the experiment file."""
        return tuple(self.ports["case"].unique(maintain_order=True).to_list())

    @cached_property
    def seeds(self) -> tuple[int, ...]:
        """Every seed."""
        return tuple(sorted(self.ports["seed"].unique().to_list()))

    @cached_property
    def first_seed(self) -> int:
        """The first that every case has, for what is shown of one; the first of all where there is none."""
        common = [
            seed
            for seed, cases in self.ports.group_by("seed").agg(pl.col("case").n_unique()).sort("seed").iter_rows()
            if cases == len(self.cases)
        ]
        return (common or self.seeds)[0]


def kept(
    compute: Callable[Concatenate[Frames, _Arguments], _Found],
) -> Callable[Concatenate[Frames, _Arguments], _Found]:
    """What is computed of frames is computed once: pages ask for a table again for each number in it."""

    @wraps(compute)
    def found(frames: Frames, /, *args: _Arguments.args, **named: _Arguments.kwargs) -> _Found:
        key = (compute, args, tuple(sorted(named.items())))
        if key not in frames.memory:
            frames.memory[key] = compute(frames, *args, **named)
        return cast("_Found", frames.memory[key])

    return found


def collected(parts: Iterable[pl.LazyFrame]) -> pl.DataFrame:
    """Each run by itself: one plan over thousands of files takes minutes to make."""
    return pl.concat([part.collect() for part in parts])


def of_cases(flows: pl.DataFrame, cases: Sequence[str]) -> pl.DataFrame:
    """Rows of these cases: a view where they stand together, as those of one case do, for copies take gigabytes."""
    mask = flows["case"].is_in(list(cases))
    first, count = mask.arg_max(), int(mask.sum())
    if first is not None and mask.slice(first, count).all():
        return flows.slice(first, count)
    return flows.filter(mask)


def each_case(flows: pl.DataFrame) -> Iterator[pl.DataFrame]:
    """The flows of each case, in the order of the cases: groups of all flows at once take as much memory again."""
    cases = flows["case"].unique(maintain_order=True).to_list()
    if not cases:
        yield flows
    for case in cases:
        yield of_cases(flows, [case])


def in_words(table: pl.LazyFrame) -> pl.LazyFrame:
    """The names that `Frames.flows` keeps as numbers as text again."""
    return table.with_columns(selectors.categorical().cast(pl.String), selectors.enum().cast(pl.String))
