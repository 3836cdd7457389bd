"""Requests inside a datacenter and across the WAN that share the racks' uplinks, along an axis of a sweep."""

from __future__ import annotations

from typing import TYPE_CHECKING

from narrows.figures import style, sweep

if TYPE_CHECKING:
    from collections.abc import Sequence

    import altair as alt

    from narrows.frames import Frames


def draw(frames: Frames, axis: str, arms: Sequence[str], *, title: str) -> alt.TopLevelMixin:
    """Above completion, inside and across; below the price that both kinds pay: drops, and how bursty the WAN is."""
    runs = sweep.measured(
        frames,
        axis,
        {"inside": "fct_small_p99", "across": "fct_mean / wan/1-2", "lost": "loss_dc", "bursts": "burstiness_wan"},
    )
    completion = [
        sweep.Panel("Requests inside, 64 KB: p99", "ms", runs, "inside", log=True),
        sweep.Panel("Requests across, 10 MB: mean", "ms", runs, "across"),
    ]
    price = [
        sweep.Panel("Dropped inside the datacenters", "per 100 000 packets", runs, "lost"),
        sweep.Panel("What the WAN sends in 1 ms", "standard deviation over mean", runs, "bursts"),
    ]
    return style.stacked(tuple(sweep.draw(row, axis, arms, title=title) for row in (completion, price)))
