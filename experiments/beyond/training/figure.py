"""An all-reduce across two datacenters: how long it takes, and what requests inside wait for, on either fabric."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import altair as alt
import polars as pl

from narrows.figures import style, sweep
from narrows.measures.stats import estimate
from narrows.wording import number

if TYPE_CHECKING:
    from narrows.frames import Frames
    from narrows.results import Results

AXIS: Final = "traffic.training.program.generate.hierarchical-all-reduce.groups"
LOSSLESS: Final = "+pfc"
FABRICS: Final = {"drops": "#d55e00", "pauses (PFC)": "#0072b2"}
ROWS: Final = {"2": ("datacenters reduce first", 439.0), "1": ("one ring through both", 429.0)}
"""By groups: what the program is, and its time without a queue, loss or slow start, ms (README)."""
PANELS: Final = {"execution_time": "Execution time", "fct_small_p99_during": "Requests inside meanwhile, 64 KB: p99"}


def draw(results: Results) -> alt.TopLevelMixin:
    """A row for each program, a panel for each measure, two points for each scheme."""
    table = _measured(results.frames)
    rows = [groups for groups in ROWS if groups in table["groups"].to_list()]
    return style.stacked(
        style.side_by_side(_panel(table, groups, measure, is_first=not place) for place, measure in enumerate(PANELS))
        for groups in rows
    )


def _measured(frames: Frames) -> pl.DataFrame:
    """A row for each case and measure: mean and interval over seeds, which are null if it cannot be evaluated."""
    rows = []
    for case, arm, groups in frames.ports.select("case", "arm", AXIS).unique(maintain_order=True).iter_rows():
        fabric = list(FABRICS)[arm.endswith(LOSSLESS)]
        for measure in PANELS:
            found = estimate(list(sweep.by_seed(frames, case, measure).values()))
            rows.append({
                "scheme": arm.removesuffix(LOSSLESS), "fabric": fabric, "groups": groups, "measure": measure,
                "mean": found and found.mean, "low": found and found.low, "high": found and found.high,
                "shown": f"{number(found.mean, 4)} ms" if found else "did not end in time",
            })  # fmt: skip
    return pl.DataFrame(rows, infer_schema_length=None)


def _panel(table: pl.DataFrame, groups: str, measure: str, *, is_first: bool) -> alt.LayerChart:
    program, least = ROWS[groups]
    own = table.filter(pl.col("groups") == groups, pl.col("measure") == measure)
    values = pl.concat([table.filter(measure=measure)[name].drop_nulls() for name in ("low", "high")])
    # Every panel of a measure has one scale. An interval may reach below what a logarithm has.
    floor = values.filter(values > 0).min()
    own = own.with_columns(pl.max_horizontal("low", pl.lit(floor)))
    if measure == "execution_time":
        values = pl.concat([values, pl.Series([least])])
    schemes = own["scheme"].unique(maintain_order=True).to_list()
    axis = alt.Axis(labelFontSize=12, labelColor=style.INK, labelLimit=200, grid=True) if is_first else None
    positive = values.filter(values > 0)
    base = alt.Chart(style.rows(own)).encode(
        y=alt.Y("scheme:N", sort=schemes, title=None, axis=axis),
        yOffset=alt.YOffset("fabric:N", sort=list(FABRICS), scale=alt.Scale(paddingOuter=0.6)),
        color=alt.Color(
            "fabric:N",
            title="fabric inside the datacenters",
            scale=alt.Scale(domain=list(FABRICS), range=list(FABRICS.values())),
            legend=alt.Legend(orient="top", titleOrient="left", titleFontWeight="normal"),
        ),
        tooltip=["scheme:N", "fabric:N", alt.Tooltip("shown:N", title=PANELS[measure])],
    )
    x = alt.X("mean:Q", title="ms", scale=style.log_scale(positive), axis=style.log_axis(positive))
    point = base.transform_filter("datum.mean !== null").mark_point(filled=True, size=60, opacity=1).encode(x=x)
    rule = base.mark_rule(strokeWidth=1.5).encode(x="low:Q", x2="high:Q")
    # At the end of the scale: it did not end in time.
    late = base.transform_filter("datum.mean === null").mark_point(
        filled=True, size=70, opacity=1, shape="triangle-right"
    ).encode(x=alt.value("width"))  # fmt: skip
    layers: list[alt.Chart] = [rule, point, late]
    if measure == "execution_time":
        line = alt.Chart(alt.InlineData(values=[{"at": least}]))
        layers.append(line.mark_rule(color=style.FAINT, strokeDash=[5, 4]).encode(x="at:Q"))
    title = alt.TitleParams(PANELS[measure], subtitle=program)
    if measure == "execution_time":
        title.subtitle = f"{program}; dashed: without a queue, loss or slow start; triangles: not in 6 s"
    chart: alt.LayerChart = alt.layer(*layers).properties(
        title=title, width=style.columns(2, label=130), height=24 * len(schemes)
    )
    return chart
