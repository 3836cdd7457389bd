"""How our statements in the setting of GEMINI's Fig. 13 are measured."""

from narrows.claims import Binding

SCENARIOS = ("B-F13",)


def _beside(measure: str) -> tuple[str, ...]:
    """Not judged: the ideal, all the site's switches telling, and the paper's best without either."""
    return (f"{measure}(gemini+whole-site)", f"{measure}(vegas-10)")


BINDINGS = {
    "bey-001": Binding(also=_beside("fct_small_p99")),
    "bey-002": Binding(also=_beside("fct_large")),
    "bey-003": Binding(also=_beside("fct_all")),
}
