"""How the claims of Fig. 14 are measured."""

from narrows.claims import Binding

SCENARIOS = ("E-F14",)

BINDINGS = {
    "gem-076": Binding(),
    "gem-077": Binding(),
    "gem-078": Binding(names={"fct_small": ("fct_small_avg",)}),
    "gem-079": Binding(),
}
