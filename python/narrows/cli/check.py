"""`narrows check FILE`: what an experiment would do, without doing it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape
from rich.table import Table

from narrows import outline, wording
from narrows.cli import options
from narrows.cli.exits import codes
from narrows.cli.output import OUT, line
from narrows.experiment import ABSENT, apart

if TYPE_CHECKING:
    from narrows.experiment import Experiment


def check(
    file: Annotated[str, typer.Argument(metavar="FILE", help="Experiment file.")],
    quick: options.Quick = False,
    seeds: options.Seeds = None,
    sets: options.Sets = None,
    json: options.Json = False,
) -> None:
    """Says what a file would run, and what that would cost.

    Reads the file as `run` would, and shows its network, traffic, offered load and the settings in which its arms
    differ, with estimates of packets, processor time and memory. Nothing is run.
    """
    from narrows.experiment import expand

    with codes():
        experiment = expand(file, sets=options.pairs(sets), quick=quick, seeds=options.inclusive(seeds))
        (_print_lines if json else _print_tables)(experiment)


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
    for name, value in (*outline.setting(summaries), *outline.cost(summaries, hold_ns)):
        facts.add_row(f"[dim]{name}[/]", escape(value))
    cores = os.cpu_count() or 1
    total = sum(outline.seconds(summary, hold_ns) for summary in summaries) * len(experiment.seeds)
    wall = wording.duration(float(f"{total / min(cores, runs):.2g}"))
    facts.add_row("[dim]all runs[/]", f"about {wall} on {wording.plural(cores, 'core')}")
    OUT.print(facts)
    OUT.print()
    OUT.print(_differences(experiment))
    _, own = apart(experiment.differences)
    if any(not item.declared for item in experiment.differences):
        OUT.print("\n[red]red: not declared by an arm[/]")
    if own:
        OUT.print(f"[dim]and {len(own)} parameters of the controllers themselves: narrows cc show NAME[/]")


def _differences(experiment: Experiment) -> Table:
    """A row per plan: what is not the same in all of them, as far as it has it."""
    shown, _ = apart(experiment.differences)
    table = Table("arm", "plan", "what differs", box=None, header_style="dim", pad_edge=False)
    for plan in experiment.plans:
        values = ((item.declared, item.path, dict(item.values).get(plan.case, ABSENT)) for item in shown)
        texts = [_setting(path, value, declared=declared) for declared, path, value in values if value != ABSENT]
        table.add_row(escape(plan.case), plan.hash[:8], "  ".join(texts) or "nothing")
    return table


def _setting(path: str, value: str, *, declared: bool) -> str:
    text = escape(f"{path}={value}")
    return text if declared else f"[red]{text}[/]"
