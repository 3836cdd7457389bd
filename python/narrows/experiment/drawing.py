"""A plan's network as a drawing of text: small ones switch by switch, others tier by tier."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Final

from narrows import wording

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from narrows.experiment.body import Graph, Link, Node

_MAX_SWITCHES: Final = 6
"""Switches of a network that is drawn switch by switch."""
_MAX_CLASSES: Final = 3
"""Kinds of links in a line."""


def drawing(network: Graph) -> list[str]:
    """Lines that show a plan's network, `plan.body["network"]`: nodes, and links with rate and delay."""
    switches = [place for place, node in enumerate(network["nodes"]) if node["kind"] != "host"]
    return _by_switch(network, switches) if len(switches) <= _MAX_SWITCHES else _by_tier(network, switches)


def _by_switch(network: Graph, switches: Sequence[int]) -> list[str]:
    """Each switch with what hangs on it: hosts that are alike together, and each link to a switch once."""
    nodes = network["nodes"]
    several = len({nodes[switch]["site"] for switch in switches}) > 1
    out: dict[int, list[Link]] = defaultdict(list)
    for link in network["links"]:
        out[link["from"]].append(link)
    back = _backward(network)
    lines: list[str] = []
    drawn: set[int] = set()
    for switch in switches:
        drawn.add(switch)
        hosts: dict[str, list[str]] = defaultdict(list)
        joined: dict[tuple[int, str], int] = Counter()
        for link in out[switch]:
            if nodes[link["to"]]["kind"] == "host":
                hosts[_both(link, back)].append(nodes[link["to"]]["name"])
            elif link["to"] not in drawn:
                joined[link["to"], _both(link, back)] += 1
        rows = [(_names(names), wording.plural(len(names), "host"), text) for text, names in hosts.items()]
        rows += [
            (nodes[to]["name"], "switch" if count == 1 else f"switch, {count} links", text)
            for (to, text), count in joined.items()
        ]
        lines.append(nodes[switch]["name"] + (f"  (datacenter {nodes[switch]['site']})" if several else ""))
        marks = [*("├─ " for _ in rows[1:]), "└─ "]
        lines += _columns([(mark + name, *rest) for mark, (name, *rest) in zip(marks, rows, strict=bool(rows))])
    return lines


def _by_tier(network: Graph, switches: Sequence[int]) -> list[str]:
    """Tiers by how far their switches are from a host, the farthest above; between them the links, alike together."""
    nodes = network["nodes"]
    tier = _tiers(network, switches)
    back = _backward(network)
    inside: dict[int, Counter[str]] = defaultdict(Counter)
    upward: dict[tuple[int, int], Counter[str]] = defaultdict(Counter)
    for link in network["links"]:
        one, other = tier[link["from"]], tier[link["to"]]
        if one == other and link["from"] < link["to"]:
            inside[one][_both(link, back)] += 1
        elif one > other:
            upward[other, one][_both(link, back)] += 1
    rows: list[tuple[str, ...]] = []
    for level in sorted(set(tier.values()), reverse=True):
        own = [place for place in range(len(nodes)) if tier[place] == level]
        what = "host" if level == 0 else "switch"
        count = f"{wording.whole(len(own))} {what}{'' if len(own) == 1 else 's' if level == 0 else 'es'}"
        names = [nodes[place]["name"] for place in own]
        rows.append((_names(names) if level == 0 else _kinds(names), count, _spread(nodes, own)))
        rows += [("├─ among them", _count(links), text) for text, links in _most(inside[level])]
        for (below, above), links in sorted(upward.items(), reverse=True):
            if above == level:
                mark = "│" if below == level - 1 else f"│ to tier {below}"
                rows += [(mark, _count(many), text) for text, many in _most(links)]
    return _columns(rows)


def _tiers(network: Graph, switches: Sequence[int]) -> dict[int, int]:
    """Of each node how many links lie between it and the nearest host: 0 for hosts."""
    nodes = network["nodes"]
    tier = {place: 0 for place, node in enumerate(nodes) if node["kind"] == "host"}
    neighbours: dict[int, set[int]] = defaultdict(set)
    for link in network["links"]:
        neighbours[link["to"]].add(link["from"])
    ring = list(tier)
    while ring:
        further = {near for place in ring for near in neighbours[place] if near not in tier}
        tier |= dict.fromkeys(further, tier[ring[0]] + 1)
        ring = sorted(further)
    return tier | dict.fromkeys((switch for switch in switches if switch not in tier), max(tier.values()) + 1)


def _backward(network: Graph) -> Mapping[tuple[int, int], list[Link]]:
    found: dict[tuple[int, int], list[Link]] = defaultdict(list)
    for link in network["links"]:
        found[link["to"], link["from"]].append(link)
    return found


def _both(link: Link, back: Mapping[tuple[int, int], list[Link]]) -> str:
    """`10 Gbit/s, 1 µs`, and of both directions where they differ: `5 Mbit/s, 10 ms (back 1 Gbit/s, 10 ms)`."""
    there = _class(link)
    returns = dict.fromkeys(_class(other) for other in back[link["from"], link["to"]])
    other = "" if there in returns or not returns else f" (back {next(iter(returns))})"
    return there + other + (" WAN" if link["role"] == "wan" else "")


def _class(link: Link) -> str:
    return f"{wording.rate(link['rate'])}, {wording.delay(link['delay'] / 1e12)}"


def _names(names: Sequence[str]) -> str:
    return ", ".join(names) if len(names) <= 2 else f"{names[0]} … {names[-1]}"


def _kinds(names: Iterable[str]) -> str:
    """`4 spine, 1 border`, by how names begin; the first and the last where there is one kind, or too many."""
    listed = list(names)
    counted = Counter(re.split(r"[-_\d]", name)[0] for name in listed)
    if len(counted) == 1:
        return _names(listed)
    return ", ".join(f"{count} {kind}" for kind, count in counted.items()) if len(counted) <= 3 else _names(listed)


def _spread(nodes: Sequence[Node], own: Sequence[int]) -> str:
    """`16 in each of 9 racks`, `2 in each of 2 datacenters`; nothing where they are in one place."""
    racks = Counter((nodes[place]["site"], nodes[place]["rack"]) for place in own if nodes[place]["rack"])
    sites = Counter(nodes[place]["site"] for place in own)
    told = []
    for counted, what, least in ((racks, "rack", len(own)), (sites, "datacenter", len(own))):
        if len(counted) > 1 and sum(counted.values()) == least and max(counted.values()) > 1:
            fewest, most = min(counted.values()), max(counted.values())
            number = str(most) if fewest == most else f"{fewest} to {most}"
            told.append(f"{number} in each of {len(counted)} {what}s")
    return ", ".join(told)


def _most(links: Counter[str]) -> list[tuple[str, int]]:
    """The most frequent kinds of links; the rest together."""
    listed = links.most_common()
    rest = sum(count for _, count in listed[_MAX_CLASSES:])
    return [*listed[:_MAX_CLASSES], *([("others", rest)] if rest else [])]


def _count(links: int) -> str:
    return wording.plural(links, "link")


def _columns(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows of the same number of cells, below each other."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
