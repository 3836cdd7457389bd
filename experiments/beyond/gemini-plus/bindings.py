"""How our statements on gemini-plus are measured on the networks of the paper: network by network."""

from narrows.claims import Binding, along

SCENARIOS = ("B-PLUS",)

NETWORKS = (
    "fig13",
    "fig14",
    "fig15",
    "fig16",
)
ALL_FLOWS = tuple(
    f"fct_all(gemini-plus · AT) < fct_all({other} · AT)" for other in ("gemini", "cubic", "vegas-10", "bbr")
)
QUEUE = "queue_p99_watched(gemini-plus · AT) <= queue_p99_watched(gemini · AT)"

BINDINGS = {
    "bey-019": Binding(
        orders=along("network", NETWORKS, "fct_small_p99(gemini-plus · AT) < fct_small_p99(gemini · AT)")
    ),
    "bey-020": Binding(orders=along("network", NETWORKS, "fct_large(gemini-plus · AT) < fct_large(gemini · AT)")),
    "bey-021": Binding(orders=along("network", NETWORKS, *ALL_FLOWS)),
    "bey-022": Binding(orders=along("network", NETWORKS, QUEUE)),
}
