"""How far the simulator and a real kernel agree: the same plans on both, number beside number."""

from narrows.fidelity.catalogue import Comparison, Scenario, Tolerance
from narrows.fidelity.judge import ArmVerdict, Quantity, ScenarioVerdict, judge

__all__ = ["ArmVerdict", "Comparison", "Quantity", "Scenario", "ScenarioVerdict", "Tolerance", "judge"]
