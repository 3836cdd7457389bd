"""A controller whose window an agent decides: what a class of your own derives from."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, Literal, SupportsFloat

from narrows.controller import Controller
from narrows.learning.interval import Counting, Interval

if TYPE_CHECKING:
    from collections.abc import Sequence

    from narrows._native import Ack, Path

_WINDOW_LIMIT = 2.0**20


class Learner(Controller):
    """A controller that decides once per interval, by an agent in an environment, elsewhere by its `policy`.

    A class of your own has at least `policy`. Losses and marks by themselves change nothing: they are observed. A
    timeout reduces the window to 1.
    """

    owns_recovery = True
    interval: ClassVar[float | None] = None
    """Time between decisions, simulated seconds; `None` is one smoothed RTT."""
    observations: ClassVar[int] = 5
    """How many numbers `observe` returns."""
    actions: ClassVar[int | None] = None
    """How many actions there are to choose from, numbered from 0; `None` is one real number from -1 to 1."""

    def __init_subclass__(cls, **options: Any) -> None:
        """Refuses a class whose attributes do not fit together."""
        super().__init_subclass__(**options)
        for name, least, value in (("observations", 1, cls.observations), ("actions", 2, cls.actions)):
            if value is not None and (not isinstance(value, int) or value < least):
                raise TypeError(f"`{name}` is {value!r}, where a whole number of at least {least} is expected")
        if cls.interval is not None and not 0 < cls.interval < math.inf:
            raise TypeError(f"`interval` is {cls.interval!r}, where seconds are expected, or None")
        if cls.actions is not None and cls.apply is Learner.apply:
            raise TypeError("a class with a number of `actions` needs `apply`, which says what they do")

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._counting: Counting | None = None
        self._due = math.inf

    @abstractmethod
    def policy(self, observation: Sequence[float]) -> Any:
        """An action, where no agent is asked: in ordinary runs, and in an environment for all connections but one."""

    def observe(self, interval: Interval) -> Sequence[float]:
        """What the decision depends on.

        By default five numbers: mean RTT over minimum RTT, less 1; delivery rate over the line rate; shares of packets
        marked, and lost; the logarithm to base 2 of the window in packets.
        """
        return (
            interval.rtt_ratio - 1,
            interval.rate / interval.line_rate,
            interval.marked / max(interval.acked, 1),
            interval.loss,
            math.log2(interval.window),
        )

    def reward(self, interval: Interval) -> float:
        """How good the interval was.

        By default ln(rate / line rate) - ln(RTT / minimum RTT), the logarithm of power
        [Winstein 2013 §3.3, δ = 1], plus ln(1 - loss): without it losing nearly everything costs
        nothing once the buffer is full. At least one packet counts as delivered.
        """
        delivered = max(interval.acked, 1)
        rate = delivered * interval.packet * 8 / interval.length
        kept = delivered / (delivered + interval.lost)
        return math.log(rate / interval.line_rate) - math.log(interval.rtt_ratio) + math.log(kept)

    def apply(self, action: Any, path: Path) -> None:  # noqa: ARG002
        """Carries an action out. By default the window is multiplied by 2**action, between 2 and 2**20 packets.

        A class with a number of `actions` says here what they do.
        """
        if not isinstance(action, SupportsFloat) or not -1 <= float(action) <= 1:
            raise TypeError(f"`policy` returned {action!r}, where a number from -1 to 1 is expected")
        self.window = min(max(self.window * 2.0 ** float(action), 2.0), _WINDOW_LIMIT)

    def decide(self, interval: Interval) -> Any:
        """The action after an interval."""
        return self.policy(self.observe(interval))

    def on_ack(self, ack: Ack, path: Path) -> None:
        """Counts, and decides at the end of each interval."""
        if self._counting is None:  # the first: what came before it is no interval
            self._begin(path)
            return
        self._counting.add(ack)
        if path.now >= self._due and path.now > self._counting.start:
            interval = self._counting.close(self.window, path)
            self._begin(path)
            self.apply(self.decide(interval), path)

    def on_congestion(self, cause: Literal["loss", "ecn"], path: Path) -> None:
        """Changes nothing."""

    def on_timeout(self, repeated: bool, path: Path) -> None:
        """Reduces the window to 1. What is in flight counts as lost."""
        if self._counting is not None:
            self._counting.timeouts += 1
            self._counting.lost += path.in_flight
        super().on_timeout(repeated, path)

    def _begin(self, path: Path) -> None:
        self._counting = Counting(path.now)
        self._due = path.now + (self.interval or path.srtt or 0.0)
