"""Copies of experiments in a store, as they were when their runs were made: `experiments/sha256-<digest>/NAME.toml`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from narrows import atomic
from narrows.errors import bad_input
from narrows.experiment import GIVEN, Content, identifier

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from narrows.runs.index import Entry

_PREFIX: Final = "sha256-"
_DIGEST: Final = re.compile(r"[0-9a-f]{32}")


def experiment_text(entry: Entry) -> str | None:
    """The text of the experiment that an entry's runs were made from; `None` if it was not kept, or is damaged."""
    content = read_copy(entry)
    return None if content is None else content.text


def read_copy(entry: Entry) -> Content | None:
    """The experiment of an entry with the files that it names; `None` if it was not kept, or is damaged."""
    if not entry.experiment:
        return None
    folder = folder_of(entry.root, entry.experiment)
    name = identifier(entry.name, quick=False)
    try:
        files = {
            path.relative_to(folder).as_posix(): path.read_bytes()
            for path in sorted(folder.rglob("*"))
            if path.is_file() and not atomic.is_partial(path)
        }
        text = files.pop(f"{name}.toml").decode()
    except (OSError, KeyError, ValueError):
        return None
    content = Content(name, text, files)
    return content if content.digest == entry.experiment else None


def write_copy(root: Path, content: Content) -> Path:
    """Keeps an experiment in the store in `root`, if it is not there yet; the path of the copy. Raises `BadInput`."""
    folder = folder_of(root, content.digest)
    path = folder / content.file
    if not path.is_file():  # it is written last
        content.write(folder)
    return path


def folder_of(root: Path, digest: str) -> Path:
    """The folder of a copy. Raises `BadInput` for what is no digest."""
    if _DIGEST.fullmatch(digest) is None:
        raise bad_input(f"{digest!r} is no digest of an experiment", "run the experiment again")
    return root / GIVEN / f"{_PREFIX}{digest}"


def copies(root: Path) -> Iterator[tuple[str, Path]]:
    """Digest and folder of each copy in a store."""
    for folder in sorted((root / GIVEN).glob(f"{_PREFIX}*")):
        digest = folder.name.removeprefix(_PREFIX)
        if _DIGEST.fullmatch(digest) and folder.is_dir():
            yield digest, folder
