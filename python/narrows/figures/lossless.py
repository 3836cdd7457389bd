"""TCPs with and without congestion management and pauses: the names of the cases, and panels of the whole matrix."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import altair as alt
import polars as pl

from narrows.figures import style
from narrows.measures.named import value_if_any
from narrows.measures.stats import estimate
from narrows.wording import number

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from narrows.frames import Frames
    from narrows.measures.stats import BySeed

TCPS: Final = ("newreno", "cubic", "vegas")
MANAGED: Final = ("none", "red", "qcn-20", "qcn-66")
"""How congestion is managed below TCP."""
SCHEMES: Final = (*MANAGED, *(f"{each}+pfc" for each in MANAGED))
READINGS: Final = ("input", "output")
"""Where a switch counts its packets."""
CODES: Final = ("bt", "cg", "ft", "is", "mg")
_HEIGHT, _PANEL = 150, 268


def case(scheme: str, reading: str = "", tcp: str = "") -> str:
    """A case of the sweep, or what the names of several begin with: `red+pfc · buffering=input · cc=vegas`."""
    parts = (scheme, f"buffering={reading}" if reading else "", f"cc={tcp}" if tcp else "")
    return " · ".join(part for part in parts if part)


def panels(value: Callable[[str], BySeed], title: str, *, best: bool = False) -> alt.VConcatChart:
    """A row of panels for each reading, a panel for each TCP: the value of each scheme, with and without pauses.

    `value` takes the case's name. With `best`, as a multiple of the least mean of all schemes and TCPs of the reading.
    """
    rows = []
    for reading in READINGS:
        table = _table({(each, tcp): value(case(each, reading, tcp)) for tcp in TCPS for each in SCHEMES})
        if table.is_empty():
            continue
        least = float(table["mean"].min()) if best else 1.0  # type: ignore[arg-type]
        scaled = table.with_columns(*(pl.col(name) / least for name in ("mean", "low", "high")))
        rows.append(_row(scaled, f"{title}. Packets count at the {reading}"))
    return style.stacked(rows)


def measured(frames: Frames, measure: str) -> Callable[[str], BySeed]:
    """A measure by case; nothing where it cannot be measured."""
    return lambda name: value_if_any(frames, measure, (name,))


def as_schemes(frames: Frames, reading: str, tcp: str, within_ms: tuple[float, float]) -> Frames:
    """The cases of one reading and one TCP, called by their schemes alone, and their samples within these times."""
    own = frames.of([case(each, reading, tcp) for each in SCHEMES])
    short = pl.col("case").cast(pl.String).str.split(" · ").list.first().alias("case")
    first, last = (1e6 * each for each in within_ms)
    series = own.series.filter(pl.col("time_ns").is_between(first, last)).with_columns(
        short, (pl.col("time_ns") - int(first)).alias("time_ns")
    )
    return replace(own, ports=own.ports.with_columns(short), series=series)


def _table(values: Mapping[tuple[str, str], BySeed]) -> pl.DataFrame:
    found = []
    for (scheme, tcp), by_seed in values.items():
        got = estimate(list(by_seed.values()))
        if got is not None:
            managed, _, pauses = scheme.partition("+")
            found.append({
                "case": scheme, "tcp": tcp, "managed": managed, "flow control": pauses or "none",
                "mean": got.mean, "low": max(0.0, got.low), "high": got.high,
            })  # fmt: skip
    return pl.DataFrame(found)


def _row(table: pl.DataFrame, title: str) -> alt.HConcatChart:
    top = float(table["high"].max())  # type: ignore[arg-type]
    present = [tcp for tcp in TCPS if not table.filter(pl.col("tcp") == tcp).is_empty()]
    panels = (
        _panel(table.filter(pl.col("tcp") == tcp), tcp, top, first=tcp == present[0], last=tcp == present[-1])
        for tcp in present
    )
    row: alt.HConcatChart = style.side_by_side(panels).properties(title=title).resolve_scale(color="independent")
    return row


def _panel(table: pl.DataFrame, title: str, top: float, *, first: bool, last: bool) -> alt.LayerChart | alt.FacetChart:
    shown = table.with_columns(pl.col("mean").map_elements(number, return_dtype=pl.String).alias("label"))
    x = alt.X("managed:N", sort=list(MANAGED), title=None, axis=alt.Axis(labelAngle=0))
    offset = alt.XOffset("flow control:N", sort=["none", "pfc"])
    axis = alt.Axis(tickCount=4, title=None, labels=first)
    y = alt.Y("mean:Q", title=None, axis=axis, scale=alt.Scale(domain=[0, 1.12 * top], nice=False))
    legend = alt.Legend(symbolSize=60) if last else None
    scale = alt.Scale(domain=["none", "pfc"], range=["#c8553d", "#2f6690"])
    colour = alt.Color("flow control:N", scale=scale, title="flow control", legend=legend)
    tooltip = [
        alt.Tooltip("case:N", title="scheme"),
        alt.Tooltip("tcp:N", title="TCP"),
        alt.Tooltip("mean:Q", format=",.3~f"),
        alt.Tooltip("low:Q", format=",.3~f"),
        alt.Tooltip("high:Q", format=",.3~f"),
    ]
    base = alt.Chart(style.rows(shown)).encode(x=x, xOffset=offset, tooltip=tooltip)
    bars = base.mark_bar(cornerRadiusEnd=2).encode(y=y, color=colour, opacity=style.visible(0.9))
    intervals = base.mark_rule(color=style.INK).encode(y="low:Q", y2="high:Q", opacity=style.visible(0.9))
    text = base.mark_text(dy=-7, fontSize=9.5, color=style.INK).encode(y="high:Q", text="label:N")
    return alt.layer(bars, intervals, text).properties(
        title=alt.TitleParams(title, fontSize=12, fontWeight="normal", offset=2), width=_PANEL, height=_HEIGHT
    )
