"""The verdicts as a table for people and as lines for programs."""

from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from rich.markup import escape
from rich.table import Table

from narrows import wording
from narrows.figures.caption import simulated_time
from narrows.measures.named import ALIASES, LANGUAGE, MEASURES, Measure
from narrows.measures.named import table as measures_table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from narrows.claims.catalogue import Claim, Paper
    from narrows.claims.judge import Part, Verdict, VerdictWord
    from narrows.measures.stats import Estimate
    from narrows.runs.freshness import Standing
    from narrows.runs.index import Entry

WORDS: Final[tuple[VerdictWord, ...]] = ("holds", "partly", "fails", "not-run")
_MARKS: Final = {"yes": "[green]✓[/]", "no": "[red]✗[/]", "overlaps": "[yellow]≈[/]", "unknown": "[dim]?[/]"}
_PLAIN_MARKS: Final = {"yes": "✓", "no": "✗", "overlaps": "≈", "unknown": "?"}
_STYLES: Final = {"holds": "green", "partly": "yellow", "fails": "bold red", "not-run": "dim"}

MARKS: Final = "✓ true, or in the accepted interval; ≈ overlaps it; ✗ neither; ? no value; · not judged."
"""What stands before each thing that was measured."""
READINGS: Final = (
    "Where a paper's text allows several set-ups, each is run. A claim's verdict is that under the reading which the "
    "text favours; those under the others stand beside it, and none of them counts."
)
MAX_LISTED: Final = 3
"""Of one claim so many of each outcome are listed: a sweep has dozens."""
TERMS: Final = (
    "Confidence (H high, M medium, L low) was given before any run: how clear a claim is, and how well it can be "
    "reproduced. A scheme is one of the alternatives compared, a controller with its settings; in a sweep "
    "a configuration is one value of each axis. A claim holds if the mean over seeds lies in the accepted interval, "
    "or every relation is true; partly if the interval over seeds overlaps it, or only some are true or were run; "
    "otherwise it fails. For what is not-run the reason is given. Marks: ✓ lies in it or is true, ≈ overlaps, "
    "✗ neither. Claims that a run can refute are counted apart from arithmetic, parameters, and checks that "
    "the experiment is configured as described, which tell nothing of a scheme."
)
RULES: Final = (
    "Judged by the mean over seeds: < and > strictly; <=, >= and 'is minimum' within 5 %; "
    "a rank with the slack that its claim states."
)


FAR: Final = 2.0
"""Where what is accepted has no upper end, more than so many times the stated value is told."""
REFUTABLE: Final = "that a run can refute"
OTHERS: Final = "arithmetic or set-up"


def counts(verdicts: Sequence[Verdict]) -> dict[VerdictWord, int]:
    """How many of each."""
    found = Counter(verdict.word for verdict in verdicts)
    return {word: found[word] for word in WORDS}


def table(verdicts: Sequence[Verdict], *, everything: bool = False) -> Table:
    """The claims that were judged; with `everything` also those that were not."""
    heading = f"what {stated_by(verdicts)}; below it what we measured, by our measures"
    made = Table("claim", "verdict", heading, box=None, header_style="dim")
    for verdict in verdicts:
        if verdict.word == "not-run" and not everything:
            continue
        claim = verdict.claim
        word = "\n".join(
            [
                _styled(verdict) + exceeding(*verdict.parts),
                *(f"[dim]{escape(one.reading)}:[/] {_styled(one)}" for one in verdict.others),
            ]
        )
        made.add_row(
            f"{escape(claim.identifier)}\n[dim]{escape(claim.item)}[/]",
            word,
            "\n".join(_story(verdict, everything=everything)),
        )
    return made


def _styled(verdict: Verdict) -> str:
    return f"[{_STYLES[verdict.word]}]{verdict.word}[/]"


def stated_by(verdicts: Sequence[Verdict]) -> str:
    """Who states what is judged; a folder's statements are all a paper's or all ours."""
    return "we state" if any(verdict.claim.ours for verdict in verdicts) else "the paper states"


def heading(paper: Paper) -> str:
    """What stands over a scorecard: that what follows is no paper's, where it is none."""
    return f"{paper.title}: our own statements" if paper.title else f"Claims of {paper.name}"


def things(verdicts: Sequence[Verdict]) -> str:
    """How many: `92 claims`, `9 statements of our own`."""
    if any(verdict.claim.ours for verdict in verdicts):
        return f"{wording.plural(len(verdicts), 'statement')} of our own"
    return wording.plural(len(verdicts), "claim")


def _story(verdict: Verdict, *, everything: bool) -> list[str]:
    claim = verdict.claim
    stated = f": {claim.expect} (accepted {accepted(claim)})"
    if claim.kind == "ordering":
        told = not claim.expect or {part.text for part in verdict.parts} <= {claim.expect, *claim.order}
        stated = "" if told else f": {claim.expect}"
    lines = [f"[bold]{escape(claim.metric)}[/]{escape(stated)}"]
    if verdict.word == "not-run":
        return [*lines, escape(verdict.reason)]
    parts = list(verdict.parts)
    found = Counter(part.outcome for part in parts)
    if not everything:
        parts = [part for own in found for part in [part for part in parts if part.outcome == own][:MAX_LISTED]]
    for part in sorted(parts, key=verdict.parts.index):
        shown = f" {interval(part.estimate)}" if part.estimate and claim.kind != "ordering" else ""
        found_there = part.detail + shown.removeprefix(" " + _mean(part)) + exceeding(part)
        lines.append(f"{_MARKS[part.outcome]} {escape(found_there)}")
    if not everything:
        more = ((own, count - MAX_LISTED) for own, count in found.items() if count > MAX_LISTED)
        lines += [f"{_MARKS[own]} [dim]and {count} more[/]" for own, count in more]
    lines += [f"· {escape(part.detail)}" for part in verdict.also]
    if verdict.missing:
        lines.append(f"– not run: {escape(', '.join(verdict.missing))}")
    return lines


def _mean(part: Part) -> str:
    return "" if part.estimate is None else _number(part.estimate.mean)


def by_kind(verdicts: Sequence[Verdict]) -> list[tuple[str, list[Verdict]]]:
    """What a run can refute, and arithmetic, parameters and checks of the set-up; kinds without any are left out."""
    rows = [(REFUTABLE, True), (OTHERS, False)]
    made = [(kind, [one for one in verdicts if one.claim.refutable == wanted]) for kind, wanted in rows]
    return [(kind, own) for kind, own in made if own]


def tally(verdicts: Sequence[Verdict]) -> list[tuple[str, str, dict[VerdictWord, int]]]:
    """How many of each verdict: of what a run can refute by confidence, H, M, L and all; of the others all."""
    made: list[tuple[str, str, dict[VerdictWord, int]]] = []
    for kind, own in by_kind(verdicts):
        grades = ("H", "M", "L") if kind == REFUTABLE else ()
        rows = [(grade, [one for one in own if one.claim.confidence == grade]) for grade in grades]
        made += [(kind, grade, counts(chosen)) for grade, chosen in (*rows, ("all", own)) if chosen]
    return made


def told(verdicts: Sequence[Verdict]) -> list[str]:
    """The headline, a line for each kind: `74 that a run can refute: 56 holds, 9 partly, 9 fails, 0 not-run`."""
    return [
        f"{len(own)} {kind}: {', '.join(f'{count} {word}' for word, count in counts(own).items())}"
        for kind, own in by_kind(verdicts)
    ]


def command(paper: Paper, *, quick: bool) -> str:
    """What makes the runs and the scorecard."""
    return f"narrows reproduce {paper.name}{' --quick' if quick else ''}"


def origin(there: Mapping[str, Standing], *, quick: bool) -> str:
    """From what the verdicts are, in a sentence: version, figures, seeds. `there` are the paper's figures by label."""
    mode, figures = "quick" if quick else "full", wording.plural(len(there), "figure")
    judged = {label: standing.entry for label, standing in there.items() if standing.entry and standing.counts}
    if not judged:
        return f"Judged without runs: of {figures} none has {mode} runs that count."
    version = ", ".join(sorted({entry.version for entry in judged.values()}))
    (usual, _), *_ = Counter(len(entry.seeds) for entry in judged.values()).most_common(1)
    others = [f"{label} with {len(entry.seeds)}" for label, entry in judged.items() if len(entry.seeds) != usual]
    but = f", but {', '.join(others)}" if others else ""
    return (
        f"Judged from {mode} runs of version {version}: "
        f"{len(judged)} of {figures}, with {wording.plural(usual, 'seed')} each{but}."
    )


def ran(entry: Entry) -> str:
    """What was run: `6 cases, 3 seeds; simulated: 40 s`."""
    cases, seeds = wording.plural(len(entry.members), "plan"), wording.plural(len(entry.seeds), "seed")
    return f"{cases}, {seeds}; simulated: {simulated_time(entry)}"


def used(verdicts: Sequence[Verdict]) -> list[Measure]:
    """The measures that these claims are made of, by the names that they have there."""
    texts = [part.text for verdict in verdicts for part in (*verdict.parts, *verdict.also)]
    texts += [text for verdict in verdicts for text in verdict.claim.order]
    words = {word for text in texts for word in re.findall(r"\w+", text)}
    called = {name: [name, *(alias for alias, own in ALIASES.items() if own == name)] for name in MEASURES}
    return [replace(found, name=word) for name, found in MEASURES.items() for word in called[name] if word in words]


def markdown(paper: Paper, verdicts: Sequence[Verdict], there: Mapping[str, Standing], *, quick: bool) -> str:
    """The scorecard as a page of Markdown: what was run, counts by confidence, every claim, the measures."""
    lines = [f"# {heading(paper)}{' (quick runs)' if quick else ''}", ""]
    again = f"`{command(paper, quick=quick)}` runs what is missing and judges again."
    lines += [f"{origin(there, quick=quick)} {again}", "", TERMS, ""]
    lines += ["| claims | confidence | " + " | ".join(WORDS) + " |", "|---|---|" + "---|" * len(WORDS)]
    for kind, grade, found in tally(verdicts):
        lines.append(f"| {kind} | {grade} | " + " | ".join(str(found[word]) for word in WORDS) + " |")
    lines += ["", RULES, "", "| claim | verdict | stated | accepted | measured |", "|---|---|---|---|---|"]
    for verdict in verdicts:
        claim = verdict.claim
        bounds = "" if claim.kind == "ordering" else accepted(claim)
        said = f"{claim.metric}: {claim.expect}" if claim.kind != "ordering" else "; ".join(claim.order)
        figures = ", ".join(paper.figures_of(claim))
        name = f"{claim.identifier} ({claim.confidence}), {claim.item}{f' [{figures}]' if figures else ''}"
        cells = (name, under(verdict), said, bounds, "; ".join(measured(verdict)))
        lines.append("| " + " | ".join(cell(text) for text in cells) + " |")
    if told := readings(paper):
        lines += ["", "## Readings", "", READINGS, "", *(f"- {text}" for text in told)]
    lines += ["", "## What was run", "", "| figure | runs |", "|---|---|"]
    for label, standing in there.items():
        lines.append(f"| {label} | {ran(standing.entry) if standing.entry and standing.counts else standing.reason} |")
    if chosen := used(verdicts):
        lines += ["", "## Measures", "", LANGUAGE, "", *measures_table(chosen)]
    return "\n".join(lines) + "\n"


def card(paper: Paper, verdicts: Sequence[Verdict], there: Mapping[str, Standing], *, quick: bool) -> dict[str, Any]:
    """The scorecard for a program."""
    return {
        "paper": paper.name,
        "title": paper.title,
        "quick": quick,
        "command": command(paper, quick=quick),
        "figures": [_figure(label, standing) for label, standing in there.items()],
        "measures": {found.name: {"unit": found.unit, "about": found.about} for found in used(verdicts)},
        "claims": [record(verdict) for verdict in verdicts],
    }


def _figure(label: str, standing: Standing) -> dict[str, Any]:
    known: dict[str, Any] = {"figure": label, "counts": standing.counts, "reason": standing.reason}
    if (entry := standing.entry) is None:
        return known
    ends_s = sorted({member.end_ns / 1e9 for member in entry.members})
    made = {"version": entry.version, "seeds": entry.seeds, "simulated_s": ends_s, "command": entry.command}
    return known | made | {"cases": len(entry.members)}


def measured(verdict: Verdict) -> list[str]:
    """What was measured for a claim, in sentences, each judged one with its mark; why not, where it was not."""
    if verdict.word == "not-run":
        return [verdict.reason]
    number_kind = verdict.claim.kind != "ordering"
    said = [
        f"{_PLAIN_MARKS[part.outcome]} {part.detail}"
        f"{_range(part.estimate) if part.estimate and number_kind else ''}{exceeding(part)}"
        for part in verdict.parts
    ]
    also = [f"not judged: {part.detail}" for part in verdict.also]
    missing = [f"not run: {', '.join(verdict.missing)}"] if verdict.missing else []
    return [*said, *also, *missing]


def exceeding(*parts: Part) -> str:
    """`; 20 times the stated value`, of several parts the largest; nothing where none is beyond it by much.

    An interval without an upper end accepts any gain: how far it is beyond the claim must be told beside the verdict.
    """
    times = max((found for part in parts if (found := _times_stated(part)) is not None), default=0.0)
    if times <= FAR:
        return ""
    return f"; {'up to ' if len(parts) > 1 else ''}{wording.number(times, 2)} times the stated value"


def _times_stated(part: Part) -> float | None:
    """How many times the stated value the mean is, where what is accepted has no upper end."""
    if not part.stated or part.estimate is None or not math.isfinite(part.estimate.mean):
        return None
    return part.estimate.mean / part.stated


def under(verdict: Verdict) -> str:
    """The verdict, and those under the other readings: `holds; one-way: fails`."""
    return "; ".join(
        [verdict.word + exceeding(*verdict.parts), *(f"{other.reading}: {other.word}" for other in verdict.others)]
    )


def readings(paper: Paper) -> list[str]:
    """The readings of a paper's figures in sentences, the favoured one first; equal ones of several figures once."""
    told: dict[str, list[str]] = {}
    for figure, several in paper.readings.items():
        ways = "; ".join(f"{name}: {about}" for name, about in several.about.items())
        told.setdefault(f"{ways}. The text favours {several.favoured}: {several.why}", []).append(figure)
    return [f"{', '.join(figures)}: {text}" for text, figures in told.items()]


def _range(estimate: Estimate) -> str:
    return "" if estimate.kind == "none" else f" ({_span(estimate)})"


def _span(estimate: Estimate) -> str:
    """`0.48–0.58`; with a word between, where a dash would be read as a sign."""
    between = " to " if estimate.low < 0 else "–"
    return f"{_number(estimate.low)}{between}{_number(estimate.high)}"


def cell(text: str) -> str:
    """A cell of a table of Markdown."""
    return text.replace("|", "\\|").replace("\n", " ")


def accepted(claim: Claim) -> str:
    """The interval in which a value is accepted, `0.60–0.85`, `at least 2`, `at most 5`; of several values, each's."""
    return ", ".join(_bounds(*each) for each in claim.accept_each or (claim.accept or (-math.inf, math.inf),))


def _bounds(low: float, high: float) -> str:
    if math.isinf(low) and math.isinf(high):
        return "any value"
    if math.isinf(high):
        return f"at least {low:g}"
    if math.isinf(low):
        return f"at most {high:g}"
    if "e" in f"{low:g}{high:g}":
        return f"{low:g} to {high:g}"  # a dash would read as one more sign
    places = max(_places(low), _places(high))
    return f"{low:.{places}f}{' to ' if low < 0 else '–'}{high:.{places}f}"


def _places(value: float) -> int:
    """Decimals that a bound is written with; two where it has any."""
    decimals = len(f"{value:g}".partition(".")[2])
    return max(2, decimals) if decimals else 0


def interval(estimate: Estimate | None) -> str:
    """`0.53 (0.48–0.58)`."""
    if estimate is None:
        return "–"
    if estimate.kind == "none":
        return _number(estimate.mean)
    return f"{_number(estimate.mean)} ({_span(estimate)})"


def record(verdict: Verdict) -> dict[str, Any]:
    """One verdict for a program; infinities are null."""
    claim = verdict.claim
    return {
        "id": claim.identifier,
        "item": claim.item,
        "ours": claim.ours,
        "confidence": claim.confidence,
        "refutable": claim.refutable,
        "metric": claim.metric,
        "expect": claim.expect,
        "accept": [_finite(bound) for bound in claim.accept] if claim.accept else None,
        "accept_each": [[_finite(bound) for bound in each] for each in claim.accept_each],
        "verdict": verdict.word,
        "reason": verdict.reason,
        "quick": verdict.quick,
        "reading": verdict.reading,
        **_estimate(verdict.estimate),
        "parts": [_part(part) for part in verdict.parts],
        "also": [_part(part) for part in verdict.also],
        "other_readings": [
            {
                "reading": other.reading,
                "verdict": other.word,
                "reason": other.reason,
                **_estimate(other.estimate),
                "parts": [_part(part) for part in other.parts],
            }
            for other in verdict.others
        ],
    }


def _part(part: Part) -> dict[str, Any]:
    told = {"text": part.text, "outcome": part.outcome, "detail": part.detail, "times_stated": _times_stated(part)}
    return told | _estimate(part.estimate)


def _estimate(estimate: Estimate | None) -> dict[str, Any]:
    if estimate is None:
        return {"value": None, "low": None, "high": None, "interval": None, "seeds": 0}
    return {
        "value": _finite(estimate.mean),
        "low": _finite(estimate.low),
        "high": _finite(estimate.high),
        "interval": estimate.kind,
        "seeds": estimate.seeds,
    }


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _number(value: float) -> str:
    return wording.number(value)
