"""An experiment given as a text or a dict: what it is called, and the files that it names.

It is expanded in a temporary folder, together with copies of these files, and kept in the store in the same way: what
is kept can be run again wherever it lies.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from narrows import atomic, native
from narrows.errors import BadInput, EnvironmentLacks, bad_input
from narrows.experiment.content import named_by, named_in

if TYPE_CHECKING:
    from collections.abc import Sequence

MAX_FILE_BYTES: Final = 64 << 20
"""Of a file that an experiment names, as the simulator reads it."""


@dataclass(frozen=True)
class Given:
    """An experiment that is not in a file."""

    text: str
    files: Mapping[str, bytes]
    """What it names, by the path from the working directory."""
    name: str
    """What it is called where it states no name: the same for the same content."""

    def expand(self, *, sets: Sequence[tuple[str, str]], quick: bool) -> dict[str, Any]:
        """Its plans and seeds. Raises `BadInput` with the place of the mistake."""
        try:
            folder = tempfile.TemporaryDirectory(prefix="narrows-")
        except OSError as error:
            raise EnvironmentLacks(
                f"there is no temporary folder that can be written: {error.strerror}\n  help: name one in TMPDIR"
            ) from error
        with folder:
            path = Path(folder.name) / f"{self.name}.toml"
            self.write(path)
            try:
                return native.expand(str(path), sets=sets, quick=quick)
            except BadInput as error:
                raise BadInput(str(error).replace(str(path), "experiment")) from None

    def path_in(self, folder: Path, name: str) -> Path:
        """Where it is kept: in a folder of its own where it names files, which lie there too."""
        return folder / name if not self.files else folder / Path(name).stem / name

    def write(self, path: Path) -> None:
        """Writes it and its files. Raises `BadInput` where the folder cannot be written."""
        for name, content in self.files.items():
            atomic.write_bytes(path.parent / name, content)
        atomic.write_text(path, self.text)


def given(source: str | Mapping[str, Any], sets: Sequence[tuple[str, str]]) -> Given:
    """An experiment from a text or a dict, with the files that it or an overridden setting names. Raises `BadInput`."""
    text = _written(source) if isinstance(source, Mapping) else source
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise bad_input(
            f"the experiment holds {text[error.start]!r}, which is no character", "take it out: text is UTF-8"
        ) from None
    try:
        content = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError):
        content = {"text": text}  # the simulator says where the mistake is
    digest = hashlib.sha256(json.dumps(content, sort_keys=True, default=str).encode()).hexdigest()[:8]
    named = dict.fromkeys([*named_in(content), *named_by(sets)])
    return Given(text, {name: read for name in named if (read := _read(name)) is not None}, f"experiment-{digest}")


def _written(source: Mapping[str, Any]) -> str:
    import tomli_w

    try:
        return tomli_w.dumps(source)
    except (TypeError, ValueError, AttributeError, RecursionError) as error:
        raise bad_input(f"the dict is no experiment: {error}", "use texts, numbers, lists and dicts") from None


def _read(name: str) -> bytes | None:
    """A file below the working directory; `None` where there is none, or the simulator refuses its path."""
    relative = Path(name)
    if relative.is_absolute() or ".." in relative.parts:
        return None
    try:
        home = Path.cwd().resolve()
        path = (home / relative).resolve(strict=True)
        if path.is_relative_to(home) and path.is_file() and path.stat().st_size <= MAX_FILE_BYTES:
            return path.read_bytes()
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return None
    except OSError as error:
        raise bad_input(f"cannot read {name}: {error.strerror}", "name a file that can be read") from error
    raise bad_input(
        f"the experiment names {name}, which it cannot read",
        f"name a regular file of at most {MAX_FILE_BYTES >> 20} MiB that lies below the working directory",
    )
