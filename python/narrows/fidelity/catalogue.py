"""The folder that `fidelity.toml` marks: its scenarios, in the order of the table, and how far worlds may differ."""

from __future__ import annotations

import difflib
import tomllib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from narrows.claims.folders import COMPARISON as FILE
from narrows.claims.folders import Figure, root
from narrows.errors import bad_input, plain
from narrows.experiment import FILE as EXPERIMENT

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path


@dataclass(frozen=True)
class Tolerance:
    """What is near enough to the kernel."""

    goodput: float
    """Share of the kernel's."""
    queue_delay: float
    """Share of the kernel's, or, where it is more,"""
    queue_delay_packets: float
    """the time that so many packets of 1500 B take at the bottleneck."""
    fct_p99: float
    """Share of the kernel's."""
    drops: float
    """Share of the kernel's, or, where it is more,"""
    drops_packets: float
    """so many packets."""
    retransmissions: float
    """Share of the kernel's, or, where it is more,"""
    retransmissions_packets: float
    """so many packets of 1448 B payload."""
    marks: float
    """Share of the kernel's, or, where it is more,"""
    marks_packets: float
    """so many packets."""
    share: float
    """Of the goodput, by which the share of a kind of traffic may differ."""


@dataclass(frozen=True)
class Scenario:
    """One network with its traffic, which is run in both worlds."""

    name: str
    about: str
    note: str
    """Why the worlds differ, if they do; it is shown, and changes no verdict."""
    held_out: bool
    """Whether it was written down before any run and nothing was changed to bring it inside."""
    figure: Figure

    @property
    def label(self) -> str:
        """`linux/dc-one`, as `reproduce` takes it."""
        return self.figure.label


@dataclass(frozen=True)
class Comparison:
    """All of it."""

    folder: Path
    tolerance: Tolerance
    scenarios: tuple[Scenario, ...]

    @property
    def name(self) -> str:
        """`linux`."""
        return self.folder.name

    @property
    def names(self) -> tuple[str, ...]:
        """What `reproduce` takes: the whole, and each scenario."""
        return (self.name, *(scenario.label for scenario in self.scenarios))


def find() -> Comparison | None:
    """The comparison among the experiments; `None` where there is none. Raises `BadInput`."""
    found = sorted(root().glob(f"*/{FILE}"))
    if len(found) > 1:
        raise bad_input(f"{found[0]} and {found[1]} are two comparisons", f"keep one {FILE}")
    return load(found[0].parent) if found else None


def load(folder: Path) -> Comparison:
    """Reads `fidelity.toml`, which names every scenario of its folder. Raises `BadInput`."""
    path = folder / FILE
    try:
        raw = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise bad_input(
            f"cannot read {path}: {plain(error)}", "it has [tolerance] and a [[scenario]] for each folder"
        ) from error
    entries = raw.get("scenario", [])
    if not (isinstance(entries, list) and all(isinstance(entry, dict) for entry in entries)):
        raise bad_input(f"`scenario` of {path} is no list of tables", "begin each with [[scenario]]")
    scenarios = tuple(_scenario(entry, path) for entry in entries)
    named = [scenario.name for scenario in scenarios]
    there = {found.parent.name for found in folder.glob(f"*/{EXPERIMENT}")}
    if twice := [name for name in named if named.count(name) > 1]:
        raise bad_input(f"{path} names '{plain(twice[0])}' twice", "keep one [[scenario]] of it")
    if absent := sorted(set(named) - there):
        raise bad_input(
            f"{path} names '{plain(absent[0])}', which has no {EXPERIMENT}", "write it, or leave the scenario out"
        )
    if unnamed := sorted(there - set(named)):
        raise bad_input(
            f"{path} does not name '{unnamed[0]}'", "add a [[scenario]] with this name and what it is about"
        )
    return Comparison(folder, _tolerance(raw.get("tolerance", {}), path), scenarios)


_KEYS: Final = {
    "goodput": "goodput",
    "queue-delay": "queue_delay",
    "queue-delay-packets": "queue_delay_packets",
    "fct-p99": "fct_p99",
    "drops": "drops",
    "drops-packets": "drops_packets",
    "retransmissions": "retransmissions",
    "retransmissions-packets": "retransmissions_packets",
    "marks": "marks",
    "marks-packets": "marks_packets",
    "share": "share",
}
_SETS: Final = ("calibrated", "held-out")


def _tolerance(raw: object, path: Path) -> Tolerance:
    if (
        not isinstance(raw, dict)
        or raw.keys() != _KEYS.keys()
        or any(isinstance(one, bool) or not isinstance(one, int | float) for one in raw.values())
    ):
        raise bad_input(f"[tolerance] of {path} is incomplete or has more", f"give numbers for {', '.join(_KEYS)}")
    return Tolerance(**{_KEYS[key]: float(value) for key, value in raw.items()})


def _scenario(raw: Mapping[str, Any], path: Path) -> Scenario:
    known = {key: str(value) for key, value in raw.items() if key in ("name", "about", "note", "set")}
    chosen = known.get("set", _SETS[0])
    if not {"name", "about"} <= known.keys() or len(known) < len(raw) or chosen not in _SETS:
        help_ = f"give name, about and, if need be, a note and a set, one of {', '.join(_SETS)}"
        raise bad_input(f"a [[scenario]] of {path} is not understood", help_)
    figure = Figure(path.parent / known["name"])
    return Scenario(known["name"], known["about"], known.get("note", ""), chosen == "held-out", figure)


def asked_of(comparison: Comparison | None, wanted: Sequence[str]) -> tuple[tuple[Scenario, ...], list[str]]:
    """The scenarios that are asked for, by `linux` or `linux/dc-one`, and what asks for anything else.

    Raises `BadInput` where a scenario is asked for that there is not.
    """
    if comparison is None:
        return (), list(wanted)
    chosen: dict[Scenario, None] = {}
    others = []
    for text in wanted:
        head, slash, name = text.partition("/")
        if head != comparison.name:
            others.append(text)
        elif not slash:
            chosen |= dict.fromkeys(comparison.scenarios)
        else:
            chosen[_named(comparison, name.rstrip("/"), text)] = None
    return tuple(scenario for scenario in comparison.scenarios if scenario in chosen), others


def _named(comparison: Comparison, name: str, text: str) -> Scenario:
    for scenario in comparison.scenarios:
        if scenario.name == name:
            return scenario
    names = [scenario.name for scenario in comparison.scenarios]
    near = difflib.get_close_matches(name, names, n=3, cutoff=0.5) or names[:3]
    examples = ", ".join(f"{comparison.name}/{one}" for one in near)
    raise bad_input(f"'{text}' names no scenario", f"such as {examples}; '{comparison.name}' is all of them")
