"""Plans: what an experiment expands into, what they are called, and in what they differ."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from narrows.runs.backends import AXIS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from narrows.experiment.body import Body
    from narrows.experiment.summary import Summary

MAX_NAME = 200
"""Characters of what names a file or folder of ours; file systems take 255 bytes, endings and prefixes included."""
_PLAIN = re.compile(rf"[0-9A-Za-z_][0-9A-Za-z._+@-]{{0,{MAX_NAME - 1}}}")
_NO_LABELS: dict[str, Any] = {"experiment": "", "arm": "", "axes": (), "declared": ()}
_PICOSECONDS_PER_NANOSECOND = 1000

ABSENT = "–"
"""Value of a setting that a scheme does not have."""

SEPARATOR = " · "
"""Between the parts of a case's name."""

Pairs = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class ControllerUse:
    """Which controller a traffic entry runs, with which parameters, as people write them."""

    traffic: str
    name: str
    ecn: bool
    parameters: Pairs


@dataclass(frozen=True)
class Plan:
    """One network, one traffic, one set of controllers; with a seed it is a run."""

    hash: str
    """Names the results. Labels are not part of it, so that figures share runs."""
    version: str
    """Of the simulator's results: its engine, and the components that the plan uses."""
    arm: str
    axes: Pairs
    declared: Pairs
    body: Body
    """What the simulator is given."""
    draws: bool
    """Whether it may draw random numbers; where it does not, every seed gives the same results."""
    controllers: tuple[ControllerUse, ...]
    """One per traffic entry, in the order of the file."""
    summary: Summary

    @property
    def case(self) -> str:
        """What a chart calls it: the scheme, and the values of the sweep's axes if there are any."""
        return case_name(self.arm, self.axes)

    @property
    def end_ns(self) -> int:
        """No flow starts at or after this, simulated ns."""
        return self.body["schedule"]["end"] // _PICOSECONDS_PER_NANOSECOND

    @property
    def warmup_ns(self) -> int:
        """Flows that start before this do not count, simulated ns."""
        return self.body["schedule"]["warmup"] // _PICOSECONDS_PER_NANOSECOND

    @property
    def unlabelled(self) -> dict[str, Any]:
        """The body without its labels: the same for every experiment that shares the run."""
        return {key: value for key, value in self.body.items() if key not in _NO_LABELS}


@dataclass(frozen=True)
class Difference:
    """A setting whose value is not the same in all schemes."""

    path: str
    """As an experiment writes it; `traffic.web/*` is all traffic of the entry `web`."""
    values: tuple[tuple[str, str], ...]
    """(case, value), in the order of the file."""
    declared: bool
    """Whether the schemes that differ say so."""

    @property
    def distinct(self) -> frozenset[str]:
        """Its values, without the schemes that have no such thing."""
        return frozenset(value for _, value in self.values if value != ABSENT)


def plan_from(raw: Mapping[str, Any]) -> Plan:
    """A plan as the native module expands it."""
    name = str(raw["hash"])
    assert is_plain(name), "a plan's hash names a folder"
    return Plan(
        hash=name,
        version=str(raw["version"]),
        arm=str(raw["arm"]),
        axes=_pairs(raw["axes"]),
        declared=_pairs(raw["declared"]),
        body=raw["plan"],
        draws=bool(raw["draws"]),
        controllers=tuple(
            ControllerUse(use["traffic"], use["name"], use["ecn"], _pairs(use["parameters"]))
            for use in raw["controllers"]
        ),
        summary=raw["summary"],
    )


def _pairs(raw: Sequence[Sequence[Any]]) -> Pairs:
    return tuple((str(key), str(value)) for key, value in raw)


def difference_from(raw: Mapping[str, Any], plans: Sequence[Plan]) -> Difference:
    """A difference as the native module tells it: a value for each plan."""
    values = zip(plans, raw["values"], strict=True)
    return Difference(
        path=str(raw["path"]),
        values=tuple((plan.case, str(value)) for plan, value in values),
        declared=bool(raw["declared"]),
    )


def labelled(unlabelled: Mapping[str, Any]) -> dict[str, Any]:
    """A body that a run keeps, as the native module takes one: its labels are empty."""
    return _NO_LABELS | dict(unlabelled)


def apart(differences: Sequence[Difference]) -> tuple[list[Difference], list[Difference]]:
    """Differences to be shown, and parameters on which all schemes with that controller agree, which fill pages."""
    own = [item for item in differences if item.declared and item.path.startswith("cc.") and len(item.distinct) == 1]
    return [item for item in differences if item not in own], own


def case_name(arm: str, axes: Sequence[tuple[str, str]]) -> str:
    """`dctcp`, or `dctcp · mark-at=20pkt` in a sweep: axes by the last part of their path, if that tells them apart.

    Where several backends stand side by side, theirs comes last and by its value alone: `dctcp · guest`.
    """
    names = short_names([key for key, _ in axes])
    values = [value if key == AXIS else f"{names[key]}={value}" for key, value in axes]
    return SEPARATOR.join([arm, *values])


def short_names(keys: Sequence[str]) -> dict[str, str]:
    """Each path by its last part, if that tells all of them apart; else the paths themselves."""
    last = [key.rpartition(".")[2] for key in keys]
    return dict(zip(keys, last if len(set(last)) == len(last) else keys, strict=True))


def is_plain(name: str) -> bool:
    """Whether a text may name a file or folder of ours: it leads nowhere else."""
    return _PLAIN.fullmatch(name) is not None
