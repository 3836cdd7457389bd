"""`runs/index.json`: the plans of each experiment, so that figures share runs and results are found again."""

from __future__ import annotations

import fcntl
import json
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from narrows import atomic, native, outline
from narrows.backends import AXIS, Backend, split
from narrows.errors import bad_input
from narrows.experiment import Difference, Experiment, Pairs, case_name, is_plain, place_of
from narrows.parameters import ControllerUse, uses_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from narrows.errors import BadInput

FORMAT: Final = 3
"""Of the file. An index in another one names nothing: what it named is found again by its hashes."""


@dataclass(frozen=True)
class Member:
    """A plan of an experiment, and the labels it bears there."""

    hash: str
    arm: str
    axes: Pairs
    declared: Pairs
    controllers: tuple[ControllerUse, ...]
    """One per traffic entry, in the order of the file."""
    warmup_ns: int
    end_ns: int
    backend: Backend = Backend.SIM
    """What ran it."""

    @property
    def stored(self) -> str:
        """The name of the folder of its runs."""
        return self.backend.stored(self.hash)

    @property
    def case(self) -> str:
        """What a chart calls it."""
        return case_name(self.arm, self.axes)

    @property
    def plan_case(self) -> str:
        """What it is called whatever ran it."""
        return case_name(self.arm, [axis for axis in self.axes if axis[0] != AXIS])


@dataclass(frozen=True)
class Entry:
    """An experiment whose runs are in the store."""

    identifier: str
    name: str
    title: str
    file: str
    quick: bool
    sets: Pairs
    seeds: tuple[int, ...]
    version: str
    command: str
    members: tuple[Member, ...]
    differences: tuple[Difference, ...]
    setting: Pairs
    """What was simulated, in words."""
    place: str = ""
    """The figure that it is the experiment of: `gemini/fig13`; nothing for a file that belongs to none."""
    backend: Backend = Backend.SIM
    """What ran it."""
    beside: tuple[Entry, ...] = ()
    """Of results that were put side by side: each backend's own. None of them is in the index as a whole."""

    @property
    def parts(self) -> tuple[Entry, ...]:
        """One for each backend."""
        return self.beside or (self,)

    @property
    def made_by(self) -> str:
        """`Narrows 0.1.0`; of a live run `Linux in a guest (guest), narrowsd 0.1.0`."""
        words = [f"{part.backend.program} {part.version}" for part in self.parts]
        if self.backend is Backend.SIM and not self.beside:
            return words[0]
        return "; ".join(f"{part.backend.words}, {made}" for part, made in zip(self.parts, words, strict=True))

    @property
    def axes(self) -> tuple[str, ...]:
        """Names of the sweep's axes; an arm may lack those into a controller that it does not run."""
        return tuple(dict.fromkeys(key for member in self.members for key, _ in member.axes))


def entry_of(experiment: Experiment, *, version: str, command: str) -> Entry:
    """What the index keeps of an experiment."""
    registry = native.controllers()
    members = tuple(
        Member(
            hash=plan.hash,
            arm=plan.arm,
            axes=plan.axes,
            declared=plan.declared,
            controllers=uses_of(plan.body, registry),
            warmup_ns=plan.warmup_ns,
            end_ns=plan.end_ns,
            backend=experiment.backend,
        )
        for plan in experiment.plans
    )
    summaries = [plan.summary for plan in experiment.plans]
    ends = [plan.end_ns for plan in experiment.plans]
    return Entry(
        identifier=experiment.identifier,
        name=experiment.name,
        title=experiment.title,
        file=experiment.file.as_posix(),
        place=experiment.place,
        quick=experiment.quick,
        sets=experiment.sets,
        seeds=experiment.seeds,
        version=version,
        command=command,
        members=members,
        differences=experiment.differences,
        setting=((outline.SIMULATED_TIME, outline.simulated_time(summaries, ends)), *outline.setting(summaries)),
        backend=experiment.backend,
    )


class Index:
    """The index of a store's folder."""

    def __init__(self, root: Path) -> None:
        self.path = root / "index.json"

    def entries(self) -> dict[str, Entry]:
        """Every experiment, by identifier; none where a version with another format wrote the index."""
        raw = self._read()
        if raw.get("format") != FORMAT:
            return {}
        try:
            return {key: _entry(key, value) for key, value in raw["experiments"].items()}
        except (KeyError, TypeError) as error:
            raise self._unreadable(error) from error

    def _read(self) -> dict[str, Any]:
        try:
            raw = json.loads(self.path.read_text())
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as error:
            raise self._unreadable(error) from error
        return raw if isinstance(raw, dict) else {}

    def _unreadable(self, error: Exception) -> BadInput:
        return bad_input(f"cannot read {self.path}: {error}", "delete it; running an experiment again writes it anew")

    def find(self, wanted: str) -> Entry:
        """An experiment by identifier, name, place, file or folder. Raises `BadInput` with what there is.

        Where none is said, `@guest` or `@native` behind it, what the simulator made is meant.
        """
        entries = self.entries()
        if wanted in entries:
            return entries[wanted]
        base, backend = split(wanted)
        path = Path(base)
        matches = [
            entry
            for entry in entries.values()
            if entry.backend is backend
            and (base in (entry.name, entry.place) or path in (Path(entry.file), Path(entry.file).parent))
        ]
        if len(matches) == 1:
            return matches[0]
        if not entries and self._read():
            raise bad_input(
                f"{self.path} was written by another version of Narrows",
                f"run {wanted} again: what this version has already run is found",
            )
        known = ", ".join(sorted(entry.identifier for entry in matches or entries.values()))
        raise bad_input(
            f"{'more than one result' if matches else 'no result'} is called '{wanted}' in {self.path.parent}",
            f"there are: {known}" if known else "there are none yet; `narrows run FILE` makes some",
        )

    def record(self, entry: Entry) -> None:
        """Adds or replaces an experiment; safe beside other processes."""
        with self._locked():
            entries = self.entries() | {entry.identifier: entry}
            experiments = {key: _raw(value) for key, value in sorted(entries.items())}
            atomic.write_text(self.path, json.dumps({"format": FORMAT, "experiments": experiments}, indent=1) + "\n")

    @contextmanager
    def _locked(self) -> Iterator[None]:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.with_name(".index.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield


def _raw(entry: Entry) -> dict[str, Any]:
    raw = asdict(entry)
    del raw["identifier"], raw["beside"]
    for member in raw["members"]:
        del member["backend"]  # the entry's
    raw["differences"] = [
        {"path": item.path, "values": dict(item.values), "declared": item.declared} for item in entry.differences
    ]
    return raw


def _entry(key: str, raw: Mapping[str, Any]) -> Entry:
    names = [key, *(member["hash"] for member in raw["members"])]
    if not all(isinstance(name, str) and is_plain(name) for name in names):
        raise bad_input(f"the index names a file outside its folder: {key}", "delete index.json and run again")
    backend = Backend(raw.get("backend", Backend.SIM))  # an index may be older than this key
    members = tuple(
        Member(
            hash=member["hash"],
            arm=member["arm"],
            axes=_pairs(member["axes"]),
            declared=_pairs(member["declared"]),
            controllers=tuple(
                ControllerUse(use["traffic"], use["name"], use["ecn"], _pairs(use["parameters"]))
                for use in member["controllers"]
            ),
            warmup_ns=member["warmup_ns"],
            end_ns=member["end_ns"],
            backend=backend,
        )
        for member in raw["members"]
    )
    return Entry(
        identifier=key,
        name=raw["name"],
        title=raw["title"],
        file=raw["file"],
        place=raw.get("place", place_of(Path(raw["file"]))),  # an index may be older than this key
        quick=raw["quick"],
        sets=_pairs(raw["sets"]),
        seeds=tuple(raw["seeds"]),
        version=raw["version"],
        command=raw["command"],
        members=members,
        differences=tuple(_difference(item) for item in raw["differences"]),
        setting=_pairs(raw["setting"]),
        backend=backend,
    )


def _difference(raw: Mapping[str, Any]) -> Difference:
    values = tuple((str(case), str(value)) for case, value in raw["values"].items())
    return Difference(path=raw["path"], values=values, declared=raw["declared"])


def _pairs(raw: list[list[str]]) -> Pairs:
    return tuple((key, value) for key, value in raw)
