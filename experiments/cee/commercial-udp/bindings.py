"""How the claim on datagrams in the background is measured."""

from narrows.claims import Binding
from narrows.figures.lossless import TCPS, case

SCENARIOS = ("commercial-udp",)


def _bindings() -> dict[str, Binding]:
    cases = (case("none", tcp) for tcp in TCPS)
    return {
        "cee-016": Binding(
            orders=tuple(
                f"dropped({each} / inside) + dropped({each} / across) > dropped({each} / request)" for each in cases
            ),
            scenarios=SCENARIOS,
        ),
    }


BINDINGS = _bindings()
