"""GEMINI's Fig. 11, one thing changed at a time: even shares of all, and the time to come to a group's shares."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from narrows.figures import bars

if TYPE_CHECKING:
    import altair as alt

    from narrows.results import Results


def draw(results: Results) -> alt.TopLevelMixin:
    """A panel for each measure, a bar for each variant; no bar where a group never comes to its shares in some seed."""
    frames = results.frames
    times = {
        case: found if found and math.isfinite(found.mean) else None
        for case, found in bars.of_measure(frames, "time_to_share").items()
    }
    panels = [
        bars.Panel("While all are active", "Jain's index", bars.of_measure(frames, "jain_all")),
        bars.Panel("Longest time to the shares", "s", times, absent="not in some seed"),
    ]
    return bars.draw(panels, frames.cases)
