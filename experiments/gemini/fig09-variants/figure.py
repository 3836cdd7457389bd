"""GEMINI's Fig. 9 between datacenters, hosts with one thing changed at a time: goodput by marking threshold."""

from __future__ import annotations

from typing import TYPE_CHECKING

from narrows.configurations import Configurations
from narrows.figures import bars

if TYPE_CHECKING:
    import altair as alt

    from narrows.results import Results


def draw(results: Results) -> alt.TopLevelMixin:
    """A panel for each threshold, a bar for each variant."""
    found = Configurations.of(results.frames)
    values = bars.of_measure(results.frames, "goodput_total")
    panels = []
    for point in found.points:
        at = found.at(point)
        shown = {scheme: values.get(case) for scheme, case in at.items()}
        panels.append(bars.Panel(f"K = {point[0].removesuffix('pkt')} packets", "Mbit/s", shown))
    return bars.draw(panels, found.schemes)
