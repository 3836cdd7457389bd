"""The text of an experiment and the files that it names: what is kept beside its results."""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from narrows import atomic

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

MAX_KEPT_BYTES: Final = 1 << 20
"""Of an experiment, and of a file that it names, that is kept beside results."""
MAX_ALL_BYTES: Final = 4 << 20
"""Of all files of one experiment that are kept."""
_KEYS: Final = frozenset({"file", "goal"})
"""Keys whose texts name files."""


@dataclass(frozen=True)
class Content:
    """An experiment's text with the small files that it names."""

    name: str
    """What the experiment is called, which names its file."""
    text: str
    files: Mapping[str, bytes] = field(default_factory=dict)
    """By the path from the experiment's folder."""
    complete: bool = True
    """Whether all files that it names are here: large ones are left out."""

    @property
    def file(self) -> str:
        """The name of its file, after which the experiment is called if it states no name."""
        return f"{self.name}.toml"

    @property
    def digest(self) -> str:
        """SHA-256 of the name, the text and the files, in 32 hexadecimal digits."""
        found = hashlib.sha256()
        for name, content in ((self.file, self.text.encode()), *sorted(self.files.items())):
            found.update(f"{name}\0{len(content)}\0".encode())
            found.update(content)
        return found.hexdigest()[:32]

    def write(self, folder: Path) -> None:
        """Writes the files and, last, the experiment. Raises `BadInput` where the folder cannot be written."""
        for name, content in self.files.items():
            atomic.write_bytes(folder / name, content)
        atomic.write_text(folder / self.file, self.text)


def read_content(path: Path, name: str, sets: Sequence[tuple[str, str]] = ()) -> Content | None:
    """The experiment in a file as it is now; `None` if it cannot be read, or is too large to be kept."""
    try:
        if not path.is_file() or path.stat().st_size > MAX_KEPT_BYTES:  # one would wait for a FIFO
            return None
        text = path.read_text(encoding="utf-8")
    except (OSError, ValueError):
        return None
    return kept_content(text, name, {file: small_file(path.parent, file) for file in named_files(text, sets)})


def kept_content(text: str, name: str, found: Mapping[str, bytes | None]) -> Content | None:
    """An experiment with those of the files that it names that are here and small; `None` if its text is too large."""
    if len(text.encode()) > MAX_KEPT_BYTES:
        return None
    files: dict[str, bytes] = {}
    room = MAX_ALL_BYTES
    for path, content in found.items():
        if content is not None and len(content) <= min(room, MAX_KEPT_BYTES):
            files[Path(path).as_posix()] = content
            room -= len(content)
    return Content(name, text, files, complete=len(files) == len(found))


def named_files(text: str, sets: Sequence[tuple[str, str]] = ()) -> list[str]:
    """What an experiment and overridden settings name, each once; nothing if the text is no TOML."""
    content: Any = {}
    try:
        if any(key in text for key in _KEYS):  # a long text takes a while to be read
            content = tomllib.loads(text)
        return list(dict.fromkeys([*named_in(content), *named_by(sets)]))
    except (tomllib.TOMLDecodeError, RecursionError):
        return []


def named_in(content: Any, *, names_file: bool = False) -> Iterator[str]:
    """Texts of keys and dotted paths that end in `file` or `goal`: `size = { file = "sizes.cdf" }`."""
    if isinstance(content, Mapping):
        for key, value in content.items():
            # The key of a sweep may be several paths.
            last = {path.rpartition(".")[2].strip() for path in key.split(",")}
            yield from named_in(value, names_file=not _KEYS.isdisjoint(last))
    elif isinstance(content, list):
        for value in content:
            yield from named_in(value, names_file=names_file)
    elif names_file and isinstance(content, str):
        yield content


def named_by(sets: Sequence[tuple[str, str]]) -> Iterator[str]:
    """Files that overridden settings name."""
    for key, value in sets:
        yield from named_in({key: _value(value)})


def _value(text: str) -> Any:
    """An overridden setting, whose texts need no quotes."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except (tomllib.TOMLDecodeError, RecursionError):
        return text


def small_file(folder: Path, name: str) -> bytes | None:
    """A file below a folder; `None` if it is absent, elsewhere, not a regular file, or too large to be kept."""
    relative = Path(name)
    if relative.is_absolute() or ".." in relative.parts:
        return None
    try:
        home = folder.resolve()
        path = (home / relative).resolve(strict=True)
        if path.is_relative_to(home) and path.is_file() and path.stat().st_size <= MAX_KEPT_BYTES:
            return path.read_bytes()
    except (OSError, ValueError, RuntimeError):  # the last where links go round
        pass
    return None
