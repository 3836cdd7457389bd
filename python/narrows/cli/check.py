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
from narrows.experiment.whose import whose

if TYPE_CHECKING:
    from collections.abc import Sequence

    from narrows.experiment import Experiment, Plan


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
    and the buffers of its ports. Runs nothing.
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
    built = (
        *outline.setting(summaries),
        *outline.busiest(summaries),
        *outline.settling(experiment.plans),
        *outline.network(summaries),
    )
    for name, texts in (*built, *outline.cost(summaries, hold_ns)):
        _add_fact(facts, name, texts, experiment.plans)
    cores = os.cpu_count() or 1
    total = sum(outline.seconds(summary, hold_ns) for summary in summaries) * len(experiment.seeds)
    wall = wording.duration(float(f"{total / min(cores, runs):.2g}"))
    facts.add_row("[dim]all runs[/]", f"about {wall} on {wording.plural(cores, 'core')}")
    OUT.print(facts)
    OUT.print()
    network.print_drawing(experiment)
    if len(experiment.plans) > 1:
        OUT.print()
        OUT.print(_differences(experiment))
    _, own = apart(experiment.differences)
    if any(not item.declared for item in experiment.differences):
        OUT.print("\n[red]red: not declared by a scheme[/]")
    for text in experiment.remarks:
        OUT.print(f"\n[yellow]warning:[/] {escape(text)}", soft_wrap=True)
    if own:
        OUT.print(f"[dim]{wording.plural(len(own), 'controller parameter')}: see `narrows cc show NAME`[/]")


def _add_fact(table: Table, name: str, texts: Sequence[str], plans: Sequence[Plan]) -> None:
    """A row for each value, which says whose it is where plans have several."""
    values = {plan.case: text or ABSENT for plan, text in zip(plans, texts, strict=True)}
    told = whose(values, _labels(plans))
    several = len(set(values.values())) > 1
    for place, (text, who) in enumerate(told[: outline.MAX_VALUES]):
        owner = f" [dim]({escape(who)})[/]" if several else ""
        table.add_row("" if place else f"[dim]{name}[/]", escape(text) + owner)
    if len(told) > outline.MAX_VALUES:
        table.add_row("", f"[dim]and {len(told) - outline.MAX_VALUES} more[/]")


def _labels(plans: Sequence[Plan]) -> dict[str, dict[str, str]]:
    return {plan.case: {"": plan.arm, **dict(plan.axes)} for plan in plans}


def _differences(experiment: Experiment) -> Table:
    """What is not the same in all plans: each value of each setting, and whose it is."""
    shown, _ = apart(experiment.differences)
    table = Table("what differs", "value", "of", box=None, header_style="dim", pad_edge=False)
    for item in shown:
        for place, (value, who) in enumerate(whose(dict(item.values), _labels(experiment.plans))):
            path = escape("" if place else item.path)
            table.add_row(path if item.declared else f"[red]{path}[/]", escape(value), escape(who))
    return table
