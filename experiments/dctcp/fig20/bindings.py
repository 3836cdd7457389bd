"""How the claims of Fig. 20 are measured."""

from narrows.claims import Binding

SCENARIOS = ("D-9",)

BINDINGS = {
    "dct-021": Binding(("request_timeout_share(tcp)",), also=("request_timeout_share(tcp-linux-6)",)),
    "dct-022": Binding(("request_timeout_share(dctcp)",), also=("request_timeout_share(dctcp-linux-6)",)),
}
