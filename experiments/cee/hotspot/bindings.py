"""How the claims on one hot port are measured.

The queue that is sampled is the port's. Flow control watches it only where packets count at the output; so the shape of
the queue is judged there, and the flows where packets count at the input.
"""

from narrows.claims import Binding
from narrows.figures.lossless import MANAGED, TCPS, case

SCENARIOS = ("hotspot",)


def _bindings() -> dict[str, Binding]:
    def measure(name: str, scheme: str, tcp: str) -> str:
        return f"{name}({case(scheme, tcp)})"

    def dropped(of: str, tcp: str) -> str:
        return measure(f"dropped_of_{of}", "qcn-66", tcp)

    return {
        "cee-001": Binding(
            orders=tuple(
                f"{measure('queue_near_pause', each, tcp)} < {measure('queue_near_pause', f'{each}+pfc', tcp)}"
                for each in MANAGED
                for tcp in TCPS
            ),
            reading="output",
            scenarios=SCENARIOS,
        ),
        "cee-003": Binding(
            tuple(measure("largest_share", scheme, tcp) for scheme in ("qcn-66", "qcn-66+pfc") for tcp in TCPS),
            scenarios=SCENARIOS,
        ),
        "cee-004": Binding(
            orders=tuple(f"{dropped('others', tcp)} <= 0.05 * {dropped('largest', tcp)}" for tcp in TCPS),
            scenarios=SCENARIOS,
        ),
    }


BINDINGS = _bindings()
