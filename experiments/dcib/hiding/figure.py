"""DCIB: goodput by what hides a loss, for three controllers and both kinds of WAN."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from narrows.figures import bars, style, sweep
from narrows.measures.stats import estimate

if TYPE_CHECKING:
    import altair as alt

    from narrows.measures.stats import Estimate
    from narrows.results import Results

HIDING: Final = ("resequence", "resequence-repairable", "snoop", "nothing")
CONTROLLERS: Final = ("newreno", "cubic", "bbr")
AREAS: Final = {"": "a WAN that cooperates", " (not cooperative)": "one that does not"}


def draw(results: Results) -> alt.TopLevelMixin:
    """A row for each kind of WAN, a panel for each controller: goodput of all flows."""

    def goodput(hiding: str, area: str, controller: str) -> Estimate | None:
        return estimate([*sweep.by_seed(results.frames, f"{hiding}{area} · cc={controller}", "goodput_total").values()])

    rows = [
        [
            bars.Panel(
                f"{controller}, {name}",
                "goodput of all flows, Mbit/s",
                {hiding: goodput(hiding, area, controller) for hiding in HIDING},
            )
            for controller in CONTROLLERS
        ]
        for area, name in AREAS.items()
    ]
    return style.stacked([bars.draw(row, HIDING) for row in rows])
