"""A page that people write, with places for what is measured: between `<!-- mark -->` and `<!-- /mark -->`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from narrows import atomic
from narrows.errors import bad_input

if TYPE_CHECKING:
    from pathlib import Path


def replace_part(page: Path, mark: str, content: str) -> None:
    """Puts `content` between the marks. Raises `BadInput` where they are not."""
    atomic.write_text(page, filled(page, mark, content))


def has(text: str, mark: str) -> bool:
    """Whether a page's text has both marks."""
    return f"<!-- /{mark} -->" in text.partition(f"<!-- {mark} -->")[2]


def filled(page: Path, mark: str, content: str = "") -> str:
    """The page's text with `content` between the marks. Raises `BadInput` where they are not."""
    first, last = f"<!-- {mark} -->", f"<!-- /{mark} -->"
    text = read(page)
    before, opened, rest = text.partition(first)
    _, closed, after = rest.partition(last)
    if not (opened and closed):
        raise bad_input(f"{page} has no place for the table", f"write {first} and {last} where it belongs")
    return f"{before}{first}\n{content}\n{last}{after}"


def read(page: Path) -> str:
    """A page's text. Raises `BadInput` where it cannot be read."""
    try:
        return page.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        advice = "give a page with marks for tables; those of the documentation are in a checkout of the project"
        raise bad_input(f"cannot read {page}: {error}", advice) from None
