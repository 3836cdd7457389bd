"""TCPs with and without congestion management and pauses: the names of the cases, and panels of the whole matrix."""

from __future__ import annotations

from dataclasses import dataclass
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
PAUSES: Final = "+pfc"
SCHEMES: Final = (*MANAGED, *(f"{each}{PAUSES}" for each in MANAGED))
READINGS: Final = ("input", "output")
"""Where a switch counts its packets."""
CODES: Final = ("bt", "cg", "ft", "is", "mg")

MEMORY_KB: Final = 102.4
"""What the memory holds where nothing pauses."""
PAUSE_KB: Final = 97.0
RESUME_KB: Final = 80.0
ASKED_KB: Final = {
    "none": {},
    "red": {"RED min": 25.6, "RED max": 76.8},
    "qcn-20": {"set point": 20.0},
    "qcn-66": {"set point": 66.0},
}
"""Between which averages RED marks ever more; QCN's set points."""

KEY: Final = (
    "Unmanaged: neither RED nor QCN. RED: ECN, marks by RED from 25.6 to 76.8 KB. QCN-20, QCN-66: congestion points "
    "with a set point of 20 or 66 KB, which senders' adapters obey. Memory by input link: packets count at the link "
    "that they came over, 102.4 KB each; by output port: at the port that they leave by, 102.4 KB each; two readings "
    "of the paper, of which the first is judged where nothing else is said. PFC pauses at 97 KB, resumes at 80."
)
"""What the words of the figures mean."""

_TCP_NAMES: Final = {"newreno": "NewReno", "cubic": "CUBIC", "vegas": "Vegas"}
_NAMES: Final = {"none": "unmanaged", "red": "RED", "qcn-20": "QCN-20", "qcn-66": "QCN-66"}
_MEMORY: Final = {"input": "memory by input link", "output": "memory by output port"}
_FABRICS: Final = {"drop": "#c8553d", "pause (PFC)": "#2f6690"}
_COLOURS: Final = {"none": "#777777", "red": "#d55e00", "qcn-20": "#0072b2", "qcn-66": "#009e73"}
_HEIGHT, _PANEL = 150, 290
_TRACE, _TRACE_HEIGHT, _TRACE_LABEL = 178, 88, 52
"""Pixels of a panel over time, and of what stands right of it."""


@dataclass(frozen=True)
class Line:
    """A value that is known beforehand."""

    at: float
    label: str


def case(scheme: str, tcp: str = "", *, reading: str = "") -> str:
    """A case of the sweep, or what the names of several begin with: `red+pfc · buffering=input · cc=vegas`.

    Under one reading, as claims are judged, cases do not name it.
    """
    parts = (scheme, f"buffering={reading}" if reading else "", f"cc={tcp}" if tcp else "")
    return " · ".join(part for part in parts if part)


def title(text: str, reading: str) -> str:
    """A row's title, with its reading."""
    return f"{text}; {_MEMORY[reading]}"


def explained(chart: alt.TopLevelMixin, more: str = "") -> alt.VConcatChart:
    """The chart with what its words mean below it."""
    return style.captioned(chart, f"{more} {KEY}".strip())


def panels(
    value: Callable[[str], BySeed], text: str, unit: str, *, best: bool = False, line: Line | None = None
) -> alt.VConcatChart:
    """A row of panels for each reading, a panel for each TCP: the value of each scheme, with and without pauses.

    `value` takes the case's name, `unit` is the axis' title. With `best`, as a multiple of the least mean of all
    schemes and TCPs of the reading, and as points: bars begin at 0, beside which such ratios are all alike.
    """
    rows: list[alt.HConcatChart] = []
    for reading in READINGS:
        table = _table({(each, tcp): value(case(each, tcp, reading=reading)) for tcp in TCPS for each in SCHEMES})
        if table.is_empty():
            continue
        least = float(table["mean"].min()) if best else 1.0  # type: ignore[arg-type]
        scaled = table.with_columns(*(pl.col(name) / least for name in ("mean", "low", "high")))
        rows.append(_row(scaled, title(text, reading), unit, bars=not best, line=line, first=not rows))
    stacked: alt.VConcatChart = style.stacked(rows).resolve_scale(color="independent")
    return stacked


def measured(frames: Frames, measure: str, scale: float = 1.0) -> Callable[[str], BySeed]:
    """A measure by case, times a scale; nothing where it cannot be measured."""
    return lambda name: {seed: scale * got for seed, got in value_if_any(frames, measure, (name,)).items()}


def queue_over_time(frames: Frames, port: str, tcp: str, within_ms: tuple[float, float]) -> alt.VConcatChart:
    """A port's queue in the first seed: for each reading a row without pauses and below it one with them.

    Lines are what the fabric is told: what RED and QCN ask for, and of memory what limits this queue, which it does
    where packets count at the output.
    """
    first, last = (1e6 * each for each in within_ms)
    wanted = (pl.col("quantity") == "queue_bytes") & (pl.col("entity") == port) & (pl.col("seed") == frames.first_seed)
    samples = (
        frames.series.filter(wanted & pl.col("time_ns").is_between(first, last))
        .select(
            pl.col("case").cast(pl.String),
            (pl.col("time_ns") / 1e6).alias("time"),
            (pl.col("value") / 1e3).alias("backlog"),
        )
        .collect()
    )
    rows = []
    for reading in READINGS:
        own = samples.filter(pl.col("case").str.ends_with(case("", tcp, reading=reading)))
        if own.is_empty():
            continue
        for pauses in ("", PAUSES):
            shown = []
            for each in MANAGED:
                pair = own.filter(
                    pl.col("case").is_in([case(f"{each}{way}", tcp, reading=reading) for way in ("", PAUSES)])
                )
                every = [line for way in (False, True) for line in _limits(each, reading, pauses=way)]
                shown.append(
                    _trace(
                        pair.filter(pl.col("case") == case(f"{each}{pauses}", tcp, reading=reading)),
                        each,
                        _limits(each, reading, pauses=bool(pauses)),
                        top=1.08 * max([*pair["backlog"].to_list(), *(line.at for line in every), 1.0]),
                        within_ms=within_ms,
                        first=each == MANAGED[0],
                        last=bool(pauses),
                    )
                )
            words = "switches pause" if pauses else "switches drop"
            heading = f"{style.port(port)}, {_TCP_NAMES[tcp]}, first seed: {words}"
            row = alt.hconcat(*shown, spacing=8)
            rows.append(row.properties(title=alt.TitleParams(title(heading, reading), fontSize=12)))
    return alt.vconcat(*rows, spacing=12)


def _limits(managed: str, reading: str, *, pauses: bool) -> list[Line]:
    lines = [Line(at, label) for label, at in ASKED_KB[managed].items()]
    if reading == "output":
        lines += [Line(PAUSE_KB, "pause"), Line(RESUME_KB, "resume")] if pauses else [Line(MEMORY_KB, "memory")]
    return sorted(lines, key=lambda line: -line.at)


def _trace(
    data: pl.DataFrame,
    managed: str,
    limits: list[Line],
    *,
    top: float,
    within_ms: tuple[float, float],
    first: bool,
    last: bool,
) -> alt.LayerChart | alt.FacetChart:
    time_axis = style.linear_axis(
        *within_ms, title="time, ms" if last else None, labels=last, grid=False, labelFlush=True
    )
    x = alt.X("time:Q", axis=time_axis, scale=alt.Scale(domain=list(within_ms), nice=False))
    height = alt.Scale(domain=[0, top], nice=False)
    y = alt.Y("backlog:Q", axis=alt.Axis(title="backlog, KB" if first else None, tickCount=4), scale=height)
    queue = alt.Chart(style.rows(data)).mark_line(strokeWidth=1.1, color=_COLOURS[managed]).encode(x=x, y=y)
    layers: list[alt.Chart] = [queue]
    if limits:
        known = alt.Chart(alt.InlineData(values=[
            {"at": line.at, "label": line.label, "beside": beside}
            for line, beside in zip(limits, _apart([line.at for line in limits], 0.13 * top), strict=True)
        ]))  # fmt: skip
        rule = known.mark_rule(color=style.INK, strokeDash=[4, 3], strokeWidth=0.9)
        text = known.mark_text(align="left", dx=4, fontSize=9.5, color=style.INK)
        layers.append(rule.encode(y=alt.Y("at:Q", scale=height)))
        layers.append(text.encode(x=alt.value(_TRACE), y=alt.Y("beside:Q", scale=height), text="label:N"))
    # A mark that is not seen keeps the room for labels where there are none.
    keeper = alt.Chart(alt.InlineData(values=[{}])).mark_text(text=" ").encode(x=alt.value(_TRACE + _TRACE_LABEL))
    heading = alt.TitleParams(_NAMES[managed], fontSize=11, fontWeight="normal", offset=2)
    chart: alt.LayerChart | alt.FacetChart = alt.layer(*layers, keeper).properties(
        title=heading, width=_TRACE, height=_TRACE_HEIGHT
    )
    return chart


def _apart(places: list[float], gap: float) -> list[float]:
    """The same, from the largest on, each at least so far below the one before it."""
    found: list[float] = []
    for place in places:
        found.append(min(place, found[-1] - gap) if found else place)
    return found


def _table(values: Mapping[tuple[str, str], BySeed]) -> pl.DataFrame:
    found = []
    for (scheme, tcp), by_seed in values.items():
        got = estimate(list(by_seed.values()))
        if got is not None:
            managed, _, pauses = scheme.partition("+")
            found.append({
                "case": scheme, "tcp": tcp, "managed": _NAMES[managed], "fabric": list(_FABRICS)[bool(pauses)],
                "mean": got.mean, "low": max(0.0, got.low), "high": got.high,
            })  # fmt: skip
    return pl.DataFrame(found)


def _row(table: pl.DataFrame, text: str, unit: str, *, bars: bool, line: Line | None, first: bool) -> alt.HConcatChart:
    least, top = float(table["low"].min()), float(table["high"].max())  # type: ignore[arg-type]
    room = 0.12 * (top if bars else top - least)
    domain = [0.0 if bars else least - room, top + 1.5 * room]
    present = [tcp for tcp in TCPS if not table.filter(pl.col("tcp") == tcp).is_empty()]
    panels = (
        _panel(
            table.filter(pl.col("tcp") == tcp),
            _TCP_NAMES[tcp],
            unit if tcp == present[0] else None,
            domain,
            bars=bars,
            line=line,
            legend=first,
            last=tcp == present[-1],
        )
        for tcp in present
    )
    row: alt.HConcatChart = style.side_by_side(panels).properties(title=text)
    return row


def _panel(
    table: pl.DataFrame,
    tcp: str,
    unit: str | None,
    domain: list[float],
    *,
    bars: bool,
    line: Line | None,
    legend: bool,
    last: bool,
) -> alt.LayerChart | alt.FacetChart:
    # Of what is hardly to be seen one digit, which leaves the neighbour's label its room.
    label = pl.struct("mean").map_elements(
        lambda row: number(row["mean"], 1 if row["mean"] < domain[1] / 100 else 3), return_dtype=pl.String
    )
    shown = table.with_columns(label.alias("label"))
    x = alt.X("managed:N", sort=list(_NAMES.values()), title=None, axis=alt.Axis(labelAngle=0))
    offset = alt.XOffset("fabric:N", sort=list(_FABRICS))
    scale = alt.Scale(domain=domain, nice=False, zero=False)
    axis = style.linear_axis(*domain, labels=unit is not None, format=",~r")
    y = alt.Y("mean:Q", title=unit, axis=axis, scale=scale)
    how = alt.Scale(domain=list(_FABRICS), range=list(_FABRICS.values()))
    above = alt.Legend(orient="top", titleOrient="left", titleFontWeight="normal", symbolSize=60)
    colour = alt.Color("fabric:N", scale=how, title="switches that run out of memory", legend=above if legend else None)
    tooltip = [
        alt.Tooltip("case:N", title="scheme"),
        alt.Tooltip("tcp:N", title="TCP"),
        alt.Tooltip("mean:Q", format=",.3~f"),
        alt.Tooltip("low:Q", format=",.3~f"),
        alt.Tooltip("high:Q", format=",.3~f"),
    ]
    base = alt.Chart(style.rows(shown)).encode(x=x, xOffset=offset, tooltip=tooltip)
    seen = style.visible(0.9)
    marks = base.mark_bar(cornerRadiusEnd=2) if bars else base.mark_point(filled=True, size=55)
    layers: list[alt.Chart] = [
        marks.encode(y=y, color=colour, opacity=seen),
        base.mark_rule(color=style.INK).encode(y="low:Q", y2="high:Q", opacity=seen),
        base.mark_text(dy=-7 if bars else -9, fontSize=9, color=style.INK).encode(y="high:Q", text="label:N"),
    ]
    if line is not None:
        known = alt.Chart(alt.InlineData(values=[{"at": line.at, "label": line.label}]))
        layers.append(known.mark_rule(color=style.INK, strokeDash=[5, 4]).encode(y="at:Q"))
        text = known.mark_text(align="left", dx=4, fontSize=9.5, color=style.INK)
        layers += [text.encode(x=alt.value(_PANEL), y="at:Q", text="label:N")] if last else []
    chart: alt.LayerChart | alt.FacetChart = alt.layer(*layers).properties(
        title=alt.TitleParams(tcp, fontSize=12, fontWeight="normal", offset=2), width=_PANEL, height=_HEIGHT
    )
    return chart
