"""What shows itself as a table: printed, and in a notebook."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import polars as pl

_ROWS, _CHARACTERS = 40, 160


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
        with _shown():
            return f"<p>{escape(self.heading)}</p>{self.table._repr_html_()}"


def _shown() -> pl.Config:
    import polars as pl

    return pl.Config(
        tbl_formatting="UTF8_FULL_CONDENSED" if sys.stdout.isatty() else "NOTHING",  # a file has no boxes
        tbl_rows=_ROWS,
        tbl_cols=-1,
        tbl_width_chars=_CHARACTERS,
        float_precision=3,
        tbl_hide_column_data_types=True,
        tbl_hide_dataframe_shape=True,
    )
