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
    "CPU ns\nper hop",
    "holds\nper hop",
    "reads\nper hop",
    "must",
    "aim,\nholds",
    "instructions\nper hop",
    "peak,\nMiB",
)

MORE: Final = (
    "workload",
    "packet-hops",
    "events\nper hop",
    "simulated s\nper CPU s",
    "wall s\nper CPU s",
    "spread of\nthe runs, %",
)

THREADS: Final = (
    "workload",
    "threads",
    "wall s on\none thread",
    "wall s on\nthese",
    "times\nas fast",
    "least and most\nwall s on these",
)

PEERS: Final = (
    "workload",
    "time",
    "Narrows,\nns/hop",
    "ns-3,\nns/hop",
    "ns-3 /\nNarrows",
    "Narrows,\n10⁶ hops",
    "ns-3,\n10⁶ hops",
    "Narrows,\nMiB",
    "ns-3,\nMiB",
)

GATE: Final = (
    "workload",
    "instructions per\nhop, accepted",
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
            wording.number(record["reads_per_packet_hop"]),
            f"{record['must']} {_met(record)}",
            wording.number(record["aim_holds"]),
            _whole(record["instructions_per_packet_hop"]),
            wording.number(record["peak_rss_mib"]),
        ]
        for record in records
    ]


_MET: Final = {True: "✓", False: "✗", None: "?"}
"""Whether a goal is met; `None` where the machine was busy."""


def _met(record: Mapping[str, Any]) -> str:
    return "≈" if record["must_within_runs"] and not record["noise"] else _MET[record["meets_must"]]


def goals(records: Sequence[Mapping[str, Any]]) -> str:
    """Sentences: how many goals are met, which are not, and by how much. What a busy machine measured is not judged."""
    judged = [record for record in records if not record["noise"]]
    if not judged:
        return "No goal is judged."
    met = sum(record["meets_must"] is True for record in judged)
    missed = [f"{record['workload']} ({_cost(record)})" for record in judged if record["meets_must"] is False]
    within = [record["workload"] for record in judged if record["must_within_runs"]]
    said = f"Of {wording.plural(len(judged), '`must` goal')} {met or 'none'} {'are' if met > 1 else 'is'} met"
    said += f"; missed: {', '.join(missed)}." if missed else "."
    return said + (f" Some runs meet it and others do not (≈): {', '.join(within)}." if within else "")


def _cost(record: Mapping[str, Any]) -> str:
    unit = "holds" if record["must_reads"] is None else "reads"
    return f"{wording.number(record[f'{unit}_per_packet_hop'])} of {record['must']}"


def more(records: Sequence[Mapping[str, Any]]) -> Rows:
    """One row per workload: what is not of the first interest."""
    return [
        [
            record["workload"],
            wording.whole(record["packet_hops"]),
            f"{record['events_per_packet_hop']:.3f}",
            wording.number(record["simulated_seconds_per_cpu_second"]),
            f"{record['wall_seconds_per_cpu_second']:.3f}",
            f"{100 * record['spread']:.1f}",
        ]
        for record in records
    ]


def threads(records: Sequence[Mapping[str, Any]]) -> Rows:
    """One row per workload that was run on several threads."""
    return [
        [
            record["workload"],
            str(record["threads"]),
            wording.number(record["wall_seconds"]),
            wording.number(record["wall_seconds"] / record["speedup"]),
            wording.number(record["speedup"]) + (" ?" if record["noise"] else ""),
            " to ".join(wording.number(edge(record["wall_seconds_on_threads"])) for edge in (min, max)),
        ]
        for record in records
        if record["speedup"] is not None
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
            f"{record['packet_hops'] / 1e6:.2f}",
            f"{record['peer_packet_hops'] / 1e6:.2f}",
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
