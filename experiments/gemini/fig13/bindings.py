"""How the claims of Fig. 13 are measured."""

from narrows.claims import Binding

SCENARIOS = ("E-F13",)

BINDINGS = {
    "gem-072": Binding(),
    "gem-073": Binding(),
    "gem-074": Binding(names={"fct_small": ("fct_small_avg",)}),
    "gem-075": Binding(),
    # The workload.
    "gem-088": Binding(("share_of_small_flows()",), scenarios=SCENARIOS),
    "gem-089": Binding(("share_of_bytes_in_largest_tenth()",), scenarios=SCENARIOS),
}
