"""How the claims of experiment I with a WAN that does not cooperate are measured.

A tenth of the packets with a copy cannot give what the slides state, so 90 % and all are judged; what a tenth gives
stands beside it.
"""

from narrows.claims import Binding

SCENARIOS = ("B-I-n",)


def gain(controller: str, share: str = "") -> str:
    """Goodput with the pair of edges over that without, the same losses."""
    return f"goodput_long(dcib+{controller}{share}) / goodput_long({controller})"


BINDINGS = {
    "dci-003": Binding((gain("reno", " 90 %"), gain("reno", " 100 %")), also=(gain("reno"), gain("reno", " 50 %"))),
    "dci-004": Binding((gain("cubic", " 90 %"), gain("cubic", " 100 %")), also=(gain("cubic"), gain("cubic", " 50 %"))),
    "dci-005": Binding(
        orders=tuple(f"{gain(one, ' cooperative')} > {gain(one)} > 1" for one in ("reno", "cubic")),
        scenarios=("B-I-n",),
    ),
}
