"""Where the time of flows went: reasons and places, which add up to the completion time."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final

import polars as pl

from narrows import wording
from narrows.errors import bad_input
from narrows.tables import Tabular
from narrows.traces.traced import member_called, trace

if TYPE_CHECKING:
    from collections.abc import Sequence

    from narrows.results import Results
    from narrows.runs.index import Member
    from narrows.traces.traced import Look, Traced

SLOWEST: Final = 10
"""Flows that are explained where none is named."""
REASONS: Final = (
    "handshake", "request", "application", "window", "receive-window", "pacing", "near-source", "host-port", "adapter",
    "retransmission", "timeout", "probe-timeout", "delivery", "unknown",
)  # fmt: skip
"""What a flow's last byte waited for, in the order of columns."""
PLACES: Final = ("wire", "queue", "pause", "event", "edge-pair", "receive-queue", "receiver", "sender")
"""Where that time went, in the order of columns."""
_COLUMNS: Final = {"slowdown": "slowdown", "fct": "fct_ns"}
"""What flows are slow by."""


@dataclass(frozen=True, repr=False)
class Explanation(Tabular):
    """Where the time of some flows of a run went."""

    case: str
    seed: int
    flows: pl.DataFrame
    """Rows of `flows` of those that are explained, slowest first."""
    times: pl.DataFrame
    """The stretches, as `narrows.columns` says."""
    drops: pl.DataFrame
    """Packets with data that each port dropped or its wire lost: `flow`, `port`, `packets`, most first."""
    lost_syns: pl.DataFrame
    """The same of SYNs and SYN-ACKs."""

    @classmethod
    def of(cls, traced: Traced, by: str = "slowdown") -> Explanation:
        """Of the flows that were traced and have finished."""
        finished = traced.flows.filter(pl.col("finished")).sort(_COLUMNS[by], "flow", descending=[True, False])
        lost = traced.hops.filter(pl.col("dropped"))
        syn = pl.col("flags").cast(pl.String).str.split("|").list.contains("SYN")
        tables = (_by_port(lost.filter(which)) for which in (pl.col("payload_bytes") > 0, syn))
        return cls(traced.case, traced.seed, finished, traced.times, *tables)

    @cached_property
    def parts(self) -> pl.DataFrame:
        """One row for each flow: `fct_ns`, then its parts by reason (`window_ns`), then by place (`in_queue_ns`).

        Those of reasons add up to `fct_ns`, and so do those of places. `queue_port` is the port in whose queue most of
        the time went, `queue_port_ns` how much. `drop_port` is the port at which most of its packets were dropped or
        lost on the wire, `drop_port_packets` how many, and `dropped_packets` how many were anywhere.
        """
        lasting = self.times.with_columns(ns=pl.col("until_ns") - pl.col("from_ns"))
        found = self.flows.select("flow", "workload", "source", "destination", "size_bytes", "fct_ns", "slowdown")
        for column, names, prefix in (("reason", REASONS, ""), ("place", PLACES, "in_")):
            for name in names:
                part = lasting.filter(pl.col(column) == name).group_by("flow").agg(pl.col("ns").sum())
                found = found.join(part, on="flow", how="left", maintain_order="left").rename(
                    {"ns": f"{prefix}{name.replace('-', '_')}_ns"}
                )
        waited = (
            lasting.filter(pl.col("place") == "queue")
            .group_by("flow", "port")
            .agg(queue_port_ns=pl.col("ns").sum())
            .sort("queue_port_ns", "port", descending=[True, False])
            .unique("flow", keep="first", maintain_order=True)
            .rename({"port": "queue_port"})
        )
        found = found.join(waited, on="flow", how="left", maintain_order="left")
        most = self.drops.unique("flow", keep="first", maintain_order=True)
        all_of = self.drops.group_by("flow").agg(dropped_packets=pl.col("packets").sum().cast(pl.UInt64))
        found = found.join(
            most.select("flow", drop_port="port", drop_port_packets=pl.col("packets").cast(pl.UInt64)),
            on="flow", how="left", maintain_order="left",
        ).join(all_of, on="flow", how="left", maintain_order="left")  # fmt: skip
        return found.with_columns(pl.col(pl.UInt64).fill_null(0))

    @property
    def heading(self) -> str:
        """What the table is of."""
        return f"{self.case}, seed {self.seed}: where the time of {wording.plural(self.flows.height, 'flow')} went"

    @property
    def table(self) -> pl.DataFrame:
        """Each flow with its largest parts, ms."""
        return pl.DataFrame(
            {
                "flow": self.parts["flow"],
                "workload": self.parts["workload"],
                "size": [wording.size(size) for size in self.parts["size_bytes"]],
                "fct_ms": self.parts["fct_ns"] / 1e6,
                "slowdown": self.parts["slowdown"],
                "why": [self.why(flow) for flow in self.parts["flow"]],
            }
        )

    def why(self, flow: int) -> str:
        """What took at least a tenth of a flow's time, the queue that took most of it, and where packets were lost."""
        row = self.parts.row(by_predicate=pl.col("flow") == flow, named=True)
        fct_ns = max(row["fct_ns"], 1)
        shares = [(row[f"{reason.replace('-', '_')}_ns"] / fct_ns, reason) for reason in REASONS]
        told = [f"{reason} {share:.0%}" for share, reason in sorted(shares, reverse=True) if share >= 0.1]
        places = [
            (row[f"in_{place.replace('-', '_')}_ns"] / fct_ns, place)
            for place in PLACES
            if place not in {"wire", "sender"}
        ]
        names = {"queue": "in queues", "pause": "paused", "event": "by events at links", "edge-pair": "in edge pairs",
                 "receive-queue": "in receive queues", "receiver": "at receivers"}  # fmt: skip
        spent = [f"{share:.0%} {names[place]}" for share, place in sorted(places, reverse=True) if share >= 0.05]
        if (share := row["queue_port_ns"] / fct_ns) >= 0.05:
            spent.append(f"{share:.0%} at {row['queue_port']} alone")
        if row["drop_port"] is not None:
            few, total = row["drop_port_packets"], row["dropped_packets"]
            at = f" at {row['drop_port']}"
            lost = f"{wording.plural(total, 'packet')} with data dropped or lost"
            spent.append(lost + (at if few == total else f", {few}{at}"))
        for port, packets in self.lost_syns.filter(pl.col("flow") == flow).select("port", "packets").iter_rows():
            spent.append(f"{wording.plural(packets, 'SYN or SYN-ACK')} dropped or lost at {port}")
        return ", ".join(told) + (f"; {', '.join(spent)}" if spent else "")

    def path_of(self, flow: int) -> pl.DataFrame:
        """Time of one flow by `reason`, `place` and `port`, ns and share, the most first."""
        own = self.times.filter(pl.col("flow") == flow).with_columns(ns=pl.col("until_ns") - pl.col("from_ns"))
        total = max(int(own["ns"].sum()), 1)
        summed = own.group_by("reason", "place", "port").agg(pl.col("ns").sum(), times=pl.len())
        return summed.sort("ns", "reason", "place", "port", descending=[True, False, False, False]).with_columns(
            share=pl.col("ns") / total
        )


def _by_port(lost: pl.DataFrame) -> pl.DataFrame:
    """How many of these packets each port dropped or its wire lost, by flow, most first."""
    counted = lost.group_by("flow", "port").agg(packets=pl.len())
    return counted.sort("flow", "packets", "port", descending=[False, True, False])


def slowest(results: Results, member: Member, seed: int, by: str = "slowdown") -> pl.DataFrame:
    """Rows of `flows` of the ten slowest that finished and started after the warm-up, slowest first."""
    column = _COLUMNS[by]
    finished = results.table_of(member, seed, "flows").filter(
        pl.col("finished") & (pl.col("start_ns") >= member.warmup_ns)
    )
    return finished.sort(column, "flow", descending=[True, False]).head(SLOWEST).collect()


def explain(
    results: Results,
    flows: Sequence[int] | None = None,
    *,
    scheme: str | None = None,
    seed: int | None = None,
    by: str = "slowdown",
    look: Look,
) -> Explanation:
    """Where the time of flows went: of those that are named, or of the ten slowest that started after the warm-up.

    The run is made again with a trace. `by` says what the slowest are: by `slowdown` or `fct`; the other arguments and
    what is raised are those of `trace`.
    """
    if by not in _COLUMNS:
        raise bad_input(f"flows are not slow by {by!r}", f"choose {' or '.join(_COLUMNS)}")
    member = member_called(results, scheme)
    seed = results.entry.seeds[0] if seed is None else seed
    if seed not in results.entry.seeds:
        raise bad_input(
            f"'{results.entry.identifier}' has no seed {seed}",
            f"there are: {', '.join(map(str, results.entry.seeds))}",
        )
    if flows is None:
        flows = slowest(results, member, seed, by)["flow"].to_list()
        if not flows:
            begun = results.table_of(member, seed, "flows").select(pl.len()).collect().item()
            if 0 < begun == results.long.filter(case=member.case, seed=seed).height:
                raise bad_input(
                    f"no flow of {member.case} that began has a size: none has a completion time to explain",
                    "`narrows trace` shows where the packets of a flow without a size wait",
                )
            raise bad_input(
                f"no flow of {member.case} has finished that started after the warm-up",
                "name a flow with --flow, or run longer",
            )
    found = Explanation.of(trace(results, flows, scheme=member.case, seed=seed, look=look), by)
    if found.flows.is_empty():
        raise bad_input(
            f"flow {flows[0]} did not finish: it has no completion time to explain",
            "choose a flow whose column `finished` is true; `narrows trace` shows one that did not",
        )
    return found
