"""How the claims of A-4 to A-6 are measured: requests inside have 64 KB, and the loads are of a rack's uplink."""

from pathlib import Path

from narrows import native
from narrows.claims import Binding
from narrows.experiment import Experiment

SCENARIOS = ("A-4", "A-5", "A-6")

HALF = 0.5
"""The load at which the paper gives a number."""
LOADS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
TAIL_FROM = 0.3
"""What is said of the tail begins here."""


def _at(measure: str, arm: str, load: float, traffic: str = "") -> str:
    return f"{measure}({arm} · load={load}{f' / {traffic}' if traffic else ''})"


def _wan_round_trip() -> float:
    """Milliseconds, from a host of rack a to one of rack c and back, when nothing queues."""
    plan = Experiment(Path(__file__).with_name("experiment.toml")).plans[0]
    return native.base_rtt_ns(plan.body, "a-1", "c-1") / 1e6


_INSIDE = " + ".join(_at("payload", "dctcp+bbr", HALF, f"dc/rack-{rack}") for rack in (1, 2))
_ACROSS = _at("payload", "dctcp+bbr", HALF, "wan/1-2")

BINDINGS = {
    "ann-003": Binding(
        orders=tuple(
            f"{_at('fct_small_p99', 'annulus', load)} < {_at('fct_small_p99', 'dctcp+bbr', load)}"
            for load in LOADS
            if load >= TAIL_FROM
        ),
        full_only=True,
    ),
    "ann-005": Binding(
        orders=tuple(
            f"{_at('burstiness_wan', 'annulus', load)} < {_at('burstiness_wan', 'dctcp+bbr', load)}" for load in LOADS
        ),
        full_only=True,
    ),
    "ann-010": Binding((f"({_INSIDE}) / {_ACROSS}",), of_means=True, full_only=True, setup=True),
    "ann-011": Binding(computed=_wan_round_trip, setup=True),
}
