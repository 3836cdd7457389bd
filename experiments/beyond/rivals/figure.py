"""GEMINI's rivals on the networks of its Fig. 13 and 15: completion times and the WAN's queue, over GEMINI's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from narrows.figures import ratios

if TYPE_CHECKING:
    import altair as alt

    from narrows.results import Results

SCHEMES = (
    "gemini-plus",
    "cubic",
    "vegas-10",
    "bbr",
    "bbr-v3",
    "vivace",
    "copa",
    "ledbat++",
    "dctcp",
    "prague",
    "uno",
    "hpcc",
    "swift",
    "timely",
    "dcqcn",
)


def draw(results: Results) -> alt.TopLevelMixin:
    """Four panels; a row for each network."""
    return ratios.four_panels(results.frames, "network", "gemini", SCHEMES, queue="Queue of the WAN")
