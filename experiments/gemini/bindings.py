"""How the claims are measured that belong to several figures, or to none.

A claim that is bound neither here nor beside its figure is not judged. Expressions are over the named measures of
`narrows.claims`.
"""

import itertools
from pathlib import Path

from narrows import native
from narrows.claims import Binding
from narrows.experiment import Experiment
from narrows.measures import analysis

_HERE = Path(__file__).parent

MB, GB = 1e6, 1e9
GBPS = 1e9


def _buffer(memory: float, ports: int, gbps: float) -> float:
    """Bytes for each port and Gbit/s."""
    return memory / (ports * gbps)


def _default(name: str) -> float:
    """A number among the defaults of our controller."""
    gemini = next(spec for spec in native.controllers() if spec["name"] == "gemini")
    return float(next(item["default"] for item in gemini["parameters"] if item["name"] == name))


def _least_queue() -> float:
    """Theorem 1: how far the shortest queue, over all numbers of flows and F at the bound, lies from zero at worst."""
    worst = 0.0
    for gbps, rtt, threshold, step in itertools.product((1, 10, 100), (2e-4, 2e-3, 1e-2), (20, 50, 500), (0.1, 1, 5)):
        capacity = analysis.packets_per_second(gbps * GBPS)
        scale = analysis.largest_scale(capacity, rtt, threshold)
        lowest = _shortest_queue(capacity, rtt, threshold, scale, step)
        worst = max(worst, lowest, -lowest)
    return worst


def _shortest_queue(capacity: float, rtt: float, threshold: float, scale: float, step: float = 1.0) -> float:
    """Over all numbers of flows, with the amplitude as the paper prints it, packets."""
    return analysis.least(
        lambda flows: (
            (tooth := analysis.Sawtooth(flows, capacity, rtt, threshold, scale, step)).highest - tooth.printed_amplitude
        ),
        (1e-6, 1e6),
    )


def _dctcp_match() -> float:
    """The F at which the shortest queue is just empty where K is DCTCP's bound."""
    capacity, rtt = analysis.packets_per_second(GBPS), 0.01
    threshold = analysis.least_threshold(capacity, rtt)
    return analysis.zero(lambda scale: _shortest_queue(capacity, rtt, threshold, scale), (1e-3, 3.9))


def _largest_cut() -> float:
    """The β after which the window of a flow that saw a delay of T just fills the pipe: 1 Gbit/s, 10 ms, T of 5 ms."""
    capacity, rtt, delay = analysis.packets_per_second(GBPS), 0.010, 0.005
    return analysis.zero(lambda beta: (1 - beta) * capacity * (rtt + delay) - capacity * rtt, (0.0, 1.0))


def _supported_ratio() -> float:
    """RTTs between datacenters over those inside: in Fig. 12, whose hosts are 200 µs apart, with 200 ms."""
    plan = Experiment(_HERE / "fig12" / "experiment.toml", settings=[("wan.delay", "99.9ms")]).plans[0]
    across, inside = (native.base_rtt_ns(plan.body, "a1-1", other) for other in ("b1-1", "a2-1"))
    return across / inside


BINDINGS = {
    # Table I: memory per port and Gbit/s, in KB inside datacenters and in MB across the WAN.
    "gem-013": Binding(computed=lambda: _buffer(4 * 1024**2, 48, 1) / 1024),
    "gem-014": Binding(computed=lambda: _buffer(9 * 1024**2, 48, 10) / 1024),
    "gem-015": Binding(computed=lambda: _buffer(12 * 1024**2, 32, 40) / 1024),
    "gem-016": Binding(computed=lambda: _buffer(96 * GB, 576, 10) / MB),
    "gem-017": Binding(computed=lambda: _buffer(96 * GB, 144, 100) / MB),
    "gem-018": Binding(computed=lambda: _buffer(384 * GB, 2304, 10) / MB),
    # Analysis.
    "gem-042": Binding(computed=lambda: GBPS * 0.01 / 8 / MB),
    "gem-043": Binding(computed=_dctcp_match),
    "gem-044": Binding(computed=_least_queue),
    "gem-046": Binding(computed=_largest_cut),
    # Our controller's defaults.
    # What an experiment may ask for; the paper's own figure goes to 64.
    "gem-092": Binding(computed=_supported_ratio),
    "gem-047": Binding(computed=lambda: _default("h") * GBPS * 0.01),
    "gem-048": Binding(computed=lambda: (_default("h-min"), _default("h-max")), each=((0.1, 0.1), (5.0, 5.0))),
    # Headline reductions, "up to": the largest over the four figures of realistic traffic.
    "gem-001": Binding(
        ("1 - fct_small_avg(gemini) / fct_small_avg(cubic)",),
        over="max",
        also=("1 - fct_small_avg(gemini) / fct_small_avg(cubic-ecn)",),
    ),
    "gem-002": Binding(("1 - fct_small_avg(gemini) / fct_small_avg(dctcp)",), over="max"),
    "gem-003": Binding(("1 - fct_small_avg(gemini) / fct_small_avg(bbr)",), over="max"),
    "gem-004": Binding(("1 - fct_large(gemini) / fct_large(vegas)",), over="max"),
    "gem-086": Binding(("plr(gemini)",)),
    "gem-090": Binding(rank_slack=0.05),
}
