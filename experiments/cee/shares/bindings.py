"""How the claim on TCP beside UDP is measured. Judged where packets count at the input."""

from narrows.claims import Binding
from narrows.figures.lossless import TCPS, case

SCENARIOS = ("shares",)


def bindings(reading: str) -> dict[str, Binding]:
    """Of one reading: where a switch counts packets."""

    def share(scheme: str, tcp: str) -> str:
        own = case(scheme, reading, tcp)
        return f"goodput_total({own} / tcp) / goodput_total({own})"

    return {
        "cee-017": Binding(
            orders=tuple(
                f"{share(qcn, tcp)} > {share(other, tcp)}"
                for qcn in ("qcn-20", "qcn-66")
                for other in ("red", "none")
                for tcp in TCPS
            ),
            scenarios=SCENARIOS,
        ),
    }


BINDINGS = bindings("input")
