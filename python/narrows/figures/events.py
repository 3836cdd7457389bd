"""Changes of links at stated times, as lines in charts over time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import altair as alt
import polars as pl

from narrows import wording
from narrows.figures import style

if TYPE_CHECKING:
    from narrows.frames import Frames

MAX_TIMES: Final = 40
"""Of one case: more lines would hide what they are drawn over."""
_MAX_LINKS: Final = 3


def marks(frames: Frames) -> pl.DataFrame:
    """`case`, `time` in seconds, and `event`, what changes then; of the first seed."""
    events = frames.events
    if events.is_empty():
        return pl.DataFrame(schema={"case": pl.String, "time": pl.Float64, "event": pl.String})
    own = events.filter(pl.col("seed") == frames.first_seed)
    begins = own.select("case", "time_ns", "name", _text(own))
    ends = own.filter((pl.col("kind") == "outage") & pl.col("until_ns").is_not_null()).select(
        "case", pl.col("until_ns").alias("time_ns"), "name", pl.lit("up").alias("event")
    )
    return (
        pl.concat([begins, ends])
        .group_by("case", "time_ns", "event", maintain_order=True)
        .agg(pl.col("name"))
        .with_columns(pl.col("name").map_elements(_links, return_dtype=pl.String))
        .group_by("case", "time_ns", maintain_order=True)
        .agg(pl.format("{}: {}", "event", "name").str.join("; ").alias("event"))
        .sort("case", "time_ns")
        .group_by("case", maintain_order=True)
        .head(MAX_TIMES)
        .select("case", (pl.col("time_ns") / 1e9).alias("time"), "event")
    )


def lines(data: pl.DataFrame) -> tuple[alt.Chart, ...]:
    """The layer that draws rows with an `event`, of the data that its chart has; none if there is no such row."""
    if data["event"].is_null().all():
        return ()
    layer: alt.Chart = (
        alt.Chart()
        .transform_filter("isValid(datum.event)")
        .mark_rule(strokeDash=[3, 3], strokeWidth=1, color=style.FAINT)
        .encode(
            x="time:Q",
            tooltip=[
                alt.Tooltip("case:N", title="scheme"),
                alt.Tooltip("time:Q", title="time, s", format=".4~f"),
                alt.Tooltip("event:N", title="change"),
            ],
        )
    )
    return (layer,)


def _links(names: pl.Series) -> str:
    shown = ", ".join(style.port(name) for name in names[:_MAX_LINKS])
    return shown + (f" and {len(names) - _MAX_LINKS} more" if len(names) > _MAX_LINKS else "")


def _text(events: pl.DataFrame) -> pl.Series:
    texts = [_change(*row) for row in events.select("kind", "value").iter_rows()]
    return pl.Series("event", texts, dtype=pl.String)


def _change(kind: str, value: float | None) -> str:
    if value is None:
        return "down"
    if kind == "rate":
        return f"rate {wording.number(value / 1e6)} Mbit/s"
    if kind == "delay":
        return f"delay {wording.duration(value / 1e9)}"
    return f"loss {wording.number(100 * value)} %"
