"""How the claims about tails and utilisation are measured: under each set-up that the slides allow."""

from narrows.claims import Binding

SCENARIOS = ("setups",)


def _tail(arm: str, demand: str) -> str:
    """Of requests inside, under 100 KB."""
    return f"fct_small_p99({arm} · demand={demand} / dc)"


def _use(arm: str) -> str:
    return f"utilisation_watched({arm} · demand=busy)"


BINDINGS = {
    "ann-002": Binding(
        (f"1 - {_tail('annulus', 'half')} / {_tail('dctcp+bbr', 'half')}",), of_means=True, scenarios=SCENARIOS
    ),
    "ann-004": Binding((f"{_use('annulus')} / {_use('dctcp+bbr')} - 1",), scenarios=SCENARIOS),
    "ann-014": Binding(
        (f"{_tail('dctcp+bbr', 'both')} / {_tail('dctcp+bbr', 'inside')}",),
        of_means=True,
        also=(f"{_tail('annulus', 'both')} / {_tail('annulus', 'inside')}",),
        scenarios=SCENARIOS,
    ),
}
