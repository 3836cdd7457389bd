"""Options that several verbs share."""

from __future__ import annotations

import re
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from narrows.api import RUNS
from narrows.errors import bad_input


class Place(StrEnum):
    """Where runs are made."""

    LOCAL = "local"
    RAY = "ray"


Quick = Annotated[bool, typer.Option("--quick", help="Few seeds and a short time, as `run.quick` of the file says.")]
Seeds = Annotated[
    str | None, typer.Option(metavar="1..10", help="Seeds instead of the file's, last included; `3` is one.")
]
Sets = Annotated[list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Overrides a value of the file.")]
Out = Annotated[Path, typer.Option(metavar="DIR", help="Where runs are kept.")]
MOST = 1024
"""Of runs at once, and of threads of one run: the cores of a large machine, and few enough to begin."""

MOST_SEEDS = 10_000
"""Of an experiment."""

Jobs = Annotated[
    int | None, typer.Option(min=1, max=MOST, metavar="N", help="Runs at once; one per core if not given.")
]
On = Annotated[Place, typer.Option(help="Where runs are made: on this machine, or by a Ray cluster that is there.")]
Threads = Annotated[
    int, typer.Option(min=1, max=MOST, metavar="N", help="Most threads of one run; results do not depend on them.")
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


def inclusive(seeds: str | None) -> str | None:
    """`1..10` counts both ends here as `1..=10` does in a file; `3` is one seed. Raises `BadInput`."""
    if seeds is None:
        return None
    if re.fullmatch(r"[0-9]{1,19}", seeds.strip()):
        seeds = f"{seeds.strip()}..{seeds.strip()}"
    ends = re.fullmatch(r"([0-9]{1,19})\.\.=?([0-9]{1,19})", seeds.strip())
    if ends is None or not 0 <= int(ends[2]) - int(ends[1]) < MOST_SEEDS:
        raise bad_input(
            f"--seeds {seeds} is not a range of at most {MOST_SEEDS} seeds", "write --seeds 1..10, last included"
        )
    return f"{ends[1]}..={ends[2]}"
