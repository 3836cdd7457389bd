"""Makes a run again with a trace, and proves that it is the same run."""

from __future__ import annotations

import difflib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from narrows import native, wording
from narrows.columns import trace_tables
from narrows.errors import bad_input
from narrows.experiment import labelled
from narrows.runs.backends import Backend
from narrows.runs.simulate import joined
from narrows.runs.store import digest, encoded

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from narrows.results import Results
    from narrows.runs.index import Member

    Look = Callable[[tuple[int, int, int]], bool]

NAMING: Final = ("workload", "start_ns", "source", "destination")
"""Columns of `flows` by which a run that is made again knows a flow."""
MAX_FLOWS: Final = 1_000
"""Flows of one trace: each keeps every hop of its packets in memory."""


@dataclass(frozen=True, repr=False)
class Traced:
    """A run that was made again with a trace of some flows; times are simulated, ns."""

    case: str
    """Scheme, and the values of axes."""
    seed: int
    plan: Mapping[str, Any]
    flows: pl.DataFrame
    """Rows of `flows` of those that were traced."""
    hops: pl.DataFrame
    senders: pl.DataFrame
    times: pl.DataFrame
    pauses: pl.DataFrame
    _results: native.RunResults

    def __repr__(self) -> str:
        flows = wording.plural(self.flows.height, "flow")
        return f"{self.case}, seed {self.seed}: trace of {flows}, {wording.plural(self.hops.height, 'hop')} of packets"

    @property
    def tables(self) -> dict[str, pl.DataFrame]:
        """The tables of the trace, and the flows that it is of, by name."""
        return {"flows": self.flows} | {name: getattr(self, name) for name in trace_tables()}

    @property
    def ports(self) -> list[str]:
        """Ports that packets of the flows came to, from the source's on."""
        return self.hops.sort("packet", "hop")["port"].unique(maintain_order=True).to_list()

    @property
    def own_ports(self) -> list[str]:
        """The ports of the hosts that send the flows' data."""
        sources = self.flows["source"].unique().to_list()
        own = self.hops.filter((pl.col("hop") == 0) & pl.col("source").is_in(sources)).sort("packet")
        return own["port"].unique(maintain_order=True).to_list()

    def known(self, ports: Sequence[str]) -> list[str]:
        """These ports, each once. Raises `BadInput` where packets came to no such port."""
        unknown = [port for port in ports if port not in self.ports]
        if unknown:
            raise bad_input(
                f"no packet of the flow comes to a port called {unknown[0]}", f"there are: {', '.join(self.ports)}"
            )
        return list(dict.fromkeys(ports))

    def write_capture(self, path: Path, ports: Sequence[str]) -> None:
        """Packets at these ports as pcapng. Raises `BadInput` where there is no such port, and `OSError`."""
        self._results.write_capture(path, self.known(ports))


def member_called(results: Results, scheme: str | None) -> Member:
    """The plan of a scheme or configuration; without a name, the only one. Raises `BadInput`."""
    members = results.entry.members
    cases = [member.case for member in members]
    if scheme is None and len(members) == 1:
        return members[0]
    found = [member for member in members if scheme in (member.case, member.arm)]
    if len(found) == 1:
        return found[0]
    name = results.entry.identifier
    if scheme is None:
        sentence = f"'{name}' has {len(cases)} schemes and configurations: say of which scheme"
    elif found:
        sentence = f"'{name}' has {len(found)} configurations of scheme {scheme!r}"
    else:
        sentence = f"'{name}' has no scheme or configuration {scheme!r}"
    raise bad_input(
        sentence,
        f"{_guess(scheme, cases)}give --scheme with one of: {', '.join(cases)}",
    )


def _guess(scheme: str | None, cases: Sequence[str]) -> str:
    """`did you mean BBR? `, whatever is upper case; nothing where no name is near."""
    by_lower = {case.lower(): case for case in cases}
    near = difflib.get_close_matches((scheme or "").lower(), by_lower, n=3)
    return f"did you mean {' or '.join(by_lower[name] for name in near)}? " if near and scheme not in cases else ""


def trace(
    results: Results, flows: Sequence[int] | None, *, scheme: str | None = None, seed: int | None = None, look: Look
) -> Traced:
    """Makes a run again with a trace of these flows, by the numbers that `flows` gives them; `None` traces all.

    Args:
        results: Of an experiment that was simulated.
        flows: Rows of its table of flows.
        scheme: A scheme, or a configuration of a sweep (default: the only one).
        seed: One of its seeds (default: the first).
        look: Hears (simulated ns, ns at the end, packet-hops) ten times a second and says whether to go on.

    Raises:
        BadInput: There is no such flow, scheme or seed; a kernel made the run, or another version of Narrows; or the
            run that was made again is not the same.
        Cancelled: `look` said so.
    """
    member = member_called(results, scheme)
    seed = results.entry.seeds[0] if seed is None else seed
    manifest = _manifest(results, member, seed)
    known = results.table_of(member, seed, "flows").collect()
    chosen = known if flows is None else _rows(known, flows)
    if chosen.height > MAX_FLOWS:
        raise bad_input(
            f"{chosen.height} flows are more than the {MAX_FLOWS} of which one trace is kept in memory",
            "name fewer flows",
        )
    if results.entry.imported and (files := _in_c(manifest["plan"])):
        raise bad_input(
            f"'{results.entry.identifier}' was imported, and to trace it would run {', '.join(files)}",
            "read that file in the archive's plan; then put it beside the experiment and run it yourself",
        )
    plan = labelled(manifest["plan"])
    run = native.Run.traced(json.dumps(plan), seed, None if flows is None else json.dumps(_named(known, chosen)))
    made = joined(run, look)
    again = made.table("flows")
    if digest(encoded("flows", again)) != manifest.get("tables", {}).get("flows"):
        raise bad_input(
            f"the run that was made again is not run {seed} of {member.case}: its flows differ",
            f"make the experiment's runs again: {results.entry.command}",
        )
    tables = {name: made.table(name) for name in trace_tables()}
    return Traced(member.case, seed, plan, chosen, **tables, _results=made)


def _in_c(plan: dict[str, Any]) -> list[str]:
    """The files of a plan's controllers in C or Python."""
    programs = (traffic.get("controller", {}).get("program") for traffic in plan.get("traffic", []))
    return sorted({program["file"] for program in programs if program})


def _manifest(results: Results, member: Member, seed: int) -> dict[str, Any]:
    """Of a run that this version can make again. Raises `BadInput`."""
    entry = results.entry
    if member.backend is not Backend.SIM:
        raise bad_input(
            f"{member.case} was run by {member.backend.words}: only simulated runs can be made again exactly",
            "trace the simulated run of the same experiment, or capture packets with tcpdump",
        )
    if seed not in entry.seeds:
        raise bad_input(f"'{entry.identifier}' has no seed {seed}", f"there are: {', '.join(map(str, entry.seeds))}")
    manifest = results.manifest_of(member, seed)
    if "plan" not in manifest:
        raise bad_input(f"run {seed} of {member.case} does not say what its plan was", f"run it again: {entry.command}")
    version = native.plan_version(labelled(manifest["plan"]))
    if manifest["version"] != version:
        raise bad_input(
            f"run {seed} of {member.case} was made by version {manifest['version']}; this is {version}",
            f"run it again first: {entry.command}",
        )
    if native.plan_hash(labelled(manifest["plan"])) != manifest.get("plan_hash"):
        raise bad_input(
            f"the plan in the manifest of run {seed} of {member.case} was changed: it is not the one that was run",
            f"run it again: {entry.command}",
        )
    return manifest


def _rows(known: pl.DataFrame, flows: Sequence[int]) -> pl.DataFrame:
    chosen = known.filter(pl.col("flow").is_in(list(flows)))
    missing = sorted(set(flows) - set(chosen["flow"].to_list()))
    if missing:
        raise bad_input(
            f"there is no flow {missing[0]}: the run has flows 0 to {known.height - 1}",
            "`narrows explain RUN` lists the slowest",
        )
    return chosen


def _named(known: pl.DataFrame, chosen: pl.DataFrame) -> list[dict[str, Any]]:
    """The flows as the native module takes them."""
    same = known.select("flow", *NAMING).with_columns(earlier=pl.col("flow").cum_count().over(NAMING) - 1)
    return chosen.select("flow").join(same, on="flow", how="left", maintain_order="left").drop("flow").to_dicts()
