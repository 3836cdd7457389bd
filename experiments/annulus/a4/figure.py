"""Annulus, A-4 to A-6: requests inside and across, drops, and how bursty the WAN is, by load of the uplinks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from narrows.figures import style, sweep

if TYPE_CHECKING:
    import altair as alt

    from narrows.results import Results

AXIS = "traffic.dc.arrivals.poisson.load"
TITLE = "load of a rack's uplink"
ARMS = ("dctcp+bbr", "annulus", "gemini", "gemini+near-source")


def draw(results: Results) -> alt.TopLevelMixin:
    """Above completion, inside and across; below the price that both kinds pay."""
    frames = results.frames
    runs = sweep.measured(
        frames,
        AXIS,
        {"inside": "fct_small_p99", "across": "fct_all / wan/1-2", "lost": "plr_dcn", "bursts": "burstiness_wan"},
    )
    completion = [
        sweep.Panel("Requests inside, 64 KB: p99", "ms", runs, "inside", log=True),
        sweep.Panel("Requests across, 10 MB: mean", "ms", runs, "across"),
    ]
    price = [
        sweep.Panel("Dropped inside the datacenters", "per 100 000 packets", runs, "lost"),
        sweep.Panel("What the WAN sends in 1 ms", "standard deviation over mean", runs, "bursts"),
    ]
    return style.stacked(tuple(sweep.draw(row, AXIS, ARMS, title=TITLE) for row in (completion, price)))
