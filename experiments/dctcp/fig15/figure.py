"""DCTCP, Fig. 15: the queue of TCP with RED and of DCTCP, two long flows at 10 Gbit/s."""

from __future__ import annotations

from typing import TYPE_CHECKING

from narrows.figures import occupancy

if TYPE_CHECKING:
    import altair as alt

    from narrows.results import Results


def draw(results: Results) -> alt.TopLevelMixin:
    """The distribution of the queue and its course, as in the paper."""
    return occupancy.both(results.frames, seconds=1.0)
