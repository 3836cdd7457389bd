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


def draw(results: Results) -> alt.TopLevelMixin:
    """Small flows' 99th percentile and mean, large flows' mean, all flows' mean."""
    frames = results.frames
    rows = [
        [_panel(frames, "small", "p99", "Small flows, p99"), _panel(frames, "small", "mean", "Small flows, mean")],
        [_panel(frames, "large", "mean", "Large flows, mean"), _panel(frames, "all", "mean", "All flows, mean")],
    ]
    return style.stacked(
        sweep.draw(panels, AXIS, list(DEFAULTS), title="parameter / its default", log=True) for panels in rows
    )


def _panel(frames: Frames, size_class: str, column: str, title: str) -> sweep.Panel:
    table = fct_ms(frames, size_class)  # type: ignore[arg-type]
    large = size_class in ("large", "all")
    scale, unit = (1e-3, "s") if large else (1.0, "ms")
    return sweep.Panel(title, unit, along(table).with_columns(pl.col(column) * scale), column)


def along(table: pl.DataFrame) -> pl.DataFrame:
    """A scheme's row becomes one of its parameter's line; the default scheme's one of every line."""
    parts = []
    for case in table["case"].unique(maintain_order=True).to_list():
        rows = table.filter(pl.col("case") == case)
        key, _, value = case.partition("=")
        for name in [NAMES[key]] if value else DEFAULTS:
            factor = sweep.number_of(value) / DEFAULTS[name] if value else 1.0
            parts.append(rows.with_columns(pl.lit(name).alias("arm"), pl.lit(f"{factor:.4g}").alias(AXIS)))
    return pl.concat(parts)
