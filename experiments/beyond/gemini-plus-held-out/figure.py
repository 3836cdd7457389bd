"""gemini-plus on eight networks that were held back: completion times and the WAN's queue, over GEMINI's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from narrows.figures import ratios

if TYPE_CHECKING:
    import altair as alt

    from narrows.results import Results

SCHEMES = ("cubic", "vegas-10", "bbr", "gemini-plus")
PANELS = {
    "fct_small_p99": "Small flows, p99",
    "fct_large": "Large flows, mean",
    "fct_all": "All flows, mean",
    "queue_p99_watched": "Queue of the WAN, p99",
}


def draw(results: Results) -> alt.TopLevelMixin:
    """Four panels; a row for each network."""
    return ratios.draw(results.frames, "network", "gemini", SCHEMES, PANELS)
