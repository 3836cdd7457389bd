"""`narrows check FILE`: what an experiment would do, without doing it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from narrows import wording
from narrows.cli import options
from narrows.cli.exits import codes
from narrows.cli.output import OUT, line
from narrows.experiment import apart

if TYPE_CHECKING:
    from collections.abc import Mapping

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
    estimates = [estimate(plan.summary) for plan in experiment.plans]
    alike = {key for key in estimates[0] if len({numbers[key] for numbers in estimates}) == 1}
    summary = Table("each run", "", box=None, show_header=False, pad_edge=False)
    for key in estimates[0]:
        if key in alike:
            summary.add_row(f"[dim]{key}[/]", escape(estimates[0][key]))
    OUT.print(summary)
    shown, own = apart(experiment.differences)
    table = Table(box=None, header_style="dim", pad_edge=False)
    for heading in ("arm", "plan", *(key for key in estimates[0] if key not in alike)):
        table.add_column(heading)
    for item in shown:
        table.add_column(escape(item.path), overflow="fold", style=None if item.declared else "red")
    for plan, numbers in zip(experiment.plans, estimates, strict=True):
        different = (number for key, number in numbers.items() if key not in alike)
        values = (dict(item.values).get(plan.case, dict(item.values).get(plan.arm, "–")) for item in shown)
        table.add_row(*map(escape, (plan.case, plan.hash[:8], *different, *values)))
    OUT.print()
    OUT.print(table)
    if any(not item.declared for item in shown):
        OUT.print("\n[red]red: not declared by an arm[/]")
    if own:
        OUT.print(f"[dim]and {len(own)} parameters of the controllers themselves: narrows cc show NAME[/]")


def estimate(summary: Mapping[str, Any]) -> dict[str, str]:
    """A plan's summary in columns: loads by kind of port, flows, packet-hops, and what a run will cost."""
    loads = [
        f"{role['role']} {wording.percent(role['mean_load'], 2)}" for role in summary["roles"] if role["mean_load"]
    ]
    sizes = [traffic["mean_size_bytes"] for traffic in summary["traffic"] if traffic["mean_size_bytes"]]
    return {
        "offered load": ", ".join(reversed(loads)) or "long-lived flows",
        "mean size": wording.size(sum(sizes) / len(sizes)) if sizes else "–",
        "flows": wording.whole(sum(traffic["flows"] for traffic in summary["traffic"])),
        "packet-hops": wording.number(summary["packet_hops"]),
        "memory": wording.size(summary["memory"]),
        "time": wording.duration(summary["cpu_time"] / 1e12),
    }
