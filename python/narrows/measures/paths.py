"""RTTs of a plan's network when nothing queues."""

from __future__ import annotations

from collections import defaultdict
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

PS_PER_NS = 1000


def round_trips(network: Mapping[str, Any]) -> Callable[[int, int], int]:
    """Base RTT in ns from a node to another and back: delays of links and stacks, nothing for serialisation.

    Packets take shortest paths by hops. Of equal ones, which a hash of the flow chooses among, the quickest counts.
    """
    leaving: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
    for link in network["links"]:
        leaving[link["from"]].append((link["to"], link["delay"]))

    @cache
    def delays_from(start: int) -> dict[int, int]:
        found = {start: 0}
        edge = {start: 0}
        while edge:
            reached: dict[int, int] = {}
            for node, delay in edge.items():
                for to, own in leaving[node]:
                    if to not in found:
                        reached[to] = min(delay + own, reached.get(to, delay + own))
            found |= reached
            edge = reached
        return found

    def one_way(source: int, destination: int) -> int:
        # A host has one link: what lies behind it is shared by all hosts of its switch.
        (switch, own), *others = leaving[source]
        return delays_from(source)[destination] if others else own + delays_from(switch)[destination]

    return lambda source, destination: (one_way(source, destination) + one_way(destination, source)) // PS_PER_NS
