"""What shows itself as a table: printed, and in a notebook."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from html import escape
from typing import TYPE_CHECKING, Final

from narrows import wording
from narrows.errors import EnvironmentLacks

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

_ROWS, _CHARACTERS = 40, 160
_TEXT: Final = 100
"""Characters of one value."""


class Tabular(ABC):
    """A heading and a table."""

    @property
    @abstractmethod
    def heading(self) -> str:
        """What the table is of."""

    @property
    @abstractmethod
    def table(self) -> pl.DataFrame:
        """The table."""

    def __repr__(self) -> str:
        with _shown():
            return f"{self.heading}\n{self.table}"

    def _repr_html_(self) -> str:
        first, *others = self.heading.splitlines()
        notes = "".join(f"<li>{escape(text)}</li>" for text in others)
        return f"<p>{escape(first)}</p>{f'<ul>{notes}</ul>' if notes else ''}{html(self.table)}"

    def to_pandas(self) -> pd.DataFrame:
        """The table as pandas'. Raises `EnvironmentLacks` where pandas or pyarrow is not installed."""
        try:
            import pandas  # noqa: F401 - polars needs them, and says less clearly which is not here
            import pyarrow  # noqa: F401
        except ImportError as error:
            raise EnvironmentLacks(
                f"a table of pandas needs pandas and pyarrow: {error}\n  help: pip install 'narrows[notebook]'"
            ) from None
        return self.table.to_pandas()


def html(table: pl.DataFrame) -> str:
    """A table for notebooks: numbers with three digits and to the right, text escaped and to the left."""
    sides = ["right" if kind.is_numeric() else "left" for kind in table.dtypes]

    def row(values: tuple[object, ...], tag: str) -> str:
        aligned = zip(values, sides, strict=True)
        cells = (f'<{tag} style="text-align:{side}">{_cell(value)}</{tag}>' for value, side in aligned)
        return f"<tr>{''.join(cells)}</tr>"

    body = "".join(row(values, "td") for values in table.head(_ROWS).iter_rows())
    left_out = table.height - _ROWS
    more = f"<p>and {wording.plural(left_out, 'row')} more</p>" if left_out > 0 else ""
    return f"<table><thead>{row(tuple(table.columns), 'th')}</thead><tbody>{body}</tbody></table>{more}"


def _cell(value: object) -> str:
    if value is None:
        return "–"
    return escape(wording.number(value) if isinstance(value, float) else str(value))


def _shown() -> pl.Config:
    import polars as pl

    return pl.Config(
        tbl_formatting="UTF8_FULL_CONDENSED" if sys.stdout.isatty() else "NOTHING",  # a file has no boxes
        tbl_rows=_ROWS,
        tbl_cols=-1,
        tbl_width_chars=_CHARACTERS,
        fmt_str_lengths=_TEXT,
        float_precision=3,
        tbl_hide_column_data_types=True,
        tbl_hide_dataframe_shape=True,
    )
