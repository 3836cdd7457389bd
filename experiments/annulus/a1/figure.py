"""Annulus, A-1: goodput of the flow across and of the four inside, and the queue that they share, over time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from narrows.figures import fairness

if TYPE_CHECKING:
    import altair as alt

    from narrows.results import Results


def draw(results: Results) -> alt.TopLevelMixin:
    """The first of four times that those inside come, and what comes after it."""
    return fairness.draw(results.frames, fairness.Window(0.28, 0.46, "Gbit/s"))
