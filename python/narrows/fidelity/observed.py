"""What one world measured of one scheme, all its seeds together: the numbers to compare with the other world's."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import polars as pl

from narrows.measures.bottleneck import PACKET_BYTES, watched

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

FEWEST_COMPLETIONS: Final = 20
"""Of all seeds together, for a 99th percentile."""

PAYLOAD_BYTES: Final = 1448
"""Of a full packet of 1500 B with timestamps."""

FlowName = tuple[int, str, str, str, int]
"""Seed, traffic, source, destination, size: what a flow is called in both worlds, whose numbers may differ."""


@dataclass(frozen=True)
class Runs:
    """The runs of one scheme in one world, of the seeds that are compared."""

    flows: pl.DataFrame
    """Every flow, with `sized`: whether it has a size, and `counted`: whether it began after the warm-up."""
    requests: pl.DataFrame
    """Those that began after the warm-up."""
    ports: pl.DataFrame
    measured_ns: int
    """From the end of the warm-up to the end of the arrivals."""

    @property
    def seeds(self) -> tuple[int, ...]:
        """Every seed."""
        return tuple(sorted(self.ports["seed"].unique().to_list()))

    def of(self, seeds: Sequence[int]) -> Runs:
        """Those of some seeds."""
        own = pl.col("seed").is_in(list(seeds))
        flows, requests, ports = (part.filter(own) for part in (self.flows, self.requests, self.ports))
        return Runs(flows, requests, ports, self.measured_ns)


@dataclass(frozen=True)
class Observed:
    """The numbers. Where nothing else is said, the mean over seeds."""

    goodput_mbps: float
    queue_ms: float | None
    """Median backlog of the bottleneck's port, as time at its rate."""
    queue_packets: float | None
    """The same in packets of 1500 B."""
    fct_p99_ms: float | None
    """Of all seeds together."""
    completions: int
    """How many flows, or requests, it is of."""
    finished: Counter[FlowName]
    """Flows with a size that finished, those of the warm-up too, all seeds."""
    drops: float
    lost: float
    """Packets: dropped by ports, and lost on the wire."""
    marks: float
    """Packets."""
    retransmissions: float
    """Packets of `PAYLOAD_BYTES`, those of the warm-up too."""
    shares: dict[str, float]
    """Of the goodput, by kind of traffic; empty where there is one, or no goodput."""


def bottleneck(runs: Runs) -> str | None:
    """The port to look at: of those that are sampled the one that is used most. Asked of the simulator's runs."""
    return watched(runs.ports)


def packet_ms(runs: Runs, port: str | None) -> float:
    """How long a packet of 1500 B takes at the port, ms; nothing where there is no port."""
    rates = runs.ports.filter(pl.col("name") == port)["rate_bps"]
    return 0.0 if rates.is_empty() else 8e3 * PACKET_BYTES / float(rates[0])


def asks_several(runs: Runs) -> bool:
    """Whether requests wait for several responses, so that their completion counts and not that of each flow."""
    return bool((runs.requests["responses"] > 1).any())


def observe(runs: Runs, *, port: str | None, of_requests: bool) -> Observed:
    """The numbers, with the median queue of `port` and the completion of requests or of flows with a size."""
    count = len(runs.seeds)
    own = runs.ports.filter((pl.col("name") == port) & pl.col("queue_p50_bytes").is_not_null())
    queues = [(backlog, rate) for backlog, rate in own.select("queue_p50_bytes", "rate_bps").iter_rows()]
    if of_requests:
        times = runs.requests["completion_ns"].drop_nulls()
    else:
        completed = runs.flows.filter(pl.col("sized") & pl.col("counted") & pl.col("finished"))
        times = completed["fct_ns"].drop_nulls()
    names = runs.flows.filter(pl.col("sized") & pl.col("finished"))
    return Observed(
        goodput_mbps=8e3 * _total(runs.flows, "delivered_after_warmup_bytes") / runs.measured_ns / count,
        queue_ms=_mean(8e3 * backlog / rate for backlog, rate in queues),
        queue_packets=_mean(backlog / PACKET_BYTES for backlog, _ in queues),
        fct_p99_ms=_p99(times.to_list()),
        completions=len(times),
        finished=Counter(names.select("seed", "workload", "source", "destination", "size_bytes").iter_rows()),
        drops=_total(runs.ports, "dropped_packets") / count,
        lost=_total(runs.ports, "lost_on_wire_packets") / count,
        marks=_total(runs.ports, "marked_packets") / count,
        retransmissions=_total(runs.flows, "retransmitted_bytes") / count / PAYLOAD_BYTES,
        shares=_shares(runs.flows),
    )


def _shares(flows: pl.DataFrame) -> dict[str, float]:
    """Of all seeds together."""
    delivered = flows.group_by("workload").agg(pl.col("delivered_after_warmup_bytes").cast(pl.Int64).sum())
    by_kind = dict(delivered.sort("workload").iter_rows())
    total = sum(by_kind.values())
    return {kind: count / total for kind, count in by_kind.items()} if total and len(by_kind) > 1 else {}


def _total(frame: pl.DataFrame, column: str) -> int:
    return int(frame[column].cast(pl.Int64).sum())


def _mean(values: Iterable[float]) -> float | None:
    found = list(values)
    return math.fsum(found) / len(found) if found else None


def _p99(times_ns: list[int]) -> float | None:
    """The ⌈0.99·n⌉-th smallest, ms: the largest of fewer than 100."""
    if len(times_ns) < FEWEST_COMPLETIONS:
        return None
    return sorted(times_ns)[-(-99 * len(times_ns) // 100) - 1] / 1e6
