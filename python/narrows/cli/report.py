"""`narrows report RUN…`: one offline HTML page each."""

from __future__ import annotations

from typing import Annotated

import typer

from narrows.cli import options
from narrows.cli.exits import codes
from narrows.cli.output import tell_page
from narrows.cli.progress import saying


def report(
    runs: options.Runs,
    cases: Annotated[
        str | None,
        typer.Option(
            "--configurations",
            "--cases",
            metavar="PATTERN",
            help="Show only schemes and configurations whose names match; * is any text.",
        ),
    ] = None,
    out: options.Out = options.DEFAULT_OUT,
    json: options.Json = False,
) -> None:
    """Write an HTML page with charts that opens offline.

    One page for each RUN; the same plans on several backends, as in `narrows report mine mine@guest`, share one page.
    """
    from narrows import api
    from narrows.report.page import build
    from narrows.runs.store import Store

    with codes():
        for results in api.load_beside(runs, out=out):
            with saying() as say:
                page = build(results, Store(out), cases=cases, say=say)
            tell_page(page, json=json, run=results.entry.identifier)
