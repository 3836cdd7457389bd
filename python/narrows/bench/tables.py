"""The figures as tables: for a terminal, and for a page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from rich.table import Table

from narrows import wording

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from narrows.bench.gate import Judged

Rows = list[list[str]]

# A line break is where a terminal's heading breaks.
COSTS: Final = (
    "workload",
    "CPU ns per\npacket-hop",
    "holds per\npacket-hop",
    "must,\nholds",
    "aim,\nholds",
    "instructions\nper packet-hop",
    "events per\npacket-hop",
    "packet-hops",
    "peak,\nMiB",
    "simulated s\nper CPU s",
)

PEERS: Final = (
    "workload",
    "simulated",
    "Narrows, ns\nper packet-hop",
    "ns-3, ns\nper packet-hop",
    "ns-3 /\nNarrows",
    "Narrows,\npacket-hops",
    "ns-3,\npacket-hops",
    "Narrows,\npeak MiB",
    "ns-3,\npeak MiB",
)

GATE: Final = (
    "workload",
    "accepted, instructions\nper packet-hop",
    "counted",
    "excess",
    "above the\nleast ever",
    "verdict",
)


def costs(records: Sequence[Mapping[str, Any]]) -> Rows:
    """One row per workload."""
    return [
        [
            record["workload"],
            wording.number(record["ns_per_packet_hop"]),
            wording.number(record["holds_per_packet_hop"]),
            f"{wording.number(record['must_holds'])} {'✓' if record['meets_must'] else '✗'}",
            wording.number(record["aim_holds"]),
            _whole(record["instructions_per_packet_hop"]),
            f"{record['events_per_packet_hop']:.3f}",
            wording.whole(record["packet_hops"]),
            wording.number(record["peak_rss_mib"]),
            wording.number(record["simulated_seconds_per_cpu_second"]),
        ]
        for record in records
    ]


def peers(records: Sequence[Mapping[str, Any]]) -> Rows:
    """One row per workload."""
    return [
        [
            record["workload"],
            wording.duration(record["simulated_us"] / 1e6),
            wording.number(record["ns_per_packet_hop"]),
            wording.whole(record["peer_ns_per_packet_hop"]),
            wording.whole(record["ratio"]),
            wording.whole(record["packet_hops"]),
            wording.whole(record["peer_packet_hops"]),
            wording.number(record["peak_rss_mib"]),
            wording.number(record["peer_peak_rss_mib"]),
        ]
        for record in records
    ]


def gate(judged: Sequence[Judged]) -> Rows:
    """One row per workload."""
    return [
        [
            each.workload,
            f"{each.accepted:.1f}",
            f"{each.counted:.1f}",
            f"{round(100 * each.excess, 1) + 0.0:+} %",
            f"{round(100 * each.creep, 1) + 0.0:+} %",
            each.verdict,
        ]
        for each in judged
    ]


def _whole(value: float | None) -> str:
    return "–" if value is None else wording.whole(value)


def rich(header: Sequence[str], rows: Rows) -> Table:
    """For a terminal."""
    table = Table(box=None, pad_edge=False)
    for index, name in enumerate(header):
        table.add_column(name, justify="right" if index else "left")
    for row in rows:
        table.add_row(*row)
    return table


def markdown(header: Sequence[str], rows: Rows) -> str:
    """For a page."""
    rule = ["---", *["---:"] * (len(header) - 1)]
    names = [name.replace("\n", " ") for name in header]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (names, rule, *rows))
