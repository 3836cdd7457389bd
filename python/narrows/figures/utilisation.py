"""How busy the links were, by what they are for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from narrows.figures import bars
from narrows.measures.tables import busiest, utilisation

if TYPE_CHECKING:
    import altair as alt
    import polars as pl

    from narrows.frames import Frames

_ROLES = {
    "host": "Hosts that sent flows",
    "edge": "Switch towards hosts",
    "fabric": "ToR and border switches",
    "wan": "WAN, busiest direction",
}


def draw(frames: Frames) -> alt.HConcatChart:
    """Mean over the ports of each role, % of line rate; of the WAN's the busiest.

    A mean with the direction that carries acknowledgements would show a full line as half empty.
    """
    present = set(frames.ports["role"].unique().to_list())
    panels = [
        bars.Panel(title, "% of line rate", bars.by_case(_share(frames, role), "utilisation", 100))
        for role, title in _ROLES.items()
        if role in present
    ]
    return bars.draw(panels, frames.cases)


def _share(frames: Frames, role: str) -> pl.DataFrame:
    return busiest(frames, role) if role == "wan" else utilisation(frames, role)
