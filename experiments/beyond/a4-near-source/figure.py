"""A loop near the source beside GEMINI, in A-4's setting: requests inside and across, and what they cost, by load."""

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
