"""DCTCP, Fig. 17: goodput of each group of senders over two bottlenecks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from narrows.figures import bars, style
from narrows.measures import longlived

if TYPE_CHECKING:
    import altair as alt

    from narrows.results import Results

GROUPS = {"s1": "S1, both bottlenecks", "s3": "S3, 1 Gbit/s link alone", "s2": "S2, 10 Gbit/s link alone"}


def draw(results: Results) -> alt.TopLevelMixin:
    """A panel for each group; the paper tells the numbers in its text. Below, how evenly a group's flows share."""
    frames = results.frames
    runs = longlived.by_seed(frames, ("case", "workload"))
    rows = (("goodput_mbps", "", "Mbit/s a flow"), ("jain", ": Jain's index", "1 is even"))
    return style.stacked(
        bars.draw(
            [
                bars.Panel(title + what, unit, bars.by_case(runs.filter(runs["workload"] == group), column))
                for group, title in GROUPS.items()
            ],
            frames.cases,
        )
        for column, what, unit in rows
    )
