"""DCIB at 100 Mbit/s: goodput of one flow, with loss and without, with the pair and without."""

from __future__ import annotations

from typing import TYPE_CHECKING

from narrows.figures import bridges

if TYPE_CHECKING:
    import altair as alt

    from narrows.results import Results


def draw(results: Results) -> alt.TopLevelMixin:
    """Goodput of the flow, and what became of the packets that might be lost."""
    return bridges.draw(results.frames)
