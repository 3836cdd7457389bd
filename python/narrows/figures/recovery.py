"""What losses cost: retransmitted bytes and timeouts."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import polars as pl

from narrows.figures import bars
from narrows.measures.tables import recovery

if TYPE_CHECKING:
    import altair as alt

    from narrows.frames import Frames


def draw(frames: Frames) -> alt.HConcatChart | None:
    """Retransmitted bytes of finished flows in % of those asked for, and timeouts per 1000 flows.

    Of TCP, for datagrams are not retransmitted; `None` where there is none.
    """
    flows = frames.flows.filter(pl.col("controller").cast(pl.String) != "none")
    if flows.is_empty() and frames.answers.is_empty():
        return None
    table = recovery(replace(frames, flows=flows))
    panels = [
        bars.Panel("Retransmitted bytes", "% of requested bytes", bars.by_case(table, "retransmitted")),
        bars.Panel("Timeouts", "per 1000 flows", bars.by_case(table, "timeouts")),
    ]
    return bars.draw(panels, frames.cases)
