"""What a connection saw between two decisions of an agent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from narrows._native import Ack, Path


@dataclass(frozen=True)
class Interval:
    """The time between two decisions, and what was acknowledged in it."""

    end: float
    """When it ended, simulated seconds."""
    length: float
    """Seconds; more than 0."""
    acked: int
    """Packets delivered."""
    marked: int
    """Packets whose congestion mark was reported; 0 unless the class has `needs_ecn`."""
    lost: int
    """Packets declared lost, at a timeout all that was in flight."""
    timeouts: int
    """Expiries of the retransmission timer."""
    rtt: float | None
    """Mean of the RTTs measured, seconds; `None` if there was none, as when all that arrived had been retransmitted."""
    srtt: float | None
    """Smoothed RTT at its end, seconds; `None` before the first RTT."""
    min_rtt: float | None
    """Minimum RTT of the connection, seconds; `None` before the first."""
    window: float
    """The congestion window at its end, packets."""
    in_flight: int
    """Packets in the network at its end."""
    packet: int
    """Size of a full packet, bytes."""
    line_rate: int
    """Of the host, bit/s."""

    @property
    def rate(self) -> float:
        """Delivered bits of IP packets per second."""
        return self.acked * self.packet * 8 / self.length

    @property
    def rtt_ratio(self) -> float:
        """Mean RTT, or the smoothed one where the interval has none, over minimum RTT; 1 before the first."""
        rtt = self.rtt or self.srtt
        return rtt / self.min_rtt if rtt and self.min_rtt else 1.0

    @property
    def loss(self) -> float:
        """Packets declared lost, of those delivered or lost; from 0 to 1."""
        return self.lost / max(self.acked + self.lost, 1)


class Counting:
    """An interval under way."""

    def __init__(self, start: float) -> None:
        self.start = start
        self.acked = self.marked = self.lost = self.timeouts = 0
        self._rtt_sum, self._rtts = 0.0, 0

    def add(self, ack: Ack) -> None:
        """Counts what an acknowledgement tells."""
        self.acked += ack.acked
        self.marked += ack.marked
        self.lost += ack.lost
        if ack.rtt is not None:
            self._rtt_sum += ack.rtt
            self._rtts += 1

    def close(self, window: float, path: Path) -> Interval:
        """The interval that ends now."""
        return Interval(
            end=path.now,
            length=path.now - self.start,
            acked=self.acked,
            marked=self.marked,
            lost=self.lost,
            timeouts=self.timeouts,
            rtt=self._rtt_sum / self._rtts if self._rtts else None,
            srtt=path.srtt,
            min_rtt=path.min_rtt,
            window=float(window),
            in_flight=path.in_flight,
            packet=path.packet,
            line_rate=path.line_rate,
        )
