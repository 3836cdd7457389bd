"""A trace for Perfetto's viewer: tracks of flows, senders and ports."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import polars as pl

from narrows.errors import EnvironmentLacks

if TYPE_CHECKING:
    from collections.abc import Iterator

    from narrows.traces.traced import Traced

_SEQUENCE: Final = 1
"""All packets of the file are of one writer."""
_COUNTERS: Final = (
    ("window_packets", "congestion window (packets)"),
    ("in_flight_packets", "in flight (packets)"),
    ("srtt_ns", "smoothed RTT (ns)"),
    ("pacing_bps", "pacing rate (bit/s)"),
    ("near_source_bps", "near-source rate (bit/s)"),
)


def encoded(traced: Traced) -> bytes:
    """The trace in Perfetto's own format. Raises `EnvironmentLacks` without the package `perfetto`."""
    try:
        from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace, TrackEvent
    except ImportError as missing:
        raise EnvironmentLacks(
            "the package perfetto is not installed\n  help: pip install 'narrows[perfetto]', or choose another --format"
        ) from missing
    return _Tracks(Trace(), TrackEvent).of(traced)


class _Tracks:
    """Builds the file: descriptors of tracks, then their events."""

    def __init__(self, trace: Any, kinds: Any) -> None:
        self._trace = trace
        self._kinds = kinds
        self._last = 0

    def of(self, traced: Traced) -> bytes:
        for flow, start_ns, source, destination in traced.flows.select(
            "flow", "start_ns", "source", "destination"
        ).iter_rows():
            parent = self._track(f"flow {flow}: {source} to {destination}")
            self._slices(self._track("waits for", parent), _stretches(traced, flow, start_ns, "reason"))
            self._slices(self._track("where", parent), _stretches(traced, flow, start_ns, "place"))
            own = traced.senders.filter(pl.col("flow") == flow)
            for column, name in _COUNTERS:
                changes = own.select("time_ns", column).drop_nulls()
                if not changes.is_empty():
                    self._counts(self._track(name, parent, counter=True), changes.iter_rows())
        for port in traced.ports:
            parent = self._track(f"port {port}")
            self._counts(self._track("bytes of the flows there", parent, counter=True), _held(traced, port))
            pauses = traced.pauses.filter(pl.col("port") == port)
            if not pauses.is_empty():
                self._slices(self._track("paused", parent), _paused(pauses))
        return bytes(self._trace.SerializeToString())

    def _track(self, name: str, parent: int = 0, *, counter: bool = False) -> int:
        self._last += 1
        packet = self._trace.packet.add(trusted_packet_sequence_id=_SEQUENCE)
        if self._last == 1:
            packet.first_packet_on_sequence = True
            packet.sequence_flags = 1  # SEQ_INCREMENTAL_STATE_CLEARED
        track = packet.track_descriptor
        track.uuid, track.name = self._last, name
        if parent:
            track.parent_uuid = parent
        if counter:
            track.counter.SetInParent()
        return self._last

    def _event(self, time_ns: int, track: int, kind: int) -> Any:
        packet = self._trace.packet.add(timestamp=time_ns, trusted_packet_sequence_id=_SEQUENCE)
        packet.track_event.track_uuid = track
        packet.track_event.type = kind
        return packet.track_event

    def _slices(self, track: int, slices: Iterator[tuple[int, int, str]]) -> None:
        for from_ns, until_ns, name in slices:
            self._event(from_ns, track, self._kinds.TYPE_SLICE_BEGIN).name = name
            self._event(until_ns, track, self._kinds.TYPE_SLICE_END)

    def _counts(self, track: int, changes: Iterator[tuple[int, float]]) -> None:
        for time_ns, value in changes:
            self._event(time_ns, track, self._kinds.TYPE_COUNTER).counter_value = int(value)


def _stretches(traced: Traced, flow: int, start_ns: int, column: str) -> Iterator[tuple[int, int, str]]:
    """Times of the same, one after the other, as one."""
    rows = traced.times.filter(pl.col("flow") == flow).sort("from_ns")
    last: tuple[int, int, str] | None = None
    for from_ns, until_ns, what, port in rows.select("from_ns", "until_ns", column, "port").iter_rows():
        name = f"{what} {port}" if column == "place" and port else what
        if last is not None and last[2] == name and last[1] == from_ns:
            last = (last[0], until_ns, name)
            continue
        if last is not None:
            yield start_ns + last[0], start_ns + last[1], last[2]
        last = (from_ns, until_ns, name)
    if last is not None:
        yield start_ns + last[0], start_ns + last[1], last[2]


def _held(traced: Traced, port: str) -> Iterator[tuple[int, int]]:
    """Bytes of the traced flows that wait at a port, after each change."""
    hops = traced.hops.filter((pl.col("port") == port) & (pl.col("arrived_ns").is_not_null()))
    came = hops.select(time_ns="offered_ns", change=pl.col("ip_bytes").cast(pl.Int64))
    left = hops.select(time_ns=pl.col("offered_ns") + pl.col("waited_ns"), change=-pl.col("ip_bytes").cast(pl.Int64))
    changes = pl.concat([came, left]).group_by("time_ns").agg(pl.col("change").sum()).sort("time_ns")
    return changes.select("time_ns", pl.col("change").cum_sum()).iter_rows()


def _paused(pauses: pl.DataFrame) -> Iterator[tuple[int, int, str]]:
    """Times for which a port was paused."""
    rows = pauses.sort("time_ns").select("time_ns", "for_ns", "priorities").rows()
    for (time_ns, for_ns, priorities), after in zip(rows, [*rows[1:], None], strict=True):
        until = time_ns + for_ns if after is None else min(time_ns + for_ns, after[0])
        if priorities:
            yield time_ns, until, f"priorities {priorities:#010b}"
