"""How the claims of Table 2 are measured."""

from narrows.claims import Binding

SCENARIOS = ("D-11",)

BINDINGS = {
    "dct-035": Binding(
        orders=(
            "request_p95(tcp-background) > 2 * request_p95(tcp)",
            "request_p95(dctcp-background) <= 1.1 * request_p95(dctcp)",
        )
    ),
    "dct-040": Binding(("request_p95(tcp-background)",), also=("request_timeout_share(tcp-background)",)),
    "dct-041": Binding(("request_p95(dctcp-background)",), also=("request_timeout_share(dctcp-background)",)),
}
