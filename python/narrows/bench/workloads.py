"""The workloads, and what each may cost."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from narrows.errors import bad_input
from narrows.wording import number

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True)
class Workload:
    """One of the experiment files beside this one: one scheme, one seed."""

    name: str
    must_holds: float
    """What a packet-hop may cost at most, in holds."""
    aim_holds: float
    """What a packet-hop should cost, in holds."""
    must_reads: float | None = None
    """In place of `must_holds` where memory decides: what a packet-hop may cost at most, in reads."""

    @property
    def must(self) -> str:
        """What a packet-hop may cost at most, with its unit."""
        return f"{number(self.must_holds)} holds" if self.must_reads is None else f"{number(self.must_reads)} reads"

    @property
    def file(self) -> Path:
        """Its experiment."""
        return Path(__file__).with_name(f"{self.name.lower()}.toml")

    @property
    def with_default_hosts(self) -> Workload:
        """The same work of hosts that segment, merge and delay acknowledgements: it may cost a fifth more."""
        assert self.must_reads is None, "judged in holds"
        return Workload(f"{self.name}-default", 1.2 * self.must_holds, self.aim_holds)


_W2: Final = Workload("W2", 0.60, 0.50)
_W5: Final = Workload("W5", 0.80, 0.65)

# Those of W3 and W4, whose state no second-level cache holds, are judged in reads: their goals in holds at 3.6 reads a
# hold, as measured on an idle AMD EPYC (a hold 49.2 ns, a read 13.6 ns).
_W3: Final = Workload("W3", 0.90, 0.73, must_reads=3.3)
_W4: Final = Workload("W4", 1.6, 1.1, must_reads=5.8)

USUAL: Final = (Workload("W1", 0.46, 0.40), _W2, _W3, _W4, _W5)
"""What is run if none is named."""

ALL: Final = (
    *USUAL,
    *(USUAL[number].with_default_hosts for number in (0, 1, 4)),
    replace(_W2, name="W2-long"),
    replace(_W5, name="W5-loss"),
)


def select(names: Sequence[str]) -> tuple[Workload, ...]:
    """Workloads by name, each once, in the order given; upper and lower case are the same. Raises `BadInput`."""
    known = {workload.name.lower(): workload for workload in ALL}
    for name in names:
        if name.lower() not in known:
            raise bad_input(f"no workload is called '{name}'", f"there are: {', '.join(each.name for each in ALL)}")
    return tuple(dict.fromkeys(known[name.lower()] for name in names))
