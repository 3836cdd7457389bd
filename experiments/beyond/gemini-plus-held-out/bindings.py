"""How our statements on gemini-plus are measured on the networks that were held back: network by network."""

from narrows.claims import Binding

SCENARIOS = ("B-HELD",)

PLUS = "gemini-plus"
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


def _than(measure: str, others: tuple[str, ...] = ("gemini",), relation: str = "<") -> tuple[str, ...]:
    """Against each of the others, on every network."""
    return tuple(
        f"{measure}({PLUS} · network={network}) {relation} {measure}({other} · network={network})"
        for network in NETWORKS
        for other in others
    )


BINDINGS = {
    "bey-023": Binding(orders=_than("fct_small_p99")),
    "bey-024": Binding(orders=_than("fct_large")),
    "bey-025": Binding(orders=_than("fct_all", ("gemini", "cubic", "vegas-10", "bbr"))),
    "bey-026": Binding(orders=_than("queue_p99_watched", relation="<=")),
}
