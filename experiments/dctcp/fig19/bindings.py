"""How the claims of Fig. 19 are measured."""

from narrows.claims import Binding

SCENARIOS = ("D-8",)

BINDINGS = {
    "dct-019": Binding(("request_timeout_share_most(dctcp)",)),
    "dct-020": Binding(("request_timeout_share(tcp · count=40)",)),
}
