"""Finished runs on disk: `runs/<plan>/<seed>/`, or `runs/<plan>-guest/<seed>/` where a real kernel carried the traffic.

A run is whole or absent, and knows the version that made it. What is called a plan below is the name of its folder.

Who makes a run holds its lock, `runs/<plan>/.<seed>.lock`, so that several commands share the work of one folder. The
lock is the kernel's and ends with the process that holds it: none is ever stale.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import mmap
import os
import re
import shutil
import tempfile
from enum import Enum
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

import polars as pl
import xxhash

from narrows.columns import conform, tables
from narrows.errors import BadInput, bad_input

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from types import TracebackType

    from narrows.native import TableName

FORMAT: Final = 2
"""Of the files; raised when a column changes its meaning."""

_NEEDED: Final = {"format": int, "version": str, "packet_hops": int, "cpu_ns": int, "ns_per_packet_hop": float}
"""What is read of every manifest: one without these is no manifest."""
_KNOWN: Final[dict[str, type | tuple[type, ...]]] = {
    "plan": dict,
    "tables": (dict, type(None)),  # runs of earlier versions have none
    "sources": (dict, type(None)),
    "simulated_ns": int,
    "hold_ns": (int, float, type(None)),
    "backend": str,
    "plan_hash": str,
    "seed": int,
}
"""Of what kind else is what it may have: one of another kind is not what we write."""

_PLAN: Final = re.compile(r"[0-9a-f]{8,64}(-guest|-host)?")
"""The folder of a plan's runs."""
_SEED: Final = re.compile(r"0|[1-9][0-9]{0,19}")
_BESIDE: Final = re.compile(r"\.(?P<seed>\d+)\.(?:lock|partial|old|work\..+)")


class State(Enum):
    """What the store has of a run."""

    ABSENT = "absent"
    OTHER_VERSION = "other version"
    WHOLE = "whole"


_TRIES: Final = 100
"""How often a folder that somebody removes meanwhile is made again."""


class Lock:
    """The right to write one run; a context manager that gives it back."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self._path = path
        self._descriptor = descriptor

    def __enter__(self) -> Lock:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.release()

    def release(self) -> None:
        """Gives the right back. The file goes first: who waits for the name must not get hold of a file without one.

        A folder that is left without any run, because this one was refused or stopped, goes with it.
        """
        self._path.unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # as a rule it holds runs, or somebody else's lock
            self._path.parent.rmdir()
        os.close(self._descriptor)


class Store:
    """The folder that holds runs."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._digests: dict[tuple[str, int], dict[str, str]] = {}
        self._verified: set[Path] = set()

    def prepare(self) -> None:
        """Creates the folder, proves that it can be written, and removes what killed processes left behind."""
        probe = self.root / f".probe.{os.getpid()}"
        try:
            self.root.mkdir(parents=True, exist_ok=True)
            probe.write_bytes(b"")
            probe.unlink()
        except OSError as error:
            raise bad_input(
                f"cannot write to the output folder {self.root}: {error.strerror}",
                "choose another folder with --out, or change its permissions",
            ) from error
        beside = [(path.parent.name, _BESIDE.fullmatch(path.name)) for path in self.root.glob("*/.*")]
        for plan, seed in sorted({(plan, int(match["seed"])) for plan, match in beside if match}):
            if (lock := self.lock(plan, seed)) is not None:
                lock.release()

    def folder(self, plan: str, seed: int) -> Path:
        """Where a run's files are."""
        return self.root / plan / str(seed)

    def manifest(self, plan: str, seed: int) -> dict[str, Any] | None:
        """What the run was and what it cost; `None` if it is absent, not readable or not what we write."""
        try:
            read = json.loads((self.folder(plan, seed) / "manifest.json").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        if not (isinstance(read, dict) and all(isinstance(read.get(key), kind) for key, kind in _NEEDED.items())):
            return None
        if not all(isinstance(read[key], kind) for key, kind in _KNOWN.items() if key in read):
            return None
        self._digests[plan, seed] = read.get("tables") or {}
        return cast("dict[str, Any]", read)

    def state(self, plan: str, seed: int, version: str) -> State:
        """Whether the run can be used by `version`."""
        manifest = self.manifest(plan, seed)
        if manifest is None:
            return State.ABSENT
        same = manifest.get("version") == version and manifest.get("format") == FORMAT
        return State.WHOLE if same else State.OTHER_VERSION

    def claim(self, plan: str, seed: int, version: str) -> Lock | dict[str, Any] | None:
        """The lock of a run that `version` has to make; its manifest if it is there; `None` while somebody makes it.

        Raises `BadInput` where the folder cannot be written.
        """
        lock = self.lock(plan, seed)
        if lock is None:
            return None
        # Only now: whoever held the lock before may have made it.
        if self.state(plan, seed, version) is State.WHOLE and (manifest := self.manifest(plan, seed)) is not None:
            lock.release()
            return manifest
        return lock

    def lock(self, plan: str, seed: int) -> Lock | None:
        """The right to write a run; `None` while somebody else has it.

        Removes what a killed process left of that run. Raises `BadInput` where the folder cannot be written.
        """
        path = self._beside(plan, seed, "lock")
        left = _TRIES
        try:
            while True:
                try:
                    path.parent.mkdir(parents=True, exist_ok=True)
                    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
                except (FileExistsError, FileNotFoundError):
                    # The last holder has removed the folder in between, which does not go on for ever.
                    left -= 1
                    if left == 0:
                        raise
                    continue
                try:
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    if _has_name(descriptor, path):
                        break
                except BlockingIOError:
                    os.close(descriptor)
                    return None
                os.close(descriptor)
        except OSError as error:
            raise self._not_written(plan, seed, error) from error
        self._clear(plan, seed)
        return Lock(path, descriptor)

    def write(self, plan: str, seed: int, files: Mapping[TableName, bytes], manifest: Mapping[str, Any]) -> None:
        """Puts a finished run in its place, for good: also a machine that loses power has it whole or not at all.

        The caller holds the run's lock. Raises `BadInput` where the disk is full or the folder cannot be written.
        """
        partial = self._beside(plan, seed, "partial")
        digests = {name: digest(files[name]) for name in tables()}
        text = json.dumps({"format": FORMAT, **manifest, "tables": digests}, indent=1, ensure_ascii=False)
        try:
            partial.mkdir()
            for name in tables():
                write_through(partial / f"{name}.parquet", files[name])
            write_through(partial / "manifest.json", f"{text}\n".encode())
            self._put(plan, seed, partial)
        except OSError as error:
            raise self._not_written(plan, seed, error) from error
        finally:
            self._clear(plan, seed)

    def put(self, plan: str, seed: int, folder: Path) -> None:
        """Moves a folder with a finished run, from elsewhere on this file system, to its place; it is synced.

        The caller holds the run's lock. Raises `BadInput` where the folder cannot be written.
        """
        try:
            self._put(plan, seed, folder)
        except OSError as error:
            raise self._not_written(plan, seed, error) from error
        finally:
            self._clear(plan, seed)

    def _put(self, plan: str, seed: int, folder: Path) -> None:
        target = self.folder(plan, seed)
        self._verified -= {target / f"{name}.parquet" for name in tables()}
        _sync(folder)
        with contextlib.suppress(FileNotFoundError):
            target.rename(self._beside(plan, seed, "old"))
        folder.rename(target)
        _sync(target.parent)

    def runs(self) -> Iterator[tuple[str, int]]:
        """Every run that has a folder, whole or not: its plan and its seed."""
        for plan in sorted(self.root.iterdir()) if self.root.is_dir() else ():
            if _PLAN.fullmatch(plan.name) and plan.is_dir():
                seeds = (path.name for path in plan.iterdir() if _SEED.fullmatch(path.name) and path.is_dir())
                yield from ((plan.name, seed) for seed in sorted(map(int, seeds)))

    def size(self, plan: str, seed: int) -> int:
        """Bytes of a run's files; 0 if it is absent."""
        return size_of(self.folder(plan, seed))

    def verify(self, plan: str, seed: int) -> None:
        """Compares each table of a run with its digest, and its columns with ours. Raises `BadInput`."""
        for name in tables():
            self.scan(plan, seed, name)

    @contextlib.contextmanager
    def scratch(self, plan: str, seed: int) -> Iterator[Path]:
        """An empty folder in which the run can be made, removed afterwards; the caller holds the run's lock.

        Each has its own name: what a killed command has started may still write to the last one for a moment. Raises
        `BadInput` where the folder cannot be written.
        """
        try:
            name = tempfile.mkdtemp(prefix=f".{seed}.work.", dir=self.root / plan)
        except OSError as error:
            raise self._not_written(plan, seed, error) from error
        path = Path(name).resolve()
        try:
            yield path
        finally:
            shutil.rmtree(path, ignore_errors=True)

    def scan(self, plan: str, seed: int, table: TableName, *, case: str = "") -> pl.LazyFrame:
        """A table of a run, read when it is needed; errors name its case.

        Raises `BadInput` where it is missing, cut off, another one, or does not have the digest that its manifest says.
        """
        path = self.folder(plan, seed) / f"{table}.parquet"
        run = f" ({case}, seed {seed})" if case else ""
        try:
            self._verify(plan, seed, table, path, run)
            found = pl.read_parquet_schema(path)
        except (OSError, pl.exceptions.PolarsError) as error:
            reason = (str(error).splitlines() or [type(error).__name__])[0]
            raise self._damaged(plan, seed, f"cannot read {path}{run}: {reason}") from error
        if dict(found) != dict(tables()[table].schema):
            raise self._damaged(plan, seed, f"{path}{run} does not have the columns of {table}")
        return pl.scan_parquet(path, glob=False)

    def _verify(self, plan: str, seed: int, table: TableName, path: Path, run: str) -> None:
        """Compares a file with its digest, once."""
        if path in self._verified:
            return
        for again in (False, True):
            if again or (plan, seed) not in self._digests:  # the run may have been made again meanwhile
                self.manifest(plan, seed)
            known = self._digests.get((plan, seed), {})
            if table not in known:
                pl.read_parquet(path, glob=False)  # all of it once: what is damaged is noticed here
                self._verified.add(path)
                return
            if _digest_of(path) == known[table]:
                self._verified.add(path)
                return
        raise self._damaged(plan, seed, f"{path}{run} is damaged: its content is not what was written")

    def _beside(self, plan: str, seed: int, what: str) -> Path:
        return self.root / plan / f".{seed}.{what}"

    def _clear(self, plan: str, seed: int) -> None:
        for what in ("partial", "old"):
            shutil.rmtree(self._beside(plan, seed, what), ignore_errors=True)
        for work in (self.root / plan).glob(f".{seed}.work.*"):
            shutil.rmtree(work, ignore_errors=True)

    def _damaged(self, plan: str, seed: int, sentence: str) -> BadInput:
        return bad_input(
            sentence, f"delete {self.folder(plan, seed)}, then run the experiment again; its other runs are kept"
        )

    def _not_written(self, plan: str, seed: int, error: OSError) -> BadInput:
        return bad_input(
            f"cannot write run {plan}/{seed} to {self.root}: {error.strerror}",
            "free some space, or choose another folder with --out; finished runs are kept",
        )


def digest(content: bytes | mmap.mmap) -> str:
    """Digest of a table's file, against accidents; equal tables have equal files. XXH3 reads 8 GB/s, SHA-256 0.9."""
    return xxhash.xxh3_128_hexdigest(content)


def _digest_of(path: Path) -> str:
    if path.stat().st_size == 0:  # which cannot be mapped
        return digest(b"")
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        return digest(content)


def encoded(name: TableName, table: pl.DataFrame) -> bytes:
    """A table as the bytes of its file. Equal tables give equal bytes."""
    # Into memory first: a file that is written in full by one call says whether the disk had room for it.
    content = BytesIO()
    conform(name, table).write_parquet(
        content, compression="zstd", compression_level=3, statistics=True, row_group_size=1 << 18
    )
    return content.getvalue()


def _has_name(descriptor: int, path: Path) -> bool:
    """Whether the file is still the one of that name: its last holder may have removed it before we locked it."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False


def size_of(folder: Path) -> int:
    """Bytes of all files below a folder; 0 if there is none."""
    total = 0
    for path, _, names in os.walk(folder):  # which passes over folders that somebody removes meanwhile
        for name in names:
            with contextlib.suppress(FileNotFoundError):
                total += Path(path, name).stat().st_size
    return total


def write_through(path: Path, content: bytes) -> None:
    """Writes a file and waits until it is on disk. Raises `OSError`."""
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _sync(folder: Path) -> None:
    """Makes the names in a folder last."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
