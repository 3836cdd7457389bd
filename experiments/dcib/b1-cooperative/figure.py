"""DCIB, experiment I: goodput of fifteen flows, where the WAN loses what was marked only."""

from __future__ import annotations

from typing import TYPE_CHECKING

from narrows.figures import bridges

if TYPE_CHECKING:
    import altair as alt

    from narrows.results import Results


def draw(results: Results) -> alt.TopLevelMixin:
    """Goodput of all flows, and what became of the packets that might be lost."""
    return bridges.draw(results.frames)
