"""How the claims of Fig. 13 are measured."""

from pathlib import Path

from narrows.claims import Binding
from narrows.experiment import expand

SCENARIOS = ("D-1",)

_HERE = Path(__file__).parent


def _threshold(figure: str) -> float:
    """K, packets, at the ports of a figure's DCTCP, as the plan that is run holds it."""
    plans = expand(_HERE.parent / figure / "experiment.toml").plans
    plan = next(plan for plan in plans if plan.arm == "dctcp")
    laws = [link["aqm"]["threshold"]["mark_at"]["packets"] for link in plan.body["network"]["links"] if link["aqm"]]
    assert len(set(laws)) == 1, "all ports mark alike"
    return float(laws[0])


# Of the paper's two panels the text speaks of two flows.
BINDINGS = {
    "dct-001": Binding(("queue_median(dctcp · flows=2)",)),
    "dct-002": Binding(("queue_median(tcp · flows=2) / queue_median(dctcp · flows=2)",)),
    "dct-003": Binding(orders=("queue_spread(tcp · flows=2) > 3 * queue_spread(dctcp · flows=2)",)),
    # In KB: a full packet has 1.5.
    "dct-004": Binding(("1.5 * queue_max(tcp · flows=2)",)),
    "dct-012": Binding(computed=lambda: (_threshold("fig13"), _threshold("fig15"))),
    "dct-047": Binding(("queue_mean(dctcp · flows=2) / queue_mean(tcp · flows=2)",)),
}
