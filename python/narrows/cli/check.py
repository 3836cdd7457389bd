"""`narrows check FILE`: what an experiment would do, without doing it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape
from rich.table import Table

from narrows import wording
from narrows.cli import options
from narrows.cli.exits import codes
from narrows.cli.output import OUT, line

if TYPE_CHECKING:
    from narrows.experiment import Experiment


def check(
    file: Annotated[str, typer.Argument(help="Experiment file.")],
    quick: options.Quick = False,
    seeds: options.Seeds = None,
    sets: options.Sets = None,
    json: options.Json = False,
) -> None:
    """Shows what a file resolves to: plans, offered load, estimated packets, memory and time."""
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
    runs = len(experiment.plans) * len(experiment.seeds)
    OUT.print(f"[bold]{escape(experiment.title)}[/]")
    OUT.print(f"{len(experiment.plans)} plans × {len(experiment.seeds)} seeds = {runs} runs\n")
    keys = list(dict.fromkeys(key for plan in experiment.plans for key in plan.summary))
    table = Table("arm", "plan", *(key.replace("_", " ") for key in keys), box=None, header_style="dim")
    for plan in experiment.plans:
        table.add_row(escape(plan.case), plan.hash[:12], *(escape(shown(key, plan.summary.get(key))) for key in keys))
    OUT.print(table)
    if experiment.differences:
        arms = [arm for arm, _ in experiment.differences[0].values]
        differences = Table(box=None, header_style="dim")
        for heading in ("difference", *arms, "declared"):
            differences.add_column(escape(heading), overflow="fold")
        for item in experiment.differences:
            style = None if item.declared else "red"
            values = (escape(value) for _, value in item.values)
            differences.add_row(escape(item.path), *values, "yes" if item.declared else "no", style=style)
        OUT.print()
        OUT.print(differences)


def shown(key: str, value: object) -> str:
    """A number of the summary, by the unit that ends its name."""
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        return "–" if value is None else str(value)
    for ending, words in _UNITS.items():
        if key.endswith(ending):
            return words(float(value))
    return wording.number(float(value)) if isinstance(value, float) else wording.whole(value)


_UNITS = {
    "_bytes": wording.size,
    "_ns": lambda value: wording.duration(value / 1e9),
    "_seconds": wording.duration,
    "_s": wording.duration,
    "load": wording.percent,
}
