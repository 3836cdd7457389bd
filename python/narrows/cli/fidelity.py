"""`narrows reproduce linux`: the same scenarios in the simulator and on a kernel, and whether they agree."""

from __future__ import annotations

from dataclasses import replace
from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING

from rich.markup import escape

from narrows import wording
from narrows.cli import options
from narrows.cli.output import OUT, line, tell_page
from narrows.cli.progress import saying
from narrows.cli.run import Where, perform
from narrows.errors import EnvironmentLacks
from narrows.runs.backends import Backend

if TYPE_CHECKING:
    from collections.abc import Sequence

    from narrows.fidelity import Comparison, Scenario, ScenarioVerdict
    from narrows.runs.freshness import Standing
    from narrows.runs.store import Store


def compare(
    comparison: Comparison,
    asked: Sequence[Scenario],
    store: Store,
    *,
    quick: bool,
    where: Where,
    write: Sequence[Path],
    json: bool,
) -> bool:
    """Runs the scenarios in both worlds, writes their reports and the table of all, and says whether all are inside.

    The table is also put between the marks of the pages in `write`, where scenarios without runs keep their rows.
    """
    from narrows import atomic, marked
    from narrows.fidelity import page, stored, table

    for number, scenario in enumerate(asked, 1):
        _scenario(scenario, f"{scenario.label} ({number} of {len(asked)})", store, quick=quick, where=where, json=json)
    with saying() as say:
        say("comparing simulator and kernel")
        verdicts = stored.verdicts(comparison, store, quick=quick)
    base = store.root / "reports" / f"fidelity{'-quick' if quick else ''}"
    written = [base.with_suffix(".json"), base.with_suffix(".md")]
    atomic.write_text(written[0], dumps(table.card(comparison, verdicts, quick=quick), indent=1) + "\n")
    atomic.write_text(written[1], page.markdown(comparison, verdicts, quick=quick))
    for place in write:
        kept = page.read(comparison, place)
        marked.replace_part(place, page.MARK, page.block(comparison, verdicts, quick=quick, kept=kept))
        written.append(place)
    shown = [verdict for verdict in verdicts if verdict.scenario in asked]
    _show(comparison, shown, written, quick=quick, json=json)
    return all(verdict.word == "inside" for verdict in shown)


def _scenario(scenario: Scenario, label: str, store: Store, *, quick: bool, where: Where, json: bool) -> None:
    """Both worlds' runs and their page. The kernel's first: what it lacks is said before much is simulated."""
    from narrows import api
    from narrows.report.page import build

    here = replace(where, on=options.Place.LOCAL, ray_address=None, backend=Backend.GUEST)
    made = []
    for world, place in (("kernel", here), ("simulator", where)):
        handle = perform(
            scenario.figure.experiment,
            quick=quick,
            seeds=None,
            settings=(),
            where=place,
            json=json,
            label=f"{label}, {world}",
        )
        made.append(handle.identifier)
    for results in api.load_beside(made, out=where.out):
        tell_page(build(results, store), json=json, scenario=scenario.label)


def _show(
    comparison: Comparison, verdicts: Sequence[ScenarioVerdict], written: Sequence[Path], *, quick: bool, json: bool
) -> None:
    from narrows.fidelity import table
    from narrows.fidelity.judge import inside, summary

    if json:
        for verdict in verdicts:
            line(event="scenario", **table.record(verdict))
        paths = [str(path) for path in written]
        line(event="fidelity", paths=paths, inside=inside(verdicts), of=len(verdicts))
        return
    OUT.print(table.table(verdicts))
    OUT.print(f"[dim]Simulator / kernel. {escape(table.rules(comparison.tolerance))}[/]")
    for remark in table.remarks(verdicts):
        OUT.print(f"· {escape(remark)}", soft_wrap=True)
    for path in written:
        OUT.print(str(path), soft_wrap=True)
    asked = f"{comparison.name}{' (quick)' if quick else ''}"
    OUT.print(f"[bold]{escape(asked)}[/]: {summary(verdicts)}", soft_wrap=True)


def show_list(comparison: Comparison, store: Store, *, json: bool) -> None:
    """The scenarios, and which have been run in both worlds."""
    from narrows.fidelity import stored
    from narrows.runs.freshness import NEVER

    lacking = ""
    never: dict[str, tuple[Standing, ...]] = {scenario.label: (NEVER, NEVER) for scenario in comparison.scenarios}
    by_mode = {"full": never, "quick": never}
    try:
        by_mode = {mode: stored.states(comparison.scenarios, store, quick=mode == "quick") for mode in by_mode}
    except EnvironmentLacks as error:
        lacking = str(error).splitlines()[0]
    if not json:
        number = wording.plural(len(comparison.scenarios), "scenario")
        what = f"{number}, each in the simulator and on Linux in a guest"
        OUT.print(f"[bold]{escape(comparison.name)}[/]  {what}  [dim]{escape(lacking)}[/]".rstrip(), soft_wrap=True)
    for scenario in comparison.scenarios:
        reasons = {mode: stored.why_not(there[scenario.label]) for mode, there in by_mode.items()}
        modes = [mode for mode, reason in reasons.items() if not reason]
        stale = {mode: reason for mode, reason in reasons.items() if reason and reason != NEVER.reason}
        if json:
            line(
                event="scenario", scenario=scenario.label, about=scenario.about, run=modes, stale=stale, lacking=lacking
            )
            continue
        state = f"run: {' and '.join(modes)}" if modes else "not run"
        why = "".join(f"; {mode}: {reason}" for mode, reason in stale.items())
        about = f"{escape(scenario.about)}  [dim]{escape(f'{state}{why}')}[/]"
        OUT.print(f"  {scenario.label:<20} {about}", soft_wrap=True)
