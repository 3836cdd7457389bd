"""Measured values of a figure as tables of Markdown, between the marks of a page that people write.

A mark names the figure, the measures and, if not all are wanted, the schemes and configurations, by patterns:

    <!-- results of gemini/fig13: fct_small_mean fct_mean; only *both-ways -->
    <!-- /results -->

Of one measure in a sweep the table has a column for each value of the last axis, of several a column for each measure.
`fct_mean/web` is the measure of one traffic's flows.
"""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Final

from narrows import atomic, marked, wording
from narrows.configurations import Configurations
from narrows.errors import bad_input
from narrows.measures.named import Measure, measure_called, of_traffic, unknown
from narrows.measures.stats import ENOUGH_SEEDS, estimate

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from narrows.frames import Frames
    from narrows.results import Results

_PLACE: Final = re.compile(
    r"(?P<first><!-- results of (?P<figure>[\w/-]+): (?P<measures>[\w\s/-]+?)(?:;\sonly (?P<only>[^;]+?))? -->\n)"
    r"(?P<content>.*?)(?P<last>^<!-- /results -->$)",
    re.DOTALL | re.MULTILINE,
)
_NAMED: Final = "name them as `narrows show` does, or by a pattern, such as *both-ways"
_EXACT: Final = 1e-3
"""Intervals narrower than this share of the mean say no more than its three digits."""


def figures(text: str) -> set[str]:
    """The figures of which a page has a place for results. Raises `BadInput` where a measure does not exist."""
    found = list(_PLACE.finditer(text))
    for place in found:
        for asked in place["measures"].split():
            _measure(asked)
    return {place["figure"] for place in found}


def write(page: Path, figure: str, results: Results) -> None:
    """Fills the places for a figure's results. Raises `BadInput` where a pattern matches nothing."""
    text = marked.read(page)
    made = _PLACE.sub(
        lambda place: (
            place[0] if place["figure"] != figure else place["first"] + _block(place, results) + place["last"]
        ),
        text,
    )
    atomic.write_text(page, made)


def _block(place: re.Match[str], results: Results) -> str:
    chosen = results
    if place["only"]:
        patterns = place["only"].split()
        cases = [member.case for member in results.entry.members]
        kept = [case for case in cases if any(fnmatchcase(case, pattern) for pattern in patterns)]
        if not kept:
            raise bad_input(f"no scheme or configuration of {place['figure']} matches {place['only']}", _NAMED)
        chosen = results.only(kept)
    measures = place["measures"].split()
    lines = _pivoted(chosen, measures[0]) if len(measures) == 1 and chosen.frames.axes else _plain(chosen, measures)
    return "\n".join(["", *lines, "", _made(chosen), ""])


def _plain(results: Results, measures: Sequence[str]) -> list[str]:
    """A row for each case, a column for each measure."""
    frames = results.frames
    header = ["scheme", *map(_title, measures)]
    rows = [[case, *(_cell(_by_seed(frames, case, asked)) for asked in measures)] for case in frames.cases]
    return _table(header, rows)


def _pivoted(results: Results, measure: str) -> list[str]:
    """A row for each scheme and value of the axes but the last, a column for each value of the last."""
    frames = results.frames
    sweep = Configurations.of(frames)
    *_, axis = sweep.axes
    cells: dict[str, dict[str, str]] = {}
    for case, (scheme, point) in sweep.cases.items():
        *others, value = point
        row = " · ".join([scheme, *(each for each in others if each is not None)])
        columns = sweep.values[axis] if value is None else (value,)
        cells.setdefault(row, {}).update(dict.fromkeys(columns, _cell(_by_seed(frames, case, measure))))
    columns = sweep.values[axis]
    header = [f"{_title(measure)} by {axis.rpartition('.')[2]}", *columns]
    return _table(header, [[row, *(own.get(column, "–") for column in columns)] for row, own in cells.items()])


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    lines = [header, ["---"] * len(header), *rows]
    return ["| " + " | ".join(text.replace("|", "\\|") for text in line) + " |" for line in lines]


def _measure(asked: str) -> tuple[Measure, str]:
    """A measure, and the traffic of which it is to be, if of one only."""
    name, _, traffic = asked.partition("/")
    found = measure_called(name)
    if found is None:
        raise unknown(name)
    return found, traffic


def _by_seed(frames: Frames, case: str, asked: str) -> Mapping[int, float]:
    found, traffic = _measure(asked)
    return of_traffic(frames, case, found.name, traffic)


def _title(asked: str) -> str:
    """`fct_mean, ms`, or `fct_mean of web, ms`."""
    found, traffic = _measure(asked)
    name = f"{found.name} of {traffic}" if traffic else found.name
    return f"{name}, {found.unit}" if found.unit else name


def _cell(by_seed: Mapping[int, float]) -> str:
    """The mean over seeds and, where three digits do not hold it, its interval."""
    found = estimate(list(by_seed.values()))
    if found is None:
        return "–"
    if found.kind == "none" or found.high - found.low <= _EXACT * abs(found.mean):
        return wording.number(found.mean)
    # A share of packets is not below 0, wherever its interval on the linear scale begins.
    low = max(0.0, found.low) if min(by_seed.values()) >= 0 else found.low
    return f"{wording.number(found.mean)} ({wording.number(low)} to {wording.number(found.high)})"


def _made(results: Results) -> str:
    """What the numbers are, and of which runs."""
    entry = results.entry
    seeds = wording.plural(len(entry.seeds), "seed")
    which = "95 % interval" if len(entry.seeds) >= ENOUGH_SEEDS else "smallest and largest"
    length = "quick" if entry.quick else "full"
    return f"Mean over {seeds} ({which}), {length} runs, version {entry.version}."
