"""Controllers that learn: `Learner`, what they derive from, and in `narrows.learning.environment` where they learn."""

from narrows.learning.interval import Interval
from narrows.learning.learner import Learner

__all__ = ["Interval", "Learner"]
