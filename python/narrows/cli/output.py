"""What is printed: tables for people, JSON lines for programs.

What goes to a file or another program has no styles, and no separators in its digits.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from rich.console import Console

from narrows import wording

if TYPE_CHECKING:
    from pathlib import Path

    from rich.text import Text

PLAIN_WIDTH: Final = 120
"""Columns of a table that goes to a file or another program."""


class _Console(Console):
    """Of a terminal, or of a file or another program, whose digits are plain. NO_COLOR is respected by `Console`."""

    def render_str(self, text: str, **options: Any) -> Text:
        return super().render_str(text if self.is_terminal else wording.plain(text), **options)


OUT: Final = _Console(highlight=False, soft_wrap=False, width=None if sys.stdout.isatty() else PLAIN_WIDTH)
"""Results."""
ERR: Final = _Console(stderr=True, highlight=False)
"""Progress and remarks."""


@dataclass
class _Level:
    """How much a command prints beside its results and errors."""

    quiet: bool = False
    verbose: bool = False


_LEVEL: Final = _Level()


def begin() -> None:
    """A command begins, which has been told neither to print less nor more."""
    _LEVEL.quiet = _LEVEL.verbose = ERR.quiet = False


def be_quiet() -> None:
    """Prints only results and errors from now on."""
    _LEVEL.quiet = ERR.quiet = True


def be_verbose() -> None:
    """Prints details from now on."""
    _LEVEL.verbose = True


def is_verbose() -> bool:
    """Whether details are printed."""
    return _LEVEL.verbose


def hint(text: str) -> None:
    """A line beside the results, such as what to do next; not with --quiet."""
    if not _LEVEL.quiet:
        OUT.print(text, markup=False, soft_wrap=True)


def tell(path: Path, *, json: bool, **fields: object) -> None:
    """Where a file was written: its path, or for a program a line with these fields."""
    if json:
        line(**fields, path=str(path))
    else:
        OUT.print(str(path), markup=False, soft_wrap=True)


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
