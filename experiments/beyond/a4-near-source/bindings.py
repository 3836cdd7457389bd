"""How our statements in A-4's setting are measured: requests inside have 64 KB, loads are of a rack's uplink."""

from narrows.claims import Binding

SCENARIOS = ("B-A4",)

BOTH = "gemini+near-source"
HALF = 0.5
LOADS = (0.3, 0.5, 0.7, 0.9)


def _less(measure: str, load: float, traffic: str = "") -> tuple[str, ...]:
    """The two together against each alone."""
    where = f" · load={load}{f' / {traffic}' if traffic else ''}"
    return tuple(f"{measure}({BOTH}{where}) < {measure}({other}{where})" for other in ("gemini", "annulus"))


BINDINGS = {
    "bey-007": Binding(orders=_less("fct_small_p99", HALF)),
    "bey-008": Binding(orders=tuple(text for load in LOADS for text in _less("fct_small_p99", load))),
    "bey-009": Binding(orders=_less("fct_all", HALF, "wan/1-2")),
}
