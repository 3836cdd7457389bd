"""The slowest flows of a run, and what they waited for: where making the run again costs little."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from narrows import wording
from narrows.errors import BadInput
from narrows.traces import explain, slowest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from narrows.results import Results

MAX_CPU_NS: Final = 1_500_000_000
"""Processor time of the runs that a report makes again, all schemes together."""
MAX_BYTES: Final = 200_000_000
"""Of the flows of one run: each hop of their packets is kept in memory."""
MAX_SCHEMES: Final = 4
"""Of a sweep, the first configuration of each scheme."""


@dataclass(frozen=True)
class Row:
    """One flow."""

    case: str
    flow: int
    workload: str
    ends: str
    size: str
    fct: str
    slowdown: str
    why: str


@dataclass(frozen=True)
class Slowest:
    """The slowest flows of the first seed of some schemes, or why they are not explained."""

    seed: int
    rows: tuple[Row, ...]
    left_out: str
    """Why there are no rows: a sentence; nothing where there are."""
    example: str
    """A command that explains them."""
    others: int = 0
    """Schemes and configurations that are not shown."""


def of(results: Results, cases: Sequence[str]) -> Slowest | None:
    """Of these schemes and configurations; `None` where no run was simulated or no flow finished."""
    entry = results.entry
    members = [member for member in entry.members if member.case in set(cases) and not member.backend.is_live]
    seed = entry.seeds[0]
    if not members or not results.frames.flows["finished"].any():
        return None
    example = f"narrows explain {entry.identifier}"
    if len(entry.members) > 1:
        example += f' --scheme "{members[0].case}"'
    first = {member.arm: member for member in reversed(members)}
    shown = members if len(members) <= MAX_SCHEMES else [member for member in members if first[member.arm] is member]
    shown = shown[:MAX_SCHEMES]
    cpu_ns = sum(int(results.manifest_of(member, seed)["cpu_ns"]) for member in shown)
    if cpu_ns > MAX_CPU_NS:
        took = wording.duration(cpu_ns / 1e9)
        return Slowest(seed, (), f"Their runs are not made again for the report, as they took {took}", example)
    rows: list[Row] = []
    for member in shown:
        flows = slowest(results, member, seed)
        if flows.is_empty():
            continue
        if int(flows["size_bytes"].sum()) > MAX_BYTES:
            sent = wording.size(int(flows["size_bytes"].sum()))
            return Slowest(seed, (), f"Their packets are not traced for the report, as they are {sent}", example)
        try:
            found = explain(results, flows["flow"].to_list(), scheme=member.case, seed=seed, look=lambda _: True)
        except BadInput as error:  # such as runs of another version
            sentence = str(error).splitlines()[0]
            return Slowest(seed, (), sentence[0].upper() + sentence[1:], example)
        rows += [
            Row(
                case=member.case,
                flow=row["flow"],
                workload=row["workload"],
                ends=f"{row['source']} to {row['destination']}",
                size=wording.size(row["size_bytes"]),
                fct=wording.number(row["fct_ns"] / 1e6),
                slowdown=wording.number(row["slowdown"]),
                why=found.why(row["flow"]),
            )
            for row in found.parts.iter_rows(named=True)
        ]
    return Slowest(seed, tuple(rows), "", example, len(members) - len(shown)) if rows else None
