"""`narrows explain RUN`: where the time of flows went."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape
from rich.table import Table

from narrows import wording
from narrows.cli import completion, options
from narrows.cli.exits import codes
from narrows.cli.output import OUT, line
from narrows.cli.progress import watching
from narrows.errors import bad_input

if TYPE_CHECKING:
    from narrows.traces import Explanation

MAX_SCHEMES = 5
"""Schemes of which the slowest flows are explained without being named: each is run again."""


def explain(
    run: options.Run,
    flow: Annotated[
        list[int] | None,
        typer.Option(
            "--flow",
            metavar="N",
            min=0,
            help="Number of a flow to explain (column flow); may be repeated (default: the ten slowest).",
        ),
    ] = None,
    scheme: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Scheme, or configuration of a sweep (default: all, if at most 5; with --flow, the only one).",
            autocompletion=completion.schemes,
        ),
    ] = None,
    seed: options.Seed = None,
    by: Annotated[
        str, typer.Option(metavar="slowdown|fct", help="Rank flows by slowdown or by completion time.")
    ] = "slowdown",
    out: options.Out = options.DEFAULT_OUT,
    json: options.Json = False,
) -> None:
    """Explain where the time of the slowest flows went.

    Makes the run again with a trace and follows what the last byte waited for, back to the flow's start. The parts add
    up to the completion time. With --flow, lists each part with its port.
    """
    from narrows import api
    from narrows.traces import explain as explained

    with codes():
        if by not in {"slowdown", "fct"}:
            raise bad_input(f"flows are not slow by {by!r}", "choose slowdown or fct")
        results = api.load(run, out=out)
        cases = [member.case for member in results.entry.members]
        if scheme is None and flow is None and len(cases) > MAX_SCHEMES:
            raise bad_input(
                f"'{results.entry.identifier}' has {len(cases)} schemes and configurations; each would be run again",
                f"give --scheme with one of: {', '.join(cases)}",
            )
        for case in [scheme] if scheme is not None or flow else cases:
            with watching("tracing") as look:
                found = explained(results, flow, scheme=case, seed=seed, by=by, look=look)
            _show(found, parts=bool(flow), json=json)


def _show(found: Explanation, *, parts: bool, json: bool) -> None:
    if json:
        for row in found.parts.iter_rows(named=True):
            line(event="explained", scheme=found.case, seed=found.seed, **row, why=found.why(row["flow"]))
        return
    OUT.print(found.heading, markup=False, soft_wrap=True)
    table = Table(box=None, header_style="dim", pad_edge=False)
    for heading in ("flow", "workload", "from", "to", "size", "FCT", "slowdown", "why"):
        table.add_column(heading, overflow="fold")
    for row in found.parts.iter_rows(named=True):
        table.add_row(
            str(row["flow"]),
            escape(row["workload"]),
            escape(row["source"]),
            escape(row["destination"]),
            wording.size(row["size_bytes"]),
            wording.milliseconds(row["fct_ns"] / 1e6),
            wording.number(row["slowdown"]),
            escape(found.why(row["flow"])),
        )
    OUT.print(table)
    if parts:
        for flow in found.flows["flow"]:
            OUT.print(f"\nflow {flow}, by reason, place and port:", markup=False)
            OUT.print(_parts(found, flow))


def _parts(found: Explanation, flow: int) -> Table:
    table = Table(box=None, header_style="dim", pad_edge=False)
    for heading in ("waits for", "place", "port", "time", "share", "times"):
        table.add_column(heading)
    for row in found.path_of(flow).iter_rows(named=True):
        table.add_row(
            row["reason"],
            row["place"],
            escape(row["port"] or ""),
            f"{row['ns'] / 1e6:.6f} ms",
            f"{row['share']:.1%}",
            str(row["times"]),
        )
    table.add_section()
    all_ns = int(found.path_of(flow)["ns"].sum())
    table.add_row("all", "", "", f"{all_ns / 1e6:.6f} ms", "100.0%", "")
    return table
