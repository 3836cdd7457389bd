"""DCTCP, Fig. 16: the goodput of five flows that begin and stop one by one, 1 Gbit/s."""

from __future__ import annotations

from typing import TYPE_CHECKING

from narrows.figures import shares

if TYPE_CHECKING:
    import altair as alt

    from narrows.results import Results


def draw(results: Results) -> alt.TopLevelMixin:
    """A panel for DCTCP and one for TCP, as in the paper; means over 1 s."""
    return shares.over_time(results.frames)
