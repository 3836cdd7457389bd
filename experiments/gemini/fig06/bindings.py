"""How the claims of Fig. 6 are measured."""

from math import inf

from narrows.claims import Binding, Instead

SCENARIOS = ("E-F6",)

BINDINGS = {
    # Throughput is the mean over flows of size over time; beside it the ratio of the mean times.
    "gem-011": Binding(
        ("goodput_large(vegas-20) / goodput_large(vegas-1)",), also=("fct_large(vegas-1) / fct_large(vegas-20)",)
    ),
    # The claim's note: where hardly anything is lost with N = 1, both losses are judged in place of their ratio.
    "gem-012": Binding(
        ("plr_dcn(vegas-20) / plr_dcn(vegas-1)",),
        instead=Instead(
            "plr_dcn(vegas-1)", 1.0, (("plr_dcn(vegas-1)", (0.0, 1.0)), ("plr_dcn(vegas-20)", (30.0, inf)))
        ),
        of_means=True,
        also=("plr_dcn(vegas-1)", "plr_dcn(vegas-20)"),
    ),
    "gem-040": Binding(),
    "gem-041": Binding(),
}
