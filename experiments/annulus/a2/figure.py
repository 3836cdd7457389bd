"""Annulus, A-2: what requests inside a datacenter bear as the demand of the WAN grows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from narrows.figures import uplinks

if TYPE_CHECKING:
    import altair as alt

    from narrows.results import Results


def draw(results: Results) -> alt.TopLevelMixin:
    """Four panels."""
    arms = ("dctcp+bbr", "annulus")
    return uplinks.draw(
        results.frames, "traffic.wan.arrivals.poisson.load", arms, title="load of a rack's uplink by requests across"
    )
