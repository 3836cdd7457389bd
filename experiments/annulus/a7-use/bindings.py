"""How what A-7 says of use is measured: where flows across want all that is left of the uplinks."""

from narrows.claims import Binding

SCENARIOS = ("A-7-use",)

HALF, HIGH = 0.5, 0.8
"""What requests inside ask of an uplink; the abstract names none, and as in A-7 half is judged."""
PAIRS = (("annulus", "dctcp+bbr"), ("annulus-dcqcn", "dcqcn+bbr"))


def _gain(measure: str, arm: str, base: str, load: float) -> str:
    return f"{measure}({arm} · load={load}) / {measure}({base} · load={load}) - 1"


BINDINGS = {
    "ann-012": Binding(
        tuple(_gain("utilisation_watched", *pair, HALF) for pair in PAIRS),
        also=(
            *(_gain("utilisation_watched", *pair, HIGH) for pair in PAIRS),
            *(_gain("goodput_total", *pair, load) for pair in PAIRS for load in (HALF, HIGH)),
        ),
        scenarios=SCENARIOS,
    ),
}
