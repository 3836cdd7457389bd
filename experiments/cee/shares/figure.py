"""Short and Fat, TCP beside UDP: what TCP gets of one port."""

from __future__ import annotations

from typing import TYPE_CHECKING

from narrows.figures import lossless
from narrows.measures.named import value_if_any

if TYPE_CHECKING:
    import altair as alt

    from narrows.results import Results


def draw(results: Results) -> alt.TopLevelMixin:
    """A panel for each TCP, a row for each reading."""
    frames = results.frames

    def share(case: str) -> dict[int, float]:
        tcp, both = (value_if_any(frames, "goodput_total", (name,)) for name in (f"{case} / tcp", case))
        return {seed: 100 * tcp[seed] / both[seed] for seed in tcp.keys() & both.keys()}

    title = "What five flows of TCP get beside five of UDP"
    half = lossless.Line(50, "half")
    return lossless.explained(lossless.panels(share, title, "% of the goodput", line=half))
