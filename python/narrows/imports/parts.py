"""What files of other tools say, in the terms of an experiment."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from narrows.errors import bad_input
from narrows.imports.quantities import RATE_UNITS, TIME_UNITS, number, quantity

if TYPE_CHECKING:
    from collections.abc import Mapping
    from fractions import Fraction

    from narrows.imports.reading import Source

MAX_HOSTS: Final = 16_384
"""Hosts of a network (crates/narrows-plan)."""
MAX_TIME_PS: Final = 86_400 * 10**12
"""A day: the longest run."""
MAX_RATE_BPS: Final = 10**14
MAX_DELAY_PS: Final = 60 * 10**12
MAX_FLOW_BYTES: Final = 10**13


@dataclass(frozen=True)
class Network:
    """A topology as TOML, and how the file's numbers of nodes relate to its hosts."""

    source: Source | None
    """The file; `None` for a network that no file describes."""
    lines: tuple[str, ...]
    """`[topology.…]` and what belongs to it."""
    hosts: Mapping[int, str]
    """The file's number of each host, in the topology's order: its name."""
    notes: tuple[str, ...] = ()
    """Sentences about what was assumed or left out."""
    ports: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    """By the file's number of a node: its ports, `s1->n0`. Only where a file may name nodes to be watched."""


@dataclass(frozen=True)
class Flow:
    """One flow of a list."""

    source: int
    """The file's number of the sender."""
    destination: int
    start_ps: int
    size: int | None
    """Bytes; `None` for a flow that lasts until the run's end."""
    line: int


@dataclass(frozen=True)
class Flows:
    """A list of flows."""

    source: Source
    list: tuple[Flow, ...]
    nodes: int | None
    """How many hosts the file says that there are; `None` if it does not say."""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Nodes:
    """Numbers of nodes whose queues are to be observed."""

    source: Source
    numbers: tuple[int, ...]


@dataclass(frozen=True)
class Sizes:
    """A distribution of flow sizes: points of a cumulative distribution, linear between them."""

    source: Source
    points: tuple[tuple[int, Fraction], ...]
    """Bytes, and the share of flows that are at most so large; the last share is 1."""
    notes: tuple[str, ...] = ()

    @property
    def mean(self) -> Fraction:
        """Bytes. The first interval begins at size 0 and probability 0, as in TrafficGenerator's `cdf.c`."""
        mean, size, share = 0 * self.points[0][1], 0, 0 * self.points[0][1]
        for next_size, next_share in self.points:
            mean += (next_share - share) * (size + next_size) / 2
            size, share = next_size, next_share
        return mean


@dataclass(frozen=True)
class Requests:
    """A client that requests flows from servers at random times."""

    source: Source
    servers: tuple[str, ...]
    """Address and port of each."""
    sizes: str
    """Where the configuration says that the distribution of sizes is."""
    sizes_line: int
    load_bps: Fraction | None
    load_line: int
    count: int | None
    """How many requests; `None` if the file does not say."""
    classes: tuple[tuple[int, int], ...]
    """Each DSCP with its weight; none if the file has none."""


@dataclass(frozen=True)
class Schedule:
    """When a link may send: times of opportunities for one packet each, which repeat."""

    source: Source
    times_ms: tuple[int, ...]
    """Ascending; the last is also the time after which they repeat."""


Part = Network | Flows | Nodes | Sizes | Requests | Schedule


@dataclass(frozen=True)
class Options:
    """What the command is told because the files cannot say it. All are texts with units, or `None`."""

    start_unit: str | None = None
    """Unit of start times in htsim's connection matrices."""
    size_unit: str | None = None
    """Bytes of one unit of the sizes of a distribution: `1B`, `1460B`."""
    load: str | None = None
    """A share of the hosts' links, or the rate of a client's requests."""
    rate: str | None = None
    """Of links that no file describes."""
    end: str | None = None
    """When the run ends."""
    bin: str | None = None
    """Interval over which opportunities of a trace become a rate."""

    def start_scale(self) -> int | None:
        """Picoseconds in the unit of start times. Raises `BadInput`."""
        if self.start_unit is None:
            return None
        if self.start_unit not in TIME_UNITS:
            raise bad_input(f"--start-unit cannot be {self.start_unit}", f"choose from {', '.join(TIME_UNITS)}")
        return TIME_UNITS[self.start_unit]

    def size_scale(self) -> int | None:
        """Bytes in a unit of sizes. Raises `BadInput`."""
        return _positive("--size-unit", self.size_unit, {"B": 1}, "1B for sizes in bytes, 1460B for packets of 1460 B")

    def rate_bps(self) -> int | None:
        """Raises `BadInput`."""
        return _positive("--rate", self.rate, RATE_UNITS, "10Gbps", MAX_RATE_BPS)

    def end_ps(self) -> int | None:
        """Raises `BadInput`."""
        return _positive("--end", self.end, TIME_UNITS, "10s", MAX_TIME_PS)

    def bin_ms(self) -> int | None:
        """Raises `BadInput` if it is not whole milliseconds."""
        ps = _positive("--bin", self.bin, TIME_UNITS, "100ms", MAX_TIME_PS)
        if ps is None:
            return None
        if ps % TIME_UNITS["ms"]:
            raise bad_input(f"--bin {self.bin} is not whole milliseconds", "the times of a trace are; write 100ms")
        return ps // TIME_UNITS["ms"]

    def load_share(self) -> Fraction | None:
        """Raises `BadInput` if it is no share above 0 and at most 1."""
        if self.load is None:
            return None
        share = number(self.load)
        if share is None or not 0 < share <= 1:
            raise bad_input(f"--load cannot be {self.load} here", "write the share of the hosts' links, such as 0.3")
        return share

    def load_bps(self) -> Fraction | None:
        """Raises `BadInput` if it is no rate."""
        if self.load is None:
            return None
        load = quantity(self.load, RATE_UNITS)
        if not load:
            raise bad_input(f"--load cannot be {self.load} here", "write the rate of the requested data: 800Mbps")
        return load


def _positive(
    option: str, text: str | None, units: Mapping[str, int], example: str, most: int = MAX_FLOW_BYTES
) -> int | None:
    if text is None:
        return None
    value = quantity(text, units)
    if value is None or value.denominator != 1 or not 0 < value <= most:
        raise bad_input(f"{option} cannot be {text}", f"write it like {example}")
    return int(value)
