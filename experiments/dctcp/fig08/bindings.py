"""How the claims of Fig. 8 are measured."""

from narrows.claims import Binding

SCENARIOS = ("D-JIT",)

BINDINGS = {
    "dct-036": Binding(("request_p999(jittered) / request_p999(immediate)",)),
    "dct-037": Binding(("request_p95(jittered) / request_p95(immediate)",)),
}
