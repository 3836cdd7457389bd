"""`narrows show [KIND] [NAME]`: what an experiment may choose by name; `narrows schema`: the shape of its file."""

from __future__ import annotations

from json import dumps
from typing import Annotated

import typer
from rich.markup import escape
from rich.table import Table

from narrows.cli import options
from narrows.cli.cc import describe
from narrows.cli.exits import codes
from narrows.cli.output import OUT, line
from narrows.errors import bad_input


def show(
    kind: Annotated[
        str | None,
        typer.Argument(metavar="KIND", help="Such as aqm or topology (`narrows show` lists the kinds), or a NAME."),
    ] = None,
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="A name of this kind.")] = None,
    json: options.Json = False,
) -> None:
    """Show the components that an experiment may choose by name, and their parameters.

    Without a name, lists those of the kind, or all.
    """
    from narrows import native

    with codes():
        found = native.components()
        kinds = list(dict.fromkeys(item["kind"] for item in found))
        if kind is not None and kind not in kinds and name is None:
            kind, name = None, kind
        if kind is not None and kind not in kinds:
            raise bad_input(f"no kind of component is called '{kind}'", f"there are: {', '.join(kinds)}")
        found = [item for item in found if kind in (None, item["kind"])]
        names = ", ".join(item["name"] for item in found)
        chosen = [item for item in found if name in (None, item["name"])]
        if not chosen:
            raise bad_input(f"no {kind or 'component'} is called '{name}'", f"there are: {names}")
        table = Table("kind", "name", "about", "source", box=None, header_style="dim")
        for item in chosen:
            if json:
                line(**item)
            elif name is not None:
                describe(item)
            else:
                table.add_row(*(escape(item[key]) for key in ("kind", "name", "about", "source")))
        if not json and name is None:
            OUT.print(table)


def schema() -> None:
    """Print the JSON Schema of experiment files, for editors."""
    from narrows import native

    with codes():
        typer.echo(dumps(native.schema(), indent=2))
