"""Which schemes and configurations have a value, in as few words as decide it."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING

from narrows.experiment.plans import ABSENT, SEPARATOR, short_names

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def whose(value_of: Mapping[str, str], plans: Mapping[str, Mapping[str, str]]) -> tuple[tuple[str, str], ...]:
    """Each value with those that have it, of a value for each plan by its case; absent ones are left out.

    `plans` says of each case its scheme, with the key "", and its values of the sweep's axes.
    """
    keys = list(dict.fromkeys(key for own in plans.values() for key in own))
    for count in range(1, len(keys) + 1):
        for chosen in combinations(keys, count):
            found: dict[tuple[str, ...], set[str]] = {}
            for case, value in value_of.items():
                found.setdefault(tuple(plans[case].get(key, ABSENT) for key in chosen), set()).add(value)
            if all(len(values) == 1 for values in found.values()):
                most = len({first for first, *_ in found})
                names = short_names(keys)
                groups: dict[str, list[tuple[str, ...]]] = {}
                for who, values in found.items():
                    groups.setdefault(next(iter(values)), []).append(who)
                return tuple(
                    (value, _who([names[key] for key in chosen], who, most))
                    for value, who in groups.items()
                    if value != ABSENT
                )
    return tuple((value, case) for case, value in value_of.items())


def _who(keys: Sequence[str], who: Sequence[tuple[str, ...]], most: int) -> str:
    """`red, qcn-20`; `buffering=input or output`; `buffering=input: red, qcn-20; buffering=output: all`.

    `most` is how many values the first key has.
    """
    first, *others = keys
    grouped: dict[str, list[str]] = {}
    for value, *rest in who:
        told = SEPARATOR.join(f"{key}={at}" for key, at in zip(others, rest, strict=True))
        grouped.setdefault(told, []).append(value)
    parts = []
    for told, values in grouped.items():
        text = f"{first}={' or '.join(values)}" if first else ", ".join(values)
        parts.append(f"{told}: {'all' if len(values) == most else text}" if told else text)
    return "; ".join(parts)
