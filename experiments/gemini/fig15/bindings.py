"""How the claims of Fig. 15 are measured."""

from narrows.claims import Binding

SCENARIOS = ("E-F15",)

BINDINGS = {
    # The set-up, mean over all arms.
    "gem-022": Binding(("utilisation_fabric()",), full_only=True, setup=True),
    "gem-080": Binding(),
    "gem-081": Binding(),
    "gem-082": Binding(),
    "gem-087": Binding(("plr(bbr)",)),
}
