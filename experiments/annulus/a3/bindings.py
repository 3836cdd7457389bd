"""How the claim of A-3 is measured: what of the flows across is dropped, wherever."""

from narrows.claims import Binding

SCENARIOS = ("A-3",)

BINDINGS = {
    "ann-007": Binding(
        names={"drop_wan": ("dropped_across",)},
        also=("dropped_across(annulus)", *(f"fct_small_p99({arm})" for arm in ("shared", "isolated", "annulus"))),
    ),
}
