"""Types of a plan's body, as far as Python reads it: what the simulator is given, as JSON."""

from __future__ import annotations

from typing import Any, NotRequired, TypedDict


class Node(TypedDict):
    """A host or switch of a plan's network."""

    name: str
    kind: str
    """`host` or `switch`."""
    site: int
    """Its datacenter; 0 for none."""
    rack: int
    """0 for none."""


Link = TypedDict(
    "Link",
    {
        "name": str,
        "from": int,  # positions of nodes
        "to": int,
        "role": str,  # `host`, `edge`, `fabric` or `wan`
        "rate": int,  # bit/s
        "delay": int,  # picoseconds
        "loss": int,  # in units of 2⁻³²
        "functions": NotRequired[list[dict[str, Any]]],
    },
)
"""One direction of a link, and the port that feeds it."""


class Program(TypedDict):
    """A controller in a file."""

    file: str
    controller: str
    text: str


class Controller(TypedDict):
    """A controller and its values, in the order of its parameters."""

    name: str
    ecn: bool
    values: list[Any]
    program: NotRequired[Program]


class Traffic(TypedDict):
    """A kind of traffic."""

    name: str
    controller: Controller
    pattern: dict[str, Any]
    """By the name of one of the patterns."""
    profile: dict[str, Any]
    """Of the hosts."""


class Graph(TypedDict):
    """Nodes, and links by the positions of their ends."""

    nodes: list[Node]
    links: list[Link]


class Schedule(TypedDict):
    """Picoseconds."""

    end: int
    drain: int
    warmup: int


class Body(TypedDict):
    """A plan."""

    experiment: str
    arm: str
    axes: list[tuple[str, str]]
    declared: list[tuple[str, str]]
    network: Graph
    traffic: list[Traffic]
    schedule: Schedule
