"""A run in detail: it is made again, with a trace of chosen flows; and where the time of flows went."""

from narrows.traces.explanation import Explanation, explain, slowest
from narrows.traces.traced import Traced, trace

__all__ = ["Explanation", "Traced", "explain", "slowest", "trace"]
