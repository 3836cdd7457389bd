"""What shows itself as a table: printed, and in a notebook."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import polars as pl


class Tabular:
    """A heading and a table."""

    @property
    def heading(self) -> str:
        """What the table is of."""
        raise NotImplementedError

    @property
    def table(self) -> pl.DataFrame:
        """The table."""
        raise NotImplementedError

    def __repr__(self) -> str:
        import polars as pl

        with pl.Config(tbl_rows=40, tbl_cols=-1, tbl_hide_column_data_types=True, tbl_hide_dataframe_shape=True):
            return f"{self.heading}\n{self.table}"

    def _repr_html_(self) -> str:
        import polars as pl

        with pl.Config(tbl_rows=40, tbl_cols=-1, tbl_hide_column_data_types=True, tbl_hide_dataframe_shape=True):
            return f"<p>{escape(self.heading)}</p>{self.table._repr_html_()}"
