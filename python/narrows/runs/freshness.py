"""Whether what a store holds of a figure counts: made by this version, from the file as it is now, and whole."""

from __future__ import annotations

import shlex
import time
import tomllib
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cache
from typing import TYPE_CHECKING, Any

from narrows import wording
from narrows.errors import BadInput
from narrows.experiment import Experiment, ReportChoice, case_name, seeds_text
from narrows.runs.backends import Backend
from narrows.runs.index import Index
from narrows.runs.store import State

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from narrows.claims.folders import Figure
    from narrows.experiment import Pairs
    from narrows.runs.index import Entry
    from narrows.runs.store import Store


@dataclass(frozen=True)
class Standing:
    """What a store holds of a figure."""

    entry: Entry | None
    """`None` where it was never run in this mode without overridden settings."""
    reason: str
    """Why it does not count; empty where it does."""

    @property
    def counts(self) -> bool:
        """Whether claims may be judged from it."""
        return not self.reason


@dataclass(frozen=True)
class Expected:
    """What an experiment file asks for now."""

    title: str
    seeds: tuple[int, ...]
    members: tuple[tuple[str, str, Pairs], ...]
    """Hash, scheme and axes of each plan."""
    versions: tuple[str, ...]
    """Of each plan's results, as they would be made now."""
    report: ReportChoice
    """What charts of a sweep show."""


NEVER = Standing(None, "not run yet")


def standings(
    figures: Iterable[Figure], store: Store, *, quick: bool, backend: Backend = Backend.SIM
) -> dict[str, Standing]:
    """Of each figure, by its label, what this backend ran.

    Raises `BadInput` where the index cannot be read, and `EnvironmentLacks` where what makes the runs is not here.
    """
    version = backend.version()
    entries = [
        entry
        for entry in Index(store.root).entries().values()
        if entry.quick == quick and not entry.sets and entry.backend is backend
    ]
    return {
        figure.label: _standing(figure, [entry for entry in entries if entry.place == figure.label], store, version)
        for figure in figures
    }


def expected(figure: Figure, *, quick: bool, backend: Backend = Backend.SIM) -> Expected:
    """What the figure's file asks for; read once while it does not change. Raises `BadInput`."""
    return _expected(str(figure.experiment.resolve()), _stamp(figure.experiment), quick=quick, backend=backend)


def _stamp(file: Path) -> tuple[int, ...]:
    """When the experiment file was last changed; one that reads others is taken for changed each time."""
    changed_ns = file.stat().st_mtime_ns
    return (changed_ns, time.monotonic_ns()) if "file" in file.read_text(errors="replace") else (changed_ns,)


def title(figure: Figure) -> str:
    """What the figure's file calls it. Reads no more of it: expanding all takes seconds. Raises `BadInput`."""
    try:
        table = tomllib.loads(figure.experiment.read_text())
    except (OSError, ValueError):
        return expected(figure, quick=True).title
    return str(table.get("title") or table.get("name") or figure.name)


@cache
def _expected(
    file: str, _stamp: tuple[int, ...], *, quick: bool, sets: Pairs = (), backend: Backend = Backend.SIM
) -> Expected:
    """Without the plans' bodies: those of all figures are megabytes, and take seconds to expand."""
    experiment = Experiment(file, quick=quick, settings=sets)
    members = tuple((plan.hash, plan.arm, plan.axes) for plan in experiment.plans)
    versions = backend.versions_of(experiment.plans)
    own = tuple(versions[plan.hash] for plan in experiment.plans)
    return Expected(experiment.title, experiment.seeds, members, own, experiment.report)


@dataclass(frozen=True)
class Change:
    """Runs are of another experiment than there is now."""

    file: str
    """What has changed: the experiment file, or a controller's that it names."""
    sentence: str
    """The same with what differs, and how to run it as it is now."""


def changed(entry: Entry, store: Store) -> Change | None:
    """Whether its file asks for something else than it did when these runs were made, and what."""
    if entry.imported or not entry.location.is_file():
        return None
    file = entry.here
    advice = f"`{entry.command}` runs it as it is now"
    try:
        now = _expected(str(entry.location.resolve()), _stamp(entry.location), quick=entry.quick, sets=entry.sets)
    except BadInput:
        return Change(file, f"{file} has changed since these runs, and has a mistake, which `{_check(file)}` shows")
    before = {member.case: member for member in entry.members}
    after = {case_name(arm, axes): plan for plan, arm, axes in now.members}
    cases = {
        "added": [case for case in after if case not in before],
        "removed": [it for it in before if it not in after],
    }
    told = [f"{verb} {wording.some(named)}" for verb, named in cases.items() if named]
    differing = [case for case in after if case in before and before[case].hash != after[case]]
    files: list[str] = []
    if differing:
        plans = Experiment(entry.location, settings=entry.sets, quick=entry.quick).plans
        now_of = {plan.case: plan.unlabelled for plan in plans}
        paths: dict[_Difference, None] = {}
        for case in differing:
            manifest = store.manifest(before[case].stored, entry.seeds[0]) or {}
            paths |= dict.fromkeys(_differences(manifest.get("plan", {}), now_of[case]))
        files = list(dict.fromkeys(item.file for item in paths))
        told.append(f"changed {wording.some(differing)} ({wording.some([item.text for item in paths])})")
    if entry.seeds != now.seeds and not entry.other_seeds:
        told.append(f"seeds {seeds_text(entry.seeds)} → {seeds_text(now.seeds)}")
    if entry.report != now.report:
        told.append("what `[report]` chooses")
    if not told:
        return None
    if len(told) == 1 and files and all(files):
        file = " and ".join(files)
    return Change(file, f"{file} has changed since these runs: {'; '.join(told)}; {advice}")


def _check(file: str | Path) -> str:
    return shlex.join(["narrows", "check", str(file)])


@dataclass(frozen=True)
class _Difference:
    """Of two plans."""

    text: str
    file: str = ""
    """The file of a controller whose text it is; empty for anything else."""


@cache
def _lines(before: str, after: str) -> tuple[str, ...]:
    """Which lines of a text are others now, or stand where some are gone."""
    left, right = before.splitlines(), after.splitlines()
    blocks = SequenceMatcher(None, left, right, autojunk=False).get_opcodes()
    ends = [(start + 1, max(end, start + 1)) for tag, _, _, start, end in blocks if tag != "equal"]
    least = max(1, len(right))
    return tuple(f"{min(first, least)}" if first == last else f"{first}–{last}" for first, last in ends)


def _edited(file: str, before: str, after: str) -> Iterator[_Difference]:
    """Where a file's text differs, by the lines that it has now."""
    if before != after:
        lines = list(_lines(before, after))
        where = f", {'line' if len(lines) == 1 else 'lines'} {wording.some(lines)}" if lines else ""
        yield _Difference(f"{file}{where}", file)


def _differences(one: Any, other: Any, path: str = "") -> Iterator[_Difference]:
    """Where two plans differ, in the plan's units: `network.links.rate 1000000000 → 2000000000`."""
    texts = [each for each in (one, other) if isinstance(each, dict) and {"file", "text"} <= each.keys()]
    if len(texts) == 2 and one["file"] == other["file"]:
        yield from _edited(one["file"], one["text"], other["text"])
        beside, now = one.get("others", {}), other.get("others", {})
        for name in sorted(beside.keys() | now.keys()):
            yield from _edited(name, beside.get(name, ""), now.get(name, ""))
        one, other = ({k: v for k, v in each.items() if k not in ("text", "others")} for each in (one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        for key in sorted(one.keys() | other.keys()):
            yield from _differences(one.get(key), other.get(key), f"{path}.{key}" if path else key)
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for left, right in zip(one, other, strict=True):
            yield from _differences(left, right, path)
    elif one != other:
        plain = not any(isinstance(value, (dict, list)) for value in (one, other))
        yield _Difference(f"{path} {one} → {other}" if plain else path)


def _standing(figure: Figure, entries: Sequence[Entry], store: Store, version: str) -> Standing:
    """Of several entries, which differ in their seeds, the one that counts, else that of most seeds."""
    ordered = sorted(entries, key=lambda entry: len(entry.seeds), reverse=True)
    found = [Standing(entry, _why_not(entry, figure, store, version)) for entry in ordered]
    return next((standing for standing in found if standing.counts), found[0] if found else NEVER)


def _why_not(entry: Entry, figure: Figure, store: Store, version: str) -> str:
    """Why an entry does not count; nothing where it does."""
    if entry.version != version:
        return f"run by version {entry.version}, this is {version}"
    try:
        wanted = expected(figure, quick=entry.quick, backend=entry.backend)
    except BadInput:
        return f"its experiment file has a mistake, which `{_check(figure.experiment)}` shows"
    if tuple((member.hash, member.arm, member.axes) for member in entry.members) != wanted.members:
        return "run from another experiment file than there is now"
    if entry.seeds != wanted.seeds:
        return f"run with other seeds: {seeds_text(entry.seeds)} instead of {seeds_text(wanted.seeds)}"
    members = list(zip(entry.members, wanted.versions, strict=True))
    runs = [(member.stored, seed, made_by) for member, made_by in members for seed in entry.seeds]
    absent = sum(store.state(*run) is not State.WHOLE for run in runs)
    return f"{absent} of {len(runs)} runs are absent or of another version" if absent else ""
