"""Congestion controllers in Python: what a class of your own derives from.

Times are in seconds, sizes in bytes, windows in packets of at most one segment, rates in bit/s.
"""

from __future__ import annotations

import difflib
import math
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, Literal

if TYPE_CHECKING:
    from narrows._native import Ack, Hop, Lost, Path, Sent

LEAST: float = 2.0
"""The smallest window after a reduction, packets [RFC 5681 §3.1]."""


class Controller(ABC):
    """A controller of one connection, with NewReno's answers to timeouts, idling and spurious reductions.

    A class of your own has at least `on_ack` and `on_congestion`. After each call the simulator reads `window`,
    `threshold` and `pacing_rate`. An exception ends the run, with the file and line. A method of another name that
    begins with `on_` raises `TypeError`, because the simulator does not call it. So does an attribute that is true or
    false and whose name is nearly that of one below.
    """

    needs_ecn: ClassVar[bool] = False
    """Its packets are ECN-capable, and receivers report marks exactly, as DCTCP's [RFC 8257 §3.2].

    Otherwise an experiment may ask for classic ECN.
    """
    needs_delivery_rate: ClassVar[bool] = False
    """It reads `ack.delivery_rate`, which is measured only for controllers that do."""
    needs_telemetry: ClassVar[bool] = False
    """Switches write into its packets what `on_telemetry` reads; they do so for no other reason."""
    owns_recovery: ClassVar[bool] = False
    """Its window holds at once, also during loss recovery.

    Otherwise the transport reduces gradually towards it [RFC 6937].
    """

    window: float
    """The congestion window, packets; from 1 to 2**30. The fraction of a packet is not used, but kept."""
    threshold: float = math.inf
    """The slow-start threshold, packets; at least 1."""
    pacing_rate: float | None = None
    """The rate at which packets leave, bit/s of IP packets; `None` sends as the window allows."""

    def __init_subclass__(cls, **arguments: Any) -> None:
        """Raises `TypeError` for a name that is misspelt."""
        super().__init_subclass__(**arguments)
        for name, value in vars(cls).items():
            if hasattr(Controller, name):
                continue
            near = difflib.get_close_matches(name, dir(Controller), n=1, cutoff=0.8)
            guess = f"; did you mean {near[0]}?" if near else ""
            if name.startswith("on_") and callable(value):
                raise TypeError(
                    f"the simulator does not call {cls.__name__}.{name}: rename what you call yourself{guess}"
                )
            flags = [flag for flag in dir(Controller) if flag.startswith(("needs_", "owns_"))]
            if isinstance(value, bool) and (meant := difflib.get_close_matches(name, flags, n=1, cutoff=0.9)):
                raise TypeError(f"the simulator does not read {cls.__name__}.{name}; did you mean {meant[0]}?")

    def __init__(self, path: Path) -> None:
        """A sender that has sent nothing yet; `path` has the initial window and the line rate."""
        self.window = path.initial_window

    @abstractmethod
    def on_ack(self, ack: Ack, path: Path) -> None:
        """An acknowledgement delivers something or reports a mark.

        Unless the controller owns recovery, it may raise the window only if `ack.may_grow`.
        """

    @abstractmethod
    def on_congestion(self, cause: Literal["loss", "ecn"], path: Path) -> None:
        """A loss was found, or classic ECN's echo came: at most once per window of data, after `on_ack`."""

    def on_timeout(self, repeated: bool, path: Path) -> None:  # noqa: ARG002
        """The retransmission timer fired; the window must be 1 afterwards.

        If `repeated`, the same data had its answer already and the threshold must stay [RFC 5681 §3.1].
        """
        if not repeated:
            self.threshold = max(self.window / 2, LEAST)
        self.window = 1

    def on_lost(self, lost: Lost, path: Path) -> None:  # noqa: B027
        """A transmission was found lost.

        If an acknowledgement finds it, before its `on_ack`, which counts it, and with the path as it was before. If the
        timer that waits for reordering does, before `on_congestion`, and the next `on_ack` counts it, unless a timeout
        comes first. If a timeout gives it up, after `on_timeout`, and no `on_ack` counts it. Only controllers that need
        delivery rates are told.
        """

    def on_telemetry(self, hops: list[Hop]) -> None:  # noqa: B027
        """What switches wrote into the latest packet that reached the receiver came back, in the order of its way.

        It comes before `on_ack`, to controllers that need telemetry.
        """

    def on_sent(self, sent: Sent, path: Path) -> None:  # noqa: B027
        """A packet leaves."""

    def on_idle_restart(self, idle: float, path: Path) -> None:
        """Data is about to be sent after `idle` seconds, more than a retransmission timeout.

        The window is halved for each of them, not below the initial one [RFC 2861 §3.2].
        """
        self.threshold = max(self.threshold, self.window * 3 / 4)
        least = min(path.initial_window, self.window)
        for _ in range(math.ceil(idle / path.rto) - 1):
            if self.window <= least:
                break
            self.window /= 2
        self.window = max(self.window, least)

    def on_undo(self, window: float, threshold: float) -> None:
        """The last reduction was spurious; `window` and `threshold` are those before it."""
        self.window = max(self.window, window)
        self.threshold = max(self.threshold, threshold, window * 3 / 4)
