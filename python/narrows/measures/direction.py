"""Which of two values of a measure is the better one, where one can say so."""

from __future__ import annotations

from typing import Final, Literal

from narrows.measures.registry import ALIASES

Direction = Literal["lower", "higher", ""]

HIGHER: Final = frozenset({
    "goodput_large", "goodput_long", "goodput_total", "jain_all", "jain_long", "jain_steps", "steps_converged",
    "utilisation_wan", "utilisation_wan_busiest", "utilisation_fabric", "utilisation_hosts", "utilisation_bottleneck",
    "utilisation_watched", "utilisation_line",
})  # fmt: skip
LOWER: Final = frozenset({
    "fct_small_mean", "fct_small_p99", "fct_medium_mean", "fct_large_mean", "fct_mean", "fct_small_p99_during",
    "message_mean", "message_p95", "background_timeouts", "loss", "loss_dc", "loss_wan", "dropped_across", "dropped",
    "dropped_of_largest", "dropped_of_others", "execution_time", "waiting_share", "request_mean", "request_median",
    "request_p95", "request_p99", "request_p999", "request_timeouts", "request_timeout_share", "timeout_wait",
    "handshake_mean", "rtt_largest", "rtt_long", "rtt_mean", "queueing_delay", "queueing_delay_largest", "queue_p50",
    "queue_p99", "queue_p99_watched", "queue_near_pause", "queue_median", "queue_spread", "queue_std", "queue_range",
    "queue_mean", "queue_max", "peak_queue", "congested_share", "congested_time", "convergence", "time_to_share",
    "cut_inside", "cut_across", "goodput_std", "burstiness_wan", "path_changes",
})  # fmt: skip


def better(measure: str) -> Direction:
    """Whether lower or higher values are better; nothing for what describes the traffic, or both may be."""
    name = ALIASES.get(measure, measure)
    return "higher" if name in HIGHER else "lower" if name in LOWER else ""
