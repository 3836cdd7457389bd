"""Writes results as an archive. The same results give the same bytes."""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import zipfile
from contextlib import contextmanager, suppress
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final

from narrows import native
from narrows.archive import layout
from narrows.columns import tables
from narrows.errors import bad_input
from narrows.experiment import identifier, read_content
from narrows.runs.experiments import folder_of, read_copy
from narrows.runs.freshness import changed
from narrows.runs.index import command_as_given, raw_of
from narrows.runs.origin import KEY

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from narrows.experiment import Content
    from narrows.runs.index import Entry
    from narrows.runs.store import Store

_EPOCH: Final = (1980, 1, 1, 0, 0, 0)
"""The earliest time that a zip file can state."""
_MODE: Final = 0o100644 << 16
"""A regular file."""

Source = Path | bytes


def export(entry: Entry, store: Store, output: Path, *, say: Callable[[str], None] = lambda _: None) -> Path:
    """Writes an archive of an entry of the store's index to `output`, and returns its path. `say` is told what goes on.

    Raises `BadInput` where a run is absent or damaged, or the file cannot be written.
    """
    from narrows.report.page import text
    from narrows.results import Results

    if output.is_dir() or not output.name:
        raise bad_input(f"{output} is a folder", "name a file with --output FILE")
    Results(entry, store)  # says what is absent
    say(f"export of {entry.identifier}: checking tables")
    for plan, seed in entry.runs:
        store.verify(plan, seed)
    content = _experiment(entry, store)
    told = _told(entry, content)
    sources: dict[str, Source] = {layout.REPORT: text(Results(told, store), store, say).encode()}
    if content is not None:
        sources[f"{layout.EXPERIMENT}{content.file}"] = content.text.encode()
        sources |= {f"{layout.EXPERIMENT}{name}": file for name, file in content.files.items()}
    for plan, seed in entry.runs:
        folder = f"{layout.RUNS}{plan}/{seed}/"
        try:
            sources[f"{folder}manifest.json"] = _manifest(store.folder(plan, seed) / "manifest.json")
        except OSError as error:
            raise bad_input(f"cannot read run {plan}/{seed}: {error.strerror}", "export again") from error
        sources |= {f"{folder}{name}.parquet": store.folder(plan, seed) / f"{name}.parquet" for name in tables()}
    say(f"export of {entry.identifier}: writing")
    try:
        listed = {name: _described(source) for name, source in sorted(sources.items())}
        with _whole(output) as written:
            _write(written, sources, listed, _contents(told, store, listed))
    except OSError as error:
        raise bad_input(f"cannot write {output}: {error.strerror}", "choose another file with --output") from error
    return output


def _experiment(entry: Entry, store: Store) -> Content | None:
    """The experiment as it was when the runs were made; `None` where nobody knows. Raises `BadInput` if it is damaged.

    Stores of earlier versions keep no copies. There the file counts, if it still asks for these runs.
    """
    if entry.experiment:
        content = read_copy(entry)
        if content is None:
            folder = folder_of(store.root, entry.experiment)
            raise bad_input(
                f"{folder} is damaged: its content is not what was written",
                f"delete it, then run the experiment again; its runs are kept: {entry.command}",
            )
        return content
    if not entry.location.is_file() or changed(entry, store):
        return None
    return read_content(entry.location, identifier(entry.name, quick=False), entry.sets)


def _told(entry: Entry, content: Content | None) -> Entry:
    """An entry as an archive tells it, wherever it is made: the folders of this machine are nobody's business."""
    file = Path(entry.file)
    told = replace(
        entry,
        file=file.name if file.is_absolute() else entry.file,
        location=Path(os.devnull, file.name if content is None else content.file),  # its file of today has no part
        experiment="" if content is None else content.digest,
        imported=False,
    )
    return replace(told, command=command_as_given(told))


def _manifest(path: Path) -> bytes:
    """A manifest as an archive tells it: without the folders of this machine. Raises `OSError`."""
    written = path.read_bytes()
    manifest = json.loads(written)
    origin = manifest.get(KEY)
    if not isinstance(origin, dict) or not isinstance(origin.get("command"), str):
        return written
    try:
        words = shlex.split(origin["command"])
    except ValueError:  # no command that Narrows has written
        words = []
    command = shlex.join(map(_last_part, words))
    if command == origin["command"]:
        return written
    manifest[KEY] = origin | {"command": command}
    return f"{json.dumps(manifest, indent=1, ensure_ascii=False)}\n".encode()


def _last_part(word: str) -> str:
    """A word of a command, `PATH` or `KEY=PATH`, whose path is only its last part where it is absolute."""
    key, mark, value = word.rpartition("=") if not word.startswith("/") else ("", "", word)
    return f"{key}{mark}{Path(value).name if Path(value).is_absolute() else value}"


def _contents(told: Entry, store: Store, listed: Mapping[str, Mapping[str, object]]) -> bytes:
    name = told.identifier.partition("~")[0]
    raw = raw_of(told, store.root)
    del raw["path"]
    made = {"format": layout.FORMAT, "narrows": native.version(), "name": name, "entry": raw, "files": listed}
    return json.dumps(made, indent=1, ensure_ascii=False).encode() + b"\n"


def _write(
    file: IO[bytes], sources: Mapping[str, Source], listed: Mapping[str, Mapping[str, object]], contents: bytes
) -> None:
    with zipfile.ZipFile(file, "w") as archive:
        _add(archive, layout.CONTENTS, contents)
        for name in listed:
            if _add(archive, name, sources[name]) != listed[name]["sha256"]:
                raise bad_input(f"{name} has changed while it was read", "export again")


def _add(archive: zipfile.ZipFile, name: str, source: Source) -> str:
    """Adds a file, and returns its digest. Tables are compressed already."""
    info = zipfile.ZipInfo(name, _EPOCH)
    info.compress_type = zipfile.ZIP_STORED if name.endswith(".parquet") else zipfile.ZIP_DEFLATED
    info.external_attr = _MODE
    info.create_system = 3  # Unix, wherever it is written
    found = hashlib.sha256()
    with _opened(source) as read, archive.open(info, "w", force_zip64=True) as written:
        while chunk := read.read(layout.CHUNK_BYTES):
            found.update(chunk)
            written.write(chunk)
    return found.hexdigest()


def _described(source: Source) -> dict[str, object]:
    found, size = hashlib.sha256(), 0
    with _opened(source) as file:
        while chunk := file.read(layout.CHUNK_BYTES):
            found.update(chunk)
            size += len(chunk)
    return {"bytes": size, "sha256": found.hexdigest()}


def _opened(source: Source) -> IO[bytes]:
    return BytesIO(source) if isinstance(source, bytes) else source.open("rb")


@contextmanager
def _whole(path: Path) -> Iterator[IO[bytes]]:
    """A file that takes its name when all of it is on disk. Raises `OSError`."""
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        with partial.open("w+b") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    finally:
        with suppress(OSError):
            partial.unlink()
