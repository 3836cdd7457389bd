"""Each column of each table, as `narrows-results` declares it: files, tests and `docs/reference/results.md` follow."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any

import polars as pl

from narrows import native

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from narrows.native import TableName


@dataclass(frozen=True)
class Column:
    """One column."""

    name: str
    dtype: type[pl.DataType]
    unit: str
    """`–` for names and numbers without a dimension."""
    meaning: str
    nullable: bool = False


@dataclass(frozen=True)
class Table:
    """One file of a run."""

    name: TableName
    row: str
    """What one row is."""
    columns: tuple[Column, ...]

    @property
    def schema(self) -> dict[str, type[pl.DataType]]:
        """Column names to types, in order."""
        return {column.name: column.dtype for column in self.columns}


@cache
def tables() -> dict[TableName, Table]:
    """Every table, as the simulator declares it."""
    return _declared(native.tables())


def _declared(items: Sequence[Mapping[str, Any]]) -> dict[Any, Table]:
    return {
        item["name"]: Table(
            item["name"],
            item["row"],
            tuple(
                Column(it["name"], getattr(pl, it["type"]), it["unit"], it["description"], nullable=it["nullable"])
                for it in item["columns"]
            ),
        )
        for item in items
    }


@cache
def trace_tables() -> dict[str, Table]:
    """Every table of a traced run beside its results."""
    return _declared(native.trace_tables())


def conform(name: TableName, frame: pl.DataFrame) -> pl.DataFrame:
    """The frame with exactly the stated columns and types, in order. Anything else, or a stray null, is a defect."""
    table = tables()[name]
    missing = [column for column in table.schema if column not in frame.columns]
    unknown = [column for column in frame.columns if column not in table.schema]
    if missing or unknown:
        raise AssertionError(f"table {name} is not what the simulator declares: missing {missing}, unknown {unknown}")
    holes = [column.name for column in table.columns if not column.nullable and frame[column.name].null_count()]
    if holes:
        raise AssertionError(f"table {name} is not what the simulator declares: null in {holes}")
    return frame.select(pl.col(column.name).cast(column.dtype) for column in table.columns)


def document() -> str:
    """The reference of all columns, as it stands in `docs/reference/results.md` after its introduction."""
    lines: list[str] = []
    for table in (*tables().values(), *trace_tables().values()):
        lines += [
            f"## `{table.name}.parquet`" + ("" if table.name in tables() else ", of a trace"),
            "",
            fill(table.row, 120, break_on_hyphens=False),
            "",
            "| column | type | unit | meaning |",
            "|---|---|---|---|",
        ]
        for column in table.columns:
            kind = str(column.dtype()) + (", nullable" if column.nullable else "")
            lines.append(f"| `{column.name}` | {kind} | {column.unit} | {column.meaning} |")
        lines.append("")
    return "\n".join(lines)


def main() -> None:
    """Writes the reference into `docs/reference/results.md` of the working directory: `python -m narrows.columns`."""
    path = Path("docs/reference/results.md")
    introduction, heading, _ = path.read_text().partition("## `flows.parquet`")
    path.write_text(introduction + (document() if heading else "\n" + document()))


if __name__ == "__main__":
    main()
