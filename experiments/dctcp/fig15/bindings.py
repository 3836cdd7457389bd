"""How the claims of Fig. 15 are measured."""

from narrows.claims import Binding

SCENARIOS = ("D-3",)

BINDINGS = {
    "dct-034": Binding(names={"qspread": ("queue_spread",)}),
    # In Gbit/s.
    "dct-044": Binding(("goodput_total(tcp-red) / 1000",)),
}
