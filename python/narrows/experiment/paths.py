"""Paths of a plan's network, by how far hosts are apart, with base RTT and BDP; and the buffers of its ports."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from narrows.experiment.summary import Summary


@dataclass(frozen=True)
class PathKind:
    """Paths of hosts that are equally far apart."""

    hosts: str
    """How far: `in a rack`, `in different racks`, `in different datacenters`, or `any two` where there is one rack."""
    example: tuple[str, str]
    """Two such hosts."""
    links: int
    """Of one way."""
    ways: int
    """Equally short ways of these two hosts that are alike."""
    rtt_ps: tuple[int, int]
    """Delays of links and stacks, both ways; nothing for serialisation and queues. Over the quickest and the slowest of
    the equally short paths back."""
    rate_bps: int
    """Of the slowest link of the way there."""
    loss: float
    """Share of data packets that links of the way there lose at random, 0 to 1; without queues, and before events."""
    ports: frozenset[tuple[str, int]]
    """Role and rate of each port of the way there."""

    @property
    def bdp_bytes(self) -> tuple[float, float]:
        """Bandwidth-delay product: rate times base RTT, of the least and the largest."""
        least, largest = (self.rate_bps * rtt / 8e12 for rtt in self.rtt_ps)
        return least, largest


@dataclass(frozen=True)
class Buffer:
    """What ports of a role and rate may hold."""

    role: str
    rate_bps: int
    ports: int
    size_bytes: int | None
    """IP bytes, packets being of the largest size; `None` if it is unlimited."""
    kind: str
    """`port`: the port's own limit; `shared`: what a pool grants one busy port; `input`: of a link into the switch."""

    @property
    def time_s(self) -> float | None:
        """Size over rate: how long a full buffer takes to leave."""
        return None if self.size_bytes is None else 8 * self.size_bytes / self.rate_bps

    def shares_of(self, path: PathKind) -> tuple[float, ...]:
        """Size over the path's BDP, the largest and the least.

        Nothing if the path has no such port, there is no limit, or the BDP is zero.
        """
        if self.size_bytes is None or (self.role, self.rate_bps) not in path.ports or not path.bdp_bytes[0]:
            return ()
        least, largest = path.bdp_bytes
        return tuple(dict.fromkeys((self.size_bytes / largest, self.size_bytes / least)))


@dataclass(frozen=True)
class Paths:
    """What paths a network has."""

    kinds: tuple[PathKind, ...]
    left_out: int
    """Kinds beyond those listed, whose base RTTs lie between those of others."""
    buffers: tuple[Buffer, ...]


def paths_of(summary: Summary) -> Paths:
    """Paths and buffers of a plan's network, from `plan.summary`."""
    told = summary["network"]["paths"]
    return Paths(
        kinds=tuple(
            PathKind(
                hosts=kind["hosts"],
                example=(kind["example"][0], kind["example"][1]),
                links=kind["links"],
                ways=kind["ways"],
                rtt_ps=(kind["base_rtt_ps"][0], kind["base_rtt_ps"][1]),
                rate_bps=kind["rate_bps"],
                loss=kind["loss"],
                ports=frozenset((role, rate) for role, rate in kind["ports"]),
            )
            for kind in told["kinds"]
        ),
        left_out=told["left_out"],
        buffers=tuple(Buffer(**buffer) for buffer in told["buffers"]),
    )
