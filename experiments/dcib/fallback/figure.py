"""DCIB: the window of one flow whose losses are repaired, or not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from narrows.figures import bridges

if TYPE_CHECKING:
    import altair as alt

    from narrows.results import Results


def draw(results: Results) -> alt.TopLevelMixin:
    """The window over time, of the first seed."""
    return bridges.windows(results.frames)
