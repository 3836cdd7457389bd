"""How the claim on the cut is measured."""

from narrows.claims import Binding

SCENARIOS = ("unit",)

BINDINGS = {"dct-011": Binding(("first_cut(dctcp / late)",))}
