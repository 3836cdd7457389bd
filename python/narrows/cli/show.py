"""`narrows show [KIND] [NAME]`: what an experiment may choose by name, or results.

`narrows schema`: the shape of an experiment file.
"""

from __future__ import annotations

from json import dumps
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape
from rich.table import Table

from narrows.cli import options
from narrows.cli.cc import describe
from narrows.cli.exits import codes
from narrows.cli.output import OUT, line
from narrows.cli.results import tell_results
from narrows.errors import bad_input


def show(
    kind: Annotated[
        str | None,
        typer.Argument(
            metavar="KIND|NAME",
            help="Such as aqm or topology (`narrows show` lists kinds), a component, or results.",
        ),
    ] = None,
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="A name of this kind.")] = None,
    out: options.Out = options.DEFAULT_OUT,
    json: options.Json = False,
) -> None:
    """Show results, or the components that an experiment may choose by name, and their parameters.

    With the name of results, prints their headline numbers, setting, seeds, date, version and command (`narrows runs`
    lists results). Without a name, lists the components of the kind, or all.
    """
    from narrows import native

    with codes():
        found = native.components()
        kinds = list(dict.fromkeys(item["kind"] for item in found))
        if kind is not None and kind not in kinds and name is None:
            name, kind = kind, None
            if name not in {item["name"] for item in found} and _result(name, out, json=json):
                return
        if kind is not None and kind not in kinds:
            raise bad_input(f"no kind of component is called '{kind}'", f"there are: {', '.join(kinds)}")
        found = [item for item in found if kind in (None, item["kind"])]
        names = ", ".join(item["name"] for item in found)
        chosen = [item for item in found if name in (None, item["name"])]
        if not chosen:
            raise bad_input(
                f"no {kind or 'component or result'} is called '{name}'",
                f"there are: {names}" + ("" if kind else "; `narrows runs` lists results"),
            )
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


def _result(name: str, out: Path, *, json: bool) -> bool:
    """Shows results of this name; whether there are any."""
    from narrows.results import Results
    from narrows.runs.index import Index
    from narrows.runs.listing import Listing
    from narrows.runs.store import Store

    if not Index(out).has(name):
        return False
    store, entry = Store(out), Index(out).find(name)
    tell_results(Listing(store).listed(entry), Results(entry, store), store, json=json)
    return True


def schema() -> None:
    """Print the JSON Schema of experiment files, for editors."""
    from narrows import native

    with codes():
        typer.echo(dumps(native.schema(), indent=2))
