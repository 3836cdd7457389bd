"""Annulus, A-7: requests with DCTCP or DCQCN inside, by load of the uplinks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from narrows.figures import uplinks

if TYPE_CHECKING:
    import altair as alt

    from narrows.results import Results


def draw(results: Results) -> alt.TopLevelMixin:
    """Four panels, as of A-4."""
    arms = ("dctcp+bbr", "annulus", "dcqcn+bbr", "annulus-dcqcn")
    return uplinks.draw(results.frames, "traffic.dc.arrivals.poisson.load", arms, title="load of a rack's uplink")
