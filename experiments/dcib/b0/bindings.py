"""How the claim of B-0 is measured."""

from narrows.claims import Binding

SCENARIOS = ("B-0",)

BINDINGS = {"dci-017": Binding(("utilisation_wan_busiest(newreno)",), also=("utilisation_wan_busiest(cubic)",))}
