"""How the claims of Fig. 16 are measured."""

from narrows.claims import Binding

SCENARIOS = ("E-F16",)

BINDINGS = {
    "gem-083": Binding(),
    "gem-084": Binding(),
    "gem-085": Binding(),
}
