"""Takes an archive into a store. Nothing is written before all of it has been verified."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import stat
import struct
import tempfile
import zipfile
import zlib
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Final

from narrows import wording
from narrows.archive import believable, layout
from narrows.columns import tables
from narrows.errors import BadInput, bad_input
from narrows.experiment import GIVEN, Content, identifier
from narrows.runs.experiments import write_copy
from narrows.runs.index import Index, entry_from
from narrows.runs.reservation import Reservation
from narrows.runs.store import FORMAT, Store

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from narrows.runs.index import Entry
    from narrows.runs.reservation import Key

_ANEW: Final = "copy or export it again"
_BROKEN: Final = (
    zipfile.BadZipFile, zlib.error, struct.error, EOFError, NotImplementedError, UnicodeError, RecursionError,
)  # fmt: skip
"""What reading a damaged archive raises."""


def bring_in(path: Path, out: Path) -> Entry:
    """Takes the results of an archive into the store in `out`; its entry of the index, by which they are found.

    Runs that the store has already, with the same tables, stay as they are.

    Raises:
        BadInput: The archive is none, is damaged, was written in another format, holds names that lead elsewhere or
            more than it may; the store has other results of the same plan and seed; or it cannot be written.
    """
    try:
        with path.open("rb") as file, zipfile.ZipFile(file) as archive:
            read = _Archive(path, archive)
            read.verify()
            return _store(read, Store(out))
    except _BROKEN as error:
        raise _refused(path, f"is damaged, or no archive: {error}") from error
    except OSError as error:
        raise bad_input(f"cannot read {path}: {error.strerror or error}", "name a file that can be read") from error


def _refused(path: Path, sentence: str, advice: str = _ANEW) -> BadInput:
    return bad_input(f"{path} {sentence}", advice)


@dataclass(frozen=True)
class _Listed:
    """What an archive says of one of its files."""

    size_bytes: int
    sha256: str


class _Archive:
    """An archive that is open, of which nothing is believed yet."""

    def __init__(self, path: Path, archive: zipfile.ZipFile) -> None:
        """Raises `BadInput` where a name, a size or the contents are refused."""
        self.path = path
        self._archive = archive
        self._infos = self._checked_infos()
        contents = self._contents()
        self._listed = self._checked_list(contents)
        self.name = str(contents["name"])
        self.raw: Mapping[str, Any] = contents["entry"]
        self.entry = self._entry(self.raw, Path())
        self.manifests = {key: self._manifest(*key) for key in self.entry.runs}

    def _checked_infos(self) -> dict[str, zipfile.ZipInfo]:
        infos = self._archive.infolist()
        if len(infos) > layout.MAX_FILES:
            raise _refused(self.path, f"holds {len(infos)} files, more than {layout.MAX_FILES}")
        found: dict[str, zipfile.ZipInfo] = {}
        for info in infos:
            if why := _why_not(info):
                raise _refused(self.path, f"holds {info.orig_filename!r}, {why}", "take archives of `narrows export`")
            if info.filename in found:
                raise _refused(self.path, f"holds {info.filename} twice")
            found[info.filename] = info
        total, packed = sum(info.file_size for info in infos), self.path.stat().st_size
        if total > layout.MAX_RATIO * packed + layout.MIN_ROOM_BYTES:
            raise _refused(
                self.path,
                f"of {wording.size(packed)} says it holds {wording.size(total)}, more than {layout.MAX_RATIO} times "
                "its size",
                "take archives of `narrows export`",
            )
        return found

    def _contents(self) -> dict[str, Any]:
        if layout.CONTENTS not in self._infos:
            raise _refused(self.path, f"has no {layout.CONTENTS}", "take an archive of `narrows export`")
        try:
            read = json.loads(self._bytes(layout.CONTENTS))
        except ValueError as error:
            raise _refused(self.path, f"is damaged: {layout.CONTENTS} is no JSON") from error
        if not isinstance(read, dict) or read.get("format") != layout.FORMAT:
            told = read.get("format") if isinstance(read, dict) else None
            raise _refused(
                self.path,
                f"has format {told!r}, and this version reads {layout.FORMAT}",
                "use the version of Narrows that wrote it",
            )
        kinds = {"name": str, "entry": dict, "files": dict}
        if not all(isinstance(read.get(key), kind) for key, kind in kinds.items()):
            raise _refused(self.path, f"is damaged: {layout.CONTENTS} is not as Narrows writes it")
        return read

    def _checked_list(self, contents: Mapping[str, Any]) -> dict[str, _Listed]:
        """The files that the contents list: just those that the archive holds."""
        try:
            listed = {
                str(name): _Listed(int(file["bytes"]), str(file["sha256"])) for name, file in contents["files"].items()
            }
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise _refused(self.path, f"is damaged: {layout.CONTENTS} is not as Narrows writes it") from error
        held = self._infos.keys() - {layout.CONTENTS}
        for name in sorted(listed.keys() ^ held):
            raise _refused(self.path, f"lacks {name}" if name in listed else f"holds {name}, which it does not list")
        return listed

    def _entry(self, raw: Mapping[str, Any], root: Path) -> Entry:
        try:
            entry = entry_from(self.name, raw, root)
            count = len(entry.members) * len(entry.seeds)
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise _refused(self.path, "is damaged: its entry is not as Narrows writes it") from error
        if why := believable.why_not_entry(raw, entry):
            raise _refused(self.path, f"is damaged: {why} of its entry is not as Narrows writes it")
        held = {
            (match["plan"], int(match["seed"]))
            for name in self._listed
            if (match := layout.RUN_FILE.fullmatch(name)) is not None
        }
        if count > layout.MAX_FILES or held != entry.runs.keys():
            raise _refused(self.path, "does not hold the runs that its entry lists")
        return entry

    def _manifest(self, plan: str, seed: int) -> dict[str, Any]:
        """Of a run, which has all tables. Raises `BadInput` for one in another format."""
        folder = f"{layout.RUNS}{plan}/{seed}/"
        lacking = [file for file in ("manifest.json", *_table_files()) if f"{folder}{file}" not in self._listed]
        if lacking:
            raise _refused(self.path, f"lacks {folder}{lacking[0]}", "use the version of Narrows that wrote it")
        try:
            read = json.loads(self._bytes(f"{folder}manifest.json"))
        except ValueError as error:
            raise _refused(self.path, f"is damaged: {folder}manifest.json is no JSON") from error
        if not isinstance(read, dict) or read.get("format") != FORMAT:
            raise _refused(
                self.path, f"holds run {plan}/{seed} in another format", "use the version of Narrows that wrote it"
            )
        hash_, _, backend = plan.partition("-")
        said = (read.get("plan_hash"), read.get("seed"), read.get("backend") or "")
        digests = read.get("tables")
        if said != (hash_, seed, backend) or not isinstance(digests, dict) or digests.keys() != tables().keys():
            raise _refused(self.path, f"is damaged: {folder}manifest.json is of another run")
        if why := believable.why_not_manifest(read, backend):
            raise _refused(self.path, f"is damaged: {why} of {folder}manifest.json is not as Narrows writes it")
        return read

    def _bytes(self, name: str) -> bytes:
        with self._archive.open(self._infos[name]) as file:
            return file.read()

    def _chunks(self, name: str) -> Iterator[bytes]:
        """The content of a file. Raises `BadInput` at its end if it is not what the contents say."""
        listed = self._listed[name]
        found, size = hashlib.sha256(), 0
        try:
            with self._archive.open(self._infos[name]) as file:
                while chunk := file.read(layout.CHUNK_BYTES):
                    found.update(chunk)
                    size += len(chunk)
                    yield chunk
        except _BROKEN as error:
            raise _refused(self.path, f"is damaged: {name} cannot be read: {error}") from error
        if (size, found.hexdigest()) != (listed.size_bytes, listed.sha256):
            raise _refused(self.path, f"is damaged: {name} is not what was exported")

    @property
    def size_bytes(self) -> int:
        """Of all files."""
        return sum(info.file_size for info in self._infos.values())

    def verify(self) -> None:
        """Compares each file with its digest. Raises `BadInput` with the name of the first that differs."""
        for name in self._listed:
            for _ in self._chunks(name):
                pass
        self.content()

    def content(self) -> Content | None:
        """The experiment, if there is one. Raises `BadInput` if it is not the entry's."""
        found = {name: b"".join(self._chunks(name)) for name in self._listed if name.startswith(layout.EXPERIMENT)}
        files = {name.removeprefix(layout.EXPERIMENT): content for name, content in found.items()}
        if not files and not self.entry.experiment:
            return None
        name = identifier(self.entry.name, quick=False)
        text = files.pop(f"{name}.toml", b"").decode()
        content = Content(name, text, files)
        if content.digest != self.entry.experiment:
            raise _refused(self.path, "is damaged: its experiment is not the one that its runs were made from")
        return content

    def extract_run(self, plan: str, seed: int, folder: Path) -> None:
        """Writes the files of a run into a folder that is made for it. Raises `BadInput` and `OSError`."""
        folder.mkdir(parents=True)
        for file in ("manifest.json", *_table_files()):
            with (folder / file).open("xb") as written:
                for chunk in self._chunks(f"{layout.RUNS}{plan}/{seed}/{file}"):
                    written.write(chunk)
                written.flush()
                os.fsync(written.fileno())


def _table_files() -> list[str]:
    return [f"{name}.parquet" for name in tables()]


def _why_not(info: zipfile.ZipInfo) -> str:
    """Why a file of an archive is refused; nothing where it is not."""
    name = info.orig_filename  # as it is in the archive: `filename` ends at a NUL
    parts = PurePosixPath(name).parts
    match = layout.RUN_FILE.fullmatch(name)
    if "\\" in name or not name.isprintable() or name.startswith("/") or ".." in parts or ":" in name:
        return "which leads out of it"
    if info.create_system == 3 and stat.S_IFMT(info.external_attr >> 16) not in {0, stat.S_IFREG}:
        return "which is no regular file"
    if not (match or name in {layout.CONTENTS, layout.REPORT} or _is_of_experiment(name)):
        return "which is no file of an archive of Narrows"
    if info.flag_bits & 0x1 or info.compress_type not in {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}:
        return "which is encrypted, or compressed in another way than deflate"
    most = layout.MAX_TABLE_BYTES if match and match["table"] else layout.MAX_TEXT_BYTES
    return f"which is larger than {wording.size(most)}" if info.file_size > most else ""


def _is_of_experiment(name: str) -> bool:
    path = name.removeprefix(layout.EXPERIMENT)
    return path != name and all(part not in {"", ".", ".."} for part in path.split("/"))


def _store(read: _Archive, store: Store) -> Entry:
    """Puts verified results into a store."""
    root = store.root
    free = shutil.disk_usage(_nearest(root)).free
    if read.size_bytes > free:
        raise bad_input(
            f"{read.path} holds {wording.size(read.size_bytes)}, and {root} has room for {wording.size(free)}",
            "free some space, or choose another folder with --out",
        )
    content = read.content()
    store.prepare()
    digests = [] if content is None else [content.digest]
    with Reservation(root, read.manifests, digests), _scratch(root) as scratch:
        # Only now: what is there stays from here on.
        missing = [key for key in read.manifests if not _is_there(read, store, key)]
        staged = Store(scratch)
        for plan, seed in missing:
            read.extract_run(plan, seed, staged.folder(plan, seed))
            if staged.manifest(plan, seed) is None:
                raise _refused(read.path, f"is damaged: the manifest of run {plan}/{seed} is none")
            try:
                staged.verify(plan, seed)
            except BadInput as error:
                sentence = f"is damaged: run {plan}/{seed} has a table that is not what its manifest says"
                raise _refused(read.path, sentence) from error
        for plan, seed in missing:
            lock = store.lock(plan, seed)
            if lock is None:
                raise bad_input(f"another command makes run {plan}/{seed} now", "import again when it has ended")
            with lock:
                if not _is_there(read, store, (plan, seed)):
                    store.put(plan, seed, staged.folder(plan, seed))
        entry = read._entry(read.raw, root)
        file = root / GIVEN / f"{read.name}.toml" if content is None else write_copy(root, content)
        return Index(root).record(replace(entry, imported=True, location=file.resolve(), file=_shown(entry.file)))


def _shown(file: str) -> str:
    """A path that is only shown: its last part where it leads elsewhere."""
    path = PurePosixPath(file)
    return path.name if path.is_absolute() or ".." in path.parts else file


def _is_there(read: _Archive, store: Store, key: Key) -> bool:
    """Whether the store has the run with the same tables. Raises `BadInput` if it has it with others."""
    here = store.manifest(*key)
    if here is None:
        return False
    if here.get("tables") == read.manifests[key]["tables"]:
        store.verify(*key)
        return True
    plan, seed = key
    raise bad_input(
        f"{store.root} has other results of run {plan}/{seed}, made by version {here['version']}; those of {read.path} "
        f"were made by version {read.manifests[key].get('version')}",
        "import into another folder with --out DIR",
    )


def _nearest(folder: Path) -> Path:
    """The folder, or the nearest one above it that is there."""
    absolute = folder.absolute()
    return next(path for path in (absolute, *absolute.parents) if path.exists())


@contextmanager
def _scratch(root: Path) -> Iterator[Path]:
    """An empty folder on the file system of the store. Raises `BadInput` where there is no room."""
    try:
        with tempfile.TemporaryDirectory(prefix=".import.", dir=root) as folder:
            yield Path(folder)
    except OSError as error:
        raise bad_input(
            f"cannot write to {root}: {error.strerror}", "free some space, or choose another folder with --out"
        ) from error
