"""Results of an experiment, read from the store when they are asked for."""

from __future__ import annotations

import json
import warnings
from collections import Counter
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, Literal

import polars as pl

from narrows import native, wording
from narrows.columns import tables
from narrows.errors import BadInput, bad_input
from narrows.experiment import labelled
from narrows.frames import COUNTED, Frames, collected, ethernet, when_read
from narrows.measures import longlived, unfinished_work
from narrows.measures.unfinished import late
from narrows.runs import validity
from narrows.runs.backends import program_of
from narrows.tables import Tabular

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from narrows.comparison import Comparison
    from narrows.experiment.summary import LongFlow
    from narrows.native import TableName
    from narrows.runs.backends import Backend
    from narrows.runs.index import Entry, Member
    from narrows.runs.store import Store
    from narrows.traces import Explanation, Traced

_TEXT: Final = ("source", "class", "workload", "controller")
"""Those of text: a few names, on millions of rows."""


_STUCK_NS: Final = 200_000_000
"""A port paused for so long without a break is reported: the default of the PFC watchdog in SONiC."""


class Results(Tabular):
    """The runs of one experiment, read from the store when they are asked for."""

    def __init__(self, entry: Entry, store: Store, *, recorded: Entry | None = None) -> None:
        """`recorded` is the index's, if `entry` is a part of it.

        Raises `BadInput` where a run is absent, or none of them counts.
        """
        self.entry = entry
        """Without the seeds in `repeated`."""
        self._whole = entry
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
        """Seeds that gave the same tables as an earlier one in every case, and that one.

        They count as one, except where they are compared with results in which they differ.
        """
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

    def is_all_of(self, entry: Entry) -> bool:
        """Whether these are the results of all that an entry of the index lists."""
        return self._whole == entry

    @cached_property
    def notices(self) -> tuple[str, ...]:
        """What whoever reads these numbers has to know, in sentences; as a rule nothing."""
        from narrows.measures.settling import growing
        from narrows.runs.freshness import changed

        parts = self._recorded.parts
        made_by = [(part, self._versions(part.backend)) for part in parts]
        mixed = [
            f"runs of {len(counts)} versions of {part.backend.program} are mixed ({_listed(counts)}): "
            f"`{part.command}` makes the others again"
            for part, counts in made_by
            if len(counts) > 1
        ]
        changes = [change.sentence for part in parts if (change := changed(part, self._store))]
        notes = (self._unread(), self._stuck(), late(self.ranks), growing(self.frames))
        imported = [f"imported; {part.made_by} made these runs" for part in parts if part.imported]
        told = (*self.entry.warnings, *imported, *mixed, repeated_seeds(self.repeated), *notes, *changes)
        return tuple(text for text in told if text)

    def _stuck(self) -> str:
        """Ports that were paused for so long that switches would step in: a storm of pauses, or a deadlock."""
        ports = self.frames.ports
        if "longest_pause_ns" not in ports.columns:
            return ""
        stuck = ports.filter(pl.col("longest_pause_ns") >= _STUCK_NS).sort("longest_pause_ns", descending=True)
        if stuck.is_empty():
            return ""
        case, seed, name, longest = stuck.select("case", "seed", "name", "longest_pause_ns").row(0)
        return (
            f"{wording.whole(stuck.height)} ports were paused for 200 ms or more without a break, {name} of {case} "
            f"(seed {seed}) for {longest / 1e6:.0f} ms: a pause storm or a deadlock, which switches end by dropping "
            "packets"
        )

    def _versions(self, backend: Backend) -> Counter[str]:
        """How many runs of this backend each version made."""
        runs = [manifest for manifest in self.manifests if manifest["backend"] == backend]
        return Counter(version for version in versions(runs) if version)

    def measure(self, name: str, *cases: str) -> pl.DataFrame:
        """A named measure (docs/reference/measures.md): `case`, `seed` and `value`, in the measure's unit.

        Cases without a value are left out, for example those with too few flows for a percentile. If no case has one,
        the table is empty and a `UserWarning` says why.

        Args:
            name: Such as `fct_small_p99`, or one that `compare` shows.
            cases: Cases, or `CASE / TRAFFIC` for the flows of one traffic (default: every case that has a value).

        Raises:
            BadInput: There is no such measure, or a case that was named has no value.
        """
        if strange := [it for it in (name, *cases) if not isinstance(it, str)]:
            raise bad_input(f"no measure or case is called {strange[0]!r}", "give texts, as `compare` shows them")
        made, reasons = self._measured(name, cases)
        if made.is_empty():
            warnings.warn(f"{name} has no value: {'; '.join(reasons)}", stacklevel=2)
        return made

    def _measured(self, name: str, cases: Sequence[str] = ()) -> tuple[pl.DataFrame, list[str]]:
        """The measure as a table, and why cases have no value. Raises `BadInput` where one of those named has none."""
        from narrows.measures.bottleneck import SAME_QUEUE, same_queue_by_seed
        from narrows.measures.named import NotEvaluable, UnknownScheme, measure_called, unknown, value_by_seed

        if measure_called(name) is None and name not in SAME_QUEUE:
            raise unknown(name, also=SAME_QUEUE)
        rows: list[tuple[str, int, float]] = []
        reasons: list[str] = []
        for case in cases or self.frames.cases:
            try:
                if name in SAME_QUEUE:
                    values = same_queue_by_seed(self.frames, name, case)
                else:
                    values = value_by_seed(self.frames, name, (case,))
            except NotEvaluable as error:
                if cases:
                    help_text = (
                        f"there are: {', '.join(self.frames.cases)}"
                        if isinstance(error, UnknownScheme)
                        else "measure another scheme or configuration, or run longer"
                    )
                    raise bad_input(f"{name} of {case}: {error}", help_text) from None
                reasons.append(f"{case}: {error}")
            else:
                rows += [(case, *pair) for pair in values.items()]
        schema = {"case": pl.String, "seed": pl.UInt64, "value": pl.Float64}
        return pl.DataFrame(rows, schema=schema, orient="row"), reasons

    def compare(self, *others: Results, along: str | None = None) -> Comparison:
        """Every scheme against the first; with other results, equal schemes against this one's.

        Args:
            others: Other results.
            along: An axis of the sweep, such as `wan.delay` or `delay`: each scheme against itself at the axis' first
                value instead.

        Raises:
            BadInput: There is nothing to compare, or no such axis.
        """
        from narrows.comparison import Comparison

        if strange := [it for it in others if not isinstance(it, Results)]:
            raise bad_input(f"{strange[0]!r} cannot be compared with", 'give results, such as narrows.load("NAME")')
        return Comparison([self, *others], along)

    def explain(
        self,
        flows: Sequence[int] | None = None,
        *,
        scheme: str | None = None,
        seed: int | None = None,
        by: Literal["slowdown", "fct"] = "slowdown",
    ) -> Explanation:
        """Where the time of flows went, from a run that is made again with a trace.

        Args:
            flows: Numbers of flows (default: of the ten slowest that started after the warm-up).
            scheme: A scheme, or a configuration of a sweep (default: the only one).
            seed: One of the seeds (default: the first).
            by: What the slowest flows are slowest by.

        Raises:
            BadInput: There is no such flow, scheme or seed; the flow did not finish; or the run cannot be made again.
        """
        from narrows.traces import explain

        return explain(self, flows, scheme=scheme, seed=seed, by=by, look=lambda _: True)

    def trace(self, flows: Sequence[int], *, scheme: str | None = None, seed: int | None = None) -> Traced:
        """Packets of flows at every port and the state of their senders, from a run that is made again.

        The arguments and what is raised are those of `explain`.
        """
        from narrows.traces import trace

        return trace(self, flows, scheme=scheme, seed=seed, look=lambda _: True)

    def report(self, *, cases: str | None = None) -> Path:
        """Writes a page with charts that opens offline, of all cases or of those that match; returns its path."""
        from narrows.report.page import build

        return build(self, self._store, cases=cases)

    @property
    def heading(self) -> str:
        """Title, seeds and notices."""
        cases, seeds = wording.plural(len(self.entry.members), "plan"), wording.plural(len(self.entry.seeds), "seed")
        return "\n".join([f"{self.entry.title}: {cases}, {seeds}; means over seeds", *self.notices])

    @property
    def table(self) -> pl.DataFrame:
        """Means over seeds of the measures that `compare` shows: a row for each case."""
        from narrows.comparison import MEASURES
        from narrows.measures.named import measure_called

        made = pl.DataFrame({"case": self.frames.cases})
        for name in MEASURES:
            values = self._measured(name)[0].group_by("case").agg(pl.col("value").mean())
            unit = getattr(measure_called(name), "unit", "")
            if not values.is_empty():
                column = f"{name} ({unit})" if unit else name
                made = made.join(values.rename({"value": column}), on="case", how="left", maintain_order="left")
        return made

    def _unread(self) -> str:
        """Which plans, of another version, do not say which of their flows have no size."""
        cases = dict.fromkeys(member.case for member, _ in self._runs if self._stated[member.hash] is None)
        if not cases:
            return ""
        which = wording.some(list(cases))
        return f"flows without a size are not shown of {which}, whose plans this version of Narrows cannot read"

    def plans(self) -> Iterator[Mapping[str, Any]]:
        """The body of each plan, once, as its first run keeps it."""
        for member in {member.hash: member for member in self.entry.members}.values():
            manifest = self._store.manifest(member.stored, self.entry.seeds[0])
            if manifest is not None and "plan" in manifest:
                yield manifest["plan"]

    def plan_of(self, case: str) -> Mapping[str, Any] | None:
        """The body of a case's plan, as its first run keeps it; `None` if there is no such case, or it keeps none."""
        for member in self.entry.members:
            if member.case == case:
                return (self._store.manifest(member.stored, self.entry.seeds[0]) or {}).get("plan")
        return None

    def manifest_of(self, member: Member, seed: int) -> dict[str, Any]:
        """What a run was, with its plan. Raises `BadInput` where it is absent."""
        manifest = self._store.manifest(member.stored, seed)
        if manifest is None:
            raise bad_input(f"run {seed} of {member.case} is absent", f"run it again: {self.entry.command}")
        return manifest

    def table_of(self, member: Member, seed: int, table: TableName) -> pl.LazyFrame:
        """A table of one run as it is stored. Raises `BadInput` where it is absent or damaged."""
        return self._store.scan(member.stored, seed, table, case=member.case)

    def matching(self, pattern: str) -> Results:
        """Those of the cases whose names match: `tcp · min-rto=10ms*`. Raises `BadInput` where none does."""
        members = tuple(member for member in self.entry.members if fnmatchcase(member.case, pattern))
        if not members:
            raise bad_input(
                f"no configuration of '{self.entry.identifier}' matches '{pattern}'",
                f"there are: {', '.join(member.case for member in self.entry.members)}",
            )
        return self._part(members)

    def only(self, cases: Collection[str]) -> Results:
        """Those of these cases alone."""
        return self._part(tuple(member for member in self.entry.members if member.case in cases))

    def under(self, axis: str, value: str) -> Results | None:
        """Those with one value of an axis, whose cases do not name it any more; `None` where no case has that value."""
        if not any((axis, value) in member.axes for member in self.entry.members):
            return None
        return self._called(
            (member, replace(member, axes=tuple(own for own in member.axes if own[0] != axis)))
            for member in self.entry.members
            if dict(member.axes).get(axis, value) == value
        )

    def standing_for(self, schemes: Mapping[str, str], *, without: Collection[str] = ()) -> Results | None:
        """Those in which schemes have the names of others, in whose place they stand; `None` where one is absent.

        Args:
            schemes: The name of a scheme, and which scheme stands for it.
            without: Schemes that are left out, if they stand for none.
        """
        names = {other: name for name, other in schemes.items()}
        if not names.keys() <= {member.arm for member in self.entry.members}:
            return None
        return self._called(
            (member, replace(member, arm=names.get(member.arm, member.arm)))
            for member in self.entry.members
            if member.arm in names or member.arm not in {*schemes, *without}
        )

    def _called(self, members: Iterable[tuple[Member, Member]]) -> Results:
        """Of these members under other names: each as it is, and as it is called from now on."""
        pairs = list(members)
        return self._part(
            tuple(called for _, called in pairs), {member.plan_case: called.plan_case for member, called in pairs}
        )

    def _part(self, members: tuple[Member, ...], names: Mapping[str, str] | None = None) -> Results:
        """Of these members; `names` are their cases, and what they are called from now on."""
        cases = names or {member.plan_case: member.plan_case for member in members}
        differences = tuple(
            replace(item, values=tuple((cases[case], value) for case, value in item.values if case in cases))
            for item in self.entry.differences
        )
        part = replace(self._whole, members=members, differences=differences)
        return Results(part, self._store, recorded=self._recorded)

    @cached_property
    def frames(self) -> Frames:
        """All tables; the series stay lazy."""
        return Frames(
            flows=when_read(self._compact_flows),
            ports=collected(self._parts("ports")),
            series=self.scan("series"),
            requests=collected(self._counted("requests")),
            axes=self.axes,
            long=self.long,
            answers=self.answers,
            events=self.events,
            bridges=self.bridges,
            mtu_of=self._mtu_of,
            ranks=self.ranks,
            series_of=self._series_of,
            work_of=self._work_of,
        )

    def _work_of(self, case: str) -> pl.DataFrame | None:
        """Unfinished work by seed and batch: see `Frames.work_of`."""
        rows: list[tuple[int, int, float]] = []
        for member, seed in self._runs_of[case]:
            manifest = self.manifest_of(member, seed)
            if not unfinished_work.comes_at_random(manifest.get("plan", {})):
                return None
            flows = self._labelled(member, seed, "flows").filter(self._sized(member, seed))
            stop_ns = max(member.end_ns, int(manifest.get("simulated_ns", 0)))
            means = unfinished_work.means(flows, unfinished_work.edges(member.warmup_ns, member.end_ns), stop_ns)
            rows += [(seed, batch, mean) for batch, mean in enumerate(means)]
        return pl.DataFrame(rows, schema=unfinished_work.SCHEMA, orient="row")

    def _series_of(self, cases: Sequence[str]) -> pl.LazyFrame:
        return pl.concat([self._labelled(*run, "series") for case in cases for run in self._runs_of[case]])

    @cached_property
    def _runs_of(self) -> dict[str, list[tuple[Member, int]]]:
        found: dict[str, list[tuple[Member, int]]] = {}
        for run in self._runs:
            found.setdefault(run[0].case, []).append(run)
        return found

    def _mtu_of(self, case: str) -> int:
        """The largest IP packet of a case's network, bytes."""
        plan = self.plan_of(case)
        return ethernet(case) if plan is None else int(plan["network"].get("mtu", ethernet(case)))

    def _compact_flows(self) -> pl.DataFrame:
        """Of flows that are no answers the columns `COUNTED`, names as numbers, and `sized`."""
        values = {"case": [member.case for member in self.entry.members]}
        values["arm"] = [member.arm for member in self.entry.members]
        for column, name in zip(self.axes, self.entry.axes, strict=True):
            values[column] = [at for member in self.entry.members for own, at in member.axes if own == name]
        # In the order of text: sorts must not depend on how a name is kept.
        labels = [pl.col(column).cast(pl.Enum(sorted(set(own)))) for column, own in values.items()]
        columns = (*labels, "seed", *(pl.col(name).cast(pl.Categorical) if name in _TEXT else name for name in COUNTED))
        no_answer = pl.col("request").is_null()
        runs = zip(self._runs, self._counted("flows"), strict=True)
        return collected(
            part.filter(no_answer).select(*columns, self._sized(member, seed)) for (member, seed), part in runs
        )

    def _sized(self, member: Member, seed: int) -> pl.Expr:
        """Whether a flow of this run has a size."""
        if not self._stated[member.hash]:
            return pl.lit(value=True).alias("sized")
        without = self.long.filter(case=member.case, seed=seed)["flow"]
        return pl.col("flow").is_in(without.implode()).not_().alias("sized")

    @cached_property
    def flows(self) -> pl.DataFrame:
        """Flows that started after the warm-up, answers to requests among them; `counted_flows` is the lazy form."""
        return collected(self._counted("flows"))

    @cached_property
    def counted(self) -> int:
        """How many flows started after the warm-up, answers among them."""
        return sum(part.select(pl.len()).collect().item() for part in self._counted("flows"))

    @cached_property
    def answers(self) -> pl.DataFrame:
        """Flows that answer a request, for every run, `source` and `workload`: how many `flows` and `unfinished`.

        With the `timeouts`, `dropped_bytes` and `rto_wait_ns` of all, `size_bytes` and `retransmitted_bytes` of those
        that finished, and the sum of the `handshake_ns` of those that opened a connection and lost no SYN: there are
        `handshakes` of them.
        """
        by = ["case", "arm", *self.axes, "seed", "source", "workload"]
        done, alone = pl.col("finished"), pl.col("syn_retransmits") == 0
        sums = (
            pl.len().alias("flows"),
            (~done).sum().alias("unfinished"),
            pl.col("timeouts").sum(),
            *(pl.col(name).filter(done).sum() for name in ("size_bytes", "retransmitted_bytes")),
            pl.col("dropped_bytes", "rto_wait_ns").sum(),
            pl.col("handshake_ns").filter(alone).sum(),
            pl.col("handshake_ns").filter(alone).count().alias("handshakes"),
        )
        answer = pl.col("request").is_not_null()
        return collected(
            part.filter(answer).group_by(by, maintain_order=True).agg(*sums) for part in self._counted("flows")
        )

    @cached_property
    def ports(self) -> pl.DataFrame:
        """Ports of all runs."""
        return self.frames.ports

    @cached_property
    def events(self) -> pl.DataFrame:
        """Changes of links at stated times, of all runs."""
        return collected(self._parts("events"))

    @cached_property
    def bridges(self) -> pl.DataFrame:
        """Ends of the edge pairs of all runs."""
        return collected(self._parts("bridges"))

    @cached_property
    def ranks(self) -> pl.DataFrame:
        """Ranks of the programs of all runs."""
        return collected(self._parts("ranks"))

    @cached_property
    def requests(self) -> pl.DataFrame:
        """Requests of all runs."""
        return collected(self._parts("requests"))

    @cached_property
    def long(self) -> pl.DataFrame:
        """Flows without a size, with their `goodput_mbps` after the warm-up; those that began in it too."""
        return collected(
            longlived.measured(
                self._labelled(member, seed, "flows"),
                self._stated[member.hash] or (),
                member.end_ns - member.warmup_ns,
                late_ns=longlived.LIVE_LATE_NS if member.backend.is_live else 0,
            )
            for member, seed in self._runs
        )

    @cached_property
    def _stated(self) -> dict[str, list[LongFlow] | None]:
        """By plan what it states of its flows without a size; `None` where it is one of another version."""
        found: dict[str, list[LongFlow] | None] = {}
        for member, seed in self._runs:
            if member.hash not in found:
                manifest = self._store.manifest(member.stored, seed) or {}
                try:
                    found[member.hash] = native.long_flows(labelled(manifest.get("plan", {})))
                except BadInput:
                    found[member.hash] = None
        return found

    @cached_property
    def series(self) -> pl.DataFrame:
        """Samples of all runs; large, `scan("series")` is the lazy form."""
        return self.scan("series").collect()

    @cached_property
    def axes(self) -> tuple[str, ...]:
        """Names of the axis columns, which are null for schemes that an axis leaves out.

        An axis that is called like a column of a table gets a prefix.
        """
        taken = {"arm", "case", "seed"} | {column for table in tables().values() for column in table.schema}
        return tuple(f"axis_{name}" if name in taken else name for name in self.entry.axes)

    @cached_property
    def _axis_columns(self) -> tuple[tuple[str, str], ...]:
        """Columns of axes with what the file calls them: looked up for each table of each run."""
        return tuple(zip(self.axes, self.entry.axes, strict=True))

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
        axes = {column: own.get(name) for column, name in self._axis_columns}
        labels = {"case": member.case, "arm": member.arm, **axes}
        return self._store.scan(member.stored, seed, table, case=member.case).select(
            *(pl.lit(value, dtype=pl.String).alias(name) for name, value in labels.items()),
            pl.lit(seed, dtype=pl.UInt64).alias("seed"),
            pl.all(),
        )


def versions(manifests: Sequence[Mapping[str, Any]]) -> list[str]:
    """What made each run: a version of the program, or of a component in which runs of one program differ."""
    programs = [program_of(str(manifest["version"])) for manifest in manifests]
    digests = [manifest.get("sources") or {} for manifest in manifests]
    if len(set(programs)) == 1:
        for name in sorted({name for sources in digests for name in sources}):
            if len({sources[name] for sources in digests if name in sources}) > 1:
                return [f"{name} {sources[name]}" if name in sources else "" for sources in digests]
    return programs


def mixed_versions(several: Sequence[Results]) -> str:
    """A sentence where results that are compared come from different versions; else nothing."""
    for backend in dict.fromkeys(part.backend for one in several for part in one.entry.parts):
        runs = [(one.entry.identifier, run) for one in several for run in one.manifests if run["backend"] == backend]
        made: dict[str, dict[str, None]] = {}
        for (name, _), version in zip(runs, versions([run for _, run in runs]), strict=True):
            if version:
                made.setdefault(name, {})[version] = None
        if len({tuple(found) for found in made.values()}) > 1:
            told = "; ".join(f"{name} by {' and '.join(found)}" for name, found in made.items())
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


def repeated_seeds(repeated: Mapping[int, int], consequence: str = "") -> str:
    """Which seeds gave the same results as others, and what follows (default: that they count as one), or nothing."""
    if not repeated:
        return ""
    seeds, first = ", ".join(map(str, repeated)), ", ".join(map(str, sorted(set(repeated.values()))))
    count = len(repeated) + len(set(repeated.values()))
    return f"seed{'' if len(repeated) == 1 else 's'} {seeds} gave the same results as seed {first} in every plan: " + (
        consequence or f"{count} seeds count as {count - len(repeated)}"
    )


def _without_plan(manifest: dict[str, Any] | None) -> dict[str, Any] | None:
    """What the run was and cost: plans of thousands of runs are too much to keep."""
    return manifest and {key: value for key, value in manifest.items() if key != "plan"}
