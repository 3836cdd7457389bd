"""Annulus, A-4 to A-6: requests inside and across, drops, and how bursty the WAN is, by load of the uplinks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from narrows.figures import uplinks

if TYPE_CHECKING:
    import altair as alt

    from narrows.results import Results


def draw(results: Results) -> alt.TopLevelMixin:
    """Four panels."""
    arms = ("dctcp+bbr", "annulus", "gemini", "gemini+near-source")
    return uplinks.draw(results.frames, "traffic.dc.arrivals.poisson.load", arms, title="load of a rack's uplink")
