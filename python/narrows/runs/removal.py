"""Removes results from a store, and runs that nothing refers to, whatever else goes on in it.

What is removed is renamed into a folder `.removed.*` while the index is locked, and deleted afterwards: it is there as
a whole or not at all. Runs that a command uses (`runs/reservation.py`) or makes, whose lock it holds, stay.
"""

from __future__ import annotations

import contextlib
import re
import shutil
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from narrows.errors import bad_input
from narrows.experiment import GIVEN
from narrows.runs.experiments import copies
from narrows.runs.index import Index
from narrows.runs.reservation import in_use
from narrows.runs.store import size_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from narrows.runs.index import Entry
    from narrows.runs.reservation import Key
    from narrows.runs.store import Store

_REMOVED: Final = ".removed."
_STALE_SECONDS: Final = 3600.0
"""After which a temporary file that nobody has written to is left over from a process that was killed."""
_TEMPORARY: Final = re.compile(r"\..+\.partial|\.probe\.\d+|\.import\..+")
_OF_SOME: Final = re.compile(r".*\+[0-9a-f]{6}\.html")
"""A report of some configurations of a result."""


@dataclass(frozen=True)
class Removal:
    """What is removed, or would be."""

    entries: tuple[Entry, ...]
    """Of the index."""
    runs: tuple[Key, ...]
    kept_runs: int
    """Runs of these results that stay, because others refer to them or a command uses them."""
    files: tuple[Path, ...]
    """Reports, copies of experiments and temporary files."""
    size_bytes: int

    @property
    def results(self) -> tuple[str, ...]:
        """Names of its entries."""
        return tuple(entry.identifier for entry in self.entries)

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to remove."""
        return not (self.entries or self.runs or self.files)


def unreferenced(store: Store) -> Removal:
    """Runs and copies of experiments that nothing refers to, and temporary files of processes that were killed.

    Raises `BadInput` where no index says what is referred to.
    """
    with _locked(store) as index:
        return _unreferenced(store, index)


def collect(store: Store) -> Removal:
    """Removes what `unreferenced` finds. Raises `BadInput` as it does, and where the folder cannot be written."""
    with _deleting(store) as trash, _locked(store) as index:
        store.prepare()
        return _moved(store, _unreferenced(store, index), trash)


def removable(store: Store, names: Sequence[str]) -> Removal:
    """Results by name with their earlier ones, or one of these (`NAME~1`), and runs that nothing else refers to.

    Raises `BadInput` where there is no such result.
    """
    with _locked(store) as index:
        return _of_results(store, index, [index.find(name).identifier for name in names])


def remove(store: Store, planned: Removal) -> Removal:
    """Removes what `removable` found: results, and runs that nothing else refers to.

    Raises `BadInput` where that has changed since, as `NAME~1` is another result once its file has been run again, or
    where the folder cannot be written.
    """
    with _deleting(store) as trash, _locked(store) as index:
        removal = _of_results(store, index, planned.results)
        if (removal.entries, removal.runs) != (planned.entries, planned.runs):
            raise bad_input(f"{', '.join(planned.results)} changed meanwhile; nothing is removed", "run it again")
        index.forget(removal.results)  # first: an entry never names runs that are not there
        return _moved(store, removal, trash)


@contextlib.contextmanager
def _locked(store: Store) -> Iterator[Index]:
    index = Index(store.root)
    if not index.path.is_file():
        raise bad_input(
            f"{store.root} has no index, which says what its runs belong to",
            "name another folder with --out, or run an experiment there: what is there already is found",
        )
    if not index.is_known:
        raise bad_input(
            f"{index.path} was written by another version of Narrows", "run the experiments again, or use that version"
        )
    try:
        with index.locked():
            yield index
    except OSError as error:
        raise bad_input(f"cannot change {store.root}: {error.strerror}", "change its permissions") from error


@contextlib.contextmanager
def _deleting(store: Store) -> Iterator[Path]:
    """The path of a folder whose content is deleted at the end; it is made when it is needed."""
    trash = store.root / f"{_REMOVED}{time.time_ns()}"
    try:
        yield trash
    finally:
        shutil.rmtree(trash, ignore_errors=True)


def _runs_of(entries: Iterable[Entry]) -> dict[Key, None]:
    """Each once, in order."""
    return dict.fromkeys(key for entry in entries for key in entry.runs)


def _unreferenced(store: Store, index: Index) -> Removal:
    entries = index.every().values()
    used, experiments = in_use(store.root)
    used |= _runs_of(entries).keys()
    experiments |= {entry.experiment for entry in entries}
    runs = tuple(key for key in store.runs() if key not in used)
    files = (
        *(folder for digest, folder in copies(store.root) if digest not in experiments),
        *_stale(store.root),
    )
    size = sum(store.size(*key) for key in runs) + sum(map(_size, files))
    return Removal((), runs, 0, files, size)


def _stale(root: Path) -> Iterator[Path]:
    """Temporary files and folders of processes that were killed."""
    before = time.time() - _STALE_SECONDS
    for folder in (root, root / "reports", root / "figures", root / GIVEN, *(root / GIVEN).glob("*/")):
        for path in folder.glob(".*"):
            if path.name.startswith(_REMOVED):
                yield path
            elif _TEMPORARY.fullmatch(path.name):
                with contextlib.suppress(FileNotFoundError):
                    if path.stat().st_mtime < before:
                        yield path


def _of_results(store: Store, index: Index, named: Sequence[str]) -> Removal:
    """Of entries by their identifiers, with the earlier ones of the same file."""
    every = index.every()
    gone = {key: entry for key, entry in every.items() if key in named or key.rpartition("~")[0] in named}
    left = [entry for key, entry in every.items() if key not in gone]
    used, experiments = in_use(store.root)
    used |= _runs_of(left).keys()
    experiments |= {entry.experiment for entry in left}
    there = [key for key in _runs_of(gone.values()) if store.folder(*key).is_dir()]
    runs = tuple(key for key in there if key not in used)
    mine = {entry.experiment for entry in gone.values()} - experiments
    files = (
        *(folder for digest, folder in copies(store.root) if digest in mine),
        *(path for key in gone for path in _reports(store.root, key, every)),
    )
    size = sum(store.size(*key) for key in runs) + sum(map(_size, files))
    return Removal(tuple(gone.values()), runs, len(there) - len(runs), files, size)


def _reports(root: Path, identifier: str, every: Iterable[str]) -> Iterator[Path]:
    """The report of a result, and those of some of its configurations."""
    for path in sorted((root / "reports").glob(f"report-{identifier}*.html")):
        if _reported(path.name, every) == identifier:
            yield path


def _reported(name: str, every: Iterable[str]) -> str:
    """Of which result a page is: names may begin with another's, and the longest one counts."""
    is_of_some = _OF_SOME.fullmatch(name) is not None
    # `run --watch` leaves a partial page where it is interrupted.
    whole = {f"report-{one}{end}.html": one for one in every for end in ("", "~partial")}
    owners = [one for one in every if is_of_some and name.startswith(f"report-{one}-")]
    return whole.get(name) or max(owners, key=len, default="")


def _size(path: Path) -> int:
    """Bytes of a file or folder; 0 if somebody has removed it meanwhile."""
    if path.is_dir():
        return size_of(path)
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def _moved(store: Store, removal: Removal, trash: Path) -> Removal:
    """Moves all of it into the folder from which it is deleted; what is left out, because a command makes it now."""
    moved = []
    trash.mkdir()
    for number, (plan, seed) in enumerate(removal.runs):
        lock = store.lock(plan, seed)
        if lock is None:
            continue
        with lock, contextlib.suppress(FileNotFoundError):
            store.folder(plan, seed).rename(trash / f"run-{number}")
            moved.append((plan, seed))
    for number, path in enumerate(removal.files):
        with contextlib.suppress(FileNotFoundError):
            path.rename(trash / f"file-{number}")
    return Removal(
        removal.entries,
        tuple(moved),
        removal.kept_runs + len(removal.runs) - len(moved),
        removal.files,
        removal.size_bytes,
    )
