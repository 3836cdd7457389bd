"""DCIB, experiment II: goodput of fifteen flows by the RTT between the sites."""

from __future__ import annotations

from typing import TYPE_CHECKING

from narrows.figures import sweep

if TYPE_CHECKING:
    import altair as alt

    from narrows.results import Results


AXIS = "wan.delay"
ARMS = ("cubic", "dcib+cubic", "bbr", "dcib+bbr")


def draw(results: Results) -> alt.TopLevelMixin:
    """Goodput, with and without the pair."""
    table = sweep.measured(results.frames, AXIS, {"goodput": "goodput_long"})
    panel = sweep.Panel("Goodput of a flow", "Mbit/s", table, "goodput", log=True)
    return sweep.draw([panel], AXIS, ARMS, title="delay of the WAN, one way, ms")
