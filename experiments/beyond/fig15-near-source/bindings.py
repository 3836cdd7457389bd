"""How our statements in the setting of GEMINI's Fig. 15 are measured."""

from narrows.claims import Binding

SCENARIOS = ("B-F15",)


def _beside(measure: str) -> tuple[str, ...]:
    """Not judged: the ideal, all the site's switches telling, and the paper's best without either."""
    return (f"{measure}(gemini+whole-site)", f"{measure}(vegas-10)")


BINDINGS = {
    "bey-004": Binding(also=_beside("fct_small_p99")),
    "bey-005": Binding(also=_beside("fct_large")),
    "bey-006": Binding(also=_beside("fct_all")),
}
