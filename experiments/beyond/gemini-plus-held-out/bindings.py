"""How our statements on gemini-plus are measured on the networks that were held back: network by network."""

from narrows.claims import Binding, along

SCENARIOS = ("B-HELD",)

NETWORKS = (
    "2520us-18500Mbps",
    "3310us-3700Mbps",
    "7380us-4600Mbps",
    "9020us-1160Mbps",
    "16300us-2430Mbps",
    "31500us-12300Mbps",
    "51200us-8540Mbps",
    "70800us-1670Mbps",
)
ALL_FLOWS = tuple(
    f"fct_all(gemini-plus · AT) < fct_all({other} · AT)" for other in ("gemini", "cubic", "vegas-10", "bbr")
)
QUEUE = "queue_p99_watched(gemini-plus · AT) <= queue_p99_watched(gemini · AT)"

BINDINGS = {
    "bey-023": Binding(
        orders=along("network", NETWORKS, "fct_small_p99(gemini-plus · AT) < fct_small_p99(gemini · AT)")
    ),
    "bey-024": Binding(orders=along("network", NETWORKS, "fct_large(gemini-plus · AT) < fct_large(gemini · AT)")),
    "bey-025": Binding(orders=along("network", NETWORKS, *ALL_FLOWS)),
    "bey-026": Binding(orders=along("network", NETWORKS, QUEUE)),
}
