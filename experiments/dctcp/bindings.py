"""How the claims are measured that belong to no figure of their own: closed forms."""

import math

from narrows import analysis
from narrows.claims import Binding

_CAPACITY, _RTT, _THRESHOLD = analysis.packets_per_second(10e9), 100e-6, 40.0
_PIPE = _CAPACITY * _RTT

BINDINGS = {
    "dct-007": Binding(computed=lambda: analysis.least_threshold(_CAPACITY, _RTT) / _PIPE),
    "dct-008": Binding(
        computed=lambda: analysis.largest_gain(_CAPACITY, _RTT, _THRESHOLD) * math.sqrt(2 * (_PIPE + _THRESHOLD))
    ),
    "dct-039": Binding(computed=lambda: analysis.Sawtooth(1, _CAPACITY, 0.0, 50.0).alpha),
}
