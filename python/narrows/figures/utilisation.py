"""How busy the links were, by what they are for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from narrows.figures import bars
from narrows.results import Frames, utilisation

if TYPE_CHECKING:
    import altair as alt

_ROLES = {
    "host": "Hosts that sent flows",
    "edge": "Switch towards hosts",
    "fabric": "ToR and border switches",
    "wan": "WAN",
}


def draw(frames: Frames) -> alt.HConcatChart:
    """Mean over the ports of each role, % of line rate."""
    present = set(frames.ports["role"].unique().to_list())
    panels = [
        bars.Panel(title, "% of line rate", bars.by_case(_percent(frames, role), "percent"))
        for role, title in _ROLES.items()
        if role in present
    ]
    return bars.draw(panels, frames.cases)


def _percent(frames: Frames, role: str) -> pl.DataFrame:
    return utilisation(frames, role).with_columns((100 * pl.col("utilisation")).alias("percent"))
