"""`narrows examples [NAME ...]`: the files of the documentation's examples, copied to where they can be changed."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer
from rich.markup import escape
from rich.table import Table

from narrows import atomic, packaged
from narrows.cli import completion, options
from narrows.cli.exits import codes
from narrows.cli.output import OUT, line, tell
from narrows.errors import bad_input

if TYPE_CHECKING:
    from collections.abc import Sequence

KINDS: Final = {".toml": "experiment", ".py": "Python script", ".c": "controller", ".ipynb": "notebook"}
"""What is listed, by the ending of its name."""


def examples(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[NAME ...]",
            help="Examples to copy to the working directory (default: list all).",
            autocompletion=completion.examples,
        ),
    ] = None,
    json: options.Json = False,
) -> None:
    """List the documentation's examples, or copy some.

    Copies to the working directory. A file that is there already is not overwritten. Figures of papers need no copy:
    `narrows run gemini/fig13` takes their names.
    """
    with codes():
        found = {path.name: path for path in sorted(packaged.examples().iterdir()) if path.suffix in KINDS}
        if not names:
            _list(list(found.values()), json=json)
            return
        if unknown := [name for name in names if name not in found]:
            raise bad_input(f"no example is called '{unknown[0]}'", f"there are: {', '.join(found)}")
        if there := [name for name in names if Path(name).exists()]:
            raise bad_input(f"{there[0]} is here already", "rename it, or change to another folder")
        for name in names:
            atomic.write_bytes(Path(name), found[name].read_bytes())
            tell(Path(name), json=json, event="file")


def _list(found: Sequence[Path], *, json: bool) -> None:
    table = Table("name", "kind", "title", box=None, header_style="dim")
    for path in sorted(found, key=lambda path: list(KINDS).index(path.suffix)):
        about = {"name": path.name, "kind": KINDS[path.suffix], "title": _title(path)}
        if json:
            line(**about)
        table.add_row(*map(escape, about.values()))
    if not json:
        OUT.print(table)
        OUT.print("next: narrows examples NAME copies it here")


def _title(path: Path) -> str:
    """An experiment's; other files have none."""
    if path.suffix != ".toml":
        return ""
    return str(tomllib.loads(path.read_text(encoding="utf-8")).get("title", ""))
