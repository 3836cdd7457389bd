"""How Theorem 1 is measured."""

from narrows.claims import Binding

SCENARIOS = ("E-TH",)

_THRESHOLDS = (20, 50, 300)
_ROUND_TRIPS = ("0.2ms", "1ms", "4ms", "10ms", "40ms")

BINDINGS = {
    # The least over all numbers of flows, at every threshold and RTT.
    "gem-045": Binding(
        tuple(
            f"min(utilisation_bottleneck(K={packets} RTT={rtt} · flows=*))"
            for packets in _THRESHOLDS
            for rtt in _ROUND_TRIPS
        ),
        also=tuple(
            f"min(utilisation_bottleneck(T=5ms beta={beta} · flows=*))" for beta in ("0.2", "0.33", "0.5", "0.7")
        ),
    ),
}
