"""`narrows cc list|show NAME`: the controllers and their parameters. `narrows cc import`: those of a Linux source."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table

from narrows.cli import completion, options
from narrows.cli.exits import codes
from narrows.cli.output import ERR, OUT, line
from narrows.errors import bad_input

app = typer.Typer(help="Show the congestion controllers and their parameters.", no_args_is_help=True)


@app.command("list")
def list_all(json: options.Json = False) -> None:
    """List the controllers."""
    from narrows import native

    with codes():
        table = Table("name", "title", "ECN", "about", box=None, header_style="dim")
        for spec in native.controllers():
            if json:
                line(**{key: spec[key] for key in ("name", "title", "about", "source", "ecn")})
            table.add_row(*(escape(_text(spec[key])) for key in ("name", "title", "ecn", "about")))
        if not json:
            OUT.print(table)


@app.command("show")
def show(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            help="Name of a controller, as `narrows cc list` shows it, or a file in C or Python.",
            autocompletion=completion.controllers,
        ),
    ],
    controller: Annotated[
        str | None,
        typer.Option("--controller", metavar="NAME", help="Show this controller of a file that has several."),
    ] = None,
    json: options.Json = False,
) -> None:
    """Show a controller and its parameters."""
    from narrows import native

    with codes():
        if Path(name).suffix in (".c", ".py"):
            found = native.controller_in_file(Path(name), controller)
            if json:
                line(**found)
            else:
                _describe_file(Path(name), found, controller)
            return
        spec = _find(name, native.controllers())
        if json:
            line(**spec)
            return
        describe(spec)


@app.command("import")
def bring_in(
    source: Annotated[
        Path,
        typer.Argument(
            metavar="SOURCE",
            help="A source tree of Linux, its folder net/ipv4, or an archive such as /usr/src/linux-source-6.1.tar.xz.",
        ),
    ],
    to: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Folder to create for them.", show_default="linux-VERSION, in this folder"),
    ] = None,
    json: options.Json = False,
) -> None:
    """Copy the congestion controllers of a Linux source, modules and BPF self-tests, and say which run here.

    An experiment beside the folder uses one as `cc = { file = "linux-6.1/tcp_illinois.c" }`. Needs a C compiler. The
    files keep Linux's licence.
    """
    from narrows import linux_source

    with codes():
        table = Table("file", "controller", "parameters", box=None, header_style="dim")
        ERR.print(f"reading {escape(str(source))}, then compiling: up to a minute", style="dim")
        folder, modules = linux_source.copy_controllers(source, to)
        for module in modules:
            if json:
                line(
                    file=str(folder / module.file),
                    controller=module.controller,
                    lacks=module.lacks,
                    parameters=module.parameters,
                )
            given = ", ".join(f"{parameter['name']} = {parameter['value']}" for parameter in module.parameters)
            table.add_row(module.file, module.controller or "–", escape(module.lacks or given))
        if not json:
            OUT.print(table)
            running = [module for module in modules if not module.lacks]
            OUT.print(
                f"{len(running)} of {len(modules)} controllers run in the simulator; they are in {escape(str(folder))}"
            )
            if running:
                OUT.print(
                    f'in an experiment beside it: [bold]cc = {{ file = "{escape(folder.name)}/{running[0].file}" }}[/]'
                )


def _describe_file(path: Path, found: dict[str, Any], chosen: str | None) -> None:
    """Prints a controller that a file has, and how an experiment beside the file names it."""
    named = f'{{ path = "{path.name}", name = "{chosen}" }}' if chosen else f'"{path.name}"'
    OUT.print(f"[bold]{escape(str(found['name']))}[/]  [dim]{escape(_ECN[found['ecn']])}[/]")
    OUT.print(escape(str(found["about"])))
    OUT.print(f"\nin an experiment beside it: [bold]cc = {{ file = {escape(named)} }}[/]")
    for parameter in found["parameters"]:
        OUT.print(f"[bold]{escape(parameter['name'])}[/] = {escape(parameter['value'])}")


def describe(spec: dict[str, Any]) -> None:
    """Prints a component and its parameters."""
    use = _ECN[spec["ecn"]] if "ecn" in spec else spec["kind"].replace("-", " ")
    remarks = f"{use}; source: {spec['source']}" if spec["source"] else use
    OUT.print(f"[bold]{escape(str(spec.get('title', spec['name'])))}[/]  [dim]{escape(remarks)}[/]")
    OUT.print(escape(str(spec["about"])))
    OUT.print(f"\nin an experiment: [bold]{escape(_written(spec))}[/]")
    for parameter in spec["parameters"]:
        bounds = _numbers(parameter["kind"]) + _text(parameter["range"]) if parameter["range"] else ""
        allowed = bounds or _values(parameter["kind"])
        name, default = escape(parameter["name"]), escape(_text(parameter["default"]))
        OUT.print(f"\n[bold]{name}[/] = {default}  [dim]{escape(allowed)}[/]")
        OUT.print(Padding(escape(str(parameter["about"])), (0, 0, 0, 4)))


_PLACES = {
    "aqm": "aqm = {{ {} = {{ … }} }}",
    "scheduler": "scheduler = {{ {} = {{ … }} }}",
    "congestion-point": "congestion-point = {{ {} = {{}} }}",
    "edge": "bridge = {{ {} = {{}} }}",
    "loss": "loss = {{ {} = {{ … }} }}",
    "reordering": "reorder = {{ {} = {{ … }} }}",
    "routing": "routing = {{ {} = {{ … }} }}",
    "program": "program = {{ generate = {{ {} = {{ … }} }} }}",
    "topology": "[topology.{}]",
    "transport": "transport = {{ {} = {{ … }} }}",
    "size-distribution": 'size = {{ cdf = "{}" }}',
    "profile": 'host = {{ profile = "{}" }}',
}
_ECN = {
    "exact": "needs ECN",
    "l4s": "needs ECN, as L4S",
    "optional": "ECN if asked for",
    True: "needs ECN",
    False: "ECN if asked for",
}


def _written(spec: dict[str, Any]) -> str:
    """How an experiment names it, with its first parameter that has a value as an example."""
    name = spec["name"]
    if spec["kind"] != "controller":
        place = _PLACES[spec["kind"]].format(name)
        return place if spec["parameters"] else place.replace(f"{{ {name} = {{ … }} }}", f'"{name}"')
    for parameter in spec["parameters"]:
        default = str(parameter["default"])
        if default != "auto":
            plain = default in ("true", "false") or parameter["kind"] == "count" or "real" in parameter["kind"]
            value = default if plain else f'"{default}"'
            return f"cc = {{ {name} = {{ {parameter['name']} = {value} }} }}"
    return f'cc = "{name}"'


def _numbers(kind: object) -> str:
    """Before the range of a list's numbers: how many there are."""
    return "{} to {} numbers, each ".format(*kind["counts"]) if isinstance(kind, dict) and "counts" in kind else ""


def _values(kind: object) -> str:
    if kind == "switch":
        return "true or false"
    return "one of " + ", ".join(kind["choice"]) if isinstance(kind, dict) and "choice" in kind else ""


def _find(name: str, specs: list[dict[str, Any]]) -> dict[str, Any]:
    for spec in specs:
        if spec["name"] == name:
            return spec
    names = ", ".join(str(spec["name"]) for spec in specs)
    raise bad_input(
        f"no controller is called '{name}'", f"there are: {names}; `narrows show {name}` looks among all components"
    )


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return " to ".join(str(item) for item in value)
    return "–" if value is None else str(value)
