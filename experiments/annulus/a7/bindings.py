"""How what A-7 says of completion is measured: requests inside have 64 KB, with DCTCP and with DCQCN."""

from narrows.claims import Binding

SCENARIOS = ("A-7",)

HALF, HIGH = 0.5, 0.8
"""The abstract names no load; A-4's number is of half load, and so is this one judged."""
PAIRS = (("dctcp+bbr", "annulus"), ("dcqcn+bbr", "annulus-dcqcn"))


def _faster(measure: str, base: str, arm: str, load: float) -> str:
    return f"{measure}({base} · load={load}) / {measure}({arm} · load={load})"


BINDINGS = {
    "ann-013": Binding(
        tuple(_faster("fct_small_avg", *pair, HALF) for pair in PAIRS),
        of_means=True,
        also=(
            *(_faster("fct_small_avg", *pair, HIGH) for pair in PAIRS),
            *(_faster("fct_small_p99", *pair, load) for pair in PAIRS for load in (HALF, HIGH)),
            *(_faster("utilisation_watched", *pair, load) for pair in PAIRS for load in (HALF, HIGH)),
        ),
    ),
}
