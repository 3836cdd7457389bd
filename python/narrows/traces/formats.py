"""A trace as files: pcapng, JSON text sequence, CSV, Parquet, Perfetto."""

from __future__ import annotations

import contextlib
import json
from typing import TYPE_CHECKING, Any, Final

from narrows import atomic
from narrows.errors import bad_input

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from narrows.traces.traced import Traced

_RECORD: Final = "\x1e"
"""What begins a record of a JSON text sequence [RFC 7464 §2.2]."""


def write_capture(traced: Traced, folder: Path, ports: Sequence[str]) -> list[Path]:
    """Packets at the ports, by default those of the hosts that send the flows' data: for Wireshark and tshark."""
    path = folder / "packets.pcapng"
    partial = path.with_name(f".{path.name}.partial")
    try:
        chosen = traced.known(ports or traced.own_ports)
        folder.mkdir(parents=True, exist_ok=True)
        traced.write_capture(partial, chosen)
        partial.replace(path)
    except OSError as error:
        raise bad_input(
            f"cannot write {path}: {error.strerror or error}", "choose another folder with --output"
        ) from error
    finally:
        with contextlib.suppress(OSError):
            partial.unlink()
    return [path]


def write_json(traced: Traced, folder: Path, _ports: Sequence[str]) -> list[Path]:
    """What senders were like after each event, as records of qlog's shape [draft-ietf-quic-qlog-main-schema]."""
    path = folder / "senders.sqlog"
    records = (_RECORD + json.dumps(record, ensure_ascii=False) + "\n" for record in _records(traced))
    atomic.write_text(path, "".join(records))
    return [path]


def _records(traced: Traced) -> Iterator[dict[str, Any]]:
    """A header, then an event for each look at a sender. Names are qlog's where it has them."""
    yield {
        "qlog_format": "JSON-SEQ",
        "qlog_version": "0.4",
        "title": f"{traced.case}, seed {traced.seed}",
        "trace": {"common_fields": {"time_format": "relative"}, "vantage_point": {"type": "client"}},
    }
    for row in traced.senders.iter_rows(named=True):
        values = {
            "congestion_window": row["window_packets"],
            "ssthresh": row["slow_start_threshold_packets"],
            "packets_in_flight": row["in_flight_packets"],
            "smoothed_rtt": _ms(row["srtt_ns"]),
            "min_rtt": _ms(row["min_rtt_ns"]),
            "pacing_rate": row["pacing_bps"],
            "narrows_near_source_rate": row["near_source_bps"],
            "narrows_retransmission_timeout": _ms(row["rto_ns"]),
            "narrows_phase": row["phase"],
            "narrows_acknowledged_bytes": row["acknowledged_bytes"],
            "narrows_sent_bytes": row["sent_bytes"],
            "narrows_waits_for": row["waits_for"],
            "narrows_event": row["event"],
        }
        yield {
            "time": row["time_ns"] / 1e6,
            "name": "recovery:metrics_updated",
            "group_id": f"flow {row['flow']} at {row['node']}",
            "data": {key: value for key, value in values.items() if value is not None},
        }


def _ms(value_ns: int | None) -> float | None:
    return None if value_ns is None else value_ns / 1e6


def write_csv(traced: Traced, folder: Path, _ports: Sequence[str]) -> list[Path]:
    """Every table of the trace."""
    paths = []
    for name, table in traced.tables.items():
        path = folder / f"{name}.csv"
        atomic.write_text(path, table.write_csv())
        paths.append(path)
    return paths


def write_parquet(traced: Traced, folder: Path, _ports: Sequence[str]) -> list[Path]:
    """Every table of the trace."""
    from io import BytesIO

    paths = []
    for name, table in traced.tables.items():
        content = BytesIO()
        table.write_parquet(content, compression="zstd", compression_level=3)
        path = folder / f"{name}.parquet"
        atomic.write_bytes(path, content.getvalue())
        paths.append(path)
    return paths


def write_perfetto(traced: Traced, folder: Path, _ports: Sequence[str]) -> list[Path]:
    """Flows, their senders, ports and pauses as tracks: for ui.perfetto.dev, which works without a server."""
    from narrows.traces import perfetto

    path = folder / "trace.perfetto"
    atomic.write_bytes(path, perfetto.encoded(traced))
    return [path]


FORMATS: Final[dict[str, Callable[[Traced, Path, Sequence[str]], list[Path]]]] = {
    "pcapng": write_capture,
    "json-seq": write_json,
    "csv": write_csv,
    "parquet": write_parquet,
    "perfetto": write_perfetto,
}
"""By name, what writes it and says which files it wrote."""
