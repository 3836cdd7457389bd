"""`narrows cc list|show NAME`: the controllers and their parameters."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table

from narrows.cli import completion, options
from narrows.cli.exits import codes
from narrows.cli.output import OUT, line
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
            help="Name of a controller, as `narrows cc list` shows it.",
            autocompletion=completion.controllers,
        ),
    ],
    json: options.Json = False,
) -> None:
    """Show a controller and its parameters."""
    from narrows import native

    with codes():
        spec = _find(name, native.controllers())
        if json:
            line(**spec)
            return
        describe(spec)


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
    raise bad_input(f"no controller is called '{name}'", f"there are: {', '.join(str(spec['name']) for spec in specs)}")


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return " to ".join(str(item) for item in value)
    return "–" if value is None else str(value)
