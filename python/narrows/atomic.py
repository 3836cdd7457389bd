"""A file is whole or absent: written beside its place, synced, then renamed over it."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING

from narrows.errors import bad_input

if TYPE_CHECKING:
    from pathlib import Path


def write_text(path: Path, text: str) -> None:
    """Replaces the file. Raises `BadInput` where the folder cannot be written."""
    write_bytes(path, text.encode())


def write_bytes(path: Path, content: bytes) -> None:
    """Replaces the file. Raises `BadInput` where the folder cannot be written."""
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
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
            f"cannot write {path}: {error.strerror}", "choose a folder that can be written with --out"
        ) from error
