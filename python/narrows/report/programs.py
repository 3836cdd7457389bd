"""Programs of ranks: a table of how long they took, and how long their ranks computed and waited."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import polars as pl

from narrows import wording
from narrows.measures.programs import by_run
from narrows.measures.stats import estimate
from narrows.report.headline import Cell, cell

if TYPE_CHECKING:
    from narrows.frames import Frames

_COLUMNS: Final = ("execution", "first", "compute", "wait", "waiting")


@dataclass(frozen=True)
class Row:
    """A program in one case."""

    case: str
    program: str
    controller: str
    ranks: str
    cells: tuple[Cell, ...]
    """Its execution time, when the first rank ended, how long a rank computed and waited, and its share in %."""


def table(frames: Frames) -> list[Row]:
    """Every program of every case, in the order of the file."""
    runs = by_run(frames).with_columns((100 * pl.col("waiting")).alias("waiting"))
    return [
        Row(
            case,
            program,
            controller,
            wording.whole(max(own["ranks"].to_list())),
            tuple(_cell(own, name) for name in _COLUMNS),
        )
        for (case, program, controller), own in runs.group_by("case", "workload", "controller", maintain_order=True)
    ]


def _cell(runs: pl.DataFrame, column: str) -> Cell:
    """Of a program that did not end in every seed there is no execution time: the mean of the others is too small."""
    if column == "execution" and (late := runs[column].null_count()):
        return Cell("did not end", f"in {late} of {wording.plural(len(runs), 'run')}", "")
    found = estimate(runs[column].drop_nulls().to_list())
    return Cell("–", "", "") if found is None else cell(found)
