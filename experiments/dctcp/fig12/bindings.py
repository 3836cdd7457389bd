"""How the claims of Fig. 12 are measured: against the closed forms of the paper's analysis."""

from narrows.claims import Binding
from narrows.measures import analysis

SCENARIOS = ("E-ANA",)

CAPACITY, RTT, THRESHOLD = analysis.packets_per_second(10e9), 100e-6, 40.0


def tooth(flows: int) -> analysis.Sawtooth:
    """The sawtooth that the analysis expects."""
    return analysis.Sawtooth(flows, CAPACITY, RTT, THRESHOLD)


BINDINGS = {
    "dct-009": Binding(tuple(f"queue_max(dctcp · flows={flows}) - {tooth(flows).highest:g}" for flows in (2, 10))),
    "dct-010": Binding((f"queue_range(dctcp · flows=40) / {tooth(40).printed_amplitude:.4f}",)),
}
