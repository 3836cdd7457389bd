"""`narrows check FILE|FOLDER`: what an experiment would do, without doing it."""

from __future__ import annotations

import os
import re
from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape
from rich.table import Table

from narrows import atomic, wording
from narrows.cli import network, options
from narrows.cli.exits import codes
from narrows.cli.output import OUT, line
from narrows.cli.run import experiment_files
from narrows.errors import bad_input
from narrows.experiment import ABSENT, apart, outline

if TYPE_CHECKING:
    from narrows.experiment import Experiment


def check(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE|FOLDER", help="Experiment file, a folder of such files, or a figure such as gemini/fig13."
        ),
    ],
    quick: options.Quick = False,
    seeds: options.Seeds = None,
    sets: options.Sets = None,
    plans: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Write each plan to this folder as JSON, for narrowsd.")
    ] = None,
    json: options.Json = False,
) -> None:
    """Show what an experiment would run, and what that would cost.

    Reads the file as `run` would, and shows its traffic, offered load and the settings in which its schemes differ,
    with estimates of packets, processor time and memory; draws its network, and lists base RTT and BDP of its paths
    and the buffers of its ports. Nothing is run.
    """
    from narrows.experiment import Experiment

    with codes():
        paths = experiment_files(file)
        if plans is not None and len(paths) > 1:
            raise bad_input(f"{file} holds {len(paths)} experiments", "--plans takes one experiment file")
        for place, path in enumerate(paths):
            experiment = Experiment(path, settings=options.pairs(sets), quick=quick, seeds=seeds)
            if place and not json:
                OUT.print()
            (_print_lines if json else _print_tables)(experiment)
            if plans is not None:
                written = _write_plans(experiment, plans)
                if not json:
                    OUT.print("\n" + "\n".join(map(str, written)), markup=False, soft_wrap=True)


def _write_plans(experiment: Experiment, folder: Path) -> list[Path]:
    """Each plan as `<arm>[-<axes>].json`. Raises `BadInput`, before anything is written, where one is there."""
    named = {folder / f"{_plain(plan.case)}.json": plan for plan in experiment.plans}
    if len(named) < len(experiment.plans):
        raise bad_input("two plans would have the same file", "give the schemes names that differ in letters or digits")
    if there := [path for path in named if path.exists()]:
        raise bad_input(f"{there[0]} is there already", "choose another folder with --plans, or delete it")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for path, plan in named.items():
            atomic.write_text(path, dumps(plan.body))
    except OSError as error:
        raise bad_input(f"cannot write to {folder}: {error.strerror}", "choose another folder with --plans") from error
    return list(named)


def _plain(case: str) -> str:
    """`dctcp-mark-at=20pkt` of `dctcp · mark-at=20pkt`."""
    return re.sub(r"[^0-9A-Za-z.=_+]+", "-", case).strip("-.") or "plan"


def _print_lines(experiment: Experiment) -> None:
    line(
        event="experiment",
        name=experiment.name,
        title=experiment.title,
        identifier=experiment.identifier,
        seeds=list(experiment.seeds),
        runs=len(experiment.plans) * len(experiment.seeds),
    )
    for plan in experiment.plans:
        labels = {"arm": plan.arm, "axes": dict(plan.axes), "declared": dict(plan.declared)}
        line(event="plan", hash=plan.hash, **labels, summary=dict(plan.summary))
    network.print_lines(experiment)
    for text in experiment.remarks:
        line(event="warning", text=text)
    for item in experiment.differences:
        line(event="difference", path=item.path, values=dict(item.values), declared=item.declared)


def _print_tables(experiment: Experiment) -> None:
    from narrows import native

    summaries = [plan.summary for plan in experiment.plans]
    hold_ns = native.calibrate()
    runs = len(experiment.plans) * len(experiment.seeds)
    ends = " or ".join(dict.fromkeys(wording.duration(plan.end_ns / 1e9) for plan in experiment.plans))
    OUT.print(f"[bold]{escape(experiment.title)}[/]")
    plans, seeds = wording.plural(len(experiment.plans), "plan"), wording.plural(len(experiment.seeds), "seed")
    OUT.print(f"{plans} × {seeds} = {wording.plural(runs, 'run')} of {ends} simulated\n")
    facts = Table(box=None, show_header=False, pad_edge=False)
    built = (*outline.setting(summaries), *outline.settling(experiment.plans), *outline.network(summaries))
    for name, value in (*built, *outline.cost(summaries, hold_ns)):
        facts.add_row(f"[dim]{name}[/]", escape(value))
    cores = os.cpu_count() or 1
    total = sum(outline.seconds(summary, hold_ns) for summary in summaries) * len(experiment.seeds)
    wall = wording.duration(float(f"{total / min(cores, runs):.2g}"))
    facts.add_row("[dim]all runs[/]", f"about {wall} on {wording.plural(cores, 'core')}")
    OUT.print(facts)
    OUT.print()
    network.print_drawing(experiment)
    OUT.print()
    OUT.print(_differences(experiment))
    _, own = apart(experiment.differences)
    if any(not item.declared for item in experiment.differences):
        OUT.print("\n[red]red: not declared by a scheme[/]")
    for text in experiment.remarks:
        OUT.print(f"\n[yellow]warning:[/] {escape(text)}", soft_wrap=True)
    if own:
        OUT.print(f"[dim]{wording.plural(len(own), 'controller parameter')}: see `narrows cc show NAME`[/]")


def _differences(experiment: Experiment) -> Table:
    """A row per plan: what is not the same in all of them, as far as it has it."""
    shown, _ = apart(experiment.differences)
    table = Table("scheme", "plan", "what differs", box=None, header_style="dim", pad_edge=False)
    for plan in experiment.plans:
        values = ((item.declared, item.path, dict(item.values).get(plan.case, ABSENT)) for item in shown)
        texts = [_setting(path, value, declared=declared) for declared, path, value in values if value != ABSENT]
        table.add_row(escape(plan.case), plan.hash[:8], "  ".join(texts) or "nothing")
    return table


def _setting(path: str, value: str, *, declared: bool) -> str:
    text = escape(f"{path}={value}")
    return text if declared else f"[red]{text}[/]"
