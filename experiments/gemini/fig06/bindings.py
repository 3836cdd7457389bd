"""How the claims of Fig. 6 are measured."""

from narrows.claims import Binding

SCENARIOS = ("E-F6",)

BINDINGS = {
    # Throughput is the mean over flows of size over time; beside it the ratio of the mean times.
    "gem-011": Binding(
        ("goodput_large(vegas-20) / goodput_large(vegas-1)",), also=("fct_large(vegas-1) / fct_large(vegas-20)",)
    ),
    # Both losses beside their ratio: the claim's note has a rule for a denominator near zero.
    "gem-012": Binding(("plr_dcn(vegas-20) / plr_dcn(vegas-1)",), also=("plr_dcn(vegas-1)", "plr_dcn(vegas-20)")),
    "gem-040": Binding(),
    "gem-041": Binding(),
}
