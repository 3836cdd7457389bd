"""How the claim about BBR's answer to losses is measured."""

from narrows.claims import Binding

SCENARIOS = ("E-BBR-loss",)

BINDINGS = {
    "gem-091": Binding(("loss_that_slows(bbr · loss=1%)",)),
}
