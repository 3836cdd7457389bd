"""How the claims of Fig. 21 are measured."""

from narrows.claims import Binding

SCENARIOS = ("D-10",)

BINDINGS = {
    "dct-023": Binding(("request_median(dctcp)",)),
    "dct-024": Binding(("request_median(tcp)",)),
    "dct-025": Binding(("request_median(tcp) / request_median(dctcp)",)),
}
