"""How the claim on TCP beside UDP is measured. Judged where packets count at the input."""

from narrows.claims import Binding
from narrows.figures.lossless import TCPS, case

SCENARIOS = ("shares",)


def bindings(reading: str) -> dict[str, Binding]:
    """Of one reading: where a switch counts packets."""

    # The contended link is the same for all, and so are its rate and what a share is of.
    def share(scheme: str, tcp: str) -> str:
        return f"goodput_total({case(scheme, reading, tcp)} / tcp)"

    return {
        "cee-017": Binding(
            orders=tuple(
                f"{share(f'{qcn}{pfc}', tcp)} > {share(f'{other}{pfc}', tcp)}"
                for pfc in ("", "+pfc")
                for qcn in ("qcn-20", "qcn-66")
                for other in ("red", "none")
                for tcp in TCPS
            ),
            scenarios=SCENARIOS,
        ),
    }


BINDINGS = bindings("input")
