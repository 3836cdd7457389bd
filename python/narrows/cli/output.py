"""What is printed: tables for people, JSON lines for programs."""

from __future__ import annotations

import json
import sys
from typing import Final

from rich.console import Console

PLAIN_WIDTH: Final = 120
"""Columns of a table that goes to a file or another program."""

OUT: Final = Console(highlight=False, soft_wrap=False, width=None if sys.stdout.isatty() else PLAIN_WIDTH)
"""Results."""
ERR: Final = Console(stderr=True, highlight=False)
"""Progress and remarks."""


def line(**fields: object) -> None:
    """One JSON object on a line of its own."""
    sys.stdout.write(json.dumps(fields, ensure_ascii=False) + "\n")
    sys.stdout.flush()
