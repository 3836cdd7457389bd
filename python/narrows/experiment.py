"""An experiment as the lab sees it: plans × seeds, and what differs between the arms."""

from __future__ import annotations

import hashlib
import itertools
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from narrows import native
from narrows.backends import AXIS, Backend
from narrows.errors import bad_input
from narrows.randomness import may_draw

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_PLAIN = re.compile(r"[0-9A-Za-z_][0-9A-Za-z._+@-]{0,199}")
_LABELS = ("experiment", "arm", "axes", "declared")
_PICOSECONDS_PER_NANOSECOND = 1000

FILE = "experiment.toml"
"""What the experiment file of a figure is called."""
ABSENT = "–"
"""Value of a setting that an arm does not have."""

SEPARATOR = " · "
"""Between the parts of a case's name."""

Pairs = tuple[tuple[str, str], ...]
Seeds = int | str | Iterable[int]
"""Seeds as a caller may write them: `3`, `"1..10"`, `range(1, 11)`, `[1, 5, 9]`."""

MAX_SEEDS = 10_000
"""Seeds of one experiment."""
_MAX_SEED = 2**63 - 1
_RANGE = re.compile(r"([0-9]{1,19})\.\.=?([0-9]{1,19})")


@dataclass(frozen=True)
class Plan:
    """One network, one traffic, one set of controllers; with a seed it is a run."""

    hash: str
    """Names the results. Labels are not part of it, so that figures share runs."""
    arm: str
    axes: Pairs
    declared: Pairs
    body: Mapping[str, Any]
    """What the simulator is given."""
    summary: Mapping[str, Any]

    @property
    def case(self) -> str:
        """What a chart calls it: the arm, and the values of the sweep's axes if there are any."""
        return case_name(self.arm, self.axes)

    @property
    def end_ns(self) -> int:
        """No flow starts at or after this, simulated ns."""
        return self._schedule("end")

    @property
    def warmup_ns(self) -> int:
        """Flows that start before this do not count, simulated ns."""
        return self._schedule("warmup")

    @property
    def unlabelled(self) -> dict[str, Any]:
        """The body without its labels: the same for every experiment that shares the run."""
        return {key: value for key, value in self.body.items() if key not in _LABELS}

    def _schedule(self, key: str) -> int:
        return int(self.body["schedule"][key]) // _PICOSECONDS_PER_NANOSECOND


@dataclass(frozen=True)
class Difference:
    """A setting whose value is not the same in all arms."""

    path: str
    values: tuple[tuple[str, str], ...]
    """(case, value), in the order of the file."""
    declared: bool
    """Whether the arms that differ say so."""

    @property
    def distinct(self) -> frozenset[str]:
        """Its values, without the arms that have no such thing."""
        return frozenset(value for _, value in self.values if value != ABSENT)


@dataclass(frozen=True)
class Experiment:
    """An experiment file, expanded."""

    name: str
    title: str
    seeds: tuple[int, ...]
    plans: tuple[Plan, ...]
    differences: tuple[Difference, ...]
    file: Path
    quick: bool
    sets: Pairs
    other_seeds: bool = False
    """Whether the seeds are not the file's."""
    backend: Backend = Backend.SIM
    """What runs it."""
    warnings: tuple[str, ...] = ()
    """What may not be as meant, in sentences."""

    @property
    def remarks(self) -> tuple[str, ...]:
        """The warnings, and which plans give the same results with every seed."""
        fixed = [plan.case for plan in self.plans if not may_draw(plan.body)] if len(self.seeds) > 1 else []
        if not fixed:
            return self.warnings
        which = "these plans" if len(fixed) == len(self.plans) else ", ".join(fixed)
        same = f"nothing in {which} is random: all {len(self.seeds)} seeds give the same results; one seed is enough"
        return (*self.warnings, same)

    @property
    def place(self) -> str:
        """The figure that it is the experiment of, wherever one stands: `gemini/fig13`; nothing for any other file."""
        return place_of(self.file.resolve())

    @property
    def identifier(self) -> str:
        """What `compare` and `report` call its results; other settings, seeds or backends are another identifier."""
        seeds = self.seeds if self.other_seeds else ()
        return self.backend.named(identifier(self.name, quick=self.quick, sets=self.sets, seeds=seeds))


def expand(
    file: str | Path,
    *,
    sets: Sequence[tuple[str, str]] = (),
    quick: bool = False,
    seeds: Seeds | None = None,
    backend: Backend = Backend.SIM,
) -> Experiment:
    """Reads an experiment file, for this backend: its plans are the same for all. Raises `BadInput`."""
    raw = native.expand(str(file), sets=sets, quick=quick, seeds=None)
    plans = tuple(_plan(plan) for plan in raw["plans"])
    own = tuple(int(seed) for seed in raw["seeds"])
    chosen = own if seeds is None else chosen_seeds(seeds)
    return Experiment(
        name=str(raw["name"]),
        title=str(raw.get("title") or raw["name"]),
        seeds=chosen,
        plans=plans,
        differences=tuple(_difference(item, plans) for item in raw["differences"]),
        file=_shortest(Path(file)),
        quick=quick,
        sets=tuple((key, value) for key, value in sets),
        other_seeds=chosen != own,
        warnings=tuple(_warning(item) for item in raw.get("warnings") or ()),
        backend=backend,
    )


def _warning(item: Mapping[str, Any]) -> str:
    """The schemes that it is about if not all, what may not be meant, and what to do about it."""
    schemes = ", ".join(item["schemes"])
    return f"{schemes}: {item['text']}; {item['help']}" if schemes else f"{item['text']}; {item['help']}"


def chosen_seeds(seeds: Seeds) -> tuple[int, ...]:
    """Seeds from a number, numbers, or a text: `3`, `1..10` with the last included, `1,5,9`. Raises `BadInput`."""
    help_text = f"give a range such as 1..10 (both included) or different numbers such as 1,5,9; at most {MAX_SEEDS}"
    if isinstance(seeds, str):
        if (ends := _RANGE.fullmatch(seeds.strip())) is not None:
            first, last = int(ends[1]), int(ends[2])
            numbers: Sequence[object] = range(first, min(last, first + MAX_SEEDS) + 1)
        else:
            texts = [text.strip() for text in seeds.split(",")]
            numbers = [int(text) if text.isdecimal() and len(text) < 20 else text for text in texts]
    elif isinstance(seeds, int):
        numbers = [seeds]
    else:
        try:
            numbers = list(itertools.islice(seeds, MAX_SEEDS + 1))
        except TypeError:
            raise bad_input(f"seeds cannot be {seeds!r}", help_text) from None
    found = tuple(it for it in numbers if isinstance(it, int) and not isinstance(it, bool) and 0 <= it <= _MAX_SEED)
    if len(found) != len(numbers) or not 0 < len(set(found)) == len(found) <= MAX_SEEDS:
        raise bad_input(f"{seeds if isinstance(seeds, str) else repr(seeds)} names no seeds", help_text)
    return found


def seeds_text(seeds: Sequence[int]) -> str:
    """`1..10` or `1,5,9`, as `chosen_seeds` takes it."""
    if list(seeds) == list(range(seeds[0], seeds[-1] + 1)):
        return f"{seeds[0]}..{seeds[-1]}"
    return ",".join(map(str, seeds))


def place_of(file: Path) -> str:
    """`gemini/fig13` of `…/gemini/fig13/experiment.toml`; nothing where the path does not say."""
    folder = file.parent
    return f"{folder.parent.name}/{folder.name}" if file.name == FILE and folder.parent.name else ""


def _shortest(path: Path) -> Path:
    """Relative to the working directory where it lies below it, so that results name no machine's paths."""
    return path.relative_to(Path.cwd()) if path.is_absolute() and path.is_relative_to(Path.cwd()) else path


def _plan(raw: Mapping[str, Any]) -> Plan:
    name = str(raw["hash"])
    assert is_plain(name), "a plan's hash names a folder"
    return Plan(
        hash=name,
        arm=str(raw["arm"]),
        axes=_pairs(raw["axes"]),
        declared=_pairs(raw["declared"]),
        body=raw["plan"],
        summary=raw.get("summary") or {},
    )


def _pairs(raw: Sequence[Sequence[Any]]) -> Pairs:
    return tuple((str(key), str(value)) for key, value in raw)


def _difference(raw: Mapping[str, Any], plans: Sequence[Plan]) -> Difference:
    values = zip(plans, raw["values"], strict=True)
    return Difference(
        path=str(raw["path"]),
        values=tuple((plan.case, str(value)) for plan, value in values),
        declared=bool(raw["declared"]),
    )


def apart(differences: Sequence[Difference]) -> tuple[list[Difference], list[Difference]]:
    """Differences to be shown, and parameters on which all arms with that controller agree, which fill pages."""
    own = [item for item in differences if item.declared and item.path.startswith("cc.") and len(item.distinct) == 1]
    return [item for item in differences if item not in own], own


def case_name(arm: str, axes: Sequence[tuple[str, str]]) -> str:
    """`dctcp`, or `dctcp · mark-at=20pkt` in a sweep: axes by the last part of their path, if that tells them apart.

    Where several backends stand side by side, theirs comes last and by its value alone: `dctcp · guest`.
    """
    last = [key.rpartition(".")[2] for key, _ in axes]
    names = last if len(set(last)) == len(last) else [key for key, _ in axes]
    values = [value if key == AXIS else f"{name}={value}" for name, (key, value) in zip(names, axes, strict=True)]
    return SEPARATOR.join([arm, *values])


def is_plain(name: str) -> bool:
    """Whether a text may name a file or folder of ours: it leads nowhere else."""
    return _PLAIN.fullmatch(name) is not None


def identifier(name: str, *, quick: bool, sets: Sequence[tuple[str, str]] = (), seeds: Sequence[int] = ()) -> str:
    """A file name's worth of the experiment's name; quick runs, other seeds and overridden settings are told apart."""
    text = re.sub(r"[^0-9A-Za-z._]+", "-", name).strip("-.")[:120] or "experiment"
    if quick:
        text += "-quick"
    if seeds:
        listed = seeds_text(seeds).replace("..", "-").replace(",", "_")
        text += f"-seeds-{listed if len(listed) <= 40 else hashlib.sha256(listed.encode()).hexdigest()[:6]}"
    if sets:
        text += "+" + hashlib.sha256(json.dumps(sorted(sets)).encode()).hexdigest()[:6]
    return text
