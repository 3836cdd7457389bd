"""DCTCP, Fig. 13: the queue at the receiver's port under 2 and 20 long flows, 1 Gbit/s."""

from __future__ import annotations

from typing import TYPE_CHECKING

from narrows.figures import occupancy

if TYPE_CHECKING:
    import altair as alt

    from narrows.results import Results


def draw(results: Results) -> alt.TopLevelMixin:
    """The distribution of the queue, as in the paper, and its course."""
    return occupancy.both(results.frames, log=True)
