"""What losses cost: retransmitted bytes and timeouts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from narrows.figures import bars
from narrows.measures.tables import recovery

if TYPE_CHECKING:
    import altair as alt

    from narrows.frames import Frames


def draw(frames: Frames) -> alt.HConcatChart:
    """Retransmitted bytes of finished flows in % of those asked for, and timeouts per 1000 flows."""
    table = recovery(frames)
    panels = [
        bars.Panel("Retransmitted bytes", "% of requested bytes", bars.by_case(table, "retransmitted")),
        bars.Panel("Timeouts", "per 1000 flows", bars.by_case(table, "timeouts")),
    ]
    return bars.draw(panels, frames.cases)
