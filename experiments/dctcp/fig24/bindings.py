"""How the claims of Fig. 24 are measured."""

from narrows.claims import Binding

SCENARIOS = ("D-13",)

BINDINGS = {
    "dct-030": Binding(orders=("request_timeout_share(dctcp) < request_timeout_share(tcp-1x)",)),
    "dct-031": Binding(names={"p95_query": ("request_p95",), "p95_short": ("message_p95",)}),
    "dct-032": Binding(names={"p95_query": ("request_p95",), "p95_short": ("message_p95",)}),
    "dct-042": Binding(("request_timeout_share(tcp)",)),
    "dct-043": Binding(("request_timeout_share(dctcp)",)),
}
