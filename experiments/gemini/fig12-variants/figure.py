"""Fig. 12, one thing changed at a time: goodput of flows that leave the datacenter over that of flows that stay."""

from __future__ import annotations

from typing import TYPE_CHECKING

from narrows.figures import bars
from narrows.measures.named import value_if_any
from narrows.measures.stats import estimate
from narrows.wording import number

if TYPE_CHECKING:
    import altair as alt

    from narrows.results import Results


def draw(results: Results) -> alt.TopLevelMixin:
    """A panel for each ratio of RTTs, a bar for each variant."""
    frames = results.frames
    schemes = list(dict.fromkeys(frames.long["arm"]))
    by_delay: dict[str, list[str]] = {}
    for case in frames.cases:
        by_delay.setdefault(case.partition(" · ")[2], []).append(case)
    panels = []
    for cases in by_delay.values():
        ratio = min(value_if_any(frames, "round_trip_ratio", (cases[0],)).values())
        values = {
            case.partition(" · ")[0]: estimate(list(value_if_any(frames, "inter_over_intra", (case,)).values()))
            for case in cases
        }
        panels.append(bars.Panel(f"RTT {number(ratio, 2)} times: inter over intra", "ratio of goodputs", values))
    return bars.draw(panels, schemes)
