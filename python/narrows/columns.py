"""Every column of every table: type, unit and meaning, stated once. Files, tests and `docs/results.md` follow it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import polars as pl

if TYPE_CHECKING:
    from narrows.native import TableName


@dataclass(frozen=True)
class Column:
    """One column."""

    name: str
    dtype: type[pl.DataType]
    unit: str
    """`–` for names and numbers without a dimension."""
    meaning: str
    nullable: bool = False


@dataclass(frozen=True)
class Table:
    """One file of a run."""

    name: TableName
    row: str
    """What one row is."""
    columns: tuple[Column, ...]

    @property
    def schema(self) -> dict[str, type[pl.DataType]]:
        """Column names to types, in order."""
        return {column.name: column.dtype for column in self.columns}


_U32, _U64, _F64, _STR, _BOOL = pl.UInt32, pl.UInt64, pl.Float64, pl.String, pl.Boolean

FLOWS: Final = Table(
    "flows",
    "One flow: one transfer of a known size, or one that goes on until it is stopped.",
    (
        Column("flow", _U32, "–", "Number of the flow within its run, in the order of its start."),
        Column("connection", _U32, "–", "The connection that carried it; persistent ones carry many flows."),
        Column(
            "request", _U32, "–", "The request (row of `requests`) it answers, if it is part of one.", nullable=True
        ),
        Column("source", _STR, "–", "Node that sends the flow's bytes."),
        Column("destination", _STR, "–", "Node that receives them."),
        Column("class", _STR, "–", "`intra`: both ends in one datacenter; `inter`: the flow crosses the WAN."),
        Column("workload", _STR, "–", "Name of the traffic entry that it belongs to."),
        Column("controller", _STR, "–", "Congestion controller of the sender."),
        Column(
            "size_bytes", _U64, "bytes", "Application bytes to deliver; for a flow without a size, those delivered."
        ),
        Column("start_ns", _U64, "ns", "Simulated time at which its first byte was offered, or its request sent."),
        Column(
            "fct_ns",
            _U64,
            "ns",
            "Flow completion time: from `start_ns` to the last byte delivered in order. Null if unfinished.",
            nullable=True,
        ),
        Column(
            "ideal_fct_ns",
            _U64,
            "ns",
            "The same transfer on an empty network: store-and-forward, framing, request leg included.",
        ),
        Column("slowdown", _F64, "–", "`fct_ns / ideal_fct_ns`, at least 1. Null if unfinished.", nullable=True),
        Column(
            "rtt_mean_ns", _U64, "ns", "Mean of the sender's round-trip samples. Null if it took none.", nullable=True
        ),
        Column("retransmitted_bytes", _U64, "bytes", "Application bytes that were sent again."),
        Column("timeouts", _U32, "–", "Retransmission timeouts that fired during the flow."),
        Column(
            "handshake_ns",
            _U64,
            "ns",
            "From `start_ns` until its connection was established. Null of a connection that was open already, "
            "and if it never was.",
            nullable=True,
        ),
        Column(
            "syn_retransmits",
            _U32,
            "–",
            "SYNs of its connection that were retransmitted during the flow. Null in a live run if the connection"
            " was not established.",
            nullable=True,
        ),
        Column(
            "rto_wait_ns",
            _U64,
            "ns",
            "How long the retransmission timers had run that expired during the flow: the sender's, and the "
            "opener's of its SYN and request. One may expire after the last byte, where an acknowledgement was "
            "lost. Null in a live run: no kernel tells.",
            nullable=True,
        ),
        Column(
            "first_byte_ns",
            _U64,
            "ns",
            "From `start_ns` until its first byte was at the destination. Null if none came.",
            nullable=True,
        ),
        Column(
            "marked_bytes", _U64, "bytes", "Payload bytes that arrived with a congestion mark, duplicates included."
        ),
        Column(
            "dropped_bytes",
            _U64,
            "bytes",
            "Payload of the flow, or of its request, in packets that the network dropped, each as often as it was. "
            "Null in a live run.",
            nullable=True,
        ),
        Column(
            "near_source_cuts",
            _U64,
            "–",
            "Notifications of congested switches near by that its sender took, each a cut of its near-source rate.",
        ),
        Column(
            "delivered_after_warmup_bytes",
            _U64,
            "bytes",
            "Payload delivered in order between the end of the warm-up and the end of arrivals (`end`).",
        ),
        Column("finished", _BOOL, "–", "Whether the last byte was delivered before the run stopped."),
    ),
)

PORTS: Final = Table(
    "ports",
    "One port, that is one direction of a link. Counters cover `measured_ns`; the warm-up is not in them. Of a link "
    "with a `bridge`, what goes ahead of its queue is not in them either: repairs, and what the routers tell each "
    "other, which `bridges.parquet` counts.",
    (
        Column("port", _U32, "–", "Index of the link in the plan."),
        Column("name", _STR, "–", "`from->to`."),
        Column("node", _STR, "–", "Node that the port belongs to."),
        Column(
            "role",
            _STR,
            "–",
            "`host`: a host's own port; `edge`: a switch's port towards a host; `fabric`: between its switches; "
            "`wan`: between datacenters.",
        ),
        Column("sent_packets", _U64, "packets", "Packets transmitted, of every kind."),
        Column("sent_bytes", _U64, "bytes", "IP bytes transmitted; framing is not counted."),
        Column("dropped_packets", _U64, "packets", "Packets refused: the sum of the three reasons that follow."),
        Column("dropped_limit_packets", _U64, "packets", "Refused because the port's own limit was reached."),
        Column("dropped_pool_packets", _U64, "packets", "Refused by the switch's shared memory."),
        Column("dropped_aqm_packets", _U64, "packets", "Refused by the marking law."),
        Column(
            "lost_on_wire_packets",
            _U64,
            "packets",
            "Lost on the wire after the port, where the experiment asks for it.",
        ),
        Column("marked_packets", _U64, "packets", "Packets that left with a congestion mark set here."),
        Column(
            "congestion_samples",
            _U64,
            "–",
            "Samples of the port's congestion point that told of congestion; senders in its scope were notified.",
        ),
        Column("queue_mean_bytes", _F64, "bytes", "Backlog, IP bytes, weighted by time; the packet in service counts."),
        Column(
            "queue_p50_bytes",
            _U64,
            "bytes",
            "Backlog that half of the samples do not exceed. Null where the port is not sampled.",
            nullable=True,
        ),
        Column(
            "queue_p99_bytes",
            _U64,
            "bytes",
            "Backlog that 99 % of the samples do not exceed. Null where the port is not sampled.",
            nullable=True,
        ),
        Column("queue_max_bytes", _U64, "bytes", "Largest backlog."),
        Column("rate_bps", _U64, "bit/s", "Line rate."),
        Column("utilisation", _F64, "–", "Wire bits sent, framing included, over `rate_bps × measured_ns`: 0 to 1."),
        Column("measured_ns", _U64, "ns", "Length of the time that the counters cover."),
    ),
)

SERIES: Final = Table(
    "series",
    "One sample. The table is long: `quantity` says what `value` is.",
    (
        Column("time_ns", _U64, "ns", "Simulated time of the sample; for rates, the end of the bin."),
        Column("entity", _STR, "–", "What was sampled: a port's name, or a flow."),
        Column(
            "quantity",
            _STR,
            "–",
            "`queue_bytes` (backlog of a port), `window_packets` (congestion window), "
            "`pacing_bps` (IP bits, of senders that pace), `near_source_bps` (IP bits, of senders that a switch near "
            "by holds), `goodput_bps` (of a bin), `sent_bps` (IP bits that left a port in a bin).",
        ),
        Column("value", _F64, "see quantity", "The value, in the unit that ends the quantity's name."),
    ),
)

REQUESTS: Final = Table(
    "requests",
    "One request of a client that asks several servers and waits for all of them.",
    (
        Column("request", _U32, "–", "Number of the request within its run."),
        Column("client", _STR, "–", "Node that asked."),
        Column("start_ns", _U64, "ns", "Simulated time at which the client asked."),
        Column(
            "completion_ns",
            _U64,
            "ns",
            "From `start_ns` to the last byte of the last response. Null if unfinished.",
            nullable=True,
        ),
        Column("responses", _U32, "–", "Answers received."),
        Column("timeouts", _U32, "–", "Retransmission timeouts on any of its flows."),
    ),
)

BRIDGES: Final = Table(
    "bridges",
    "One end of a bridge between two routers, over the whole run. Without bridges there is none. Of a direction of "
    "traffic, what its near edge does (marked, repaired) stands in the row of the link that it sends over; what its "
    "far edge does (received, held, holes) in the row of the way back.",
    (
        Column("bridge", _STR, "–", "The link that it sends over, `from->to`."),
        Column("node", _STR, "–", "The router that it is."),
        Column("data_packets", _U64, "packets", "With data, from its own site."),
        Column("marked_packets", _U64, "packets", "Of these, those that may be lost: a copy was kept."),
        Column("marked_bytes", _U64, "bytes", "Their IP bytes, as they came."),
        Column("unmarked_store_full_packets", _U64, "packets", "Chosen and not marked: no room for a copy."),
        Column(
            "unmarked_far_silent_packets", _U64, "packets", "Chosen and not marked: the other end was not heard of."
        ),
        Column(
            "unmarked_severe_packets",
            _U64,
            "packets",
            "Chosen and not marked: most of the last thousand marked ones were lost.",
        ),
        Column("fast_repairs", _U64, "packets", "Sent again as later ones were acknowledged."),
        Column("late_repairs", _U64, "packets", "Sent again as their time was over."),
        Column("needless_repairs", _U64, "packets", "Of both, those whose first try arrived."),
        Column("repaired_packets", _U64, "packets", "Marked packets of which a repair arrived first."),
        Column("given_up_packets", _U64, "packets", "Marked packets that were never acknowledged."),
        Column("store_max_bytes", _U64, "bytes", "Most bytes of copies at once."),
        Column("sessions", _U64, "–", "How often the two ends agreed on a session; 1 where neither fell silent."),
        Column("round_trip_ns", _U64, "ns", "Smoothed round trip to the other end when the run ended."),
        Column("received_marked_packets", _U64, "packets", "Marked packets from the other end, each once."),
        Column("duplicate_packets", _U64, "packets", "Marked packets from there that had come before: dropped."),
        Column("cleared_marks", _U64, "packets", "Congestion marks taken off packets of hosts without ECN."),
        Column("held_packets", _U64, "packets", "Held back as one before them was missing."),
        Column("held_max_bytes", _U64, "bytes", "Most bytes held back at once."),
        Column("filled_holes", _U64, "–", "Holes that were filled while they were hidden."),
        Column("late_holes", _U64, "–", "Holes that the host was shown when their time was over."),
        Column("plain_holes", _U64, "–", "Holes that the host was shown as nobody would fill them."),
        Column("overflows", _U64, "–", "Times that a connection's held packets were let go for want of room."),
        Column("hushed_packets", _U64, "packets", "Duplicate acknowledgements from the other end, not passed on."),
    ),
)

TABLES: Final[dict[TableName, Table]] = {table.name: table for table in (FLOWS, REQUESTS, PORTS, SERIES, BRIDGES)}


def conform(name: TableName, frame: pl.DataFrame) -> pl.DataFrame:
    """The frame with exactly the stated columns and types, in order. Anything else, or a stray null, is a defect."""
    table = TABLES[name]
    missing = [column for column in table.schema if column not in frame.columns]
    unknown = [column for column in frame.columns if column not in table.schema]
    if missing or unknown:
        raise AssertionError(f"table {name} disagrees with columns.py: missing {missing}, not described {unknown}")
    holes = [column.name for column in table.columns if not column.nullable and frame[column.name].null_count()]
    if holes:
        raise AssertionError(f"table {name} disagrees with columns.py: null in {holes}")
    return frame.select(pl.col(column.name).cast(column.dtype) for column in table.columns)


def document() -> str:
    """The reference of all columns, as it stands in `docs/results.md` after its introduction."""
    lines: list[str] = []
    for table in TABLES.values():
        lines += [
            f"## `{table.name}.parquet`",
            "",
            table.row,
            "",
            "| column | type | unit | meaning |",
            "|---|---|---|---|",
        ]
        for column in table.columns:
            kind = str(column.dtype()) + (", nullable" if column.nullable else "")
            lines.append(f"| `{column.name}` | {kind} | {column.unit} | {column.meaning} |")
        lines.append("")
    return "\n".join(lines)


def main() -> None:
    """Writes the reference into `docs/results.md` of the working directory: `python -m narrows.columns`."""
    path = Path("docs/results.md")
    introduction, heading, _ = path.read_text().partition(f"## `{FLOWS.name}.parquet`")
    path.write_text(introduction + (document() if heading else "\n" + document()))


if __name__ == "__main__":
    main()
