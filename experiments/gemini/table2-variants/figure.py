"""Losses of GEMINI's Table II, one thing changed at a time: inside the datacenters and in the WAN."""

from __future__ import annotations

from typing import TYPE_CHECKING

from narrows.figures import bars

if TYPE_CHECKING:
    import altair as alt

    from narrows.results import Results


def draw(results: Results) -> alt.TopLevelMixin:
    """A panel for each place, a bar for each variant."""
    frames = results.frames
    panels = [
        bars.Panel("Lost inside the datacenters", "packets of 100 000", bars.of_measure(frames, "loss_dc")),
        bars.Panel("Lost in the WAN", "packets of 100 000", bars.of_measure(frames, "loss_wan")),
    ]
    return bars.draw(panels, frames.cases)
