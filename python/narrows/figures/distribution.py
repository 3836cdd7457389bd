"""Cumulative distributions of completion times, reduced to the points that a screen can show."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import altair as alt
import polars as pl

from narrows.figures import style
from narrows.frames import in_words
from narrows.measures.tables import NS_PER_MS, SAMPLES_BEYOND, SizeClass, in_class

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from narrows.frames import Frames

_SHARE_AXIS: Final = alt.Axis(format="%", tickCount=5)
_TAIL: Final = (0.992, 0.994, 0.995, 0.996, 0.997, 0.998, 0.9985, 0.999, 0.9995, 0.9999, 1.0)
SHARES: Final = (*tuple(step / 100 for step in range(100)), 0.99, *_TAIL)


def quantiles(values: pl.Series, shares: Sequence[float] = SHARES) -> pl.DataFrame:
    """(share, value) pairs of the empirical distribution, each share once."""
    ordered = values.sort()
    last = len(ordered) - 1
    picked = [(share, float(ordered[round(share * last)])) for share in dict.fromkeys(shares)]
    return pl.DataFrame(picked, schema={"share": pl.Float64, "value": pl.Float64}, orient="row")


def curves(
    samples: pl.DataFrame | Mapping[str, pl.Series],
    cases: Sequence[str],
    shares: Sequence[float] = SHARES,
    *,
    tail: bool = False,
    absent: Mapping[str, int] | None = None,
) -> pl.DataFrame:
    """The distribution of `value` in each case that has samples: `share`, `value`, `case`; empty where none has.

    With `tail` the share beyond, down to where only ten samples are left. `absent` is how many samples of each case lie
    beyond all values, such as flows that never finished: its curve ends below 1.
    """
    made = [pl.DataFrame(schema={"share": pl.Float64, "value": pl.Float64, "case": pl.String})]
    own = by_case(samples) if isinstance(samples, pl.DataFrame) else samples
    for case in cases:
        if case not in own:
            continue
        values = own[case]
        beyond = (absent or {}).get(case, 0)
        every = len(values) + beyond
        found = quantiles(values, shares)
        if beyond:
            found = found.with_columns(pl.col("share") * len(values) / every)
        made.append((_beyond(found, every) if tail else found).with_columns(pl.lit(case).alias("case")))
    return pl.concat(made)


def completion(frames: Frames) -> alt.VConcatChart:
    """Completion times of small flows and of all flows, all seeds together; below, who takes longer: the tails.

    Small flows stand alone where there are no others, and are left out where there are none.
    """
    # Lazily: a copy of all columns of all flows may take gigabytes.
    small = frames.flows.lazy().filter(pl.col("finished")).select(in_class("small")).collect().to_series()
    classes: tuple[tuple[SizeClass, str], ...] = (
        *((("small", "Small flows, under 100 KB"),) if small.any() else ()),
        *(() if small.all() else (("all", "All flows"),)),
    )
    samples = {size_class: _milliseconds(frames, size_class) for size_class, _ in classes}
    rows = (
        [
            drawn
            for size_class, title in classes
            if (drawn := _panel(*samples[size_class], frames.cases, title, tail=tail)) is not None
        ]
        for tail in (False, True)
    )
    return style.stacked(style.side_by_side(row) for row in rows if row)


def _milliseconds(frames: Frames, size_class: SizeClass) -> tuple[dict[str, pl.Series], dict[str, int]]:
    """By case, of flows with a size: times of those that finished, sorted, and how many never did."""
    # Lazily: a copy of all columns of all flows may take gigabytes.
    flows = frames.flows.lazy().filter(in_class(size_class) & pl.col("sized"))
    finished = flows.filter("finished")
    found = finished.select("case", (pl.col("fct_ns").cast(pl.Float64) / NS_PER_MS).alias("value")).collect()
    unfinished = in_words(flows.filter(~pl.col("finished")).group_by("case").len()).collect()
    return {case: values.sort() for case, values in by_case(found).items()}, dict(unfinished.iter_rows())


def by_case(samples: pl.DataFrame) -> dict[str, pl.Series]:
    """The column `value` of each case that has rows."""
    parts = samples.select("case", "value").partition_by("case", as_dict=True, include_key=False)
    return {str(case): part["value"] for (case,), part in parts.items()}


def _panel(
    milliseconds: Mapping[str, pl.Series],
    unfinished: Mapping[str, int],
    cases: Sequence[str],
    title: str,
    *,
    tail: bool,
) -> alt.LayerChart | alt.FacetChart | None:
    data = curves(milliseconds, cases, tail=tail, absent=unfinished)
    if data.is_empty():
        return None
    x, y, tooltip = axes(data, tail=tail)
    width = style.columns(2, label=124)
    title += ": the tail" if tail else ""
    return curve(style.rows(data), cases, x, y, tooltip, order="value:Q", legend=True).properties(
        title=title, width=width, height=200 if tail else 230
    )


def axes(data: pl.DataFrame, *, tail: bool) -> tuple[alt.X, alt.Y, list[alt.Tooltip]]:
    """Of (share, value in ms): who finished within a time; with `tail`, who takes longer, both logarithmic."""
    x = alt.X(
        "value:Q",
        scale=style.log_domain(data["value"]),
        title="completion time, ms",
        axis=style.log_axis(data["value"]),
    )
    y = alt.Y("share:Q", title="share that finished", axis=_SHARE_AXIS, scale=alt.Scale(domain=[0, 1]))
    if tail:
        axis = style.log_axis(data["share"], percent=True)
        y = alt.Y("share:Q", title="share that takes longer", axis=axis, scale=style.log_domain(data["share"]))
    tooltip = [
        alt.Tooltip("case:N", title="scheme"),
        alt.Tooltip("share:Q", title="take longer" if tail else "finished", format=".4~p" if tail else ".2%"),
        alt.Tooltip("value:Q", title="than, ms" if tail else "within, ms", format=",.4~r"),
    ]
    return x, y, tooltip


def _beyond(made: pl.DataFrame, samples: int) -> pl.DataFrame:
    """The share that lies beyond each quantile."""
    beyond = made.with_columns((1.0 - pl.col("share")).alias("share"))
    return beyond.filter((pl.col("share") <= 0.5) & (pl.col("share") * samples >= SAMPLES_BEYOND))


def curve(
    data: alt.Data,
    cases: Sequence[str],
    x: alt.X,
    y: alt.Y,
    tooltip: list[alt.Tooltip],
    *,
    order: str = "share:Q",
    legend: bool = False,
) -> alt.LayerChart | alt.FacetChart:
    """Lines, and unseen points on them that answer to the pointer."""
    base = alt.Chart(data).encode(x=x, y=y, color=style.colour(cases, legend=legend))
    line = base.mark_line(strokeWidth=1.8, clip=True).encode(
        order=alt.Order(order), opacity=style.visible(), strokeDash=style.dash(cases, legend=legend)
    )
    points = base.mark_point(filled=True, opacity=0, clip=True).encode(
        tooltip=tooltip, size=style.visible(70, 0, channel=alt.SizeValue)
    )
    return alt.layer(line, points)
