"""Options that several verbs share."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from narrows.api import MAX_JOBS, RUNS
from narrows.errors import bad_input


class Place(StrEnum):
    """Where runs are made."""

    LOCAL = "local"
    RAY = "ray"


Quick = Annotated[bool, typer.Option("--quick", help="Few seeds and a short time, as `run.quick` of the file says.")]
Seeds = Annotated[
    str | None, typer.Option(metavar="SEEDS", help="Seeds instead of the file's: 1..10 (both included), 3, or 1,5,9.")
]
Sets = Annotated[list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Overrides a value of the file.")]
Out = Annotated[Path, typer.Option(metavar="DIR", help="Where runs are kept.")]
Jobs = Annotated[
    int | None, typer.Option(min=1, max=MAX_JOBS, metavar="N", help="Runs at once; one per core if not given.")
]
On = Annotated[Place, typer.Option(help="Where runs are made: on this machine, or by a Ray cluster that is there.")]
Threads = Annotated[
    int, typer.Option(min=1, max=MAX_JOBS, metavar="N", help="Most threads of one run; results do not depend on them.")
]
RayAddress = Annotated[
    str | None, typer.Option(metavar="HOST:PORT", help="Of the Ray cluster; of one on this machine if not given.")
]
Json = Annotated[bool, typer.Option("--json", help="JSON lines for programs.")]

DEFAULT_OUT = RUNS


def pairs(sets: list[str] | None) -> tuple[tuple[str, str], ...]:
    """`key=value` texts, split. Raises `BadInput`."""
    for text in sets or ():
        if "=" not in text.strip("="):
            raise bad_input(f"--set {text} has no value", 'write --set key=value, for example --set run.end="20s"')
    return tuple((key.strip(), value.strip()) for key, _, value in (text.partition("=") for text in sets or ()))
