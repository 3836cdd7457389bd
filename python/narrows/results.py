"""Results of an experiment as polars frames: every row knows its arm, its seed and the sweep's axes. Metrics on top."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, Literal

import polars as pl
from polars import selectors

from narrows import longlived, validity, wording
from narrows.backends import AXIS
from narrows.columns import TABLES
from narrows.errors import bad_input

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from narrows.index import Entry, Member
    from narrows.native import TableName
    from narrows.store import Store

SizeClass = Literal["small", "middle", "large", "all"]

SMALL_BELOW_BYTES: Final = 100_000
LARGE_ABOVE_BYTES: Final = 10_000_000
"""1 KB is 1000 B [Gemini §II: small < 100 KB, large > 10 MB]."""
SAMPLES_BEYOND: Final = 10
"""A percentile is evaluable if so many samples may lie beyond it: 1000 samples for a p99, 200 for a p95."""
REQUEST_PERCENTILES: Final = {"p50": 50, "p95": 95, "p99": 99, "p999": 99.9}
"""Of completion times of requests, by the name of their column."""
NS_PER_MS: Final = 1e6
SIZE_BINS: Final = (
    ("under 10 KB", 0, 10_000),
    ("10–100 KB", 10_000, 100_000),
    ("100 KB–1 MB", 100_000, 1_000_000),
    ("1–10 MB", 1_000_000, 10_000_000),
    ("over 10 MB", 10_000_000, 1 << 62),
)
"""Name, from, to (not included), bytes: the bins in which the DCTCP paper shows background flows [DCTCP fig. 22]."""
PLR_UNIT: Final = 1e-5

COUNTED: Final = (
    "flow", "source", "class", "workload", "controller", "size_bytes", "fct_ns", "slowdown", "rtt_mean_ns",
    "retransmitted_bytes", "timeouts", "dropped_bytes", "finished",
)  # fmt: skip
"""Columns of flows that measures and figures read. Of tens of millions of flows the others take too much memory."""
_TEXT: Final = ("source", "class", "workload", "controller")
"""Those of text: a few names, on millions of rows."""

DCN_ROLES: Final = ("edge", "fabric")
WAN_ROLES: Final = ("wan",)


@dataclass(frozen=True)
class Frames:
    """What measures read. `flows` and `requests` hold what started after the warm-up.

    A flow that answers a request is none of `flows`: its completion time counts with its request. There may be hundreds
    of millions, so that only sums of them are here.

    `flows` is compact: it has the columns `COUNTED` only, and names as numbers (`Enum`, `Categorical`). They compare,
    sort and print as text does, but polars joins them with text only after a cast; tables made of flows have text.
    """

    flows: pl.DataFrame
    ports: pl.DataFrame
    series: pl.LazyFrame
    requests: pl.DataFrame
    axes: tuple[str, ...] = ()
    long: pl.DataFrame = field(default_factory=pl.DataFrame)
    """Flows without a size, with `goodput_mbps`; whenever they began, for what counts is what they delivered after the
    warm-up."""
    answers: pl.DataFrame = field(default_factory=pl.DataFrame)
    """Flows that answer a request, summed by `source` and `workload`: see `Results.answers`."""
    bridges: pl.DataFrame = field(default_factory=pl.DataFrame)
    """Ends of bridges between routers."""

    @property
    def keys(self) -> list[str]:
        """Columns that name a run: the case, its arm, the axes, the seed."""
        return ["case", "arm", *self.axes, "seed"]

    def of(self, cases: Sequence[str]) -> Frames:
        """Those of some cases."""
        own = pl.col("case").is_in(list(cases))
        long = self.long if self.long.is_empty() else self.long.filter(own)
        ports, requests = (part.filter(own) for part in (self.ports, self.requests))
        flows = _of_cases(self.flows, cases)
        answers = self.answers if self.answers.is_empty() else self.answers.filter(own)
        series = self.series.filter(own)
        bridges = self.bridges if self.bridges.is_empty() else self.bridges.filter(own)
        return replace(
            self,
            flows=flows,
            ports=ports,
            series=series,
            requests=requests,
            long=long,
            answers=answers,
            bridges=bridges,
        )

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


class Results:
    """The runs of one experiment, read from the store when they are asked for."""

    def __init__(self, entry: Entry, store: Store, *, recorded: Entry | None = None) -> None:
        """`recorded` is the index's, if `entry` is a part of it.

        Raises `BadInput` where a run is absent, or none of them counts.
        """
        self.entry = entry
        self._store = store
        self._scanned: dict[tuple[str, int, TableName], pl.LazyFrame] = {}
        runs = [(member, seed) for member in entry.members for seed in entry.seeds]
        found = {run: _without_plan(store.manifest(run[0].stored, run[1])) for run in runs}
        read = {run: manifest for run, manifest in found.items() if manifest is not None}
        missing = [f"{member.case}/{seed}" for member, seed in runs if (member, seed) not in read]
        if missing:
            raise bad_input(
                f"{len(missing)} of {len(runs)} runs of '{entry.identifier}' are absent "
                f"({', '.join(missing[:3])}{', …' if len(missing) > 3 else ''})",
                f"run it again, finished runs are skipped: {entry.command}",
            )
        self.manifests = [
            {"case": member.case, "backend": member.backend.value, **manifest} for (member, _), manifest in read.items()
        ]
        """What every run was and cost, with its `case`, without its plan; those that do not count, too."""
        lost = {(run[0].plan_case, run[1]) for run, manifest in read.items() if validity.why_not(manifest) is not None}
        counting = [(member, seed) for member, seed in read if (member.plan_case, seed) not in lost]
        self.repeated = {
            seed: first
            for seed, first in repeats({(member.case, seed): read[member, seed] for member, seed in counting}).items()
            if seed != first
        }
        """Seeds that gave the same tables as an earlier one in every case, and that one: they count as one."""
        self._recorded = recorded or entry
        if self.repeated:
            self.entry = replace(entry, seeds=tuple(seed for seed in entry.seeds if seed not in self.repeated))
        self._runs = [run for run in counting if run[1] not in self.repeated]
        """Those that count: plan and seed. Of several backends a seed counts on all of them or on none."""
        if not self._runs:
            raise bad_input(
                f"nothing can be shown of '{entry.identifier}': {validity.left_out(self.manifests)}",
                "mend that reason (for lateness: let less go on beside it), delete "
                f"{store.root / entry.members[0].stored} and its like, then run it again: {entry.command}",
            )

    @cached_property
    def notices(self) -> tuple[str, ...]:
        """What whoever reads these numbers has to know, in sentences; as a rule nothing."""
        from narrows.standing import changed

        parts = self._recorded.parts
        made_by = [(part, versions(self, part.backend.value)) for part in parts]
        mixed = [
            f"runs of {len(counts)} versions of {part.backend.program} are mixed ({_listed(counts)}): "
            f"`{part.command}` makes the others again"
            for part, counts in made_by
            if len(counts) > 1
        ]
        told = (*self.entry.warnings, *mixed, self._same_seeds(), *(changed(part, self._store) for part in parts))
        return tuple(text for text in told if text)

    def _same_seeds(self) -> str:
        if not self.repeated:
            return ""
        seeds, first = ", ".join(map(str, self.repeated)), ", ".join(map(str, sorted(set(self.repeated.values()))))
        one, as_one = len(self.repeated) == 1, len(self.repeated) + len(set(self.repeated.values()))
        return (
            f"seed{'' if one else 's'} {seeds} gave the same results as seed {first} in every case: "
            f"{as_one} seeds count as {as_one - len(self.repeated)}"
        )

    def plans(self) -> Iterator[Mapping[str, Any]]:
        """The body of each plan, once, as its first run keeps it."""
        for member in {member.hash: member for member in self.entry.members}.values():
            manifest = self._store.manifest(member.stored, self.entry.seeds[0])
            if manifest is not None and "plan" in manifest:
                yield manifest["plan"]

    def matching(self, pattern: str) -> Results:
        """Those of the cases whose names match: `tcp · min-rto=10ms*`. Raises `BadInput` where none does."""
        members = tuple(member for member in self.entry.members if fnmatchcase(member.case, pattern))
        if not members:
            raise bad_input(
                f"no case of '{self.entry.identifier}' matches '{pattern}'",
                f"there are: {', '.join(member.case for member in self.entry.members)}",
            )
        cases = {member.plan_case for member in members}
        differences = tuple(
            replace(item, values=tuple(value for value in item.values if value[0] in cases))
            for item in self.entry.differences
        )
        part = replace(self.entry, members=members, differences=differences)
        return Results(part, self._store, recorded=self._recorded)

    @cached_property
    def frames(self) -> Frames:
        """All tables; the series stay lazy."""
        return Frames(
            flows=self._compact_flows(),
            ports=_collected(self._parts("ports")),
            series=self.scan("series"),
            requests=_collected(self._counted("requests")),
            axes=self.axes,
            long=self.long,
            answers=self.answers,
            bridges=self.bridges,
        )

    def _compact_flows(self) -> pl.DataFrame:
        """Of flows that are no answers the columns `COUNTED`, and names as numbers."""
        values = {"case": [member.case for member in self.entry.members]}
        values["arm"] = [member.arm for member in self.entry.members]
        for column, name in zip(self.axes, self.entry.axes, strict=True):
            values[column] = [at for member in self.entry.members for own, at in member.axes if own == name]
        # In the order of text: sorts must not depend on how a name is kept.
        labels = [pl.col(column).cast(pl.Enum(sorted(set(own)))) for column, own in values.items()]
        columns = (*labels, "seed", *(pl.col(name).cast(pl.Categorical) if name in _TEXT else name for name in COUNTED))
        no_answer = pl.col("request").is_null()
        return _collected(part.filter(no_answer).select(columns) for part in self._counted("flows"))

    @cached_property
    def flows(self) -> pl.DataFrame:
        """Flows that started after the warm-up, answers to requests among them; `counted_flows` is the lazy form."""
        return _collected(self._counted("flows"))

    @cached_property
    def counted(self) -> int:
        """How many flows started after the warm-up, answers among them."""
        return sum(part.select(pl.len()).collect().item() for part in self._counted("flows"))

    @cached_property
    def answers(self) -> pl.DataFrame:
        """Flows that answer a request, for every run, `source` and `workload`: how many `flows` and `unfinished`.

        With the `timeouts` of all, and `size_bytes` and `retransmitted_bytes` of those that finished.
        """
        by = ["case", "arm", *self.axes, "seed", "source", "workload"]
        done = pl.col("finished")
        sums = (
            pl.len().alias("flows"),
            (~done).sum().alias("unfinished"),
            pl.col("timeouts").sum(),
            *(pl.col(name).filter(done).sum() for name in ("size_bytes", "retransmitted_bytes")),
        )
        answer = pl.col("request").is_not_null()
        return _collected(
            part.filter(answer).group_by(by, maintain_order=True).agg(*sums) for part in self._counted("flows")
        )

    @cached_property
    def ports(self) -> pl.DataFrame:
        """Ports of all runs."""
        return self.frames.ports

    @cached_property
    def bridges(self) -> pl.DataFrame:
        """Ends of the bridges of all runs."""
        return _collected(self._parts("bridges"))

    @cached_property
    def requests(self) -> pl.DataFrame:
        """Requests of all runs."""
        return _collected(self._parts("requests"))

    @cached_property
    def long(self) -> pl.DataFrame:
        """Flows without a size, with their `goodput_mbps` after the warm-up; those that began in it too."""
        parts = []
        for member, seed in self._runs:
            if (plan := (self._store.manifest(member.stored, seed) or {}).get("plan")) is None:
                continue
            flows = self._labelled(member, seed, "flows")
            # Where there are none, only the columns are wanted, of what may be millions of rows.
            own = flows if longlived.any_in(plan) else flows.limit(0)
            late_ns = longlived.LIVE_LATE_NS if member.backend.is_live else 0
            parts.append(longlived.measured(own, plan, member.end_ns - member.warmup_ns, late_ns=late_ns))
        return _collected(parts) if parts else pl.DataFrame()

    @cached_property
    def series(self) -> pl.DataFrame:
        """Samples of all runs; large, `scan("series")` is the lazy form."""
        return self.scan("series").collect()

    @property
    def axes(self) -> tuple[str, ...]:
        """Names of the axis columns, which are null for arms that an axis leaves out.

        An axis that is called like a column of a table gets a prefix.
        """
        taken = {"arm", "case", "seed"} | {column for table in TABLES.values() for column in table.schema}
        return tuple(f"axis_{name}" if name in taken else name for name in self.entry.axes)

    @property
    def counted_flows(self) -> pl.LazyFrame:
        """Flows that started after the warm-up of their plan."""
        return pl.concat(self._counted("flows"))

    def _counted(self, table: TableName) -> list[pl.LazyFrame]:
        """What started after the warm-up, for each run."""
        return [
            self._labelled(member, seed, table).filter(pl.col("start_ns") >= member.warmup_ns)
            for member, seed in self._runs
        ]

    def scan(self, table: TableName) -> pl.LazyFrame:
        """A table of all runs, lazily."""
        return pl.concat(self._parts(table))

    def _parts(self, table: TableName) -> list[pl.LazyFrame]:
        return [self._labelled(member, seed, table) for member, seed in self._runs]

    def _labelled(self, member: Member, seed: int, table: TableName) -> pl.LazyFrame:
        key = (member.case, seed, table)
        if key not in self._scanned:
            self._scanned[key] = self._label(member, seed, table)
        return self._scanned[key]

    def _label(self, member: Member, seed: int, table: TableName) -> pl.LazyFrame:
        own = dict(member.axes)
        axes = {column: own.get(name) for column, name in zip(self.axes, self.entry.axes, strict=True)}
        labels = {"case": member.case, "arm": member.arm, **axes}
        return self._store.scan(member.stored, seed, table).select(
            *(pl.lit(value, dtype=pl.String).alias(name) for name, value in labels.items()),
            pl.lit(seed, dtype=pl.UInt64).alias("seed"),
            pl.all(),
        )


def versions(results: Results, backend: str) -> dict[str, int]:
    """How many runs of this backend each version made."""
    return dict(Counter(str(manifest["version"]) for manifest in results.manifests if manifest["backend"] == backend))


def mixed_versions(several: Sequence[Results]) -> str:
    """A sentence where results that are compared come from different versions; else nothing."""
    for backend in dict.fromkeys(part.backend for one in several for part in one.entry.parts):
        made = {one.entry.identifier: tuple(versions(one, backend.value)) for one in several}
        if len({found for found in made.values() if found}) > 1:
            told = "; ".join(f"{name} by {' and '.join(found)}" for name, found in made.items() if found)
            return f"these results come from different versions of {backend.program}: {told}"
    return ""


def _listed(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{version}: {wording.plural(count, 'run')}" for version, count in counts.items())


def repeats(manifests: Mapping[tuple[str, int], Mapping[str, Any]]) -> dict[int, int]:
    """Of the runs by case and seed: each seed, with the first whose tables are the same in all cases."""
    digests: dict[int, list[tuple[str, object]]] = {}
    for (case, seed), manifest in manifests.items():
        tables = manifest.get("tables")
        digests.setdefault(seed, []).append((case, json.dumps(tables, sort_keys=True) if tables else seed))
    first: dict[str, int] = {}
    return {seed: first.setdefault(repr(sorted(own, key=str)), seed) for seed, own in digests.items()}


def _without_plan(manifest: dict[str, Any] | None) -> dict[str, Any] | None:
    """What the run was and cost: plans of thousands of runs are too much to keep."""
    return manifest and {key: value for key, value in manifest.items() if key != "plan"}


def _collected(parts: Iterable[pl.LazyFrame]) -> pl.DataFrame:
    """Each run by itself: one plan over thousands of files takes minutes to make."""
    return pl.concat([part.collect() for part in parts])


def _of_cases(flows: pl.DataFrame, cases: Sequence[str]) -> pl.DataFrame:
    """Flows of these cases: a view where they stand together, as those of one case do, for copies take gigabytes."""
    mask = flows["case"].is_in(list(cases))
    first, count = mask.arg_max(), int(mask.sum())
    if first is not None and mask.slice(first, count).all():
        return flows.slice(first, count)
    return flows.filter(mask)


def _each_case(flows: pl.DataFrame) -> Iterator[pl.DataFrame]:
    """The flows of each case, in the order of the cases: groups of all flows at once take as much memory again."""
    cases = flows["case"].unique(maintain_order=True).to_list()
    if not cases:
        yield flows
    for case in cases:
        yield _of_cases(flows, [case])


def in_words(table: pl.LazyFrame) -> pl.LazyFrame:
    """The names that `Frames.flows` keeps as numbers as text again."""
    return table.with_columns(selectors.categorical().cast(pl.String), selectors.enum().cast(pl.String))


def in_class(size_class: SizeClass) -> pl.Expr:
    """Whether a flow belongs to the size class."""
    size = pl.col("size_bytes")
    match size_class:
        case "small":
            return size < SMALL_BELOW_BYTES
        case "middle":
            return (size >= SMALL_BELOW_BYTES) & (size <= LARGE_ABOVE_BYTES)
        case "large":
            return size > LARGE_ABOVE_BYTES
        case "all":
            return pl.lit(value=True)


def nearest_rank(values: pl.Expr, percent: float) -> pl.Expr:
    """The ⌈n·p⌉-th smallest value; null where fewer than 10 samples may lie beyond it. `percent` in tenths at most."""
    tenths = round(10 * percent)
    present = values.drop_nulls()
    count = present.len().cast(pl.Int64)
    rank = (count * tenths + 999) // 1000
    value = present.sort().get(pl.max_horizontal(rank - 1, pl.lit(0)), null_on_oob=True)
    return pl.when(count * (1000 - tenths) >= 1000 * SAMPLES_BEYOND).then(value)


def samples_needed(percent: float) -> int:
    """How many samples a percentile needs: 1000 for a p99, 10 000 for a p99.9."""
    tenths = 1000 - round(10 * percent)
    return -(-1000 * SAMPLES_BEYOND // tenths)


def fct_ms(frames: Frames, size_class: SizeClass, *, pooled: bool = False) -> pl.DataFrame:
    """Per run: `mean` and `p99` of the completion time of finished flows, ms; `flows`, `unfinished`.

    `pooled` puts the seeds of a case together, for percentiles that one seed alone has too few samples for.
    """
    keys = [key for key in frames.keys if key != "seed"] if pooled else frames.keys
    fct = pl.col("fct_ns").cast(pl.Float64) / NS_PER_MS
    tables = (
        own.lazy()
        .filter(in_class(size_class))
        .group_by(keys, maintain_order=True)
        .agg(
            fct.mean().alias("mean"),
            nearest_rank(fct, 99).alias("p99"),
            pl.len().alias("flows"),
            (~pl.col("finished")).sum().alias("unfinished"),
        )
        for own in _each_case(frames.flows)
    )
    return _collected(in_words(table) for table in tables)


def fct_by_bin(frames: Frames) -> pl.DataFrame:
    """Per run and size bin: `mean` and `p95` of the completion time, ms; `flows`, `timeouts`."""
    fct = pl.col("fct_ns").cast(pl.Float64) / NS_PER_MS
    size = pl.col("size_bytes")
    place = pl.sum_horizontal((size >= low).cast(pl.Int32) for _, low, _ in SIZE_BINS[1:])
    tables = (
        own.lazy()
        .with_columns(place.alias("place"))
        .group_by([*frames.keys, "place"], maintain_order=True)
        .agg(
            fct.mean().alias("mean"),
            nearest_rank(fct, 95).alias("p95"),
            pl.len().alias("flows"),
            pl.col("timeouts").sum().alias("timeouts"),
        )
        .with_columns(
            pl.col("place").replace_strict(dict(enumerate(name for name, *_ in SIZE_BINS))).alias("bin"),
            pl.col("place").replace_strict(dict(enumerate(to for *_, to in SIZE_BINS))).alias("size_to_bytes"),
        )
        for own in _each_case(frames.flows)
    )
    return _collected(in_words(table) for table in tables)


def request_ms(frames: Frames) -> pl.DataFrame:
    """Per run: completion time of requests, ms: `mean`, `p50`, `p95`, `p99`, `p999`; `unfinished`.

    `timeouts` per 1000 requests; `share`, of requests with at least one; `servers`, that a finished one has asked.
    """
    time = pl.col("completion_ns").cast(pl.Float64) / NS_PER_MS
    finished = pl.col("completion_ns").is_not_null()
    return frames.requests.group_by(frames.keys, maintain_order=True).agg(
        time.mean().alias("mean"),
        *(nearest_rank(time, percent).alias(name) for name, percent in REQUEST_PERCENTILES.items()),
        (1000.0 * pl.col("timeouts").sum() / pl.len()).alias("timeouts"),
        (pl.col("timeouts") > 0).mean().alias("share"),
        pl.col("responses").filter(finished).max().alias("servers"),
        pl.len().alias("requests"),
        time.is_null().sum().alias("unfinished"),
    )


def plr_by_segment(frames: Frames) -> pl.DataFrame:
    """Per run and segment: packets `dropped` there; `plr`, per packet that a host sent, in 1e-5 [GEMINI Table II].

    `dcn` is every port of a switch inside a datacenter, those towards hosts among them; `wan` joins datacenters.
    """
    segment = (
        pl.when(pl.col("role").is_in(DCN_ROLES)).then(pl.lit("dcn"))
        .when(pl.col("role").is_in(WAN_ROLES)).then(pl.lit("wan"))
    )  # fmt: skip
    dropped, sent = pl.col("dropped_packets").sum(), pl.col("sent_packets").filter(pl.col("role") == "host").sum()
    return (
        frames.ports.lazy()
        .with_columns(segment.alias("segment"), sent.over(frames.keys).alias("sent"))
        .drop_nulls("segment")
        .group_by([*frames.keys, "segment"], maintain_order=True)
        .agg(
            pl.when(pl.col("sent").first() > 0).then(dropped / pl.col("sent").first() / PLR_UNIT).alias("plr"),
            dropped.alias("dropped"),
            pl.col("marked_packets").sum().alias("marked"),
        )
        .collect()
    )


def plr_overall(frames: Frames) -> pl.DataFrame:
    """Per run: packets dropped anywhere per packet that a host sent, in 1e-5: the chance to be lost on the way."""
    dropped = pl.col("dropped_packets").sum()
    sent = pl.col("sent_packets").filter(pl.col("role") == "host").sum()
    return (
        frames.ports.lazy()
        .group_by(frames.keys, maintain_order=True)
        .agg(pl.when(sent > 0).then(dropped / sent / PLR_UNIT).alias("plr"))
        .collect()
    )


def busiest(frames: Frames, role: str) -> pl.DataFrame:
    """Per run: share of line rate in use at that port of a role which is used most."""
    ports = frames.ports.lazy().filter(pl.col("role") == role)
    return (
        ports.group_by(frames.keys, maintain_order=True).agg(pl.col("utilisation").max().alias("utilisation")).collect()
    )


def utilisation(frames: Frames, role: str) -> pl.DataFrame:
    """Per run: mean share of line rate in use over the ports of a role; of hosts' ports only those that sent flows."""
    ports = frames.ports.lazy().filter(pl.col("role") == role)
    if role == "host":
        sources = [part for part in (frames.flows, frames.long, frames.answers) if not part.is_empty()]
        named = [in_words(part.lazy().select("case", "seed", node="source").unique()) for part in sources]
        senders = pl.concat([*named, ports.select("case", "seed", "node").limit(0)]).unique()
        ports = ports.join(senders, on=["case", "seed", "node"], how="semi", maintain_order="left")
    return (
        ports.group_by(frames.keys, maintain_order=True)
        .agg(pl.col("utilisation").mean().alias("utilisation"))
        .collect()
    )


def recovery(frames: Frames) -> pl.DataFrame:
    """Per run: bytes `retransmitted` by finished flows in % of what they asked for, `timeouts` per 1000 flows.

    Of all flows, answers to requests among them. What an unfinished flow asked for was not sent: it would make the
    losses look rarer than they are.
    """
    sums = [pl.col(name).sum() for name in ("retransmitted_bytes", "size_bytes", "timeouts", "flows")]
    finished = pl.col("finished")
    summed = frames.flows.lazy().group_by(frames.keys, maintain_order=True).agg(
        *(pl.col(name).filter(finished).sum() for name in ("retransmitted_bytes", "size_bytes")),
        pl.col("timeouts").sum(),
        pl.len().alias("flows"),
    )  # fmt: skip
    own = in_words(summed).collect()
    parts = [own] if frames.answers.is_empty() else [own, frames.answers.select(own.columns)]
    again, asked, timeouts, flows = (pl.col(name) for name in own.columns[-4:])
    return (
        pl.concat(parts, how="vertical_relaxed")
        .group_by(frames.keys, maintain_order=True)
        .agg(*sums)
        .select(
            *frames.keys,
            pl.when(asked > 0).then(100.0 * again / asked).alias("retransmitted"),
            (1000.0 * timeouts / flows).alias("timeouts"),
        )
    )


def slowdown_by_size(frames: Frames, bins: int = 20) -> pl.DataFrame:
    """Per case and size bin: p50, p95, p99 of the slowdown, seeds together. The bins hold equal shares of all flows."""
    finished = pl.col("finished")
    sizes = frames.flows.lazy().filter(finished).select(pl.col("size_bytes").sort()).collect()["size_bytes"]
    if sizes.is_empty():
        return pl.DataFrame(schema={"case": pl.String, "size_bytes": pl.UInt64, "flows": pl.UInt32})
    edges = sorted({int(sizes[(len(sizes) * step) // bins]) for step in range(1, bins)})
    placed = pl.lit(0, dtype=pl.Int64)
    for edge in edges:
        placed += (pl.col("size_bytes") >= edge).cast(pl.Int64)
    # A bin is a stretch of what is sorted: its median, its least and its largest size.
    ends = [0, *(int(sizes.search_sorted(edge, side="left")) for edge in edges), len(sizes)]
    rows = [
        (place, (sizes[(begin + end - 1) // 2] + sizes[(begin + end) // 2]) // 2, sizes[begin], sizes[end - 1])
        for place, (begin, end) in enumerate(pairwise(ends))
        if begin < end
    ]
    columns = ("size_bytes", "size_from_bytes", "size_to_bytes")
    bounds = pl.DataFrame(rows, schema={"bin": pl.Int64, **dict.fromkeys(columns, pl.UInt64)}, orient="row")
    tables = (
        own.lazy()
        .filter(finished)
        .with_columns(placed.alias("bin"))
        .group_by(["case", "arm", *frames.axes, "bin"], maintain_order=True)
        .agg(
            *(nearest_rank(pl.col("slowdown"), percent).alias(f"p{percent}") for percent in (50, 95, 99)),
            pl.len().alias("flows"),
        )
        .join(bounds.lazy(), on="bin")
        for own in _each_case(frames.flows)
    )
    return _collected(in_words(table) for table in tables).sort("case", "bin")


def jain(frames: Frames, *, from_ns: int = 0, to_ns: int | None = None) -> pl.DataFrame:
    """Per run: Jain's index (Σx)²/(n·Σx²) over the goodput of all flows in a bin, averaged over bins."""
    x = pl.col("value")
    samples = frames.series.filter((pl.col("quantity") == "goodput_bps") & (pl.col("time_ns") > from_ns))
    if to_ns is not None:
        samples = samples.filter(pl.col("time_ns") <= to_ns)
    # Sums depend on their order in the last digits: the same runs are to give the same bytes.
    return (
        samples.sort([*frames.keys, "time_ns", "entity"])
        .group_by([*frames.keys, "time_ns"], maintain_order=True)
        .agg(pl.when((x * x).sum() > 0).then(x.sum() ** 2 / (pl.len() * (x * x).sum())).alias("jain"))
        .group_by(frames.keys, maintain_order=True)
        .agg(pl.col("jain").mean())
        .sort(frames.keys)
        .collect()
    )
