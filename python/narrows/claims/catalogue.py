"""A paper's folder, or one of our own: its claims, the figures that supply their data, how each claim is measured."""

from __future__ import annotations

import importlib.util
import tomllib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal, cast, get_args

from narrows.errors import bad_input, plain

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path
    from types import ModuleType

    from narrows.claims.binding import Binding
    from narrows.claims.readings import Readings

Kind = Literal["number", "ratio", "ordering"]
"""What a claim is about."""
BINDINGS = "bindings.py"
READINGS = "readings.py"


@dataclass(frozen=True)
class Claim:
    """One statement of a paper, or of ours, as its `claims.toml` has it."""

    identifier: str
    item: str
    """Figure, table or section."""
    scenarios: tuple[str, ...]
    metric: str
    schemes: tuple[str, ...]
    kind: Kind
    expect: str
    unit: str
    accept: tuple[float, float] | None
    order: tuple[str, ...]
    needs_simulation: bool
    confidence: str
    note: str
    accept_each: tuple[tuple[float, float], ...] = ()
    """For a claim of several values: an interval for each."""
    ours: bool = False
    """A statement of our own, and no paper's."""
    value: tuple[float, ...] = ()
    """What the document states, where that is a number; several are a range, or one for each thing measured."""
    setup: bool = False
    """A check of the set-up, as its binding says."""

    @property
    def refutable(self) -> bool:
        """Whether a run can refute it: it needs one, and is of more than what the experiment sets itself."""
        return self.needs_simulation and not self.setup


@dataclass(frozen=True)
class Paper:
    """A paper's folder under `experiments`."""

    name: str
    folder: Path
    claims: tuple[Claim, ...]
    bindings: Mapping[str, Binding]
    figures: Mapping[str, str]
    """Scenario → name of the figure's folder."""
    title: str = ""
    """Of a folder that is no paper's: its statements are our own. Empty for a paper."""
    readings: Mapping[str, Readings] = field(default_factory=dict)
    """Of figures that have several, by the figure's folder."""

    def scenarios_of(self, claim: Claim) -> tuple[str, ...]:
        """What a claim is judged from: its binding's word, else its own."""
        binding = self.bindings.get(claim.identifier)
        return (binding.scenarios if binding else ()) or claim.scenarios

    def figures_of(self, claim: Claim) -> tuple[str, ...]:
        """The figures that a claim is about, in the order of its scenarios; none for arithmetic."""
        found = (self.figures.get(scenario) for scenario in self.scenarios_of(claim))
        return tuple(dict.fromkeys(name for name in found if name is not None))


def load(folder: Path) -> Paper:
    """Reads `claims.toml`, which may state none, the paper's `bindings.py` and each figure's.

    Raises `BadInput`, also for a claim that is bound to a measure which does not exist.
    """
    from narrows.claims import unknown  # slow, and lists of claims do not need it

    path = folder / "claims.toml"
    raw = read(path)
    bindings: dict[str, Binding] = {}
    figures: dict[str, str] = {}
    files: dict[str, Path] = {}
    for place in (folder, *sorted(path.parent for path in folder.glob(f"*/{BINDINGS}"))):
        module = module_from(place / BINDINGS)
        figures |= dict.fromkeys(getattr(module, "SCENARIOS", ()), place.name)
        own = getattr(module, "BINDINGS", {})
        if twice := sorted(bindings.keys() & own.keys()):
            raise bad_input(f"{place / BINDINGS} binds {twice[0]} a second time", "keep one of the two bindings")
        bindings |= own
        files |= dict.fromkeys(own, place / BINDINGS)
    paper = Paper(
        name=folder.name,
        folder=folder,
        claims=tuple(_claim(entry, path, bindings) for entry in _entries(raw, path)),
        bindings=bindings,
        figures=figures,
        title=raw.get("title", ""),
        readings=readings_of(folder),
    )
    unknown.refuse(paper, path, files)
    return paper


def readings_of(folder: Path) -> Mapping[str, Readings]:
    """The readings of a paper's figures, from its `readings.py`, by the figure's folder."""
    return cast("Mapping[str, Readings]", getattr(module_from(folder / READINGS), "READINGS", {}))


def read(path: Path) -> dict[str, Any]:
    """A `claims.toml`. Raises `BadInput`."""
    try:
        raw = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise bad_input(f"cannot read {path}: {plain(error)}", "each paper's folder has a claims.toml") from error
    if not isinstance(raw.get("title", ""), str):
        raise bad_input(f"the title of {path} is no text", 'write title = "…", or leave it out')
    return raw


def module_from(path: Path) -> ModuleType | None:
    """A Python file of the experiments folder, which is ours like the package; `None` if it is absent."""
    if not path.is_file():
        return None
    name = "narrows_experiments_" + "_".join(path.with_suffix("").parts[-3:])
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


_NEEDED: Final[Mapping[str, type]] = {
    "id": str,
    "item": str,
    "scenario": str,
    "metric": str,
    "schemes": list,
    "kind": str,
    "expect": str,
    "needs_simulation": bool,
    "confidence": str,
}
"""What every claim has, and of what kind it is."""
_OPTIONAL: Final[Mapping[str, type]] = {"unit": str, "note": str, "order": list, "origin": str, "accept_each": list}
_OF_TEXTS: Final = ("schemes", "order")


def _entries(raw: Mapping[str, Any], path: Path) -> list[Mapping[str, Any]]:
    entries = raw.get("claim", [])
    if not (isinstance(entries, list) and all(isinstance(entry, dict) for entry in entries)):
        raise bad_input(f"`claim` of {path} is no list of tables", "begin each with [[claim]]")
    return entries


def _claim(raw: Mapping[str, Any], path: Path, bindings: Mapping[str, Binding]) -> Claim:
    identifier = raw.get("id", "(without an id)")
    if missing := [key for key in _NEEDED if key not in raw]:
        raise bad_input(
            f"claim {plain(identifier)} of {path} has no '{missing[0]}'", f"a claim needs {', '.join(_NEEDED)}"
        )
    kinds = {**_NEEDED, **_OPTIONAL}
    wrong = [key for key, kind in kinds.items() if key in raw and not isinstance(raw[key], kind)]
    wrong += [key for key in _OF_TEXTS if key not in wrong and not all(isinstance(it, str) for it in raw.get(key, ()))]
    wrong += [] if wrong or raw["kind"] in get_args(Kind) else ["kind"]
    numbers: dict[str, Any] = {}
    for key, read_number in (("accept", _interval), ("accept_each", _intervals), ("value", _values)):
        try:
            numbers[key] = read_number(raw.get(key))
        except (TypeError, ValueError):
            wrong.append(key)
    if wrong:
        raise bad_input(
            f"'{wrong[0]}' of claim {plain(identifier)} of {path} is not understood",
            "docs/how-to/experiments.md has an example",
        )
    scenario = str(raw["scenario"])
    return Claim(
        identifier=raw["id"],
        item=raw["item"],
        scenarios=tuple(part for part in scenario.split("+") if part not in ("-", "")),
        metric=raw["metric"],
        schemes=tuple(raw["schemes"]),
        kind=raw["kind"],
        expect=raw["expect"],
        unit=raw.get("unit", ""),
        accept=numbers["accept"],
        accept_each=numbers["accept_each"],
        order=tuple(raw.get("order", ())),
        needs_simulation=raw["needs_simulation"],
        confidence=raw["confidence"],
        note=raw.get("note", ""),
        ours=raw.get("origin") == "ours",
        value=numbers["value"],
        setup=(bound := bindings.get(raw["id"])) is not None and bound.setup,
    )


def _values(raw: object) -> tuple[float, ...]:
    """A number or several; raises `TypeError` for anything else."""
    return () if raw is None else tuple(map(_number, raw if isinstance(raw, list) else [raw]))


def _number(raw: object) -> float:
    if isinstance(raw, bool) or not isinstance(raw, int | float):
        raise TypeError
    return float(raw)


def _interval(raw: object) -> tuple[float, float] | None:
    """Its ends; raises `ValueError` where they are not two, or not in their order."""
    if raw is None:
        return None
    low, high = _values(raw)
    if not low <= high:  # nor is NaN
        raise ValueError
    return low, high


def _intervals(raw: object) -> tuple[tuple[float, float], ...]:
    return tuple(found for each in cast("list[object]", raw or []) if (found := _interval(each)) is not None)
