"""How the claims of Fig. 11 are measured."""

from narrows.claims import Binding

SCENARIOS = ("E-F11",)

BINDINGS = {
    # All three groups are there: 100 to 150 s, in quick runs 20 to 30 s.
    "gem-063": Binding(("jain_all(gemini)",)),
    "gem-064": Binding(names={"jain": ("jain_all",)}),
    # Every flow of every group, after each of the five changes, the first start among them.
    "gem-065": Binding(("time_to_share(gemini)",)),
}
