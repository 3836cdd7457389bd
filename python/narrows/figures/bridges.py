"""What a pair of edge routers gives: goodput with and without it, and what became of the packets that might be lost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from narrows.figures import bars, longlived, sweep
from narrows.measures.named import NotEvaluable
from narrows.measures.stats import estimate

if TYPE_CHECKING:
    import altair as alt

    from narrows.frames import Frames
    from narrows.measures.stats import Estimate

WITHOUT: Final = "without the pair"


def draw(frames: Frames) -> alt.TopLevelMixin:
    """A row for each case: goodput of all flows, share of packets lost on the way, share that may be lost."""
    panels = [bars.Panel("Goodput of all flows", "Mbit/s", _measured(frames, "goodput_total"))]
    lost = bars.scaled(_measured(frames, "lost_on_wire"), 100)
    if any(found and found.mean > 0 for found in lost.values()):
        panels.append(bars.Panel("Lost on the wire", "% of the packets", lost))
    marked = bars.scaled(_measured(frames, "marked_share"), 100)
    if any(marked.values()):
        panels.append(bars.Panel("Marked as ones to lose", "% of the packets", marked, absent=WITHOUT))
    return bars.draw(panels, frames.cases)


def windows(frames: Frames) -> alt.TopLevelMixin:
    """The window of every flow over time, a panel for each case. Raises `NotEvaluable` where none was sampled."""
    chart = longlived.over_time(frames, "window_packets")
    if chart is None:
        raise NotEvaluable("windows were not sampled")
    return chart


def _measured(frames: Frames, measure: str) -> dict[str, Estimate | None]:
    return {case: estimate(list(sweep.by_seed(frames, case, measure).values())) for case in frames.cases}
