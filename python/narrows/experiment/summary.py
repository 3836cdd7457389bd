"""Types of a plan's summary: what the native module tells of a plan in numbers and words."""

from __future__ import annotations

from typing import TypedDict


class BaseRtt(TypedDict):
    """RTT of hosts when nothing queues."""

    hosts: str
    """How far they are apart: `in a rack`, `in different racks`, `in different datacenters`, or `any two`."""
    least_ns: int
    largest_ns: int


class Links(TypedDict):
    """Links of a role that are alike; values as an experiment writes them."""

    role: str
    """`host`, `edge`, `fabric` or `wan`."""
    links: int
    """How many, each direction counted."""
    rate: str
    delay: str
    buffer: str
    aqm: str
    scheduler: str
    telemetry: str
    flow_control: str
    bridge: str
    """Of the edge pair; empty without one, as all of these."""


class PathKind(TypedDict):
    """Paths of hosts that are equally far apart."""

    hosts: str
    example: tuple[str, str]
    links: int
    ways: int
    base_rtt_ps: tuple[int, int]
    rate_bps: int
    loss: float
    ports: list[tuple[str, int]]


class Buffer(TypedDict):
    """What ports of a role and rate may hold."""

    role: str
    rate_bps: int
    ports: int
    size_bytes: int | None
    kind: str


class Paths(TypedDict):
    """Paths and buffers of a network."""

    kinds: list[PathKind]
    left_out: int
    buffers: list[Buffer]


class Network(TypedDict):
    """A plan's network."""

    nodes: str
    base_rtts: list[BaseRtt]
    paths: Paths
    mtu: int
    """The largest IP packet, bytes."""
    routing: str
    """Empty for ECMP."""
    profiles: list[str]
    links: list[Links]
    pausable: list[int]
    """Positions of links whose near ends may be paused."""
    guarded: list[int]
    """Positions of links at whose near ends pauses are to keep packets from being dropped."""


class Traffic(TypedDict):
    """A kind of traffic."""

    name: str
    controller: str
    sizes: str | None
    mean_size_bytes: float | None
    flows_per_second: float | None
    flows: float
    counted: float | None


class RoleLoad(TypedDict):
    """Offered load of the ports of a role, relative to their rates."""

    role: str
    ports: int
    mean_load: float
    max_load: float
    busiest: str
    """A port with the largest."""


class Bottleneck(TypedDict):
    """A link that will be busy."""

    link: str
    load: float
    long_flows: float


class Settling(TypedDict):
    """Where unfinished work takes longest to settle."""

    link: str
    load: float
    correlation_seconds: float | None
    filled: float
    spread: float


class Summary(TypedDict):
    """A plan in numbers."""

    hosts: int
    switches: int
    links: int
    network: Network
    traffic: list[Traffic]
    roles: list[RoleLoad]
    bottlenecks: list[Bottleneck]
    settling: Settling | None
    functions: list[str]
    events: list[str]
    packets: float
    packet_hops: float
    work: float
    memory: int
    """Bytes."""
    cpu_time: int
    """Picoseconds."""


class LongFlow(TypedDict):
    """A flow that a plan gives no size."""

    workload: str
    """Name of its traffic."""
    source: str
    destination: str
    from_ns: int
    """When it begins at the earliest."""
    to_ns: int
    """When it begins at the latest."""
    stop_ns: int | None
    """When it is stopped; `None`: at the run's end."""
    base_rtt_ns: int
