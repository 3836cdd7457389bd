"""Priority flow control: how long ports were paused, which of them most, and what was dropped all the same."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from narrows import wording
from narrows.figures import style
from narrows.measures.stats import estimate
from narrows.report.headline import Cell, cell
from narrows.report.losses import MAX_PORTS, Line, Shade, reasons

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from narrows.experiment.summary import Network
    from narrows.results import Results

_KINDS: Final = {"host": "hosts", "edge": "towards hosts", "fabric": "fabric", "wan": "WAN"}
_REVERSE: Final = {"host": "edge", "edge": "host", "fabric": "fabric", "wan": "wan"}
"""The kind of port at the other end of a link, which sends the frames that pause this one."""
_MAX_NAMED: Final = 3


@dataclass(frozen=True)
class Row:
    """Ports of one kind in one case, those with flow control."""

    case: str
    kind: str
    ports: int
    paused: int
    """Of these ports those that were paused at least once, in any seed."""
    share: Cell
    """% of the time, mean over these ports."""
    most: str
    """% of the time that the most paused one was."""
    most_port: str
    longest: str
    """Microseconds."""
    longest_port: str
    frames: Cell
    """Sent to these ports, of a run."""


@dataclass(frozen=True)
class Dropped:
    """What ports dropped that pauses guard, all seeds together."""

    case: str
    packets: int
    ports: str


@dataclass(frozen=True)
class Pauses:
    """What there is to say of flow control, of the cases that have it."""

    rows: tuple[Row, ...]
    quiet: tuple[tuple[str, int], ...]
    """Cases in which nobody was paused, with the number of their ports that could have been."""
    charted: tuple[str, ...]
    """Those of the cases that the table by port has."""
    lines: tuple[Line, ...]
    paused_ports: int
    """Ports that were paused, shown or not."""
    drops: tuple[Dropped, ...]


def table(results: Results, charted: Sequence[str], networks: Mapping[str, Network]) -> Pauses | None:
    """Ports that can be paused; `None` where there is none.

    The table by port is of the `charted` cases. `networks` are by plan; cases whose network is not known are left out.
    """
    every = results.frames.ports
    if "longest_pause_ns" not in every.columns:  # of a version without flow control
        return None
    links = _links(results, networks)
    ports = every.join(links, on=["case", "port"], maintain_order="left").with_columns(
        pl.col("pausable", "guarded").fill_null(value=False)
    )
    own = ports.filter("pausable")
    if own.is_empty():
        return None
    paused = own.group_by("case", maintain_order=True).agg(pl.col("paused_ns").sum() > 0, pl.col("port").n_unique())
    moved = [case for case, is_paused, _ in paused.iter_rows() if is_paused]
    by_port = _by_port(own)
    shown = tuple(case for case in charted if case in moved)
    lines, paused_ports = _lines(by_port.filter(pl.col("case").is_in(shown)), shown)
    return Pauses(
        rows=tuple(_rows(own.filter(pl.col("case").is_in(moved)), by_port, every)),
        quiet=tuple((case, count) for case, is_paused, count in paused.iter_rows() if not is_paused),
        charted=shown,
        lines=lines,
        paused_ports=paused_ports,
        drops=tuple(_drops(ports.filter("guarded"))),
    )


def _links(results: Results, networks: Mapping[str, Network]) -> pl.DataFrame:
    """By case and port: whether its far end may pause it, and whether pauses guard it against drops."""
    plans = {member.case: member.plan_case for member in results.entry.members}
    own = {case: networks[plans[case]] for case in results.frames.cases if plans[case] in networks}
    found = [
        (case, port, port in pausable, port in guarded)
        for case, network in own.items()
        for pausable, guarded in [(set(network["pausable"]), set(network["guarded"]))]
        for port in sorted(pausable | guarded)
    ]
    schema = {"case": pl.String, "port": pl.UInt32, "pausable": pl.Boolean, "guarded": pl.Boolean}
    return pl.DataFrame(found, schema=schema, orient="row")


def _share() -> pl.Expr:
    """% of the time, over all rows of a group."""
    return (100 * pl.col("paused_ns").sum() / pl.col("measured_ns").sum()).alias("share")


def _by_port(own: pl.DataFrame) -> pl.DataFrame:
    """All seeds of a port together."""
    return own.group_by("case", "role", "name", maintain_order=True).agg(
        _share(), pl.col("paused_ns", "measured_ns").sum(), pl.col("longest_pause_ns").max()
    )


def _rows(own: pl.DataFrame, by_port: pl.DataFrame, every: pl.DataFrame) -> list[Row]:
    """By case and kind."""
    by_kind = by_port.partition_by("case", "role", as_dict=True)
    shares = own.group_by("case", "role", "seed", maintain_order=True).agg(_share())
    sent = every.group_by("case", pl.col("role").replace(_REVERSE), "seed").agg(pl.col("pause_frames").sum())
    runs = (
        shares.join(sent, on=["case", "role", "seed"], maintain_order="left")
        .group_by("case", "role", maintain_order=True).agg("share", "pause_frames")
    )  # fmt: skip
    made = []
    for case, role, share, frames in runs.iter_rows():
        ports = by_kind[case, role]
        most = ports.sort("share", descending=True, maintain_order=True).row(0, named=True)
        longest = ports.sort("longest_pause_ns", descending=True, maintain_order=True).row(0, named=True)
        made.append(
            Row(
                case=case,
                kind=_KINDS[role],
                ports=len(ports),
                paused=int((ports["paused_ns"] > 0).sum()),
                share=_cell(share),
                most=wording.number(most["share"]),
                most_port=style.port(most["name"]) if most["paused_ns"] else "",
                longest=wording.number(longest["longest_pause_ns"] / 1e3),
                longest_port=style.port(longest["name"]) if longest["longest_pause_ns"] else "",
                frames=_cell(frames),
            )
        )
    return made


def _cell(values: Sequence[float]) -> Cell:
    found = estimate(values)
    assert found is not None
    return cell(found)


def _lines(by_port: pl.DataFrame, cases: Sequence[str]) -> tuple[tuple[Line, ...], int]:
    """The ports that were paused longest, of all cases together."""
    totals = (
        by_port.group_by("name", "role").agg(pl.col("paused_ns").sum()).filter(pl.col("paused_ns") > 0)
        .sort(["paused_ns", "name"], descending=[True, False])
    )  # fmt: skip
    top = max(by_port["share"].to_list(), default=0.0)
    cells = {(row["case"], row["name"]): row for row in by_port.iter_rows(named=True)}
    lines = tuple(
        Line(style.port(name), role, tuple(_shade(cells.get((case, name)), top) for case in cases))
        for name, role in totals.head(MAX_PORTS).select("name", "role").iter_rows()
    )
    return lines, len(totals)


def _shade(row: Mapping[str, Any] | None, top: float) -> Shade:
    if row is None:
        return Shade("–", "without flow control", 0)
    measured = wording.duration(row["measured_ns"] / 1e9)
    details = f"paused for {wording.milliseconds(row['paused_ns'] / 1e6)} of {measured}"
    details += f", at most {wording.number(row['longest_pause_ns'] / 1e3)} µs without a break"
    return Shade(wording.number(row["share"]), details, round(100 * (row["share"] / top) ** 0.5))


def _drops(guarded: pl.DataFrame) -> list[Dropped]:
    """By case, with the ports that dropped most."""
    columns = [name for name in guarded.columns if name.startswith("dropped_")]
    ports = (
        guarded.group_by("case", "name", maintain_order=True).agg(pl.col(columns).sum())
        .filter(pl.col("dropped_packets") > 0)
    )  # fmt: skip
    made = []
    for (case,), own in ports.group_by("case", maintain_order=True):
        first = own.sort(["dropped_packets", "name"], descending=[True, False]).head(_MAX_NAMED)
        named = [f"{style.port(row['name'])} ({reasons(row)})" for row in first.iter_rows(named=True)]
        left = len(own) - len(named)
        text = "; ".join(named) + (f"; and {wording.plural(left, 'more port')}" if left else "")
        made.append(Dropped(str(case), int(own["dropped_packets"].sum()), text))
    return made
