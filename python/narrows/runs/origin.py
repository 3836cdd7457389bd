"""Where a run comes from: when, on what and by which command it was made, and from which commit and experiment.

A manifest has it under `origin`. Tables never depend on it.
"""

from __future__ import annotations

import os
import subprocess
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from narrows import machine

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from narrows.experiment import Experiment

KEY: Final = "origin"
"""Of a manifest."""
_GIT_SECONDS: Final = 5.0
"""For git to answer."""


def of(experiment: Experiment) -> dict[str, Any]:
    """What is known of an experiment's runs before they are made; `git` is null where its file is in no work tree."""
    from narrows.runs.index import command_as_given

    return {
        "command": command_as_given(experiment),
        "git": None if experiment.given is not None else commit_of(experiment.file.resolve()),
        "experiment": "" if experiment.content is None else experiment.content.digest,
    }


def completed(origin: Mapping[str, Any]) -> dict[str, Any]:
    """What is known before a run, with what is known where and when it has been made: `date` (UTC) and `machine`."""
    now = datetime.now(UTC).replace(microsecond=0, tzinfo=None)
    return {KEY: {"date": f"{now.isoformat()}Z", "machine": machine.described(), **origin}}


def commit_of(file: Path) -> dict[str, Any] | None:
    """`commit` of the git work tree that a file is in, and whether it is `dirty`; `None` if it is in none.

    It is dirty if a tracked file differs from the commit, or if git does not track this one.
    """
    commit = _git(file, "rev-parse", "--verify", "HEAD")
    if not commit:
        return None
    changes = _git(file, "status", "--porcelain", "--untracked-files=no")
    tracked = _git(file, "ls-files", "--", file.name)
    return {"commit": commit, "dirty": changes != "" or not tracked}


def _git(file: Path, *arguments: str) -> str | None:
    """What git says in the folder of a file; `None` where it is not here, fails or takes long.

    A repository may be anybody's: no program that it names for watching files is started, and nothing is written.
    """
    environment = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    try:
        done = subprocess.run(
            ["git", "-c", "core.fsmonitor=false", *arguments],  # noqa: S607 - the user's git
            cwd=file.parent,
            env=environment | {"GIT_OPTIONAL_LOCKS": "0"},
            capture_output=True,
            text=True,
            timeout=_GIT_SECONDS,
            check=False,
        )
    except (OSError, ValueError, subprocess.SubprocessError):
        return None
    return done.stdout.strip() if done.returncode == 0 else None
