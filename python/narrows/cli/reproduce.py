"""`narrows reproduce`: a paper's runs, figures, scorecard and reports."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from narrows.cli import options
from narrows.cli.exits import CHECK_FAILED, codes
from narrows.cli.output import OUT, line
from narrows.cli.run import Where, perform

if TYPE_CHECKING:
    from pathlib import Path

    from narrows.claims import Verdict
    from narrows.experiments import Figure


def reproduce(
    wanted: Annotated[list[str] | None, typer.Argument(metavar="[PAPER|PAPER/FIGURE ...]", help="All if none.")] = None,
    quick: options.Quick = False,
    out: options.Out = options.DEFAULT_OUT,
    jobs: options.Jobs = None,
    on: options.On = options.Place.LOCAL,
    ray_address: options.RayAddress = None,
    strict: Annotated[bool, typer.Option("--strict", help="Exit with 1 if a claim fails.")] = False,
    everything: Annotated[bool, typer.Option("--all", help="List the claims that were not judged, too.")] = False,
    json: options.Json = False,
) -> None:
    """Regenerates papers' figures and judges claims.

    Runs what is not there yet, draws each figure, judges what the paper states from these runs, and writes a report.
    """
    from narrows import experiments
    from narrows.store import Store

    with codes():
        figures = experiments.select(wanted or [])
        for figure in figures:
            _figure(figure, quick=quick, where=Where(out, jobs, on, ray_address), json=json)
        failed = False
        for paper in dict.fromkeys(figure.paper for figure in figures):
            verdicts = experiments.verdicts(paper, Store(out), quick=quick)
            _scorecard(paper, verdicts, out, quick=quick, everything=everything, json=json)
            failed |= any(verdict.word == "fails" for verdict in verdicts)
        for figure in figures:
            _report(figure, quick=quick, out=out, json=json)
    if failed and strict:
        raise typer.Exit(CHECK_FAILED)


def _figure(figure: Figure, *, quick: bool, where: Where, json: bool) -> None:
    from narrows import api
    from narrows.figures.files import save

    handle = perform(figure.experiment, quick=quick, seeds=None, settings=(), where=where, json=json)
    results = api.load(handle.experiment.identifier, out=where.out)
    name = figure.label.replace("/", "-") + ("-quick" if quick else "")
    for path in save(figure.draw(results), where.out / "figures", name):
        if json:
            line(event="figure", figure=figure.label, path=str(path))
        else:
            OUT.print(str(path), soft_wrap=True)


def _report(figure: Figure, *, quick: bool, out: Path, json: bool) -> None:
    from narrows import api
    from narrows.experiment import expand
    from narrows.report import build
    from narrows.store import Store

    identifier = expand(figure.experiment, quick=quick).identifier
    path = build(api.load(identifier, out=out), Store(out))
    if json:
        line(event="report", figure=figure.label, path=str(path))
    else:
        OUT.print(str(path), soft_wrap=True)


def _scorecard(paper: Path, verdicts: list[Verdict], out: Path, *, quick: bool, everything: bool, json: bool) -> None:
    from json import dumps

    from narrows import atomic
    from narrows.claims import scorecard

    records = [scorecard.record(verdict) for verdict in verdicts]
    path = out / "reports" / f"claims-{paper.name}{'-quick' if quick else ''}.json"
    atomic.write_text(path, dumps({"paper": paper.name, "quick": quick, "claims": records}, indent=1) + "\n")
    if json:
        for record in records:
            line(event="claim", paper=paper.name, **record)
        return
    OUT.print(scorecard.table(verdicts, everything=everything))
    OUT.print(f"[dim]{escape(scorecard.RULES)}[/]")
    counts = ", ".join(f"{count} {word}" for word, count in scorecard.counts(verdicts).items())
    OUT.print(f"[bold]{escape(paper.name)}[/]{' (quick)' if quick else ''}: {counts}")
    OUT.print(str(path), soft_wrap=True)
