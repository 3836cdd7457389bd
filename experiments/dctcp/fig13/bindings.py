"""How the claims of Fig. 13 are measured."""

from pathlib import Path

from narrows.claims import Binding
from narrows.experiment import Experiment
from narrows.figures.sweep import number_of

SCENARIOS = ("D-1",)

_HERE = Path(__file__).parent


def _threshold(figure: str) -> float:
    """K, packets, that a figure's DCTCP declares in the plan that is run."""
    plans = Experiment(_HERE.parent / figure / "experiment.toml").plans
    plan = next(plan for plan in plans if plan.arm == "dctcp")
    return number_of(dict(plan.declared)["fabric.aqm.threshold.mark-at"])


# Of the paper's two panels the text speaks of two flows.
BINDINGS = {
    "dct-001": Binding(("queue_median(dctcp · flows=2)",)),
    "dct-002": Binding(("queue_median(tcp · flows=2) / queue_median(dctcp · flows=2)",)),
    "dct-003": Binding(orders=("queue_spread(tcp · flows=2) > 3 * queue_spread(dctcp · flows=2)",)),
    # In KB: a full packet has 1.5. A port's share of the memory, alpha, was derived from this number: the set-up's.
    "dct-004": Binding(("1.5 * queue_max(tcp · flows=2)",), setup=True),
    "dct-012": Binding(computed=lambda: (_threshold("fig13"), _threshold("fig15")), each=((20, 20), (65, 65))),
    "dct-047": Binding(("queue_mean(dctcp · flows=2) / queue_mean(tcp · flows=2)",)),
}
