"""`narrows init [FILE]`: a small experiment to begin with."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from narrows.cli import options
from narrows.cli.exits import codes
from narrows.cli.output import hint, tell
from narrows.experiment import FILE


def init(
    file: Annotated[Path, typer.Argument(metavar="[FILE]", help="Experiment file to write.")] = Path(FILE),
    json: options.Json = False,
) -> None:
    """Write a small experiment with comments, to change and run.

    Beside it goes narrows.schema.json, by which editors with a TOML language server complete keys and mark mistakes,
    offline. An existing experiment is not overwritten.
    """
    from narrows.experiment import example

    with codes():
        for path in example.write(file):
            tell(path, json=json, event="file")
        if not json:
            hint(f"next: {shlex.join(['narrows', 'check', str(file)])}")
