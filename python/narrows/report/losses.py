"""Drops and marks by port, as a table whose cells are shaded by their size."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import polars as pl

from narrows import wording
from narrows.figures import style
from narrows.measures.tables import LOSS_UNIT

if TYPE_CHECKING:
    from collections.abc import Mapping

    from narrows.frames import Frames

MAX_PORTS: Final = 12


@dataclass(frozen=True)
class Shade:
    """A cell: its text, what the pointer shows, and how dark it is, 0 to 100."""

    text: str
    details: str
    strength: int


@dataclass(frozen=True)
class Line:
    """A port."""

    port: str
    role: str
    cells: tuple[Shade, ...]


@dataclass(frozen=True)
class Losses:
    """The table, and what it leaves out."""

    cases: tuple[str, ...]
    drops: tuple[Line, ...]
    marks: tuple[Line, ...]
    drop_ports: int
    """Ports that dropped anything, shown or not."""
    mark_ports: int


def table(frames: Frames) -> Losses:
    """Ports that dropped or marked most, means over seeds."""
    per_port = (
        frames.ports.lazy()
        .with_columns((pl.col("sent_packets") + pl.col("dropped_packets")).alias("offered"))
        .group_by("case", "name", "role", maintain_order=True)
        .agg(
            pl.col(
                "dropped_packets",
                "dropped_limit_packets",
                "dropped_pool_packets",
                "dropped_aqm_packets",
                "dropped_outage_packets",
                "marked_packets",
                "offered",
                "sent_packets",
            ).sum()
        )
        .with_columns(
            pl.when(pl.col("offered") > 0)
            .then(pl.col("dropped_packets") / pl.col("offered") / LOSS_UNIT)
            .alias("drops"),
            pl.when(pl.col("sent_packets") > 0)
            .then(100 * pl.col("marked_packets") / pl.col("sent_packets"))
            .alias("marks"),
        )
        .collect()
    )
    drops, drop_ports = _lines(per_port, "drops", "dropped_packets", frames.cases)
    marks, mark_ports = _lines(per_port, "marks", "marked_packets", frames.cases)
    return Losses(frames.cases, drops, marks, drop_ports, mark_ports)


def _lines(per_port: pl.DataFrame, column: str, count: str, cases: tuple[str, ...]) -> tuple[tuple[Line, ...], int]:
    totals = (
        per_port.group_by("name", "role").agg(pl.col(count).sum()).filter(pl.col(count) > 0)
        .sort([count, "name"], descending=[True, False])
    )  # fmt: skip
    shown = totals.head(MAX_PORTS)
    largest = per_port[column].max()
    top = float(largest) if isinstance(largest, (int, float)) else 0.0
    cells = {(row["case"], row["name"]): row for row in per_port.iter_rows(named=True)}
    lines = tuple(
        Line(style.port(name), role, tuple(_shade(cells.get((case, name)), column, top) for case in cases))
        for name, role in shown.select("name", "role").iter_rows()
    )
    return lines, len(totals)


def _shade(row: dict[str, float] | None, column: str, top: float) -> Shade:
    if row is None or row[column] is None:
        return Shade("–", "nothing was sent", 0)
    value = row[column]
    strength = round(100 * (value / top) ** 0.5) if top > 0 else 0
    if column == "marks":
        details = f"{wording.whole(row['marked_packets'])} of {wording.whole(row['sent_packets'])} packets marked"
    else:
        why = reasons(row)
        details = f"{wording.whole(row['dropped_packets'])} of {wording.whole(row['offered'])} packets dropped"
        details += f" ({why})" if why else ""
    return Shade(wording.number(value) if value else "0", details, strength)


def reasons(row: Mapping[str, float]) -> str:
    """Why packets were dropped, and how many: `port's limit 12, AQM 3`."""
    counts = (
        ("port's limit", row["dropped_limit_packets"]),
        ("shared memory", row["dropped_pool_packets"]),
        ("AQM", row["dropped_aqm_packets"]),
        ("outages", row["dropped_outage_packets"]),
    )
    return ", ".join(f"{name} {wording.whole(packets)}" for name, packets in counts if packets)
