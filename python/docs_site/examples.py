"""The files that the README and the guides list, as files in `examples`: `python -m docs_site.examples` writes them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from docs_site.pages import HOME, ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FOLDER: Final = ROOT / "examples"
_LISTED: Final = re.compile(r"`([\w-]+(?:\.bpf)?\.(?:toml|py|c))`[^`]*:\n\n```(?:toml|python|c)\n(.*?)```", re.DOTALL)
"""A plain file name that ends the line before its listing."""


def listings(root: Path = ROOT) -> Iterator[tuple[str, str, str]]:
    """Page, file name and text of each listing."""
    for page in (root / HOME, *sorted((root / "docs" / "how-to").glob("*.md"))):
        for name, text in _LISTED.findall(page.read_text(encoding="utf-8")):
            yield page.name, name, text


def write() -> None:
    """Writes them anew, and removes those that no page lists any more."""
    listed = {name: text for _, name, text in listings()}
    for name, text in listed.items():
        (FOLDER / name).write_text(text, encoding="utf-8")
    for path in (path for ending in ("toml", "py", "c") for path in FOLDER.glob(f"*.{ending}")):
        if path.name not in listed:
            path.unlink()


if __name__ == "__main__":
    write()
