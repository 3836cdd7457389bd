"""How the claims on how much congestion there is are measured. Judged where packets count at the input."""

from pathlib import Path

from narrows import native
from narrows.claims import Binding
from narrows.experiment import Experiment
from narrows.figures.lossless import CODES, TCPS, case

SCENARIOS = ("congestion",)

_STACKS_US = 2 * (9.5 + 24)
"""What both hosts' stacks take of an RTT."""
_SENT_US = 4 * (1538 + 90) * 8 / 10e3
"""To send a full packet and its acknowledgement over 4 links of 10 Gbit/s each, framing included."""
_NETWORK_RTT_MS = (8 * 0.575 + _SENT_US) / 1e3
"""An RTT between racks without stacks and queues, over 8 links of 575 ns; cee-026 takes the delays from the plan."""
_FABRICS = ("", "+pfc")


def _network_rtt() -> float:
    """Microseconds, between hosts of different racks."""
    plan = Experiment(Path(__file__).with_name("experiment.toml")).plans[0]
    return native.base_rtt_ns(plan.body, "l1-1", "l8-8") / 1e3 - _STACKS_US + _SENT_US


def _bindings() -> dict[str, Binding]:
    def of(measure: str, code: str, tcp: str) -> str:
        return f"{measure}({case(code, tcp)})"

    def most(measure: str, pfc: str, tcp: str) -> str:
        return f"max({', '.join(of(measure, f'{code}{pfc}', tcp) for code in CODES)})"

    def mean(measure: str, tcp: str) -> str:
        return f"({' + '.join(of(measure, code, tcp) for code in CODES)}) / {len(CODES)}"

    return {
        "cee-012": Binding(
            tuple(
                f"{most('queueing_delay_largest', pfc, tcp)} / {_NETWORK_RTT_MS:.5f}"
                for pfc in _FABRICS
                for tcp in TCPS
            ),
            scenarios=SCENARIOS,
        ),
        "cee-018": Binding(
            orders=tuple(
                f"{mean(measure, tcp)} > {of(measure, 'commercial', tcp)}"
                for measure in ("congested_share", "congested_time")
                for tcp in TCPS
            ),
            scenarios=SCENARIOS,
        ),
        # The end-to-end delay as a sender sees it, both ways and with 67 us of stacks: the largest mean of a flow.
        "cee-027": Binding(
            tuple(most("rtt_largest", pfc, tcp) for pfc in _FABRICS for tcp in TCPS), scenarios=SCENARIOS
        ),
    }


BINDINGS = _bindings() | {"cee-026": Binding(computed=_network_rtt, setup=True)}
