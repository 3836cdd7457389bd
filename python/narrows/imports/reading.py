"""Text files of other tools, line by line, and errors that name file and line."""

from __future__ import annotations

import stat
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from narrows.errors import bad_input, plain

if TYPE_CHECKING:
    from pathlib import Path

    from narrows.errors import BadInput

MAX_BYTES: Final = 64 << 20
"""Size of the largest file that is read."""
_MAX_QUOTED: Final = 60
"""Characters of a file that an error quotes."""


@dataclass(frozen=True)
class Line:
    """A line that is not empty."""

    number: int
    """Counted from 1."""
    words: tuple[str, ...]


@dataclass(frozen=True)
class Source:
    """A file of another tool."""

    path: Path
    lines: tuple[Line, ...]

    @property
    def name(self) -> str:
        """The file's name without its folder, for comments: printable characters only."""
        return plain(self.path.name)

    def refuse(self, at: Line | int, sentence: str, help: str) -> BadInput:  # noqa: A002 - the word printed
        """An error at a line, or at its number."""
        number = at.number if isinstance(at, Line) else at
        return bad_input(f"{self.path}:{number}: {plain(sentence)}", help)

    def whole(self, line: Line, word: str, what: str) -> int:
        """A whole number from 0 on. Raises `BadInput` that says what it is of."""
        if not (word.isascii() and word.isdecimal() and len(word) <= 18):
            raise self.refuse(line, f"{quoted(word)} is no whole number: {what}", "write digits only")
        return int(word)

    def without_comments(self) -> Source:
        """The file without lines that begin with `#`. Raises `BadInput` if nothing else is there."""
        lines = tuple(line for line in self.lines if not line.words[0].startswith("#"))
        if not lines:
            raise self.refuse(self.lines[0], "the file has comments only", "give a file with content")
        return Source(self.path, lines)


def quoted(text: str) -> str:
    """`'text'`, shortened."""
    return repr(text if len(text) <= _MAX_QUOTED else text[:_MAX_QUOTED] + "…")


def read(path: Path) -> Source:
    """Reads a text file. Raises `BadInput` if it is none, or larger than `MAX_BYTES`."""
    try:
        found = path.stat()
        if not stat.S_ISREG(found.st_mode):
            raise bad_input(f"{path} is not a regular file", "give the path of a file")
        if found.st_size > MAX_BYTES:
            raise bad_input(f"{path} has more than {MAX_BYTES >> 20} MiB", "import a part of it")
        text = path.read_bytes().decode()
    except UnicodeDecodeError:
        raise bad_input(f"{path} is not UTF-8 text", "give a text file") from None
    except OSError as error:
        raise bad_input(f"cannot read {path}: {error.strerror}", "check the path and the permissions") from error
    numbered = ((number, line.split()) for number, line in enumerate(text.split("\n"), 1))
    lines = tuple(Line(number, tuple(words)) for number, words in numbered if words)
    if not lines:
        raise bad_input(f"{path} is empty", "give a file with content")
    return Source(path, lines)
