"""How our statements on gemini-plus are measured on the networks of the paper: network by network."""

from narrows.claims import Binding

SCENARIOS = ("B-PLUS",)

PLUS = "gemini-plus"
NETWORKS = (
    "fig13",
    "fig14",
    "fig15",
    "fig16",
)


def _than(measure: str, others: tuple[str, ...] = ("gemini",), relation: str = "<") -> tuple[str, ...]:
    """Against each of the others, on every network."""
    return tuple(
        f"{measure}({PLUS} · network={network}) {relation} {measure}({other} · network={network})"
        for network in NETWORKS
        for other in others
    )


BINDINGS = {
    "bey-019": Binding(orders=_than("fct_small_p99")),
    "bey-020": Binding(orders=_than("fct_large")),
    "bey-021": Binding(orders=_than("fct_all", ("gemini", "cubic", "vegas-10", "bbr"))),
    "bey-022": Binding(orders=_than("queue_p99_watched", relation="<=")),
}
