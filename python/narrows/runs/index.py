"""`runs/index.json`: the plans of each experiment, so that figures share runs and results are found again.

An entry belongs to a file and its options; what the file asked for before is kept as `NAME~1`, `NAME~2`, newest first.
Files are kept relative to the store, so that an entry names the same file in whatever folder it is read.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import shlex
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, is_dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, get_args, get_origin, get_type_hints

from narrows import atomic, packaged
from narrows.errors import BadInput, bad_input
from narrows.experiment import (
    FILE,
    MAX_NAME,
    ControllerUse,
    Difference,
    Experiment,
    Pairs,
    ReportChoice,
    case_name,
    is_plain,
    outline,
    place_of,
    seeds_text,
)
from narrows.runs.backends import AXIS, MARK, Backend, split

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

FORMAT: Final = 3
"""Of the file. An index in another one names nothing: what it named is found again by its hashes."""
MAX_HISTORY: Final = 10
"""Earlier entries that are kept of a file."""
DEFAULT_ROOT: Final = Path("runs")
"""Where results are kept unless told otherwise."""
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
    """As it was given, or relative to the working directory of that time: for display only."""
    quick: bool
    sets: Pairs
    seeds: tuple[int, ...]
    version: str
    command: str
    """Makes its runs again, in the working directory."""
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
    experiment: str = ""
    """Digest of the copy of its experiment that the store keeps; nothing if there is none."""
    imported: bool = False
    """Whether it came out of an archive: its file is that copy."""
    report: ReportChoice = field(default_factory=ReportChoice)
    """What the charts of a sweep show; an index may be older than this key."""
    location: Path = Path()
    """The absolute path of its file."""
    root: Path = Path()
    """The absolute path of the store."""

    @property
    def parts(self) -> tuple[Entry, ...]:
        """One for each backend."""
        return self.beside or (self,)

    @property
    def key(self) -> tuple[Path, bool, Pairs, tuple[int, ...], Backend]:
        """What it belongs to: a file and the options it was run with."""
        sets = tuple(sorted(self.sets))  # as its identifier has them
        return self.location, self.quick, sets, self.seeds if self.other_seeds else (), self.backend

    @property
    def here(self) -> str:
        """Its file's path from the working directory."""
        return _from_here(self.location)

    @property
    def runs(self) -> dict[tuple[str, int], Member]:
        """Its runs by the folder of their plan and their seed."""
        return {(member.stored, seed): member for member in self.members for seed in self.seeds}

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


def entry_of(experiment: Experiment, *, version: str, root: Path) -> Entry:
    """What the index of the store in `root` keeps of an experiment."""
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
    entry = Entry(
        identifier=experiment.identifier,
        name=experiment.name,
        title=experiment.title,
        file=packaged.label(experiment.file) or experiment.file.as_posix(),
        place=experiment.place,
        quick=experiment.quick,
        sets=experiment.sets,
        seeds=experiment.seeds,
        version=version,
        command="",
        members=members,
        differences=experiment.differences,
        setting=(
            (outline.SIMULATED_TIME, outline.simulated_time(summaries, ends)),
            *outline.joined(outline.setting(summaries)),
        ),
        backend=experiment.backend,
        other_seeds=experiment.other_seeds,
        warnings=experiment.warnings,
        experiment="" if experiment.content is None else experiment.content.digest,
        report=experiment.report,
        location=_resolved(experiment.file),
        root=_resolved(root),
    )
    return replace(entry, command=command_for(entry, root))


def command_for(entry: Entry, root: Path) -> str:
    """The command that makes these results in the store in `root`, as a shell takes it in the working directory."""
    elsewhere = [] if _resolved(root) == _resolved(DEFAULT_ROOT) else ["--out", str(root)]
    return shlex.join(["narrows", "run", entry.here, *_options(entry), *elsewhere])


def command_as_given(entry: Entry | Experiment) -> str:
    """The command that makes these results, with the file's path as it was given."""
    return shlex.join(["narrows", "run", Path(entry.file).as_posix(), *_options(entry)])


def _options(entry: Entry | Experiment) -> list[str]:
    words = []
    if entry.quick:
        words.append("--quick")
    if entry.other_seeds:
        words += ["--seeds", seeds_text(entry.seeds)]
    for key, value in entry.sets:
        words += ["--set", f"{key}={value}"]
    if entry.backend.is_live:
        words += ["--backend", entry.backend.value]
    return words


_READ: Final[dict[tuple[str, str, int, int, int], dict[str, Entry]]] = {}
"""The entries of the index that was read last, by its path, the working directory, and the file's time and size."""


class Index:
    """The index of a store's folder."""

    def __init__(self, root: Path) -> None:
        self.path = root / "index.json"

    def entries(self) -> dict[str, Entry]:
        """Every experiment, by identifier; none where a version with another format wrote the index."""
        try:
            stat = self.path.stat()
            stamp = (str(self.path), str(Path.cwd()), stat.st_mtime_ns, stat.st_ino, stat.st_size)
        except OSError:
            stamp = None
        found = None if stamp is None else _READ.get(stamp)  # other threads may clear it meanwhile
        if found is None:
            found = {key: self._entry(key, value) for key, value in self._part("experiments").items()}
            _READ.clear()
            if stamp is not None:
                _READ[stamp] = found
        return dict(found)

    def earlier(self) -> dict[str, list[Entry]]:
        """What files asked for before: by identifier, newest first."""
        return {
            key: [replace(self._entry(key, raw), identifier=f"{key}~{steps}") for steps, raw in enumerate(kept, 1)]
            for key, kept in self._history().items()
        }

    def every(self) -> dict[str, Entry]:
        """Every experiment and what its file asked for before, by the name that `find` takes."""
        earlier = (entry for kept in self.earlier().values() for entry in kept)
        return self.entries() | {entry.identifier: entry for entry in earlier}

    @property
    def is_known(self) -> bool:
        """Whether there is an index that this version can read: what it does not name is named by nothing."""
        return self._read().get("format") == FORMAT

    def names(self, *, earlier: bool = False) -> list[str]:
        """Identifiers of the experiments, or with `earlier` those of what their files asked for before.

        Raises `BadInput` where the index cannot be read.
        """
        if not earlier:
            return list(self._part("experiments"))
        return [f"{name}~{step}" for name, kept in self._history().items() for step in range(1, len(kept) + 1)]

    def _history(self) -> dict[str, list[dict[str, Any]]]:
        return self._part("history", list)

    def _part(self, name: str, kind: type = dict) -> dict[str, Any]:
        """A table of the index, whose values are of this kind."""
        raw = self._read()
        if raw.get("format") != FORMAT:
            return {}
        part = raw.get(name, {})
        if not (isinstance(part, dict) and all(isinstance(value, kind) for value in part.values())):
            raise self._unreadable(f"`{name}` is not as Narrows writes it")
        return part

    def _entry(self, key: str, raw: Mapping[str, Any]) -> Entry:
        try:
            return entry_from(key, raw, self.path.parent)
        except BadInput:
            raise
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise self._unreadable(f"in {key}: {error!r}") from error

    def _read(self) -> dict[str, Any]:
        try:
            raw = json.loads(self.path.read_text())
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as error:
            raise self._unreadable(error) from error
        return raw if isinstance(raw, dict) else {}

    def _unreadable(self, error: object) -> BadInput:
        return bad_input(
            f"cannot read {self.path}: {error}",
            "rename it and run the experiments again, which finds their runs; gc would remove all others",
        )

    def find(self, wanted: str) -> Entry:
        """An experiment by identifier, name, place, file or folder. Raises `BadInput` with what there is.

        Without `@guest` or `@host` behind it, what the simulator made is meant. `NAME~1` is the one before the last. Of
        results of one file, a file or folder means those of its full run, if they are there.
        """
        entries = self.entries()
        if wanted in entries:
            return entries[wanted]
        if (earlier := _EARLIER.fullmatch(wanted)) is not None:
            return self._earlier(self.find(earlier["name"]), int(earlier["steps"]))
        matches = _matching(wanted, entries.values())
        own = [entry for entry in matches if not entry.imported]
        if len(matches) == 1 or len(own) == 1:
            return (own or matches)[0]
        whole = [entry for entry in own if not (entry.quick or entry.sets or entry.other_seeds)]
        if len(whole) == 1:
            return whole[0]
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

    def has(self, wanted: str) -> bool:
        """Whether anything is called so; several may be. Raises `BadInput` where the index cannot be read."""
        entries = self.entries()
        if (earlier := _EARLIER.fullmatch(wanted)) is not None and wanted not in entries:
            return self.has(earlier["name"])
        return wanted in entries or bool(_matching(wanted, entries.values()))

    def _earlier(self, entry: Entry, steps: int) -> Entry:
        name = f"{entry.identifier}~{steps}"
        kept = self._history().get(entry.identifier, [])
        if steps > len(kept):
            raise bad_input(f"there is no result {name}", f"of {entry.identifier} {len(kept)} earlier ones are kept")
        return replace(self._entry(entry.identifier, kept[steps - 1]), identifier=name)

    def record(self, entry: Entry) -> Entry:
        """Adds an experiment, and returns it as it is called; safe beside other processes.

        It takes the place of what its file asked for before, which is kept as history, and keeps the name of that. A
        name that belongs to another file which is still there is not taken: it is called after its own file, too.
        """
        root = self.path.parent
        with self.locked():
            entries, history = self.entries(), self._history()
            former = next((other for other in entries.values() if other.key == entry.key), None)
            entry = replace(entry, identifier=_name_for(entry, former, entries, root))
            assert is_plain(entry.identifier), "an identifier names files"
            earlier: list[dict[str, Any]] = []
            for name in dict.fromkeys([former.identifier if former else entry.identifier, entry.identifier]):
                if (replaced := entries.pop(name, None)) is not None:
                    earlier += [raw_of(replaced, root)] if replaced.asked != entry.asked else []
                    earlier += history.pop(name, [])
            history[entry.identifier] = earlier[:MAX_HISTORY]
            entries[entry.identifier] = entry
            self._write(entries, history)
        return entry

    def forget(self, identifiers: Iterable[str]) -> None:
        """Removes entries, each with its earlier ones, or one of these (`NAME~1`). The caller holds the lock."""
        entries, history = self.entries(), self._history()
        for identifier in sorted(identifiers, key=_steps, reverse=True):  # the oldest first: others keep their number
            if (found := _EARLIER.fullmatch(identifier)) is not None:
                del history[found["name"]][int(found["steps"]) - 1]
            else:
                entries.pop(identifier)
                history.pop(identifier, None)
        self._write(entries, history)

    def _write(self, entries: Mapping[str, Entry], history: Mapping[str, list[dict[str, Any]]]) -> None:
        content = {
            "format": FORMAT,
            "experiments": {key: raw_of(value, self.path.parent) for key, value in sorted(entries.items())},
            "history": {key: value for key, value in history.items() if value},
        }
        atomic.write_text(self.path, json.dumps(content, indent=1) + "\n")

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Holds the right to change the index, and to remove what it does not name."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.with_name(".index.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield


def _matching(wanted: str, entries: Iterable[Entry]) -> list[Entry]:
    """Entries by name, place, file or folder."""
    base, backend = split(wanted)
    path = Path(base)
    of_backend = [entry for entry in entries if entry.backend is backend]
    file, folder = _resolved(path), _resolved(path / FILE).parent
    return [
        entry
        for entry in of_backend
        if base in (entry.name, entry.place) or file == entry.location or folder == entry.location.parent
    ] or [entry for entry in of_backend if path in (Path(entry.file), Path(entry.file).parent)]


def _steps(identifier: str) -> int:
    """How many entries of its file are newer."""
    found = _EARLIER.fullmatch(identifier)
    return 0 if found is None else int(found["steps"])


def _name_for(entry: Entry, former: Entry | None, entries: Mapping[str, Entry], root: Path) -> str:
    """What its results are called already; else its identifier, with its path where that is another file's."""

    def is_free(name: str) -> bool:
        holder = entries.get(name)
        return holder is None or holder is former or (former is None and not holder.location.is_file())

    def longer(text: str) -> str:
        base, mark, backend = entry.identifier.partition(MARK)
        return f"{base}-{text}{mark}{backend}"

    path = os.path.relpath(entry.location.with_suffix(""), root.resolve())
    digest = hashlib.sha256(os.fsencode(path)).hexdigest()[:8]
    text = re.sub(r"[^0-9A-Za-z._]+", "-", path).strip("-.")
    room = MAX_NAME - len(longer(""))
    fits = text if len(text) <= room else f"{text[len(digest) + 1 - room :].strip('-.')}-{digest}"
    kept = [former.identifier] if former is not None and former.name == entry.name else []
    names = [*kept, entry.identifier, *([longer("imported")] if entry.imported else []), longer(fits)]
    return next(filter(is_free, names), longer(digest))


def _resolved(path: Path) -> Path:
    """The absolute path of a file; a link keeps its name, after which an experiment may be called."""
    try:
        return path.parent.resolve() / path.name
    except (OSError, ValueError):  # the working directory is gone, or no file can have this name
        return path


def _from_here(path: Path) -> str:
    try:
        return packaged.label(path) or os.path.relpath(path)
    except FileNotFoundError:  # the working directory is gone
        return str(path)


def raw_of(entry: Entry, root: Path) -> dict[str, Any]:
    """An entry as the index of the store in `root` keeps it."""
    raw = asdict(entry)
    raw["path"] = Path(os.path.relpath(raw.pop("location"), root.resolve())).as_posix()
    raw["command"] = command_as_given(entry)  # for whoever reads the file: Narrows makes it anew for where it is read
    del raw["identifier"], raw["beside"], raw["root"]
    for member in raw["members"]:
        del member["backend"]  # the entry's
    raw["differences"] = [
        {"path": item.path, "values": dict(item.values), "declared": item.declared} for item in entry.differences
    ]
    return raw


def _location(raw: Mapping[str, Any], root: Path) -> Path:
    if "path" in raw:
        return Path(os.path.normpath(root.resolve() / raw["path"]))
    # An index may be older than this key: its files are relative to where they were run, as a rule beside the store.
    beside = _resolved(root.resolve().parent / raw["file"])
    return beside if beside.is_file() else _resolved(Path(raw["file"]))


def entry_from(key: str, raw: Mapping[str, Any], root: Path) -> Entry:
    """An entry of the index of the store in `root`.

    Raises `BadInput` where a name leads elsewhere, and `KeyError`, `TypeError`, `ValueError`, `AttributeError`
    or `OverflowError` for what is no entry.
    """
    names = [key, *(member["hash"] for member in raw["members"])]
    if not all(isinstance(name, str) and is_plain(name) for name in names):
        raise bad_input(f"the index names a file outside its folder: {key}", "delete index.json and run again")
    backend = raw.get("backend", Backend.SIM)
    older = {"place": place_of(Path(raw["file"])), "other_seeds": "-seeds-" in key}  # what older indexes lack
    made_here = {"identifier": key, "location": _location(raw, root), "root": _resolved(root), "command": ""}
    members = [{**member, "backend": backend} for member in raw["members"]]
    differences = [{**item, "values": item["values"].items()} for item in raw["differences"]]
    made: Entry = _as(Entry, {**older, **raw, **made_here, "members": members, "differences": differences})
    if not made.seeds:
        raise ValueError("there are no seeds")
    return replace(made, command=command_for(made, root))


@cache
def _hints(kind: Any) -> dict[str, Any]:
    """The types of a dataclass' fields: they are found by evaluating text, and an index has thousands of members."""
    return get_type_hints(kind)


def _as(kind: Any, raw: Any) -> Any:
    """What JSON has made lists and texts of: a dataclass, a tuple, or a plain value."""
    if is_dataclass(kind):
        hints = _hints(kind if isinstance(kind, type) else type(kind))
        return kind(**{name: _as(hints[name], raw[name]) for name in hints if name in raw})  # type: ignore[operator]
    if get_origin(kind) is tuple:
        *kinds, last = get_args(kind)
        kinds = [*kinds, last] if last is not Ellipsis else kinds * len(raw)
        return tuple(_as(one, item) for one, item in zip(kinds, raw, strict=True))
    return kind(raw)
