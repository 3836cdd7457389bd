"""Closed forms of the papers: what a queue and its senders should do, to stand beside what they did.

Lengths are packets of 1500 B, `capacity` is packets per second, `rtt` seconds without queueing, `step` packets per
RTT.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

PACKET_BITS = 12_000


def packets_per_second(bits_per_second: float) -> float:
    """How many full packets a line of this rate carries each second; framing is not counted, as in the papers."""
    return bits_per_second / PACKET_BITS


@dataclass(frozen=True)
class Sawtooth:
    """`flows` synchronised senders at one bottleneck that marks above `threshold`; each cuts by α·`scale`.

    DCTCP's is a step of 1 and a scale of one half [DCTCP §3.3]; GEMINI's are h and F [GEMINI §III-C].
    """

    flows: float
    capacity: float
    rtt: float
    threshold: float
    scale: float = 0.5
    step: float = 1.0

    @property
    def critical_window(self) -> float:
        """W*: the window of each at which the queue reaches the threshold."""
        return (self.capacity * self.rtt + self.threshold) / self.flows

    @property
    def alpha(self) -> float:
        """α, the root of α²·F·(2 − α·F) = (2W* + h)·h / (W* + h)²; 1 where there is none below it."""
        right = (2 * self.critical_window + self.step) * self.step / (self.critical_window + self.step) ** 2
        low, high = 0.0, min(1.0, 1.0 / self.scale)
        for _ in range(80):
            middle = (low + high) / 2
            below = middle**2 * self.scale * (2 - middle * self.scale) < right
            low, high = (middle, high) if below else (low, middle)
        return high

    @property
    def highest(self) -> float:
        """The longest queue: K + N·h."""
        return self.threshold + self.flows * self.step

    @property
    def amplitude(self) -> float:
        """What all senders take away together: N·(W* + h)·α·F."""
        return self.flows * (self.critical_window + self.step) * self.alpha * self.scale

    @property
    def lowest(self) -> float:
        """The shortest queue; below zero the link runs empty by so much."""
        return self.highest - self.amplitude

    @property
    def printed_amplitude(self) -> float:
        """The same for W* ≫ h, as the papers print it: √(N·h·F·(C·RTT + K))."""
        return math.sqrt(self.flows * self.step * self.scale * (self.capacity * self.rtt + self.threshold))


def largest_scale(capacity: float, rtt: float, threshold: float) -> float:
    """The largest F that keeps the link busy whatever the number of flows [GEMINI Theorem 1]."""
    return 4 * threshold / (capacity * rtt + threshold)


def least_threshold(capacity: float, rtt: float) -> float:
    """The K above which DCTCP's queue never runs empty [DCTCP §3.3 eq. 13]."""
    return capacity * rtt / 7


def zero(function: Callable[[float], float], between: tuple[float, float]) -> float:
    """Where a function that is below zero at one end and above at the other crosses it, by bisection."""
    low, high = between
    rising = function(low) < 0
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if (function(middle) < 0) == rising else (low, middle)
    return (low + high) / 2


def least(function: Callable[[float], float], between: tuple[float, float]) -> float:
    """The least value of a function that falls and then rises, by ternary search over the logarithm of its argument."""
    low, high = (math.log(end) for end in between)
    for _ in range(200):
        left, right = low + (high - low) / 3, high - (high - low) / 3
        if function(math.exp(left)) < function(math.exp(right)):
            high = right
        else:
            low = left
    return function(math.exp((low + high) / 2))


@dataclass(frozen=True)
class PiGains:
    """p(k) = p(k−1) + a·(q(k) − q_ref) − b·(q(k−1) − q_ref) each `period` seconds; `a` and `b` per packet."""

    a: float
    b: float
    period: float


def pi_gains(
    flows: float, capacity: float, rtt: float, reference: float, *, bandwidth: float = 0.5, oversampling: float = 20
) -> PiGains:
    """A PI controller for at least so many flows and at most this RTT [Hollot 2001 §III, §IV].

    With R = RTT + q_ref/C the linear model of window and queue is (RC)³/(2N)² · e^(−sR) / ((s/z + 1)(sR + 1)), where
    z = 2N/(R²C). The controller K·(s/z + 1)/s cancels the slower pole, and K lets the loop cross unity at ω =
    `bandwidth`/R: a half leaves a phase margin of 90° − ½·180°/π − atan ½ = 35°. The bilinear transform at
    `oversampling` times the loop's bandwidth makes it a recurrence.
    """
    full = rtt + reference / capacity
    zero = 2 * flows / (full**2 * capacity)
    crossover = bandwidth / full
    gain = crossover * math.hypot(1, crossover * full) * (2 * flows) ** 2 / (full * capacity) ** 3
    period = 2 * math.pi / (oversampling * crossover)
    return PiGains(gain * (1 / zero + period / 2), gain * (1 / zero - period / 2), period)
