"""A-1 at 100 Mbit/s: goodput of the flow across and of those inside, and the queue that they share, over time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from narrows.figures import fairness

if TYPE_CHECKING:
    import altair as alt

    from narrows.results import Results


def draw(results: Results) -> alt.TopLevelMixin:
    """The first two of three times that those inside come."""
    return fairness.draw(results.frames, fairness.Window(1.3, 3.3, "Mbit/s"))
