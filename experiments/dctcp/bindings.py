"""How the claims are measured that belong to no figure of their own: closed forms."""

import math

from narrows.claims import Binding
from narrows.measures import analysis

_CAPACITY, _RTT, _THRESHOLD = analysis.packets_per_second(10e9), 100e-6, 40.0
_PIPE = _CAPACITY * _RTT


def _shortest_queue(threshold: float) -> float:
    """Over all numbers of flows, with the amplitude as the paper prints it, packets."""
    return analysis.least(
        lambda flows: (tooth := analysis.Sawtooth(flows, _CAPACITY, _RTT, threshold)).highest - tooth.printed_amplitude,
        (1e-6, 1e6),
    )


def _least_threshold() -> float:
    """The K at which the shortest queue is just empty, over the pipe; the closed form says a seventh."""
    return analysis.zero(_shortest_queue, (1e-3, _PIPE)) / _PIPE


def _largest_gain() -> float:
    """The g at which an estimate falls by half in a sawtooth of one flow, times what the closed form divides by."""
    period = analysis.Sawtooth(1, _CAPACITY, _RTT, _THRESHOLD).printed_amplitude
    return analysis.zero(lambda gain: math.exp(-gain * period) - 0.5, (1e-6, 10)) * 2 * period


BINDINGS = {
    "dct-007": Binding(computed=_least_threshold),
    "dct-008": Binding(computed=_largest_gain),
    "dct-039": Binding(computed=lambda: analysis.Sawtooth(1, _CAPACITY, 0.0, 50.0).alpha),
}
