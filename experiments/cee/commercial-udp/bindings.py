"""How the claim on datagrams in the background is measured. Judged where packets count at the input."""

from narrows.claims import Binding
from narrows.figures.lossless import TCPS, case

SCENARIOS = ("commercial-udp",)


def bindings(reading: str) -> dict[str, Binding]:
    """Of one reading: where a switch counts packets."""
    cases = (case("none", reading, tcp) for tcp in TCPS)
    return {
        "cee-016": Binding(
            orders=tuple(
                f"dropped({each} / inside) + dropped({each} / across) > dropped({each} / request)" for each in cases
            ),
            scenarios=SCENARIOS,
        ),
    }


BINDINGS = bindings("input")
