"""How the claim of Fig. 17 is measured."""

from narrows.claims import Binding

SCENARIOS = ("D-6",)

BINDINGS = {"dct-046": Binding(tuple(f"goodput_long(dctcp / {group})" for group in ("s1", "s3", "s2")))}
