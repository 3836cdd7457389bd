"""Annulus, A-7's question of use: of the uplinks, and what requests inside and flows across get of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from narrows.figures import style, sweep

if TYPE_CHECKING:
    import altair as alt

    from narrows.results import Results

AXIS = "traffic.dc.arrivals.poisson.load"
ARMS = ("dctcp+bbr", "annulus", "dcqcn+bbr", "annulus-dcqcn")
TITLE = "load of a rack's uplink by requests inside"


def draw(results: Results) -> alt.TopLevelMixin:
    """Above requests inside; below what of the uplinks is used, and what of that the flows across have."""
    runs = sweep.measured(
        results.frames,
        AXIS,
        {"mean": "fct_small_avg", "tail": "fct_small_p99", "use": "utilisation_watched", "across": "goodput_total"},
    )
    inside = [
        sweep.Panel("Requests inside, 64 KB: mean", "ms", runs, "mean", log=True),
        sweep.Panel("Requests inside, 64 KB: p99", "ms", runs, "tail", log=True),
    ]
    uplinks = [
        sweep.Panel("Utilisation of the racks' uplinks", "share of the line", runs, "use", low=0.5, high=1),
        sweep.Panel("Goodput of the eight flows across", "Mbit/s", runs, "across"),
    ]
    return style.stacked(tuple(sweep.draw(row, AXIS, ARMS, title=TITLE) for row in (inside, uplinks)))
