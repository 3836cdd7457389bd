"""How the claims of Fig. 14 are measured."""

from pathlib import Path

from narrows.claims import Binding
from narrows.experiment import Experiment

SCENARIOS = ("D-2",)

_HERE = Path(__file__).parent


def _total(arm: str, packets: int) -> str:
    return f"goodput_total({arm} · mark-at={packets}pkt)"


def _burst() -> float:
    """Packets that the hosts of the plans hand to their card at once."""
    bursts = {
        float(traffic.get("profile", {}).get("offload-segments", 0))
        for plan in Experiment(_HERE / "experiment.toml").plans
        for traffic in plan.body["traffic"]
    }
    assert len(bursts) == 1, "all hosts are alike"
    return bursts.pop()


_AT_1G = ", ".join(_total("dctcp-1g", packets) for packets in (5, 10, 20, 30, 40, 50, 65, 80))

BINDINGS = {
    "dct-005": Binding(orders=(f"max({_AT_1G}) / min({_AT_1G}) <= 1.03",)),
    "dct-006": Binding(tuple(f"{_total('dctcp', packets)} / {_total('tcp', packets)}" for packets in (80, 100))),
    "dct-038": Binding(computed=_burst),
}
