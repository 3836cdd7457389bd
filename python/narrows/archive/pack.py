"""Writes results as an archive. The same results give the same bytes."""

from __future__ import annotations

import hashlib
import json
import os
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
from narrows.runs.index import raw_of

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
    from narrows.report import build
    from narrows.results import Results

    results = Results(entry, store)  # says what is absent
    say(f"export of {entry.identifier}: checking tables")
    for plan, seed in entry.runs:
        store.verify(plan, seed)
    content = _experiment(entry, store)
    sources: dict[str, Source] = {layout.REPORT: build(results, store, say=say)}
    if content is not None:
        sources[f"{layout.EXPERIMENT}{content.file}"] = content.text.encode()
        sources |= {f"{layout.EXPERIMENT}{name}": file for name, file in content.files.items()}
    for plan, seed in entry.runs:
        for file in ("manifest.json", *(f"{name}.parquet" for name in tables())):
            sources[f"{layout.RUNS}{plan}/{seed}/{file}"] = store.folder(plan, seed) / file
    say(f"export of {entry.identifier}: writing")
    try:
        listed = {name: _described(source) for name, source in sorted(sources.items())}
        with _whole(output) as written:
            _write(written, sources, listed, _contents(entry, content, store, listed))
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


def _contents(entry: Entry, content: Content | None, store: Store, listed: Mapping[str, Mapping[str, object]]) -> bytes:
    name = entry.identifier.partition("~")[0]
    file = Path(entry.file)
    told = replace(
        entry,
        file=file.name if file.is_absolute() else entry.file,  # the folders of this machine are nobody's business
        experiment="" if content is None else content.digest,
        imported=False,
    )
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
