"""The workloads, and what each may cost."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from narrows.errors import bad_input

if TYPE_CHECKING:
    from collections.abc import Sequence

_HOLD_NS: Final = 75.0
"""Nanoseconds per hold on the machine where the limits were set."""


@dataclass(frozen=True)
class Workload:
    """One of the experiment files beside this one: one scheme, one seed."""

    name: str
    must_ns: float
    """What a packet-hop may cost at most, ns where a hold takes 75 ns."""
    aim_ns: float

    @property
    def file(self) -> Path:
        """Its experiment."""
        return Path(__file__).with_name(f"{self.name.lower()}.toml")

    @property
    def must_holds(self) -> float:
        """What a packet-hop may cost at most, in holds."""
        return self.must_ns / _HOLD_NS

    @property
    def aim_holds(self) -> float:
        """What a packet-hop should cost, in holds."""
        return self.aim_ns / _HOLD_NS


USUAL: Final = (
    Workload("W1", 35, 20),
    Workload("W2", 45, 25),
    Workload("W3", 55, 28),
    Workload("W4", 85, 42),
    Workload("W5", 60, 45),
)
"""What is run if none is named."""

ALL: Final = (*USUAL, Workload("W2-long", 45, 25), Workload("W5-loss", 60, 45))


def select(names: Sequence[str]) -> tuple[Workload, ...]:
    """Workloads by name, each once, in the order given; upper and lower case are the same. Raises `BadInput`."""
    known = {workload.name.lower(): workload for workload in ALL}
    for name in names:
        if name.lower() not in known:
            raise bad_input(f"no workload is called '{name}'", f"there are: {', '.join(each.name for each in ALL)}")
    return tuple(dict.fromkeys(known[name.lower()] for name in names))
