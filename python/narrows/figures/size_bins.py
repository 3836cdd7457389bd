"""Completion times of background flows by bins of their size, a line for each case [DCTCP fig. 22]."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import altair as alt
import polars as pl

from narrows.figures import style
from narrows.measures.stats import estimate
from narrows.measures.tables import SIZE_BINS, fct_by_bin
from narrows.wording import number

if TYPE_CHECKING:
    from collections.abc import Sequence

    from narrows.frames import Frames

_NAMES = [name for name, *_ in SIZE_BINS]
_TALL = 230


def panel(
    frames: Frames, cases: Sequence[str], column: Literal["mean", "p95"], title: str, *, legend: bool = True
) -> alt.LayerChart | alt.FacetChart:
    """Mean over seeds with its interval; bins in which no case has flows enough say so."""
    table = fct_by_bin(frames).filter(pl.col("case").is_in(list(cases)))
    rows = []
    for case, name, values in table.group_by("case", "bin", maintain_order=True).agg(pl.col(column)).iter_rows():
        found = estimate([value for value in values if value is not None])
        if found is not None:
            rows.append({
                "case": case, "bin": name, "mean": found.mean, "low": found.low, "high": found.high,
                "range": f"{number(found.low, 4)} to {number(found.high, 4)} ms",
            })  # fmt: skip
    data = pl.DataFrame(rows)
    present = table["bin"].unique()
    names = [name for name in _NAMES if name in present]
    x = alt.X(
        "bin:N", sort=names, scale=alt.Scale(domain=names), title="flow size", axis=alt.Axis(labelAngle=0, grid=False)
    )
    y_axis = style.log_axis(data["mean"], "ms")
    y = alt.Y("mean:Q", title="completion time", scale=alt.Scale(type="log", nice=False, padding=8), axis=y_axis)
    side = alt.XOffset("case:N", sort=list(cases))
    base = alt.Chart(style.rows(data)).encode(x=x, xOffset=side, color=style.colour(cases, legend=legend))
    tooltip = [
        alt.Tooltip("case:N", title="scheme"),
        alt.Tooltip("bin:N", title="flows of"),
        alt.Tooltip("mean:Q", title=f"{column}, ms", format=",.4~r"),
        alt.Tooltip("range:N", title="interval"),
    ]
    rule = base.mark_rule(strokeWidth=1.6).encode(y="low:Q", y2="high:Q", opacity=style.visible(0.7))
    point = base.mark_point(filled=True, size=60).encode(y=y, tooltip=tooltip, opacity=style.visible())
    layers = [rule, point]
    if empty := [{"bin": name} for name in names if name not in data["bin"]]:
        text = alt.Chart(alt.InlineData(values=empty)).mark_text(fontSize=11, color=style.FAINT, text="too few flows")
        layers.append(text.encode(x=x, y=alt.value(_TALL - 26)))
    return alt.layer(*layers).properties(title=title, width=style.columns(2, label=80), height=_TALL)
