"""Ratios of schemes to one of them, for each value of a sweep's axis: points with their intervals over seeds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import altair as alt
import polars as pl

from narrows.figures import style, sweep
from narrows.measures.stats import geometric_ratio
from narrows.wording import number

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from narrows.frames import Frames

_ROW = 13
"""Pixels of a scheme's point."""


def table(frames: Frames, axis: str, base: str, schemes: Sequence[str], measures: Sequence[str]) -> pl.DataFrame:
    """A row for each value of the axis, measure and scheme: geometric mean and interval of the ratios to `base`.

    Ratios are taken within each seed. They are null where no seed has both values above zero.
    """
    cases = {(arm, at): case for case, arm, at in frames.ports.select("case", "arm", axis).unique().iter_rows()}
    places = frames.ports[axis].unique(maintain_order=True).to_list()
    rows = []
    for measure in measures:
        for at in places:
            below = sweep.by_seed(frames, cases[base, at], measure)
            for scheme in schemes:
                own = sweep.by_seed(frames, cases[scheme, at], measure)
                found = geometric_ratio(own, below)
                rows.append({
                    "measure": measure, "at": at, "scheme": scheme,
                    "mean": found and found.mean, "low": found and found.low, "high": found and found.high,
                })  # fmt: skip
    return pl.DataFrame(rows, infer_schema_length=None)


def four_panels(frames: Frames, axis: str, base: str, schemes: Sequence[str], *, queue: str) -> alt.HConcatChart:
    """Completion of small, large and all flows, and the 99th percentile of what waits at the watched ports: `queue`."""
    panels = {
        "fct_small_p99": "Small flows, p99",
        "fct_large_mean": "Large flows, mean",
        "fct_mean": "All flows, mean",
        "queue_p99_watched": f"{queue}, p99",
    }
    return draw(frames, axis, base, schemes, panels)


def draw(frames: Frames, axis: str, base: str, schemes: Sequence[str], panels: Mapping[str, str]) -> alt.HConcatChart:
    """A panel for each measure, with its title; all against one logarithmic scale, dashed where nothing differs."""
    made = table(frames, axis, base, schemes, list(panels))
    values = pl.concat([made["low"].drop_nulls(), made["high"].drop_nulls(), pl.Series([1.0])])
    width = style.columns(len(panels), label=100)
    return style.side_by_side(
        _panel(made.filter(measure=measure), title, base, schemes, values, width, is_first=not place)
        for place, (measure, title) in enumerate(panels.items())
    )


def _panel(
    made: pl.DataFrame,
    title: str,
    base: str,
    schemes: Sequence[str],
    values: pl.Series,
    width: int,
    *,
    is_first: bool,
) -> alt.LayerChart | alt.FacetChart:
    places = made["at"].unique(maintain_order=True).to_list()
    shown = [number(mean, 3) if mean is not None else "" for mean in made["mean"]]
    axis = alt.Axis(labelFontSize=12, labelColor=style.INK, labelLimit=200, grid=True) if is_first else None
    points = alt.Chart(style.rows(made.with_columns(pl.Series("shown", shown)).drop_nulls("mean"))).encode(
        y=alt.Y("at:N", sort=places, title=None, axis=axis, scale=alt.Scale(domain=places)),
        yOffset=alt.YOffset("scheme:N", sort=list(schemes), scale=alt.Scale(paddingOuter=0.6)),
        color=alt.Color("scheme:N", title=None, scale=style.colour_scale(schemes), legend=style.legend_of(schemes)),
        tooltip=["at:N", "scheme:N", alt.Tooltip("shown:N", title=f"{title}, over {base}")],
    )
    ticks = style.log_axis(values)
    ticks.labelOverlap = "greedy"
    x = alt.X("mean:Q", title=f"over {base}", scale=style.log_scale(values), axis=ticks)
    even = alt.Chart(alt.InlineData(values=[{"at": 1.0}])).mark_rule(color=style.FAINT, strokeDash=[5, 4])
    height = (_ROW * len(schemes) + 8) * len(places)
    return alt.layer(
        even.encode(x="at:Q"),
        points.mark_rule(strokeWidth=1.5).encode(x="low:Q", x2="high:Q"),
        points.mark_point(filled=True, size=45, opacity=1).encode(x=x),
    ).properties(title=title, width=width, height=height)
