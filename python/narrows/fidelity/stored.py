"""What a store holds of each scenario in both worlds, and what is to be said of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from narrows import beside, validity
from narrows.backends import Backend
from narrows.errors import BadInput, EnvironmentLacks
from narrows.fidelity.judge import ScenarioVerdict, judge
from narrows.fidelity.observed import Runs
from narrows.standing import standings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from narrows.fidelity.catalogue import Comparison, Scenario, Tolerance
    from narrows.index import Entry, Member
    from narrows.results import Results
    from narrows.standing import Standing
    from narrows.store import Store

WORLDS = (Backend.SIM, Backend.GUEST)


def states(scenarios: Sequence[Scenario], store: Store, *, quick: bool) -> dict[str, tuple[Standing, ...] | str]:
    """Of each scenario, by label, what there is in each world; why it cannot be said where narrowsd is not here."""
    figures = [scenario.figure for scenario in scenarios]
    try:
        by_world = [standings(figures, store, quick=quick, backend=world) for world in WORLDS]
    except EnvironmentLacks as error:
        return dict.fromkeys((figure.label for figure in figures), str(error).splitlines()[0])
    return {figure.label: tuple(world[figure.label] for world in by_world) for figure in figures}


def why_not(state: tuple[Standing, ...] | str) -> str:
    """Why there is nothing to judge; nothing where there is."""
    if isinstance(state, str):
        return state
    if all(standing.entry is None for standing in state):
        return state[0].reason
    told = [f"{world}: {one.reason}" for world, one in zip(("simulator", "kernel"), state, strict=True) if one.reason]
    return "; ".join(told)


def results_of(state: tuple[Standing, ...] | str, store: Store) -> Results | None:
    """Both worlds' runs as one; `None` where those of one do not count."""
    if why_not(state) or isinstance(state, str):
        return None
    entries: list[Entry] = [standing.entry for standing in state if standing.entry is not None]
    (results,) = beside.joined(entries, store)
    return results


def verdicts(comparison: Comparison, store: Store, *, quick: bool) -> list[ScenarioVerdict]:
    """Every scenario, from those runs in the store that count."""
    there = states(comparison.scenarios, store, quick=quick)
    found = []
    for scenario in comparison.scenarios:
        state = there[scenario.label]
        try:
            results = results_of(state, store)
        except BadInput as error:
            found.append(ScenarioVerdict(scenario, reason=str(error).splitlines()[0].removeprefix("error: ")))
            continue
        if results is None:
            found.append(ScenarioVerdict(scenario, reason=why_not(state)))
        else:
            found.append(verdict_of(scenario, results, comparison.tolerance))
    return found


def verdict_of(scenario: Scenario, results: Results, tolerance: Tolerance) -> ScenarioVerdict:
    """A scenario, from both worlds' runs."""
    live = [manifest for manifest in results.manifests if Backend(manifest["backend"]).is_live]
    frames = _frames(results)
    cases = {(member.plan_case, member.backend): member for member in results.entry.members}
    arms = dict.fromkeys(member.plan_case for member in results.entry.members)
    return ScenarioVerdict(
        scenario,
        tuple(judge(arm, *(_runs(cases[arm, world], *frames) for world in WORLDS), tolerance) for arm in arms),
        left_out=validity.left_out(live),
        made_by=results.entry.made_by,
        kernels=tuple(sorted({str(manifest["kernel"]) for manifest in live})),
    )


def _frames(results: Results) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]:
    """Flows, each with whether it has a size; requests after the warm-up; ports."""
    flows = results.scan("flows").with_columns(pl.lit(value=True).alias("sized")).collect()
    if not results.long.is_empty():
        long = results.long.select("case", "seed", "flow", pl.lit(value=False).alias("sized"))
        flows = flows.update(long, on=["case", "seed", "flow"])
    return flows, results.frames.requests, results.ports


def _runs(member: Member, flows: pl.DataFrame, requests: pl.DataFrame, ports: pl.DataFrame) -> Runs:
    own = pl.col("case") == member.case
    counted = (pl.col("start_ns") >= member.warmup_ns).alias("counted")
    measured_ns = member.end_ns - member.warmup_ns
    return Runs(flows.filter(own).with_columns(counted), requests.filter(own), ports.filter(own), measured_ns)
