"""What carries a plan: the simulator, or a real kernel. Their results lie apart, and each has a version of its own."""

from __future__ import annotations

import os
from enum import StrEnum
from typing import Final

from narrows import native
from narrows.runs import daemon

AXIS: Final = "backend"
"""Name of the axis by which results of several backends are told apart where they stand side by side."""
MARK: Final = "@"
"""Stands between an experiment's name and the backend that is not the simulator."""


class Backend(StrEnum):
    """What runs a plan."""

    SIM = "sim"
    GUEST = "guest"
    NATIVE = "native"

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
            Backend.NATIVE: "this machine's Linux (native)",
        }[self]

    @property
    def program(self) -> str:
        """What makes its runs, as a version belongs to it."""
        return "narrowsd" if self.is_live else "Narrows"

    def version(self) -> str:
        """Of what makes its runs, with the kernel that carries them: those of another version are made again.

        Raises `EnvironmentLacks` where something of it is not here.
        """
        match self:
            case Backend.SIM:
                return native.version()
            case Backend.GUEST:
                return f"{daemon.version()} on {', '.join(daemon.guest())}"
            case Backend.NATIVE:
                return f"{daemon.version()} on {os.uname().release}"

    def stored(self, plan: str) -> str:
        """The name of the folder that holds its runs of a plan, by the plan's hash."""
        return f"{plan}-{self.value}" if self.is_live else plan

    def named(self, name: str) -> str:
        """What its results of an experiment are called."""
        return f"{name}{MARK}{self.value}" if self.is_live else name


def split(name: str) -> tuple[str, Backend]:
    """`linux/gemini-wan@guest` as the experiment's name and the backend; the simulator where none is said."""
    base, mark, last = name.rpartition(MARK)
    if mark and last in {backend.value for backend in Backend}:
        return base, Backend(last)
    return name, Backend.SIM
