"""Topologies of the HPCC simulator and its successors (`topology.txt`).

Facts from `simulation/scratch/third.cc` of High-Precision-Congestion-Control: the first line has the numbers of nodes,
switches and links, the second the switches' numbers, and then each link has a line `source destination rate delay
error-rate`, of both directions; rate and delay have ns-3's units, the error rate is of packets. What follows the links
is not read.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from narrows.imports.parts import MAX_DELAY_PS, MAX_HOSTS, MAX_RATE_BPS, Network
from narrows.imports.quantities import BYTE_RATE_UNITS, RATE_UNITS, TIME_UNITS, number, quantity, rate_text, time_text
from narrows.imports.reading import quoted

if TYPE_CHECKING:
    from collections.abc import Iterable

    from narrows.imports.parts import Options
    from narrows.imports.reading import Line, Source

FORMAT: Final = "HPCC topology"
_LINE: Final = "write it like `0 320 100Gbps 1000ns 0.000000`"
_LIMIT: Final = "100pkt"
"""Buffer of a port: the default of `graph`."""

_Values = tuple[int, int, str]
"""Rate in bit/s, delay in ps, share of packets lost."""


@dataclass(frozen=True)
class _Link:
    one: int
    other: int
    values: _Values
    line: Line


def is_it(source: Source) -> bool:
    """Three numbers, and later lines of five columns."""
    first, *rest = source.lines
    numbers = len(first.words) == 3 and all(word.isdecimal() for word in first.words)
    return numbers and (not rest or any(len(line.words) == 5 for line in rest[:64]))


def parse(source: Source, _options: Options) -> Network:
    """Reads a topology. Raises `BadInput`."""
    first, *rest = source.lines
    if len(first.words) != 3:
        raise source.refuse(
            first, "the first line has no three numbers", "write nodes, switches and links: `376 56 480`"
        )
    counts = ("the number of nodes", "of switches", "of links")
    nodes, switch_count, link_count = (
        source.whole(first, word, what) for word, what in zip(first.words, counts, strict=True)
    )
    if not 0 < nodes - switch_count <= MAX_HOSTS:
        raise source.refuse(first, f"{nodes - switch_count} of {nodes} nodes are hosts", f"there are 1 to {MAX_HOSTS}")
    second = rest[0] if rest else first
    switches = [source.whole(second, word, "a switch") for word in second.words] if rest else []
    if len(switches) != switch_count or len(set(switches)) != len(switches) or max(switches, default=0) >= nodes:
        raise source.refuse(
            second,
            f"{len(switches)} switches are named, and {switch_count} are announced",
            f"write {switch_count} different numbers below {nodes}",
        )
    listed = rest[1:]
    if link_count > len(listed):
        raise source.refuse(first, f"{link_count} links are announced and {len(listed)} lines follow", "correct it")
    links = [_link(source, line, nodes) for line in listed[:link_count]]
    left = len(listed) - link_count
    return _network(source, set(switches), nodes, links, left_out=left)


def _link(source: Source, line: Line, nodes: int) -> _Link:
    if len(line.words) != 5:
        raise source.refuse(line, f"{len(line.words)} columns, not 5", _LINE)
    one, other = (source.whole(line, word, "a node") for word in line.words[:2])
    if one == other or max(one, other) >= nodes:
        raise source.refuse(line, f"a link from {one} to {other}", f"nodes are two different numbers below {nodes}")
    rate = quantity(line.words[2], RATE_UNITS | BYTE_RATE_UNITS)
    if rate is None or rate.denominator != 1 or not 0 < rate <= MAX_RATE_BPS:
        bare = "; ns-3 reads a number without a unit as bit/s" if number(line.words[2]) is not None else ""
        raise source.refuse(line, f"{quoted(line.words[2])} is no rate", f"write it with its unit: 100Gbps{bare}")
    delay = quantity(line.words[3], TIME_UNITS)
    if delay is None or delay.denominator != 1 or delay > MAX_DELAY_PS:
        bare = "; ns-3 reads a number without a unit as seconds" if number(line.words[3]) is not None else ""
        raise source.refuse(line, f"{quoted(line.words[3])} is no delay", f"write it with its unit: 1000ns{bare}")
    loss = number(line.words[4])
    if loss is None or loss > 1:
        raise source.refuse(
            line, f"{quoted(line.words[4])} is no error rate", "write a share of packets, such as 0.001"
        )
    return _Link(one, other, (int(rate), int(delay), f"{float(loss):.12f}".rstrip("0").rstrip(".")), line)


def _network(source: Source, switches: set[int], nodes: int, links: list[_Link], *, left_out: int) -> Network:
    homes: dict[int, tuple[int, _Link]] = {}
    between: dict[frozenset[int], _Link] = {}
    for link in links:
        ends = [end for end in (link.one, link.other) if end not in switches]
        if len(ends) == 2:
            raise source.refuse(
                link.line, f"a link between the hosts {link.one} and {link.other}", "put a switch between"
            )
        if ends:
            if ends[0] in homes:
                raise source.refuse(
                    link.line,
                    f"a second link of host {ends[0]}, which is on line {homes[ends[0]][1].line.number}, too",
                    "a host has one link here",
                )
            homes[ends[0]] = (link.other if link.one == ends[0] else link.one, link)
        else:
            pair = frozenset((link.one, link.other))
            if pair in between:
                raise source.refuse(
                    link.line,
                    f"a second link between {link.one} and {link.other}",
                    "HPCC uses one of them only: remove the other, or write it into the experiment",
                )
            between[pair] = link
    for host in (host for host in range(nodes) if host not in switches and host not in homes):
        raise source.refuse(1, f"node {host} has no link", "correct the numbers of nodes and links, or add its link")
    usual_edge = _usual(link for _, link in homes.values())
    usual_fabric = _usual(between.values())
    racks = {home: rack for rack, home in enumerate(sorted({home for home, _ in homes.values()}), 1)}
    hosts = {host: f"n{host}" for host in sorted(homes)}
    lines = (
        "[topology.graph]",
        f'fabric = {{ {_class(usual_fabric)}, limit = "{_LIMIT}" }}',
        f"edge = {{ {_class(usual_edge)} }}",
        "switches = [",
        *(
            f'    {{ name = "s{switch}"' + (f", rack = {racks[switch]}" if switch in racks else "") + " },"
            for switch in sorted(switches)
        ),
        "]",
        "hosts = [",
        *(
            f'    {{ name = "n{host}", switch = "s{home}"{_different("link", link.values, usual_edge)} }},'
            for host, (home, link) in sorted(homes.items())
        ),
        "]",
        "links = [",
        *(
            f'    {{ ends = ["s{link.one}", "s{link.other}"]{_different("both", link.values, usual_fabric)} }},'
            for link in between.values()
        ),
        "]",
    )
    notes = [
        f"{source.name}: node i of the file is host ni or switch si; a switch with hosts is a rack.",
        f"Buffers of ports are {_LIMIT}, the default here: HPCC states them, ECN and pauses in another file.",
    ]
    if left_out:
        notes.append(f"What follows the first {len(links)} links ({left_out} lines) is left out, as HPCC does.")
    ports: dict[int, list[str]] = {node: [] for node in range(nodes)}
    named = {node: f"s{node}" if node in switches else f"n{node}" for node in range(nodes)}
    for link in links:
        ports[link.one].append(f"{named[link.one]}->{named[link.other]}")
        ports[link.other].append(f"{named[link.other]}->{named[link.one]}")
    return Network(source, lines, hosts, tuple(notes), {node: tuple(own) for node, own in ports.items()})


def _usual(links: Iterable[_Link]) -> _Values:
    """What most links have; the defaults of `graph` where there are none."""
    counted = Counter(link.values for link in links).most_common(1)
    return counted[0][0] if counted else (10**9, 5 * 10**6, "0")


def _class(values: _Values) -> str:
    return ", ".join(f"{key} = {value}" for key, value in _keys(values) if (key, value) != ("loss", "0"))


def _different(table: str, values: _Values, usual: _Values) -> str:
    """`, link = { rate = "25Gbps" }`: what is not as in most links."""
    own = [(key, value) for key, value in _keys(values) if (key, value) not in _keys(usual)]
    return f", {table} = {{ {', '.join(f'{key} = {value}' for key, value in own)} }}" if own else ""


def _keys(values: _Values) -> tuple[tuple[str, str], ...]:
    rate, delay, loss = values
    return ("rate", f'"{rate_text(rate)}"'), ("delay", f'"{time_text(delay)}"'), ("loss", loss)
