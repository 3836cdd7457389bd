"""What carries a plan: the simulator, or a real kernel. Their results lie apart, and each has a version of its own."""

from __future__ import annotations

import os
import re
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from narrows import native
from narrows.runs import daemon

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from narrows.experiment.plans import Plan

AXIS: Final = "backend"
"""Name of the axis by which results of several backends are told apart where they stand side by side."""
MAX_JOBS: Final = 1024
"""Runs at once, and threads of one run: the cores of a large machine."""
MARK: Final = "@"
"""Stands between an experiment's name and the backend that is not the simulator."""
_COMPONENTS: Final = re.compile(r"(?<=\+[0-9a-f]{8})\.[0-9a-f]{8}")


class Backend(StrEnum):
    """What runs a plan."""

    SIM = "sim"
    GUEST = "guest"
    HOST = "host"

    @classmethod
    def _missing_(cls, value: object) -> Backend | None:
        """`native`, as `host` was called before."""
        return cls.HOST if value == "native" else None

    @property
    def is_live(self) -> bool:
        """Whether a real kernel carries the traffic, in real time."""
        return self is not Backend.SIM

    @property
    def words(self) -> str:
        """What a caption calls it."""
        return {
            Backend.SIM: "simulator",
            Backend.GUEST: "Linux in a guest (guest)",
            Backend.HOST: "this host's Linux (host)",
        }[self]

    @property
    def program(self) -> str:
        """What makes its runs, as a version belongs to it."""
        return "narrowsd" if self.is_live else "Narrows"

    def version(self, plan: Mapping[str, Any] | None = None) -> str:
        """Of what makes its runs, with the kernel that carries them; with a plan's body, of the plan's results.

        Results of another version are made again. Raises `EnvironmentLacks` where something is not here.
        """
        if self is Backend.SIM:
            return native.version() if plan is None else native.plan_version(plan)
        program = daemon.version() if plan is None else native.plan_version(plan, by=daemon.sources())
        return f"{program} on {self._kernel()}"

    def versions_of(self, plans: Sequence[Plan]) -> dict[str, str]:
        """Of each plan's results, by its hash, as they would be made now; narrowsd is asked once for all."""
        if self is Backend.SIM:
            return {plan.hash: plan.version for plan in plans}
        by, kernel = daemon.sources(), self._kernel()
        return {plan.hash: f"{native.plan_version(plan.body, by=by)} on {kernel}" for plan in plans}

    def _kernel(self) -> str:
        return ", ".join(daemon.guest()) if self is Backend.GUEST else os.uname().release

    def stored(self, plan: str) -> str:
        """The name of the folder that holds its runs of a plan, by the plan's hash."""
        return f"{plan}-{self.value}" if self.is_live else plan

    def named(self, name: str) -> str:
        """What its results of an experiment are called."""
        return f"{name}{MARK}{self.value}" if self.is_live else name


def program_of(version: str) -> str:
    """The version of a plan's results without its components: `0.1.0+28a3734c` of `0.1.0+28a3734c.00b87950`."""
    return _COMPONENTS.sub("", version)


def split(name: str) -> tuple[str, Backend]:
    """`linux/gemini-wan@guest` as the experiment's name and the backend; the simulator where none is said."""
    base, mark, last = name.rpartition(MARK)
    if mark and last in {*Backend, "native"}:
        return base, Backend(last)
    return name, Backend.SIM
