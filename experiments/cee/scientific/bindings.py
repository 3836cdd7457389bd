"""How the claims on the scientific workload are measured, and the one on both workloads."""

from narrows.claims import Binding
from narrows.figures.lossless import MANAGED, SCHEMES, TCPS, case

SCENARIOS = ("scientific",)


def _bindings() -> dict[str, Binding]:
    def time(scheme: str, tcp: str = "") -> str:
        return f"completion({case(scheme, tcp)})"

    def bound(*orders: str) -> Binding:
        return Binding(orders=orders, scenarios=SCENARIOS)

    # With QCN-20 of the commercial workload too, which the claim exempts: the stricter of the two.
    paused, lossy = (" * ".join(time(f"{each}{pfc}") for each in MANAGED) for pfc in ("+pfc", ""))
    return {
        "cee-019": bound(
            *(f"{time('red+pfc', tcp)} <= min({', '.join(time(scheme, tcp) for scheme in SCHEMES)})" for tcp in TCPS)
        ),
        "cee-020": bound(
            *(f"{time('qcn-20', tcp)} <= min({', '.join(time(each, tcp) for each in MANAGED)})" for tcp in TCPS)
        ),
        "cee-021": bound(*(f"{time('qcn-20', tcp)} < {time('none', tcp)}" for tcp in TCPS)),
        # Less than 1 is a ratio without a unit, of the times of four schemes: its fourth root is the mean scheme's.
        "cee-023": Binding(orders=(f"{paused} / ({lossy}) < 1",), scenarios=("commercial", "scientific")),
    }


BINDINGS = _bindings()
