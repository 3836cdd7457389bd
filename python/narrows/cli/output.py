"""What is printed: tables for people, JSON lines for programs."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Final

from rich.console import Console

from narrows import wording

if TYPE_CHECKING:
    from pathlib import Path

PLAIN_WIDTH: Final = 120
"""Columns of a table that goes to a file or another program."""

OUT: Final = Console(highlight=False, soft_wrap=False, width=None if sys.stdout.isatty() else PLAIN_WIDTH)
"""Results."""
ERR: Final = Console(stderr=True, highlight=False)
"""Progress and remarks."""


def tell(path: Path, *, json: bool, **fields: object) -> None:
    """Where a file was written: its path, or for a program a line with these fields."""
    if json:
        line(**fields, path=str(path))
    else:
        OUT.print(str(path), soft_wrap=True)


def tell_page(page: Path, *, json: bool, **fields: object) -> None:
    """The same of a report; says on stderr where it is too large to be mailed. It is there all the same."""
    from narrows.report.page import MAX_BYTES

    tell(page, json=json, event="report", **fields)
    size = page.stat().st_size
    if size > MAX_BYTES:
        ERR.print(f"{page} has {wording.size(size)}, more than {wording.size(MAX_BYTES)}", soft_wrap=True)


def line(**fields: object) -> None:
    """One JSON object on a line of its own."""
    sys.stdout.write(json.dumps(fields, ensure_ascii=False) + "\n")
    sys.stdout.flush()
