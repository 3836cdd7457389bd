"""How the claims of A-2 are measured: the first load of the WAN is as good as none."""

from narrows.claims import Binding

SCENARIOS = ("A-2",)

LOADS = ("0.00001", "0.05", "0.1", "0.15", "0.2", "0.25", "0.3", "0.35", "0.4")


def _rises(measure: str) -> tuple[str, str]:
    """No step down, and in the end more than in the beginning."""
    each = [f"{measure}(dctcp+bbr · load={load})" for load in LOADS]
    return " <= ".join(each), f"{each[-1]} > {each[0]}"


BINDINGS = {
    "ann-006": Binding(orders=(*_rises("fct_small_p99"), *_rises("plr_dcn")), full_only=True),
}
