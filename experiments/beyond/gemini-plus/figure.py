"""gemini-plus on the networks of GEMINI's Fig. 13 to 16: completion times and the WAN's queue, over GEMINI's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from narrows.figures import ratios

if TYPE_CHECKING:
    import altair as alt

    from narrows.results import Results

SCHEMES = ("cubic", "vegas-10", "bbr", "gemini-plus")


def draw(results: Results) -> alt.TopLevelMixin:
    """Four panels; a row for each network."""
    return ratios.four_panels(results.frames, "network", "gemini", SCHEMES, queue="Queue of the WAN")
