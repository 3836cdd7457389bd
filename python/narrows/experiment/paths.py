"""Paths of a plan's network, by how far hosts are apart, with base RTT and BDP; and the buffers of its ports."""

from __future__ import annotations

import itertools
from collections import defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

MAX_PATHS: Final = 8
"""Kinds of paths that are listed."""
_MAX_TARGETS: Final = 16
"""Switches with hosts, or hosts of a switch that differ in their link, to which paths are followed."""
KINDS: Final = ("in a rack", "in different racks", "in different datacenters")
_ROLES: Final = ("host", "edge", "fabric", "wan")
_MTU: Final = 1500
"""Largest packet of a network that states none, bytes."""
_ALPHA_ONE: Final = 65_536
"""Alpha of a pool is in units of 2⁻¹⁶."""
_CERTAIN: Final = 1 << 32
"""Probabilities are in units of 2⁻³²."""


@dataclass(frozen=True)
class PathKind:
    """Paths of hosts that are equally far apart."""

    hosts: str
    """How far: one of `KINDS`, or `any two` where there is one rack."""
    example: tuple[str, str]
    """Two such hosts."""
    links: int
    """Of one way."""
    rtt_ps: int
    """Delays of links and stacks, both ways; nothing for serialisation and queues."""
    rate_bps: int
    """Of the slowest link of the way there."""
    loss: float
    """Share of data packets that links of the way there lose at random, 0 to 1; without queues, and before events."""
    ports: frozenset[tuple[str, int]]
    """Role and rate of each port of the way there."""

    @property
    def bdp_bytes(self) -> float:
        """Bandwidth-delay product: rate times base RTT."""
        return self.rate_bps * self.rtt_ps / 8e12


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

    def share_of(self, path: PathKind) -> float | None:
        """Size over the path's BDP; `None` if the path has no such port, there is no limit, or the BDP is zero."""
        if self.size_bytes is None or (self.role, self.rate_bps) not in path.ports or not path.bdp_bytes:
            return None
        return self.size_bytes / path.bdp_bytes


@dataclass(frozen=True)
class Paths:
    """What paths a network has."""

    kinds: tuple[PathKind, ...]
    left_out: int
    """Kinds beyond `MAX_PATHS`, whose base RTTs lie between those of others."""
    buffers: tuple[Buffer, ...]


@dataclass(frozen=True)
class _Way:
    """To a switch: the quickest of the paths with the fewest links."""

    delay_ps: int
    rate_bps: int
    links: int
    kept: float
    """Share of packets that no link loses."""
    ports: frozenset[tuple[str, int]]

    def after(self, link: Mapping[str, Any]) -> _Way:
        """The way with this link before or behind it."""
        rate_bps = min(self.rate_bps, link["rate"])
        kept = self.kept * (1 - _loss(link))
        ports = self.ports | {(link["role"], link["rate"])}
        return _Way(self.delay_ps + link["delay"], rate_bps, self.links + 1, kept, ports)


_HERE: Final = _Way(0, 1 << 62, 0, 1.0, frozenset())


def _loss(link: Mapping[str, Any]) -> float:
    """Share of data packets that a link loses at random, in the long run."""
    kept: float = 1 - link["loss"] / _CERTAIN
    for function in link.get("functions", ()):
        if (chain := function.get("gilbert-elliott")) is not None:
            often = chain["r"] * chain["loss-good"] + chain["p"] * chain["loss-bad"]
            kept *= 1 - often / (chain["p"] + chain["r"]) / _CERTAIN
    return 1 - kept


@dataclass(frozen=True)
class _Group:
    """Hosts on one switch whose links are alike."""

    switch: int
    site: int
    rack: int
    up: Mapping[str, Any]
    down: Mapping[str, Any]
    names: tuple[str, ...]
    """Of the first two."""


def paths_of(network: Mapping[str, Any]) -> Paths:
    """Paths and buffers of a plan's network, `plan.body["network"]`."""
    found = _kinds(network)
    kinds, left_out = _bounded(sorted(found, key=lambda kind: (KINDS.index(kind.hosts), kind.rtt_ps, kind.rate_bps)))
    racks = {(node["site"], node["rack"]) for node in network["nodes"] if node["kind"] == "host"}
    if len(racks) == 1:
        kinds = tuple(replace(kind, hosts="any two") for kind in kinds)
    return Paths(kinds, left_out, _buffers(network))


def _kinds(network: Mapping[str, Any]) -> list[PathKind]:
    """One for each distance, base RTT, bottleneck and loss that there is."""
    groups = _groups(network)
    out: dict[int, list[Mapping[str, Any]]] = defaultdict(list)
    into: dict[int, list[Mapping[str, Any]]] = defaultdict(list)
    for link in network["links"]:
        if link["role"] in {"fabric", "wan"}:
            out[link["from"]].append(link)
            into[link["to"]].append(link)
    targets = _spread(groups)
    ways = {switch: _ways_to(switch, out, into) for switch in {group.switch for group in targets}}
    found: dict[tuple[Any, ...], PathKind] = {}
    for one, other in itertools.product(targets, targets):
        if (one is other and len(one.names) < 2) or other.switch not in ways[one.switch]:
            continue
        there, back = _between(one, other, ways), _between(other, one, ways)
        hosts = KINDS[2] if one.site != other.site else KINDS[int(one.rack != other.rack)]
        rtt = there.delay_ps + back.delay_ps
        example = (one.names[0], other.names[-1 if one is other else 0])
        loss = round(1 - there.kept, 12)  # whatever the order of its links
        kind = PathKind(hosts, example, there.links, rtt, there.rate_bps, loss, there.ports)
        known = found.setdefault((hosts, rtt, there.rate_bps, loss), kind)
        if not kind.ports <= known.ports:
            found[hosts, rtt, there.rate_bps, loss] = replace(known, ports=known.ports | kind.ports)
    return list(found.values())


def _between(one: _Group, other: _Group, ways: Mapping[int, Mapping[int, _Way]]) -> _Way:
    """From a host of one group to one of another."""
    return ways[other.switch][one.switch].after(one.up).after(other.down)


def _groups(network: Mapping[str, Any]) -> list[_Group]:
    nodes = network["nodes"]
    down = {link["to"]: link for link in network["links"] if link["role"] == "edge"}
    members: dict[tuple[Any, ...], list[int]] = defaultdict(list)
    up = {link["from"]: link for link in network["links"] if link["role"] == "host"}
    for host, link in up.items():
        back = down[host]
        node = nodes[host]
        both = ((way["delay"], way["rate"], _loss(way)) for way in (link, back))
        key = (link["to"], node["site"], node["rack"], *both)
        members[key].append(host)
    return [
        _Group(key[0], key[1], key[2], up[own[0]], down[own[0]], tuple(nodes[host]["name"] for host in own[:2]))
        for key, own in members.items()
    ]


def _spread(groups: Sequence[_Group]) -> list[_Group]:
    """All of few; of many the first, the last and some between, and of each site some."""
    if len(groups) <= _MAX_TARGETS:
        return list(groups)
    last = len(groups) - 1
    near = _MAX_TARGETS // 2
    places = {*range(near), *(round(place * last / near) for place in range(near + 1))}
    return [groups[place] for place in sorted(places)]


def _ways_to(
    target: int, out: Mapping[int, list[Mapping[str, Any]]], into: Mapping[int, list[Mapping[str, Any]]]
) -> dict[int, _Way]:
    """From every switch that has one: paths have the fewest links, as the simulator's, and of these the least delay."""
    ways = {target: _HERE}
    ring = [target]
    while ring:
        further = dict.fromkeys(
            link["from"] for switch in ring for link in into.get(switch, ()) if link["from"] not in ways
        )
        nearer = set(ring)
        ways |= {
            switch: min(
                (ways[link["to"]].after(link) for link in out[switch] if link["to"] in nearer),
                key=lambda way: (way.delay_ps, -way.rate_bps),
            )
            for switch in further
        }
        ring = list(further)
    return ways


def _bounded(kinds: Sequence[PathKind]) -> tuple[tuple[PathKind, ...], int]:
    """All of few; of many, for each distance those with the least and the largest base RTTs."""
    if len(kinds) <= MAX_PATHS:
        return tuple(kinds), 0
    kept: list[PathKind] = []
    distances = [hosts for hosts in KINDS if any(kind.hosts == hosts for kind in kinds)]
    room = max(2, MAX_PATHS // len(distances))
    for hosts in distances:
        own = [kind for kind in kinds if kind.hosts == hosts]
        kept += own if len(own) <= room else [*own[: room // 2], *own[-(room - room // 2) :]]
    return tuple(kept), len(kinds) - len(kept)


def _buffers(network: Mapping[str, Any]) -> tuple[Buffer, ...]:
    mtu = network.get("mtu", _MTU)
    counted: dict[tuple[str, int, int | None, str], int] = defaultdict(int)
    for link in network["links"]:
        size, kind = _held(link, network["nodes"][link["from"]]["pool"], mtu)
        counted[link["role"], link["rate"], size, kind] += 1
    order = sorted(counted.items(), key=lambda item: (_ROLES.index(item[0][0]), item[0][1], item[0][2] or 0))
    return tuple(Buffer(role, rate, ports, size, kind) for (role, rate, size, kind), ports in order)


def _held(link: Mapping[str, Any], pool: Mapping[str, Any] | None, mtu: int) -> tuple[int | None, str]:
    """Bytes that a port may hold, and what bounds them."""
    bounds: list[tuple[int, str]] = []
    if (limit := link["limit"]) != "unlimited":
        bounds.append((limit["bytes"] if "bytes" in limit else mtu * limit["packets"], "port"))
    if link["pooled"] and pool is not None:
        bounds.append((pool["size"] * pool["alpha"] // (pool["alpha"] + _ALPHA_ONE), "shared"))
    if "ingress" in link and (own := link["ingress"].get("limit", "unlimited")) != "unlimited":
        bounds.append((own["bytes"] if isinstance(own, dict) else int(own), "input"))
    return min(bounds, default=(None, "port"), key=lambda bound: bound[0] or 0)
