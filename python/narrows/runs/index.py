"""`runs/index.json`: the plans of each experiment, so that figures share runs and results are found again.

An entry belongs to a file and its options; what the file asked for before is kept as `NAME~1`, `NAME~2`, newest first.
"""

from __future__ import annotations

import fcntl
import json
import re
from contextlib import contextmanager
from dataclasses import asdict, dataclass, is_dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, get_args, get_origin, get_type_hints

from narrows import atomic
from narrows.errors import bad_input
from narrows.experiment import ControllerUse, Difference, Experiment, Pairs, case_name, is_plain, outline, place_of
from narrows.runs.backends import AXIS, MARK, Backend, split

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from narrows.errors import BadInput

FORMAT: Final = 3
"""Of the file. An index in another one names nothing: what it named is found again by its hashes."""
MAX_HISTORY: Final = 10
"""Earlier entries that are kept of a file."""
_EARLIER: Final = re.compile(r"(?P<name>.+)~(?P<steps>[1-9]\d{0,2})")


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
    other_seeds: bool = False
    """Whether the seeds are not the file's."""
    warnings: tuple[str, ...] = ()
    """What may not be as meant, in sentences."""
    beside: tuple[Entry, ...] = ()
    """Of results that were put side by side: each backend's own. None of them is in the index as a whole."""

    @property
    def parts(self) -> tuple[Entry, ...]:
        """One for each backend."""
        return self.beside or (self,)

    @property
    def key(self) -> tuple[str, bool, Pairs, tuple[int, ...], Backend]:
        """What it belongs to: a file and the options it was run with."""
        return self.file, self.quick, self.sets, self.seeds if self.other_seeds else (), self.backend

    @property
    def asked(self) -> tuple[object, ...]:
        """What it asked for: the plans with their labels, and the seeds."""
        return tuple((member.hash, member.arm, member.axes) for member in self.members), self.seeds

    @property
    def made_by(self) -> str:
        """`Narrows 0.1.0`; of a live run `Linux in a guest (guest), narrowsd 0.1.0`."""
        words = [f"{part.backend.program} {part.version}" for part in self.parts]
        if self.backend is Backend.SIM and not self.beside:
            return words[0]
        return "; ".join(f"{part.backend.words}, {made}" for part, made in zip(self.parts, words, strict=True))

    @property
    def axes(self) -> tuple[str, ...]:
        """Names of the sweep's axes; a scheme may lack those into a controller that it does not run."""
        return tuple(dict.fromkeys(key for member in self.members for key, _ in member.axes))


def entry_of(experiment: Experiment, *, version: str, command: str) -> Entry:
    """What the index keeps of an experiment."""
    members = tuple(
        Member(
            hash=plan.hash,
            arm=plan.arm,
            axes=plan.axes,
            declared=plan.declared,
            controllers=plan.controllers,
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
        other_seeds=experiment.other_seeds,
        warnings=experiment.warnings,
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

        Without `@guest` or `@host` behind it, what the simulator made is meant. `NAME~1` is the one before the last.
        """
        entries = self.entries()
        if wanted in entries:
            return entries[wanted]
        if (earlier := _EARLIER.fullmatch(wanted)) is not None:
            return self._earlier(self.find(earlier["name"]), int(earlier["steps"]))
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
        known = ", ".join(sorted(f"{entry.identifier} ({entry.file})" for entry in matches or entries.values()))
        raise bad_input(
            f"{'more than one result' if matches else 'no result'} is called '{wanted}' in {self.path.parent}",
            f"there are: {known}" if known else "there are none yet; `narrows run FILE` makes some",
        )

    def _earlier(self, entry: Entry, steps: int) -> Entry:
        name = f"{entry.identifier}~{steps}"
        kept = self._history().get(entry.identifier, [])
        if steps > len(kept):
            raise bad_input(f"there is no result {name}", f"of {entry.identifier} {len(kept)} earlier ones are kept")
        return replace(_entry(entry.identifier, kept[steps - 1]), identifier=name)

    def _history(self) -> dict[str, list[dict[str, Any]]]:
        raw = self._read()
        return raw.get("history", {}) if raw.get("format") == FORMAT else {}

    def record(self, entry: Entry) -> Entry:
        """Adds an experiment, and returns it as it is called; safe beside other processes.

        It takes the place of what its file asked for before, which is kept as history. Where another file has its name,
        it is called after its own file, too.
        """
        with self._locked():
            entries, history = self.entries(), self._history()
            former = next((other for other in entries.values() if other.key == entry.key), None)
            entry = replace(entry, identifier=_free_name(entry, entries))
            replaced = former or entries.get(entry.identifier)
            if replaced is not None:
                own = history.pop(replaced.identifier, [])
                if replaced.asked != entry.asked:
                    own.insert(0, _raw(replaced))
                del entries[replaced.identifier]
                history[entry.identifier] = own[:MAX_HISTORY]
            experiments = {key: _raw(value) for key, value in sorted((entries | {entry.identifier: entry}).items())}
            content = {"format": FORMAT, "experiments": experiments, "history": {k: v for k, v in history.items() if v}}
            atomic.write_text(self.path, json.dumps(content, indent=1) + "\n")
        return entry

    @contextmanager
    def _locked(self) -> Iterator[None]:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.with_name(".index.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield


def _free_name(entry: Entry, entries: Mapping[str, Entry]) -> str:
    """Its identifier; with its path where that names the results of another file, which is still there."""
    base, mark, backend = entry.identifier.partition(MARK)
    path = re.sub(r"[^0-9A-Za-z._]+", "-", str(Path(entry.file).with_suffix(""))).strip("-.")
    for name in (entry.identifier, f"{base}-{path}{mark}{backend}"):
        holder = entries.get(name)
        if holder is None or holder.file == entry.file or not Path(holder.file).exists():
            return name
    raise bad_input(f"another file has results called {name}", "give one of them another name, or choose another --out")


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
    backend = raw.get("backend", Backend.SIM)
    older = {"place": place_of(Path(raw["file"])), "other_seeds": "-seeds-" in key}  # what older indexes lack
    members = [{**member, "backend": backend} for member in raw["members"]]
    differences = [{**item, "values": item["values"].items()} for item in raw["differences"]]
    made: Entry = _as(Entry, {**older, **raw, "identifier": key, "members": members, "differences": differences})
    return made


def _as(kind: Any, raw: Any) -> Any:
    """What JSON has made lists and texts of: a dataclass, a tuple, or a plain value."""
    if is_dataclass(kind):
        hints = get_type_hints(kind)
        return kind(**{name: _as(hints[name], raw[name]) for name in hints if name in raw})  # type: ignore[operator]
    if get_origin(kind) is tuple:
        *kinds, last = get_args(kind)
        kinds = [*kinds, last] if last is not Ellipsis else kinds * len(raw)
        return tuple(_as(one, item) for one, item in zip(kinds, raw, strict=True))
    return kind(raw)
