"""Uno, GEMINI and DCTCP: how goodput is shared between flows of short and of long RTTs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from narrows.figures import sweep

if TYPE_CHECKING:
    import altair as alt

    from narrows.results import Results

AXIS = "wan.delay"


def draw(results: Results) -> alt.TopLevelMixin:
    """A line for each scheme: Jain's index, the goodput of a flow of either kind, and what all use of the uplink."""
    frames = results.frames
    schemes = list(dict.fromkeys(frames.long["arm"]))
    columns = {
        "jain": "jain_long",
        "inter": "goodput_long / inter",
        "intra": "goodput_long / intra",
        "use": "utilisation_bottleneck",
    }
    table = sweep.measured(frames, AXIS, columns)
    panels = [
        sweep.Panel("Jain's index of all eight", "", table, "jain", high=1.0),
        sweep.Panel("A flow that leaves the datacenter", "Mbit/s", table, "inter"),
        sweep.Panel("A flow that stays", "Mbit/s", table, "intra"),
        sweep.Panel("Use of the uplink", "", table, "use", high=1.0),
    ]
    return sweep.draw(panels, AXIS, schemes, title="delay of the WAN, ms", log=True)
