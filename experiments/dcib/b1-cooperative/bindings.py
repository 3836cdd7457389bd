"""How the claims of experiment I with a cooperative WAN are measured."""

from narrows.claims import Binding

SCENARIOS = ("B-I-c",)


def gain(controller: str) -> str:
    """Goodput with the pair of edges over that without, the same losses."""
    return f"goodput_long(dcib+{controller}) / goodput_long({controller})"


BINDINGS = {
    "dci-001": Binding((gain("reno"),)),
    "dci-002": Binding((gain("cubic"),), also=("marked_share(dcib+cubic)", "lost_on_wire(dcib+cubic)")),
    "dci-006": Binding(("marked_share(dcib+reno)", "marked_share(dcib+cubic)"), setup=True),
    "dci-007": Binding(("lost_on_wire(dcib+reno)", "lost_on_wire(dcib+cubic)"), setup=True),
    "dci-013": Binding(tuple(gain(one) for one in ("reno", "cubic", "bbr")), scenarios=("B-I-c",)),
}
