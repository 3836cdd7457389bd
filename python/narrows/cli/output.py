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


def warn_of_size(page: Path) -> None:
    """Says on stderr where a page is too large to be mailed; it is there all the same."""
    from narrows.report.page import MAX_BYTES

    size = page.stat().st_size
    if size > MAX_BYTES:
        ERR.print(f"{page} has {wording.size(size)}, more than {wording.size(MAX_BYTES)}", soft_wrap=True)


def line(**fields: object) -> None:
    """One JSON object on a line of its own."""
    sys.stdout.write(json.dumps(fields, ensure_ascii=False) + "\n")
    sys.stdout.flush()
