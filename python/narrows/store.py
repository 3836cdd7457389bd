"""Finished runs on disk: `runs/<plan>/<seed>/`. A run is whole or absent, and knows the version that made it."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
import shutil
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

import polars as pl

from narrows.columns import TABLES, conform
from narrows.errors import bad_input

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from narrows.native import TableName

FORMAT: Final = 2
"""Of the files; raised when a column changes its meaning."""

_LEFT = re.compile(r"\.\d+\.(?P<process>\d+)\.(?:partial|old)")


class State(Enum):
    """What the store has of a run."""

    ABSENT = "absent"
    OTHER_VERSION = "other version"
    WHOLE = "whole"


class Store:
    """The folder that holds runs."""

    def __init__(self, root: Path) -> None:
        self.root = root

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
        for left in self.root.glob("*/.*"):
            match = _LEFT.fullmatch(left.name)
            if match and not _alive(int(match["process"])):
                shutil.rmtree(left, ignore_errors=True)

    def folder(self, plan: str, seed: int) -> Path:
        """Where a run's files are."""
        return self.root / plan / str(seed)

    def manifest(self, plan: str, seed: int) -> dict[str, Any] | None:
        """What the run was and what it cost; `None` if it is absent or not readable."""
        try:
            text = (self.folder(plan, seed) / "manifest.json").read_text()
            return cast("dict[str, Any]", json.loads(text))
        except (OSError, ValueError):
            return None

    def state(self, plan: str, seed: int, version: str) -> State:
        """Whether the run can be used by `version`."""
        manifest = self.manifest(plan, seed)
        if manifest is None:
            return State.ABSENT
        same = manifest.get("version") == version and manifest.get("format") == FORMAT
        return State.WHOLE if same else State.OTHER_VERSION

    def write(
        self, plan: str, seed: int, tables: Mapping[TableName, pl.DataFrame], manifest: Mapping[str, Any]
    ) -> None:
        """Puts a finished run in its place. Equal tables give equal bytes; clocks are in the manifest only."""
        target = self.folder(plan, seed)
        partial = target.with_name(f".{seed}.{os.getpid()}.partial")
        try:
            shutil.rmtree(partial, ignore_errors=True)
            partial.mkdir(parents=True)
            for name in TABLES:
                conform(name, tables[name]).write_parquet(
                    partial / f"{name}.parquet",
                    compression="zstd",
                    compression_level=3,
                    statistics=True,
                    row_group_size=1 << 18,
                )
            text = json.dumps({"format": FORMAT, **manifest}, indent=1, ensure_ascii=False)
            (partial / "manifest.json").write_text(text + "\n")
            _replace(partial, target, lambda: self.state(plan, seed, str(manifest.get("version"))) is State.WHOLE)
        except OSError as error:
            raise bad_input(
                f"cannot write run {plan}/{seed} to {self.root}: {error.strerror}",
                "free some space, or choose another folder with --out; finished runs are kept",
            ) from error
        finally:
            shutil.rmtree(partial, ignore_errors=True)

    def scan(self, plan: str, seed: int, table: TableName) -> pl.LazyFrame:
        """A table of a run, read when it is needed."""
        return pl.scan_parquet(self.folder(plan, seed) / f"{table}.parquet", glob=False)


def _replace(partial: Path, target: Path, whole: Callable[[], bool]) -> None:
    """Renames a folder into place; what stood there is of another version, or the same run by another process.

    Where another process puts the same run there in between, that one stays.
    """
    old = partial.with_suffix(".old")
    with contextlib.suppress(FileNotFoundError):
        target.rename(old)
    try:
        partial.rename(target)
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST) or not whole():
            raise
    finally:
        shutil.rmtree(old, ignore_errors=True)


def _alive(process: int) -> bool:
    return process == os.getpid() or Path(f"/proc/{process}").exists()
