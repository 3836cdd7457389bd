"""The text of an experiment, as it was when its runs were made."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from narrows.runs.freshness import asks_the_same

if TYPE_CHECKING:
    from narrows.runs.index import Entry

MAX_CHARACTERS: Final = 500_000
"""Of a text that a page holds: one that lists more than it describes would make the page too large to mail."""


def experiment_text(entry: Entry) -> str | None:
    """The file's text; `None` if there is no such file now, if it asks for something else, or if it is very long."""
    if not asks_the_same(entry):
        return None
    try:
        text = entry.location.read_text(encoding="utf-8")
    except (OSError, ValueError):
        return None
    return text if len(text) <= MAX_CHARACTERS else None
