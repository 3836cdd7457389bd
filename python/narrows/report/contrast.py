"""What schemes are and in what they differ, in tables that stay narrow with any number of configurations."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from narrows.experiment.whose import whose
from narrows.runs.backends import AXIS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from narrows.experiment import ControllerUse, Difference, Pairs
    from narrows.runs.index import Entry, Member

MAX_COLUMNS: Final = 6
"""Cases that have a column of their own in the table of differences."""


@dataclass(frozen=True)
class Scheme:
    """A scheme in all its configurations."""

    name: str
    cases: tuple[str, ...]
    """Of every backend."""
    controllers: tuple[tuple[ControllerUse, tuple[str, ...]], ...]
    """Each with the traffic that it serves where there are several for one configuration."""
    declared: Pairs


@dataclass(frozen=True)
class Setting:
    """A setting with its values, and who has which."""

    path: str
    declared: bool
    values: tuple[tuple[str, str], ...]
    """A value and, in words, whose it is."""


def schemes(members: Sequence[Member]) -> list[Scheme]:
    """Each once, if all its configurations declare the same; else once for each."""
    found: dict[tuple[str, Pairs], list[Member]] = {}
    for member in members:
        found.setdefault((member.arm, member.declared), []).append(member)
    names = [arm for arm, _ in found]
    return [
        Scheme(
            arm if names.count(arm) == 1 else own[0].plan_case,
            tuple(member.case for member in own),
            _controllers(own),
            declared,
        )
        for (arm, declared), own in found.items()
    ]


def _controllers(members: Sequence[Member]) -> tuple[tuple[ControllerUse, tuple[str, ...]], ...]:
    served: dict[ControllerUse, dict[str, None]] = {}
    several = False
    for member in members:
        own = [replace(use, traffic="") for use in member.controllers]
        several |= len(set(own)) > 1
        for use, named in zip(own, member.controllers, strict=True):
            served.setdefault(use, {})[named.traffic] = None
    return tuple((use, tuple(traffic) if several else ()) for use, traffic in served.items())


def axes(entry: Entry) -> list[tuple[str, str]]:
    """The sweep's axes with their values, in the order of the file."""
    found: dict[str, dict[str, None]] = {}
    for member in entry.members:
        for key, value in member.axes:
            if key != AXIS:
                found.setdefault(key, {})[value] = None
    return [(key, ", ".join(values)) for key, values in found.items()]


def by_value(differences: Sequence[Difference], members: Sequence[Member]) -> list[Setting]:
    """Each setting's values with those that have them: told by scheme and axes, as few of them as decide."""
    return [Setting(item.path, item.declared, whose(dict(item.values), labels(members))) for item in differences]


def labels(members: Sequence[Member]) -> dict[str, dict[str, str]]:
    """Of each plan by its case, what `whose` names it by."""
    return {
        member.plan_case: {"": member.arm, **{key: value for key, value in member.axes if key != AXIS}}
        for member in members
    }
