"""The same plans on several backends: each number beside the simulator's, and their ratio seed by seed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from narrows import wording
from narrows.measures.bottleneck import SAME_QUEUE, of_same_queue
from narrows.measures.stats import Estimate, estimate, geometric_ratio, paired
from narrows.report import headline
from narrows.report.headline import Quantity

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from narrows.frames import Frames
    from narrows.measures.stats import BySeed
    from narrows.runs.index import Entry


@dataclass(frozen=True)
class Beside:
    """One number of one scheme: how another backend's compares with the first's."""

    ratio: str
    """Other over first within a seed, geometric mean; `–` where one of them is zero or infinite, or has no value."""
    interval: str
    means: str
    """`59.1 → 59.5`, over the seeds that both have; nothing where neither has a value."""


@dataclass(frozen=True)
class Arm:
    """A scheme whatever ran it, with its cases on the two backends."""

    name: str
    first_case: str
    other_case: str
    cells: tuple[Beside, ...]
    """One for each column of the table."""


@dataclass(frozen=True)
class Table:
    """All schemes on two backends."""

    first: str
    other: str
    """What headings call the backends: `sim`, `guest`."""
    columns: tuple[Quantity, ...]
    """Those of the headline, then RTTs and the watched queue."""
    arms: tuple[Arm, ...]


def tables(entry: Entry, frames: Frames) -> list[Table]:
    """One for each backend beside the first; none where there is only one."""
    values = headline.values(frames, headline.columns(frames)) if entry.beside else {}
    columns = (*values, *(Quantity(title, "ms", name) for name, title in SAME_QUEUE.items()))
    return [
        Table(
            entry.parts[0].backend.value,
            part.backend.value,
            columns,
            tuple(_arms(entry, part, frames, values)),
        )
        for part in entry.beside[1:]
    ]


def _arms(entry: Entry, part: Entry, frames: Frames, values: Mapping[Quantity, Mapping[str, BySeed]]) -> Sequence[Arm]:
    cases = {(member.plan_case, member.backend): member.case for member in entry.members}
    first = entry.parts[0].backend
    made = []
    for name in dict.fromkeys(member.plan_case for member in entry.members):
        one, other = cases[name, first], cases[name, part.backend]
        pairs = [(by_case.get(one, {}), by_case.get(other, {})) for by_case in values.values()]
        pairs += of_same_queue((frames, one), (frames, other)).values()
        made.append(Arm(name, one, other, tuple(_beside(*pair) for pair in pairs)))
    return made


def _beside(one: BySeed, other: BySeed) -> Beside:
    if one and other:
        one, other = paired(one, other)
    found = geometric_ratio(other, one)
    ratio, interval = ("–", "") if found is None else (wording.number(found.mean), _interval(found))
    return Beside(ratio, interval, f"{_mean(one)} → {_mean(other)}" if one or other else "")


def _mean(values: BySeed) -> str:
    found = estimate(list(values.values()))
    return "–" if found is None else wording.number(found.mean)


def _interval(found: Estimate) -> str:
    if found.kind == "none":
        return ""
    return f"{wording.number(found.low)} – {wording.number(found.high)}"
