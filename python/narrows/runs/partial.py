"""What can be shown of an experiment while its runs come in."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection

    from narrows.runs.index import Entry
    from narrows.runs.reservation import Key


def part_of(entry: Entry, there: Collection[Key]) -> Entry | None:
    """The experiment with the seeds that every plan has been run with; `None` where no run is there.

    Comparisons take a seed of all schemes: one that only some have would compare different traffic. Before any seed is
    complete it is the plans that have been run with the seed that most have.
    """
    runs = {(member.stored, seed) for member in entry.members for seed in entry.seeds}.intersection(there)
    if not runs:
        return None
    counts = Counter(seed for _, seed in runs)
    plans = len({member.stored for member in entry.members})
    if seeds := tuple(seed for seed in entry.seeds if counts[seed] == plans):
        return replace(entry, seeds=seeds)
    first = max(entry.seeds, key=lambda seed: counts[seed])
    members = tuple(member for member in entry.members if (member.stored, first) in runs)
    cases = {member.plan_case for member in members}
    differences = tuple(
        replace(item, values=tuple(value for value in item.values if value[0] in cases)) for item in entry.differences
    )
    return replace(entry, seeds=(first,), members=members, differences=differences)
