"""The network that was run, from the plans that the runs keep; what differs between schemes is told for each."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

from narrows import native
from narrows.errors import BadInput
from narrows.experiment import ABSENT, labelled, outline
from narrows.experiment.whose import whose
from narrows.report.contrast import labels

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from narrows.experiment.summary import Links
    from narrows.experiment.summary import Network as Described
    from narrows.results import Results
    from narrows.runs.index import Member

_Column = Literal["links", "rate", "delay", "buffer", "aqm", "scheduler", "telemetry", "flow_control", "bridge"]
_COLUMNS: Final[dict[_Column, str]] = {
    "links": "links",
    "rate": "rate",
    "delay": "delay",
    "buffer": "buffer",
    "aqm": "AQM and congestion points",
    "scheduler": "scheduler",
    "telemetry": "telemetry",
    "flow_control": "flow control",
    "bridge": "edge pair",
}
"""Of a role's links, by their names in a plan's summary."""
_NONE: Final = "no"

Told = tuple[tuple[str, str], ...]
"""A value and whose it is; nothing is said of whose where all have it."""


@dataclass(frozen=True)
class Network:
    """What there is to say of it."""

    facts: tuple[tuple[str, Told], ...]
    columns: tuple[str, ...]
    """Those that any link has something in."""
    links: tuple[tuple[str, tuple[Told, ...]], ...]
    """By role: a cell for each column."""


def networks(results: Results) -> dict[str, Described]:
    """Networks of plans by their case, without those of a version that cannot be read."""
    known: dict[str, Described | None] = {}
    own = {}
    for case, member in {member.plan_case: member for member in results.entry.members}.items():
        body = results.plan_of(member.case) or {}
        # Hundreds of plans of a sweep may have a few networks, and be large in what they send.
        built = json.dumps([body.get("network"), [_hosts(traffic) for traffic in body.get("traffic", ())]])
        if built not in known:
            try:
                known[built] = native.network(labelled(body))
            except BadInput:
                known[built] = None
        if (network := known[built]) is not None:
            own[case] = network
    return own


def table(results: Results, own: Mapping[str, Described]) -> Network | None:
    """What the networks of the plans are like; `None` where one of them is not known."""
    members = {member.plan_case: member for member in results.entry.members}
    if own.keys() < members.keys():
        return None

    def told(of: Callable[[Described], str]) -> Told:
        return _told({case: of(network) for case, network in own.items()}, members)

    # ECMP, as most networks have it, is not told.
    is_routed = any(network["routing"] for network in own.values())
    rows = _aligned(own)
    columns = [key for key in _COLUMNS if any(links[key] for network in own.values() for links in network["links"])]
    return Network(
        facts=(
            ("nodes", told(lambda network: network["nodes"])),
            ("base RTT", told(outline.base_rtt)),
            ("hosts", told(outline.hosts)),
            *([("routing", told(outline.routing))] if is_routed else []),
        ),
        columns=tuple(_COLUMNS[key] for key in columns),
        links=tuple(
            (
                outline.LINKS[role],
                tuple(_told({case: _cell(row.get(case), key) for case in own}, members) for key in columns),
            )
            for role, row in rows
        ),
    )


def _hosts(traffic: Mapping[str, Any]) -> tuple[Any, Any]:
    return traffic.get("transport"), traffic.get("profile")


def _aligned(networks: Mapping[str, Described]) -> list[tuple[str, dict[str, Links]]]:
    """Rows of links: role, and by case those links.

    What stands in a row has the same place among the links of its role; where networks have unlike numbers of kinds
    there, the same rate and delay.
    """
    rows: list[tuple[str, dict[str, Links]]] = []
    for role in outline.LINKS:
        kinds = {case: [it for it in network["links"] if it["role"] == role] for case, network in networks.items()}
        by_place = len({len(own) for own in kinds.values()}) == 1
        found: dict[tuple[str, ...], dict[str, Links]] = {}
        for case, own in kinds.items():
            for place, links in enumerate(own):
                key: tuple[str, ...] = (str(place),) if by_place else (links["rate"], links["delay"])
                while case in found.setdefault(key, {}):
                    key += ("",)
                found[key][case] = links
        rows += [(role, row) for row in found.values()]
    return rows


def _cell(links: Links | None, key: _Column) -> str:
    return ABSENT if links is None else str(links[key] or _NONE)


def _told(values: Mapping[str, str], members: Mapping[str, Member]) -> Told:
    different = dict.fromkeys(values.values())
    if len(different) == 1:
        return tuple((value or ABSENT, "") for value in different)
    return whose(values, labels(list(members.values())))
