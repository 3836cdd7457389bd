"""A file is whole or absent: written beside its place, synced, then renamed over it."""

from __future__ import annotations

import contextlib
import os
import re
from typing import TYPE_CHECKING, Final

from narrows.errors import bad_input

if TYPE_CHECKING:
    from pathlib import Path

_PARTIAL: Final = re.compile(r"\..+\.\d+\.partial")


def partial_of(path: Path) -> Path:
    """The file beside a path that this process writes first."""
    return path.with_name(f".{path.name}.{os.getpid()}.partial")


def is_partial(path: Path) -> bool:
    """Whether a file is one that a process writes first, or was writing when it was killed."""
    return _PARTIAL.fullmatch(path.name) is not None


def write_text(path: Path, text: str) -> None:
    """Replaces the file. Raises `BadInput` where the folder cannot be written."""
    write_bytes(path, text.encode())


def write_bytes(path: Path, content: bytes) -> None:
    """Replaces the file. Raises `BadInput` where the folder cannot be written."""
    partial = partial_of(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with partial.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            partial.unlink()
        raise bad_input(
            f"cannot write {path}: {error.strerror}",
            "choose a folder that can be written, and a name that is not too long",
        ) from error
