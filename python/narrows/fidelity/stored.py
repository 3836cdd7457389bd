"""What a store holds of each scenario in both worlds, and what is to be said of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from narrows import cross_backend
from narrows.errors import BadInput
from narrows.fidelity.judge import ScenarioVerdict, judge
from narrows.fidelity.observed import Runs
from narrows.runs import validity
from narrows.runs.backends import Backend
from narrows.runs.freshness import standings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from narrows.fidelity.catalogue import Comparison, Scenario, Tolerance
    from narrows.results import Results
    from narrows.runs.freshness import Standing
    from narrows.runs.index import Member
    from narrows.runs.store import Store

WORLDS = (Backend.SIM, Backend.GUEST)


def states(scenarios: Sequence[Scenario], store: Store, *, quick: bool) -> dict[str, tuple[Standing, ...]]:
    """Of each scenario, by label, what there is in each world. Raises `EnvironmentLacks` where narrowsd is not here."""
    figures = [scenario.figure for scenario in scenarios]
    by_world = [standings(figures, store, quick=quick, backend=world) for world in WORLDS]
    return {figure.label: tuple(world[figure.label] for world in by_world) for figure in figures}


def why_not(state: Sequence[Standing]) -> str:
    """Why there is nothing to judge; nothing where there is."""
    if all(standing.entry is None for standing in state):
        return state[0].reason
    told = [f"{world}: {one.reason}" for world, one in zip(("simulator", "kernel"), state, strict=True) if one.reason]
    return "; ".join(told)


def verdicts(comparison: Comparison, store: Store, *, quick: bool) -> list[ScenarioVerdict]:
    """Every scenario, from those runs in the store that count. Raises `EnvironmentLacks` where narrowsd is not here."""
    there = states(comparison.scenarios, store, quick=quick)
    return [_verdict(scenario, there[scenario.label], store, comparison.tolerance) for scenario in comparison.scenarios]


def _verdict(scenario: Scenario, state: Sequence[Standing], store: Store, tolerance: Tolerance) -> ScenarioVerdict:
    if reason := why_not(state):
        return ScenarioVerdict(scenario, reason=reason)
    try:
        (results,) = cross_backend.joined([standing.entry for standing in state if standing.entry is not None], store)
    except BadInput as error:
        return ScenarioVerdict(scenario, reason=str(error).splitlines()[0].removeprefix("error: "))
    return verdict_of(scenario, results, tolerance)


def verdict_of(scenario: Scenario, results: Results, tolerance: Tolerance) -> ScenarioVerdict:
    """A scenario, from both worlds' runs."""
    live = [manifest for manifest in results.manifests if Backend(manifest["backend"]).is_live]
    frames = _frames(results)
    cases = {(member.plan_case, member.backend): member for member in results.entry.members}

    def runs(arm: str, world: Backend) -> Runs:
        return _runs(cases[arm, world], *frames)

    arms = dict.fromkeys(member.plan_case for member in results.entry.members)
    return ScenarioVerdict(
        scenario,
        tuple(judge(arm, runs(arm, Backend.SIM), runs(arm, Backend.GUEST), tolerance) for arm in arms),
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
