"""What schemes are and in what they differ, in tables that stay narrow with any number of configurations."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING, Final

from narrows.experiment import ABSENT, SEPARATOR
from narrows.runs.backends import AXIS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

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
    return [Setting(item.path, item.declared, whose(dict(item.values), members)) for item in differences]


def _labels(member: Member) -> dict[str, str]:
    return {"": member.arm, **{key: value for key, value in member.axes if key != AXIS}}


def whose(value_of: Mapping[str, str], members: Sequence[Member]) -> tuple[tuple[str, str], ...]:
    """Each value with those that have it, of a value for each plan by its case; absent ones are left out."""
    labels = {member.plan_case: _labels(member) for member in members}
    keys = list(dict.fromkeys(key for own in labels.values() for key in own))
    for count in range(1, len(keys) + 1):
        for chosen in combinations(keys, count):
            found: dict[tuple[str, ...], set[str]] = {}
            for case, value in value_of.items():
                found.setdefault(tuple(labels[case].get(key, ABSENT) for key in chosen), set()).add(value)
            if all(len(values) == 1 for values in found.values()):
                most = len({first for first, *_ in found})
                groups: dict[str, list[tuple[str, ...]]] = {}
                for who, values in found.items():
                    groups.setdefault(next(iter(values)), []).append(who)
                return tuple((value, _who(chosen, who, most)) for value, who in groups.items() if value != ABSENT)
    return tuple((value, case) for case, value in value_of.items())


def _who(keys: Sequence[str], who: Sequence[tuple[str, ...]], most: int) -> str:
    """`red, qcn-20`; `buffering=input or output`; `buffering=input: red, qcn-20; buffering=output: all`.

    `most` is how many values the first key has.
    """
    first, *others = keys
    grouped: dict[str, list[str]] = {}
    for value, *rest in who:
        told = SEPARATOR.join(f"{_last(key)}={at}" for key, at in zip(others, rest, strict=True))
        grouped.setdefault(told, []).append(value)
    parts = []
    for told, values in grouped.items():
        text = f"{_last(first)}={' or '.join(values)}" if first else ", ".join(values)
        parts.append(f"{told}: {'all' if len(values) == most else text}" if told else text)
    return "; ".join(parts)


def _last(key: str) -> str:
    return key.rpartition(".")[2]
