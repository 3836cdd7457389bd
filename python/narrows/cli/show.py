"""`narrows show [KIND] [NAME]`: what an experiment may choose by name, or results.

`narrows schema`: the shape of an experiment file.
"""

from __future__ import annotations

import re
from difflib import get_close_matches
from json import dumps
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape
from rich.table import Table

from narrows.cli import completion, options
from narrows.cli.cc import describe
from narrows.cli.exits import codes
from narrows.cli.output import ERR, OUT, line
from narrows.cli.results import tell_results
from narrows.errors import BadInput, bad_input


def show(
    kind: Annotated[
        str | None,
        typer.Argument(
            metavar="KIND|NAME",
            help="Kind (controller, aqm, topology, … or measure), a component, a measure, or results.",
            autocompletion=completion.components,
        ),
    ] = None,
    name: Annotated[
        str | None,
        typer.Argument(metavar="NAME", help="A name of this kind.", autocompletion=completion.components),
    ] = None,
    out: options.Out = options.DEFAULT_OUT,
    json: options.Json = False,
) -> None:
    """Show results, components with their parameters, and measures.

    With the name of results, prints their headline numbers, setting, seeds, date, version and command (`narrows runs`
    lists results). Without a name, lists the components of the kind, or all.
    """
    from narrows import native
    from narrows.runs.index import Index

    with codes():
        if kind == completion.MEASURE:
            _measures(name, json=json)
            return
        if kind is not None and name is None and Path(kind).parent != Path():
            _result_at(Path(kind), out, json=json)
            return
        found = native.components()
        kinds = list(dict.fromkeys(item["kind"] for item in found))
        if kind is not None and kind not in kinds and name is None:
            name, kind = kind, None
            is_component = name in {item["name"] for item in found}
            if not is_component and (_result(name, out, json=json) or _measure(name, json=json)):
                return
        if kind is not None and kind not in kinds:
            listed = ", ".join([*kinds, completion.MEASURE])
            raise bad_input(f"no kind of component is called '{kind}'", f"there are: {listed}")
        found = [item for item in found if kind in (None, item["kind"])]
        chosen = [item for item in found if name in (None, item["name"])]
        if name is not None and not chosen:
            raise _unknown(kind, name, [item["name"] for item in found])
        table = Table("kind", "name", "about", "source", box=None, header_style="dim")
        for item in chosen:
            if json:
                line(**item)
            elif name is not None:
                describe(item)
                if Index(out).has(name):
                    ERR.print(
                        f"there are results of this name, too: narrows show {escape(str(out / name))}", style="dim"
                    )
            else:
                table.add_row(*(escape(item[key]) for key in ("kind", "name", "about", "source")))
        if not json and name is None:
            OUT.print(table)


def _unknown(kind: str | None, name: str, names: list[str]) -> BadInput:
    """There is nothing of this name; the nearest names first, or what else it may be."""
    if re.fullmatch(r"[a-z]{3}-\d{3}", name):
        return bad_input(f"'{name}' is the name of a claim", f"`narrows reproduce {name}` judges it")
    near = get_close_matches(name, names, n=3)
    guess = f"did you mean {' or '.join(near)}? " if near else ""
    return bad_input(
        f"no {kind or 'component, measure or result'} is called '{name}'",
        f"{guess}there are: {', '.join(names)}" + ("" if kind else "; `narrows runs` lists results"),
    )


def _result_at(path: Path, out: Path, *, json: bool) -> None:
    """Shows results by file, or by folder and name, `runs/mine`, whatever else is called so. Raises `BadInput`."""
    if path.suffix == ".toml" and _result(str(path), out, json=json):
        return
    if not _result(path.name, path.parent, json=json):
        raise bad_input(f"there are no results {path}", "`narrows runs` lists results")


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


def _measure(name: str, *, json: bool) -> bool:
    """Shows the measure of this name; whether there is one."""
    from narrows.measures.bottleneck import ABOUT
    from narrows.measures.named import measure_called

    if name not in ABOUT and measure_called(name) is None:
        return False
    _measures(name, json=json)
    return True


def _measures(name: str | None, *, json: bool) -> None:
    """All measures, or the one of this name. Raises `BadInput`."""
    from narrows.measures.bottleneck import ABOUT
    from narrows.measures.named import MEASURES, measure_called, unknown

    known = [(item.name, item.unit, item.about) for item in MEASURES.values()]
    known += [(paired, "ms", about) for paired, about in ABOUT.items()]
    if name is not None:
        found = measure_called(name)
        known = [row for row in known if row[0] == (found.name if found else name)]
        if not known:
            raise unknown(name)
    table = Table("measure", "unit", "what it is", box=None, header_style="dim")
    for called, unit, about in known:
        if json:
            line(kind=completion.MEASURE, name=called, unit=unit, about=about)
        table.add_row(escape(called), escape(unit or "–"), escape(about))
    if not json:
        OUT.print(table)


def schema() -> None:
    """Print the JSON Schema of experiment files, for editors."""
    from narrows import native

    with codes():
        typer.echo(dumps(native.schema(), indent=2))
