"""Runs that a command is about to use, so that nothing removes them before it has recorded its experiment.

A reservation is a file `.in-use.*` in the store, locked by the process that wrote it. The lock ends with the process,
and a file without one counts for nothing.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import tempfile
import weakref
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final

from narrows.errors import bad_input
from narrows.runs.index import Index

if TYPE_CHECKING:
    from collections.abc import Iterable

_PREFIX: Final = ".in-use."

Key = tuple[str, int]
"""What names a run's results: the folder of its plan, which the hash and the backend name, and the seed."""


class Reservation:
    """Runs and experiments of a store that are in use; a context manager, and ends with the object at the latest."""

    def __init__(self, root: Path, runs: Iterable[Key], experiments: Iterable[str]) -> None:
        """Raises `BadInput` where the folder cannot be written."""
        try:
            with Index(root).locked():  # what removes runs holds this lock, too
                in_use(root)
                file = tempfile.NamedTemporaryFile("w", prefix=_PREFIX, dir=root, delete=False)  # noqa: SIM115 - open
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                json.dump({"runs": list(runs), "experiments": list(experiments)}, file)
                file.flush()
        except OSError as error:
            raise bad_input(
                f"cannot write to {root}: {error.strerror}",
                "free some space, or choose another folder with --out",
            ) from error
        self._end = weakref.finalize(self, _release, file)

    def __enter__(self) -> Reservation:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def release(self) -> None:
        """Ends it; there is no harm in doing so twice."""
        self._end()


def _release(file: IO[str]) -> None:
    Path(file.name).unlink(missing_ok=True)
    file.close()


def in_use(root: Path) -> tuple[set[Key], set[str]]:
    """Runs and experiments that commands use now; the caller holds the lock of the index.

    Removes reservations of processes that are gone.
    """
    runs: set[Key] = set()
    experiments: set[str] = set()
    for path in root.glob(f"{_PREFIX}*"):
        with contextlib.suppress(FileNotFoundError), path.open("rb") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                read = json.load(file)
                runs.update((plan, seed) for plan, seed in read["runs"])
                experiments.update(read["experiments"])
            else:
                path.unlink()
    return runs, experiments
