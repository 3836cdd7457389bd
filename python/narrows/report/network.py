"""The network that was run, from the plans that the runs keep; what differs between schemes is told for each."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

from narrows import native
from narrows.errors import BadInput
from narrows.experiment import ABSENT, labelled, outline
from narrows.report.contrast import whose

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from narrows.experiment.summary import Links
    from narrows.experiment.summary import Network as Described
    from narrows.results import Results
    from narrows.runs.index import Member

_Column = Literal["links", "rate", "delay", "buffer", "aqm", "scheduler", "flow_control", "bridge"]
_COLUMNS: Final[dict[_Column, str]] = {
    "links": "links",
    "rate": "rate",
    "delay": "delay",
    "buffer": "buffer",
    "aqm": "AQM and congestion points",
    "scheduler": "scheduler",
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


def networks(results: Results) -> dict[str, Described] | None:
    """The network of every plan by its case; `None` where one is of a version that cannot be read."""
    known: dict[str, Described] = {}
    own = {}
    for case, member in {member.plan_case: member for member in results.entry.members}.items():
        body = results.plan_of(member.case) or {}
        # Hundreds of plans of a sweep may have a few networks, and be large in what they send.
        built = json.dumps([body.get("network"), [_hosts(traffic) for traffic in body.get("traffic", ())]])
        if built not in known:
            try:
                known[built] = native.network(labelled(body))
            except BadInput:
                return None
        own[case] = known[built]
    return own


def table(results: Results, own: Mapping[str, Described]) -> Network:
    """What the networks of the plans are like."""
    members = {member.plan_case: member for member in results.entry.members}

    def told(of: Callable[[Described], str]) -> Told:
        return _told({case: of(network) for case, network in own.items()}, members)

    # ECMP, as most networks have it, is not told.
    is_routed = any(network["routing"] for network in own.values())
    rows = dict.fromkeys((role, nth) for network in own.values() for role, nth in _rows(network))
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
                outline.LINKS[row[0]],
                tuple(
                    told(lambda network, row=row, key=key: _cell(_rows(network).get(row), key))  # type: ignore[misc]
                    for key in columns
                ),
            )
            for row in sorted(rows, key=lambda row: (list(outline.LINKS).index(row[0]), row[1]))
        ),
    )


def _hosts(traffic: Mapping[str, Any]) -> tuple[Any, Any]:
    return traffic.get("transport"), traffic.get("profile")


def _rows(network: Described) -> dict[tuple[str, int], Links]:
    """Its kinds of links, by role and by which of the role's it is."""
    found: dict[tuple[str, int], Links] = {}
    for links in network["links"]:
        found[links["role"], sum(role == links["role"] for role, _ in found)] = links
    return found


def _cell(links: Links | None, key: _Column) -> str:
    return str((links and links[key]) or _NONE)


def _told(values: Mapping[str, str], members: Mapping[str, Member]) -> Told:
    different = dict.fromkeys(values.values())
    if len(different) == 1:
        return tuple((value or ABSENT, "") for value in different)
    return whose(values, list(members.values()))
