"""Mean completion time of all flows, and unfinished work, against the length of the run: the traffic of Fig. 13."""

from __future__ import annotations

from typing import TYPE_CHECKING

from narrows.figures.completion import against_length

if TYPE_CHECKING:
    import altair as alt

    from narrows.results import Results


def draw(results: Results) -> alt.TopLevelMixin:
    """A panel for each measure, a bar for each scheme and length."""
    return against_length(results.frames)
