"""Options that several verbs share."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from narrows.cli import completion
from narrows.errors import bad_input
from narrows.runs.backends import MAX_JOBS
from narrows.runs.index import DEFAULT_ROOT


class Place(StrEnum):
    """Where runs are made."""

    LOCAL = "local"
    RAY = "ray"


Quick = Annotated[
    bool, typer.Option("--quick", help="Run with the few seeds and the short time of `run.quick` in the file.")
]
Seeds = Annotated[
    str | None, typer.Option(metavar="SEEDS", help="Seeds: 1..10 (both included), 3, or 1,5,9 (default: the file's).")
]
Sets = Annotated[
    list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Override a value of the file; may be repeated.")
]
Out = Annotated[Path, typer.Option(metavar="DIR", help="Folder of the results.")]
Jobs = Annotated[
    int | None,
    typer.Option(
        min=1,
        max=MAX_JOBS,
        metavar="N",
        help="Number of runs at once (default: one per core, fewer if --threads says so; on the host one).",
    ),
]
On = Annotated[Place, typer.Option(help="Run on this machine, or on a Ray cluster that is running (simulator only).")]
Threads = Annotated[
    int,
    typer.Option(
        min=1,
        max=MAX_JOBS,
        metavar="N",
        help="Maximum threads of one run, in the simulator; results do not depend on them.",
    ),
]
RayAddress = Annotated[
    str | None, typer.Option(metavar="HOST:PORT", help="Address of the Ray cluster (default: local).")
]
Run = Annotated[
    str,
    typer.Argument(
        metavar="RUN", help="Results by name, or by their experiment file.", autocompletion=completion.results
    ),
]
Runs = Annotated[
    list[str],
    typer.Argument(
        metavar="RUN...", help="Results by name, or by their experiment file.", autocompletion=completion.results
    ),
]
Scheme = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Scheme, or configuration of a sweep (default: the only one).",
        autocompletion=completion.schemes,
    ),
]
Seed = Annotated[int | None, typer.Option(metavar="SEED", help="Seed of the run (default: the first).")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON lines.")]

DEFAULT_OUT = DEFAULT_ROOT


def pairs(sets: list[str] | None) -> tuple[tuple[str, str], ...]:
    """`key=value` texts, split. Raises `BadInput`."""
    for text in sets or ():
        if "=" not in text.strip("="):
            raise bad_input(f"--set {text} has no value", 'write --set key=value, for example --set run.end="20s"')
    return tuple((key.strip(), value.strip()) for key, _, value in (text.partition("=") for text in sets or ()))
