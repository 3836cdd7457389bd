"""Short and Fat: how many ports are congested, for how long, how long queues and RTTs become, by workload."""

from __future__ import annotations

from typing import TYPE_CHECKING

from narrows.figures import bars, lossless, style
from narrows.measures.named import value_if_any
from narrows.measures.stats import estimate

if TYPE_CHECKING:
    import altair as alt

    from narrows.results import Results


def draw(results: Results) -> alt.TopLevelMixin:
    """A row of bars for each reading, with NewReno."""
    frames, cases = results.frames, ("commercial", *lossless.CODES)
    shown = {
        "congested_share": ("Ports congested", "share"),
        "congested_time": ("Time congested at a stretch", "us"),
        "queueing_delay_largest": ("Longest queue of a switch", "ms"),
        "rtt_largest": ("Largest mean RTT of a flow", "ms"),
    }
    rows = []
    for reading in lossless.READINGS:
        panels = []
        for measure, (title, unit) in shown.items():
            found = {each: value_if_any(frames, measure, (lossless.case(each, reading, "newreno"),)) for each in cases}
            values = {each: estimate(list(by_seed.values())) for each, by_seed in found.items()}
            panels.append(bars.Panel(f"{title}; {reading}", unit, values))
        rows.append(bars.draw(panels, cases))
    return style.stacked(rows)
