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
        "congested_share": ("Ports congested at a time", "% of 16 ports, mean over time", 100),
        "congested_time": ("How long a port stays so", "µs, mean of ports and times", 1),
        "queueing_delay_largest": ("Longest queue of a switch", "ms, at the line's rate", 1),
        "rtt_largest": ("Largest mean RTT of a flow", "ms", 1),
    }
    rows = []
    for reading in lossless.READINGS:
        panels = []
        for measure, (title, unit, scale) in shown.items():
            found = {
                each: value_if_any(frames, measure, (lossless.case(each, "newreno", reading=reading),))
                for each in cases
            }
            values = {each: estimate(list(by_seed.values())) for each, by_seed in found.items()}
            panels.append(bars.Panel(title, unit, bars.scaled(values, scale)))
        row = bars.draw(panels, cases)
        rows.append(row.properties(title=lossless.title("NewReno, unmanaged, switches drop", reading)))
    drawn = "A port is congested while more than 25.6 KB wait. Drawn are 12 of the plans below, of NewReno."
    return lossless.explained(style.stacked(rows), drawn)
