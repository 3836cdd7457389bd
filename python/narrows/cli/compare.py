"""`narrows compare RUN…`: the schemes of a run against its first, or the same schemes of several runs, seed by seed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape
from rich.table import Table

from narrows import wording
from narrows.cli import options
from narrows.cli.exits import codes
from narrows.cli.output import OUT, line

if TYPE_CHECKING:
    from narrows.comparison import Row


def compare(
    runs: Annotated[list[str], typer.Argument(metavar="RUN...", help="Results by name, or by their experiment file.")],
    out: options.Out = options.DEFAULT_OUT,
    json: options.Json = False,
) -> None:
    """Compare schemes, or runs, seed by seed.

    With one RUN, every scheme is compared with the first; with several, equal schemes with those of the first. Ratios
    of completion times and losses are taken within a seed and shown with their intervals.
    """
    from narrows import api
    from narrows.comparison import Comparison, row_fields

    with codes():
        loaded = [api.load(name, out=out) for name in runs]
        found = Comparison(loaded)
        stands_for = [
            f"'{name}' stands for {one.entry.identifier}, its only result"
            for name, one in zip(runs, loaded, strict=True)
            if name in (one.entry.name, one.entry.file) and one.entry.identifier != one.entry.name
        ]
        if json:
            for row in found.rows:
                line(event="comparison", **row_fields(row))
            for text in found.left_out:
                line(event="left_out", text=text)
            for text in (*stands_for, *found.notices):
                line(event="notice", text=text)
            return
        OUT.print(_table(found.rows))
        how, *remarks = found.heading.splitlines()
        for text in (*stands_for, *remarks):
            OUT.print(f"note: {text}", markup=False, soft_wrap=True)
        OUT.print(f"[dim]{how}[/]", soft_wrap=True)


def _table(found: list[Row]) -> Table:
    table = Table(box=None, header_style="dim", pad_edge=False)
    for heading in ("measure", "unit", "base", "", "other", "", "ratio", "interval"):
        table.add_column(heading, no_wrap=heading == "interval", overflow="fold")
    for item in found:
        ratio = item.ratio
        interval = (
            f"{wording.number(ratio.low)} – {wording.number(ratio.high)}" if ratio and ratio.kind != "none" else ""
        )
        table.add_row(
            item.measure,
            item.unit,
            escape(item.base),
            wording.number(item.base_mean),
            escape(item.other),
            wording.number(item.other_mean),
            wording.number(ratio.mean) if ratio else "–",
            interval,
        )
    return table
