"""All scenarios as tables of Markdown, between the marks of a page that people write.

Scenarios are run at different times: one that is not judged from what is there keeps what the page says of it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, cast

from narrows import wording
from narrows.claims import scorecard
from narrows.claims.page import cells, filled
from narrows.fidelity import table
from narrows.fidelity.judge import UNITS, Word, summary_of, worst

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from narrows.fidelity.catalogue import Comparison, Scenario
    from narrows.fidelity.judge import ScenarioVerdict
    from narrows.fidelity.observed import Observed

MARK: Final = "table"
"""What the place in a page is called."""

JUDGED: Final = ("scenario", "scheme", *(table.heading(key) for key in UNITS), "verdict", "runs")
"""The first table's columns."""
VERDICT: Final = JUDGED.index("verdict")
COUNTED: Final = (
    "scenario",
    "scheme",
    "seeds",
    "port",
    "median queue, packets",
    "lost on the wire, packets",
    "completions",
)
"""The second's, of what is not judged."""


@dataclass(frozen=True)
class Part:
    """What a page says of a scenario."""

    judged: tuple[str, ...]
    """A row for each scheme, the scenario's name in the first."""
    remarks: tuple[str, ...] = ()
    """Items of the list below the table."""
    counted: tuple[str, ...] = ()
    """Rows of the second table."""

    @property
    def word(self) -> Word:
        """Its verdict."""
        return worst([cast("Word", cells(row)[VERDICT]) for row in self.judged])


def block(
    comparison: Comparison, verdicts: Sequence[ScenarioVerdict], *, quick: bool, kept: Mapping[str, Part] | None = None
) -> str:
    """The tables with their summary and remarks, without headings.

    Of a scenario that has not been run there is what `kept` has of it, by name.
    """
    kept = kept or {}
    parts: list[tuple[Scenario, Part]] = []
    for verdict in verdicts:
        held = None if verdict.arms else kept.get(verdict.scenario.name)
        parts.append((verdict.scenario, held or _part(verdict, quick=quick)))
    told = summary_of([(part.word, scenario.held_out) for scenario, part in parts])
    about = f"**{told}.** Simulator / kernel. {table.rules(comparison.tolerance)}"
    lines = [filled(about, indent=""), "", *_header(JUDGED), *(row for _, part in parts for row in part.judged)]
    if remarks := [remark for _, part in parts for remark in part.remarks]:
        lines += ["", *(filled(f"- {remark}") for remark in remarks)]
    if counted := [row for _, part in parts for row in part.counted]:
        lines += ["", "For information, simulator / kernel, means over seeds:", "", *_header(COUNTED), *counted]
    return "\n".join(lines)


def markdown(comparison: Comparison, verdicts: Sequence[ScenarioVerdict], *, quick: bool) -> str:
    """A page of its own."""
    title = f"# Simulator and kernel: {comparison.name}{' (quick runs)' if quick else ''}"
    again = f"`{table.command([comparison.name], quick=quick)}` runs what is missing and compares again."
    return f"{title}\n\n{again}\n\n{block(comparison, verdicts, quick=quick)}\n"


def read(comparison: Comparison, page: Path) -> dict[str, Part]:
    """What a page says of each scenario, by name; nothing of one whose table has other columns."""
    _, _, rest = page.read_text(encoding="utf-8").partition(f"<!-- {MARK} -->")
    text, _, _ = rest.partition(f"<!-- /{MARK} -->")
    found: dict[str, tuple[list[str], list[str], list[str]]] = {one.name: ([], [], []) for one in comparison.scenarios}
    name = ""
    for line in re.sub(r"\n +", " ", text).splitlines():
        row = cells(line) if line.startswith("|") else []
        if len(row) == len(JUDGED):
            name = row[0].partition(":")[0] or name
            if name in found:
                found[name][0].append(line)
        elif len(row) == len(COUNTED) and row[0] in found:
            found[row[0]][2].append(line)
        elif (remark := re.match(r"- (?P<remark>(?P<name>[\w-]+)[,:] .*)", line)) and remark["name"] in found:
            found[remark["name"]][1].append(remark["remark"])
    return {name: Part(*map(tuple, lists)) for name, lists in found.items() if lists[0]}


def _part(verdict: ScenarioVerdict, *, quick: bool) -> Part:
    scenario = verdict.scenario
    name = f"{scenario.name}: {scenario.about}"
    runs = f"{'quick; ' if quick else ''}{verdict.made_by}"
    judged = [] if verdict.arms else [_row([name, *[table.ABSENT] * (VERDICT - 1), verdict.word, ""])]
    counted = []
    for place, arm in enumerate(verdict.arms):
        first = place == 0
        numbers = [f"**{text}**" if outside else text for text, outside in table.cells(arm)]
        judged.append(_row([name if first else "", arm.arm, *numbers, arm.word, runs if first else ""]))
        if arm.sim is not None and arm.kernel is not None:
            pairs = [f"{one} / {other}" for one, other in zip(_numbers(arm.sim), _numbers(arm.kernel), strict=True)]
            counted.append(_row([scenario.name, arm.arm, str(len(arm.seeds)), arm.port or table.ABSENT, *pairs]))
    return Part(tuple(judged), tuple(table.remarks([verdict])), tuple(counted))


def _numbers(world: Observed) -> list[str]:
    return [wording.number(world.queue_packets), wording.number(world.lost), wording.whole(world.completions)]


def _header(columns: Sequence[str]) -> list[str]:
    return [_row(columns), "|" + "---|" * len(columns)]


def _row(texts: Iterable[str]) -> str:
    return f"| {' | '.join(scorecard.cell(text) for text in texts)} |"
