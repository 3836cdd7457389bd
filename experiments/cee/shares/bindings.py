"""How the claim on TCP beside UDP is measured."""

from narrows.claims import Binding
from narrows.figures.lossless import TCPS, case

SCENARIOS = ("shares",)


def _bindings() -> dict[str, Binding]:
    # The contended link is the same for all, and so are its rate and what a share is of.
    def share(scheme: str, tcp: str) -> str:
        return f"goodput_total({case(scheme, tcp)} / tcp)"

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


BINDINGS = _bindings()
