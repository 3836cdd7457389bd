"""`narrows compare RUN…`: the schemes of a run against its first, or the same schemes of several runs, seed by seed."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Final

import typer
from rich.markup import escape
from rich.table import Table

from narrows import wording
from narrows.cli import options
from narrows.cli.exits import codes
from narrows.cli.output import OUT, line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from narrows.comparison import Comparison, Row, Summary

Along = Annotated[
    str | None,
    typer.Option(metavar="AXIS", help="Compare values of an axis of the sweep, such as 'wan.delay' or 'delay'."),
]

MAX_ROWS: Final = 200
"""Rows of a sweep in a terminal; `--json` has all."""


def compare(
    runs: options.Runs,
    along: Along = None,
    out: options.Out = options.DEFAULT_OUT,
    json: options.Json = False,
) -> None:
    """Compare schemes, or runs, seed by seed.

    With one RUN, every scheme is compared with the first, in a sweep at the same values of its axes; with several,
    equal schemes with those of the first. Ratios are taken within a seed and shown as geometric means with their
    intervals. Of a sweep a summary over its configurations comes first. With --along every scheme is compared with
    itself at the axis' first value.
    """
    from narrows import api
    from narrows.comparison import Comparison, row_fields

    with codes():
        loaded = [api.load(name, out=out) for name in runs]
        found = Comparison(loaded, along)
        stands_for = [
            f"'{name}' stands for {one.entry.identifier}, its only result"
            for name, one in zip(runs, loaded, strict=True)
            if name in (one.entry.name, one.entry.file) and one.entry.identifier != one.entry.name
        ]
        if json:
            for summary in found.summary:
                line(event="summary", **_without_nan(asdict(summary)))
            for row in found.rows:
                line(event="comparison", **row_fields(row))
            for text in found.left_out:
                line(event="left_out", text=text)
            for text in (*stands_for, *found.notices):
                line(event="notice", text=text)
            return
        _print(found, stands_for)


def _print(found: Comparison, stands_for: Sequence[str]) -> None:
    """The summary of a sweep, the rows, and what has to be known of them."""
    shown = found.rows
    if found.axes:
        OUT.print("Over all configurations of the sweep", style="bold")
        OUT.print(_summary_table(found.summary))
        OUT.print("\nBy configuration", style="bold")
        shown = found.rows[:MAX_ROWS]
    OUT.print(_table(shown, found.axes))
    if len(shown) < len(found.rows):
        more = wording.whole(len(found.rows) - len(shown))
        OUT.print(f"… and {more} more rows; --json prints all", markup=False, soft_wrap=True)
    how, *remarks = found.heading.splitlines()
    for text in (*stands_for, *remarks):
        OUT.print(f"note: {text}", markup=False, soft_wrap=True)
    if found.axes:
        how += " Below 1, above 1: configurations in which the whole interval is."
    OUT.print(f"[dim]{how}[/]", soft_wrap=True)


def _without_nan(fields: dict[str, object]) -> dict[str, object]:
    """JSON has no number that is none."""
    return {name: None if value != value else value for name, value in fields.items()}  # noqa: PLR0124 - nan


def _summary_table(found: Sequence[Summary]) -> Table:
    table = Table(box=None, header_style="dim", pad_edge=False)
    for heading in ("measure", "base", "other", "ratio", "smallest – largest", "below 1", "above 1", "of"):
        table.add_column(heading, no_wrap="–" in heading, overflow="fold")
    for item in found:
        span = f"{wording.number(item.low)} – {wording.number(item.high)}" if item.ratios else ""
        counts = (wording.whole(count) for count in (item.lower, item.higher, item.ratios))
        table.add_row(item.measure, escape(item.base), escape(item.other), wording.number(item.ratio), span, *counts)
    return table


def _table(found: Sequence[Row], axes: Sequence[str]) -> Table:
    from narrows.configurations import short_names

    table = Table(box=None, header_style="dim", pad_edge=False)
    names = short_names(axes)
    for heading in ("measure", "unit", *(escape(names[axis]) for axis in axes), "base", "", "other", "", "ratio"):
        table.add_column(heading, overflow="fold")
    table.add_column("interval", no_wrap=True, overflow="fold")
    for item in found:
        ratio, at = item.ratio, dict(item.configuration)
        interval = (
            f"{wording.number(ratio.low)} – {wording.number(ratio.high)}" if ratio and ratio.kind != "none" else ""
        )
        table.add_row(
            item.measure,
            item.unit,
            *(escape(at.get(axis, "–")) for axis in axes),
            escape(item.base),
            wording.number(item.base_mean),
            escape(item.other),
            wording.number(item.other_mean),
            wording.number(ratio.mean) if ratio else "–",
            interval,
        )
    return table
