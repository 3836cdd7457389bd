"""Flow completion times by size class: mean and 99th percentile, per case, with intervals over seeds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

import altair as alt

from narrows.figures import bars, style
from narrows.measures.stats import Estimate, estimate
from narrows.measures.tables import SizeClass, fct_ms, in_class, samples_needed
from narrows.wording import whole

if TYPE_CHECKING:
    from narrows.frames import Frames

CLASS_TITLES: Final[dict[SizeClass, str]] = {
    "small": "Small flows",
    "medium": "Medium flows",
    "large": "Large flows",
    "all": "All flows",
}
_STATISTICS: Final[tuple[Literal["mean", "p99"], ...]] = ("mean", "p99")


def panel(frames: Frames, size_class: SizeClass, column: Literal["mean", "p99"], title: str) -> bars.Panel:
    """One panel. A percentile that no seed alone has samples for is taken over all seeds together, and drawn hollow."""
    values = bars.by_case(fct_ms(frames, size_class), column)
    pooled: dict[str, Estimate | None] = {}
    if column == "p99" and len(frames.seeds) > 1 and any(values.get(case) is None for case in frames.cases):
        together = fct_ms(frames, size_class, pooled=True).select("case", "p99").drop_nulls()
        pooled = {case: estimate([value]) for case, value in together.iter_rows() if values.get(case) is None}
    unit, scale = _unit(values | pooled)
    scaled = bars.scaled(values | pooled, scale)
    reason = f"too few flows for a p99: {whole(samples_needed(99))} are needed" if column == "p99" else ""
    return bars.Panel(title, unit, scaled, frozenset(pooled), reason)


def _unit(values: dict[str, Estimate | None]) -> tuple[str, float]:
    """Seconds where most values have more than a second."""
    means = sorted(found.mean for found in values.values() if found)
    return ("s", 1e-3) if means and means[len(means) // 2] >= 1000 else ("ms", 1.0)


def by_class(frames: Frames) -> alt.VConcatChart:
    """Mean above, 99th percentile below if there is one; a column per class with flows, and one of all."""
    flows = frames.flows.lazy()
    found = flows.select(in_class(own).any().alias(own) for own in CLASS_TITLES if own != "all").collect().row(0)
    present = [own for own, there in zip(CLASS_TITLES, found, strict=False) if there]
    classes = present if len(present) == 1 else [*present, "all"]
    rows = [[panel(frames, own, column, f"{CLASS_TITLES[own]}, {column}") for own in classes] for column in _STATISTICS]
    width = style.WIDTH * max(2, len(classes)) // len(CLASS_TITLES)
    return style.stacked(
        bars.draw(row, frames.cases, width=width)
        for row in rows
        if any(found is not None for part in row for found in part.values.values())
    )


def four_panels(frames: Frames, title: str) -> alt.TopLevelMixin:
    """What the papers print: small average, small 99th percentile, large average, all average."""
    chosen = [
        panel(frames, "small", "mean", "Small flows, mean"),
        panel(frames, "small", "p99", "Small flows, p99"),
        panel(frames, "large", "mean", "Large flows, mean"),
        panel(frames, "all", "mean", "All flows, mean"),
    ]
    lines = next((found.kind_words for part in chosen for found in part.values.values() if found), "")
    subtitle = f"mean over seeds, lines: {lines}" if len(frames.seeds) > 1 else lines
    return bars.draw(chosen, frames.cases).properties(
        title=alt.TitleParams(title, subtitle=[subtitle], fontSize=15, offset=14)
    )


def means(frames: Frames, title: str) -> alt.TopLevelMixin:
    """The mean of small, medium, large and all flows."""
    chosen = [panel(frames, own, "mean", f"{words}, mean") for own, words in CLASS_TITLES.items()]
    return bars.draw(chosen, frames.cases).properties(title=alt.TitleParams(title, fontSize=15, offset=14))


def against_length(frames: Frames) -> alt.TopLevelMixin:
    """Mean completion time of all flows, and unfinished work; a bar for each scheme and length of the run."""
    panels = [
        bars.Panel("Completion time, mean of all flows", "ms", bars.of_measure(frames, "fct_mean")),
        bars.Panel("Unfinished work, mean over time", "MB", bars.of_measure(frames, "unfinished_work")),
    ]
    return bars.draw(panels, frames.cases, width=style.WIDTH // 2)
