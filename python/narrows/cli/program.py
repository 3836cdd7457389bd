"""`narrows program NAME KEY=VALUE …`: the program of a generator as text in GOAL."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from narrows import atomic
from narrows.cli import completion
from narrows.cli.exits import codes
from narrows.errors import bad_input


def program(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            help="Generator: `narrows show program` lists them.",
            autocompletion=completion.programs,
        ),
    ],
    parameters: Annotated[
        list[str] | None,
        typer.Argument(metavar="KEY=VALUE", help="Its parameters, such as ranks=16 and bytes=100MB."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", "--out", metavar="FILE", help="Write to this file (default: print)."),
    ] = None,
) -> None:
    """Write the program of a generator as text in GOAL.

    The text can be changed and run: `program = { goal = "FILE" }` in an experiment.
    """
    from narrows import native

    with codes():
        given = [text.partition("=") for text in parameters or ()]
        if lacking := [key for key, equals, _ in given if not equals]:
            raise bad_input(f"{lacking[0]} has no value", "write KEY=VALUE, for example ranks=16")
        text = native.program(name, {key: value for key, _, value in given})
        if output is None:
            typer.echo(text, nl=False)
            return
        try:
            atomic.write_text(output, text)
        except OSError as error:
            raise bad_input(f"cannot write {output}: {error.strerror}", "choose another file with --output") from error
