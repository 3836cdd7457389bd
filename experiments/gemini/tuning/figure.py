"""What GEMINI's parameters do, one at a time: completion times against the parameter in units of its default."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from narrows.figures import style, sweep
from narrows.measures.tables import fct_ms

if TYPE_CHECKING:
    import altair as alt

    from narrows.frames import Frames
    from narrows.results import Results

DEFAULTS = {"K": 50.0, "T": 5.0, "β": 0.2, "H": 1.2e-7}
NAMES = {"k": "K", "t": "T", "beta": "β", "h": "H"}
AXIS = "factor"
AXIS_OF_READINGS = "reading"
READINGS = {"both-ways": "both ways", "one-way": "one way"}


def draw(results: Results) -> alt.TopLevelMixin:
    """Small flows' 99th percentile and mean, large flows' and all flows' mean, for traffic both ways and one way."""
    return style.stacked(
        sweep.draw(panels, AXIS, list(DEFAULTS), title="parameter / its default", log=True)
        for reading, frames in _readings(results.frames).items()
        for panels in _rows(frames, READINGS[reading])
    )


def _readings(frames: Frames) -> dict[str, Frames]:
    """The runs of each reading; a quick run has one, which is no axis then."""
    if AXIS_OF_READINGS not in frames.ports.columns:
        return {"both-ways": frames}
    cases: dict[str, list[str]] = {}
    for reading, case in frames.ports.select(AXIS_OF_READINGS, "case").unique(maintain_order=True).iter_rows():
        cases.setdefault(reading, []).append(case)
    return {reading: frames.of(own) for reading, own in cases.items()}


def _rows(frames: Frames, reading: str) -> list[list[sweep.Panel]]:
    small, large, every = (f"{kind} flows, {reading}" for kind in ("Small", "Large", "All"))
    return [
        [_panel(frames, "small", "p99", f"{small}, p99"), _panel(frames, "small", "mean", f"{small}, mean")],
        [_panel(frames, "large", "mean", f"{large}, mean"), _panel(frames, "all", "mean", f"{every}, mean")],
    ]


def _panel(frames: Frames, size_class: str, column: str, title: str) -> sweep.Panel:
    table = fct_ms(frames, size_class)  # type: ignore[arg-type]
    large = size_class in ("large", "all")
    scale, unit = (1e-3, "s") if large else (1.0, "ms")
    return sweep.Panel(title, unit, along(table).with_columns(pl.col(column) * scale), column)


def along(table: pl.DataFrame) -> pl.DataFrame:
    """A scheme's row becomes one of its parameter's line; the default scheme's one of every line."""
    parts = []
    for scheme in table["arm"].unique(maintain_order=True).to_list():
        rows = table.filter(pl.col("arm") == scheme)
        key, _, value = scheme.partition("=")
        for name in [NAMES[key]] if value else DEFAULTS:
            factor = sweep.number_of(value) / DEFAULTS[name] if value else 1.0
            parts.append(rows.with_columns(pl.lit(name).alias("arm"), pl.lit(f"{factor:.4g}").alias(AXIS)))
    return pl.concat(parts)
