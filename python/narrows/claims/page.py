"""A paper's claims as a table of Markdown, between the marks of a page that people write.

Figures are run at different times: a claim that is not judged from what is there keeps its row.
"""

from __future__ import annotations

import re
import textwrap
from collections import Counter
from typing import TYPE_CHECKING, Final

from narrows.claims import causes, scorecard
from narrows.measures.named import ALIASES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from narrows.claims.catalogue import Claim, Paper
    from narrows.claims.judge import Verdict
    from narrows.runs.freshness import Standing

HEADER: Final = (
    "| claim | stated | accepted | measured | verdict | other readings | class | runs |",
    "|---|---|---|---|---|---|---|---|",
)
VERDICT: Final = 4
CLASS: Final = 6
"""Their columns."""
_ROW: Final = re.compile(r"^\| (?P<name>[\w-]+) \([HML]\), .*$", re.MULTILINE)
NOT_JUDGED: Final = "not judged"
"""In the place of a verdict."""
OPEN: Final = "open"
"""In the place of a class, where `causes.toml` names no cause."""
SHORT: Final = ("partly", "fails")
"""Verdicts that have a cause."""


def mark(paper: Paper) -> str:
    """What the places in a page are called."""
    return f"claims of {paper.name}"


def rows(text: str) -> dict[str, str]:
    """The rows of a table, by claim."""
    return {found["name"]: found[0] for found in _ROW.finditer(text)}


def table(paper: Paper, verdicts: Sequence[Verdict], there: Mapping[str, Standing], page: Path) -> str:
    """What has been judged and the page's own rows of what has not; above it how many hold, below why others do not."""
    found = rows(page.read_text(encoding="utf-8"))
    why = causes.read(paper.folder)
    made: list[str] = []
    for verdict in verdicts:
        name = verdict.claim.identifier
        keeps = not _is_judged(verdict) and name in found and _was_judged(found[name], verdict.claim)
        cause = why.get(name)
        made.append(_kept(found[name], verdict.claim, cause) if keeps else _row(paper, verdict, there, cause))
    claims = [verdict.claim for verdict in verdicts]
    told = reasons({claim.identifier: cells(row)[VERDICT] for claim, row in zip(claims, made, strict=True)}, why)
    return "\n".join([*counts(claims, made), "", *HEADER, *made, *told, *readings(paper)])


def readings(paper: Paper) -> list[str]:
    """A list of the set-ups that the paper's text allows; nothing where it allows one."""
    ways = [filled(f"- {text}.") for text in scorecard.readings(paper)]
    intro = filled(
        "**Readings**: where the text allows several set-ups. A verdict is of the reading that the text favours; those "
        "of the others stand beside it.",
        indent="",
    )
    return ["", intro, "", *ways] if ways else []


def counts(claims: Sequence[Claim], made: Sequence[str]) -> list[str]:
    """A table of how many of the rows hold: by confidence those that a run can refute, and the others together."""
    found: Counter[tuple[str, str, str]] = Counter()
    for claim, row in zip(claims, made, strict=True):
        kind, grade = (scorecard.REFUTABLE, claim.confidence) if claim.refutable else (scorecard.OTHERS, "all")
        found[kind, grade, cells(row)[VERDICT]] += 1
    words = [*(word for word in scorecard.WORDS if word != "not-run"), NOT_JUDGED]
    groups = [(scorecard.REFUTABLE, grade) for grade in "HML"] + [(scorecard.OTHERS, "all")]
    lines = [f"| claims | confidence | {' | '.join(words)} |", f"|---|---|{'---|' * len(words)}"]
    for kind, grade in groups:
        if any(numbers := [found[kind, grade, word] for word in words]):
            lines.append(f"| {kind} | {grade} | {' | '.join(map(str, numbers))} |")
    return lines


def reasons(words: Mapping[str, str], why: Mapping[str, causes.Cause]) -> list[str]:
    """A list of the causes of what does not hold, by class; `words` are the verdicts by claim."""
    named: dict[causes.Cause, list[str]] = {}
    for name, word in words.items():
        if word in SHORT and name in why:
            named.setdefault(why[name], []).append(name)
    lines: list[str] = []
    for kind, meaning in causes.CLASSES.items():
        own = {cause: names for cause, names in named.items() if cause.kind == kind}
        if own:
            lines += ["", filled(f"**{kind.capitalize()}**: {meaning}.", indent=""), ""]
            lines += [filled(f"- {', '.join(names)}: {cause.about}") for cause, names in own.items()]
    return lines


def filled(item: str, *, indent: str = "  ") -> str:
    """An item of a list in lines of 120 characters; those after the first begin with `indent`."""
    return textwrap.fill(item, 120, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def cells(row: str) -> list[str]:
    """The cells of a row."""
    return [cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", row)[1:-1]]


def _is_judged(verdict: Verdict) -> bool:
    """Whether all runs that the claim is about are there."""
    return verdict.word != "not-run" and not verdict.missing


def _row(paper: Paper, verdict: Verdict, there: Mapping[str, Standing], cause: causes.Cause | None) -> str:
    claim = verdict.claim
    figures = paper.figures_of(claim)
    judged = _is_judged(verdict)
    lacking = f"not run yet: {', '.join(verdict.missing)}" if verdict.missing else verdict.reason
    made = (
        *stated(claim),
        _measured(verdict) + scorecard.exceeding(*verdict.parts) if judged else lacking,
        verdict.word if judged else NOT_JUDGED,
        "; ".join(f"{other.reading}: {other.word}" for other in verdict.others) if judged else "",
        _class(verdict.word, cause) if judged else "",
        _runs(figures, there) if judged else "",
    )
    return line(made)


def _class(word: str, cause: causes.Cause | None) -> str:
    return (cause.kind if cause else OPEN) if word in SHORT else ""


def stated(claim: Claim) -> tuple[str, str, str]:
    """The claim, what the paper states, and what was accepted: the first cells of its row."""
    accepted = "" if claim.kind == "ordering" else scorecard.accepted(claim)
    return (
        f"{claim.identifier} ({claim.confidence}), {claim.item}",
        f"{claim.metric}: {_own_names(claim.expect)}",
        accepted,
    )


def _was_judged(row: str, claim: Claim) -> bool:
    """Whether a row has a verdict, on what the claim accepts today: an interval, or the relations that it states."""
    made, today = cells(row), cells(line(stated(claim)))
    same = made[1:3] == today[1:3] if claim.kind == "ordering" else made[2] == today[2]
    return same and made[VERDICT] != NOT_JUDGED


def _kept(row: str, claim: Claim, cause: causes.Cause | None) -> str:
    """A row that is not judged anew, with what the claim states and the class that its cause has now."""
    made, first = cells(row), stated(claim)
    made[CLASS] = _class(made[VERDICT], cause)
    return line([*first, *made[len(first) :]])


def line(texts: Sequence[str]) -> str:
    """A row of these cells."""
    return "| " + " | ".join(scorecard.cell(text) for text in texts) + " |"


def _measured(verdict: Verdict) -> str:
    """The value with its interval; of relations how many hold, and the first that does not."""
    good = sum(part.outcome == "yes" for part in verdict.parts)
    short = next((part for part in verdict.parts if part.outcome != "yes"), None)
    if verdict.claim.kind != "ordering":
        values = "; ".join(scorecard.interval(part.estimate) for part in verdict.parts[: scorecard.MAX_LISTED])
        more = len(verdict.parts) - scorecard.MAX_LISTED
        return values if more <= 0 else f"{values}; and {more} more"
    said = f"{good} of {len(verdict.parts)} relations hold"
    if short is None:
        return said
    # A relation that does not hold, or why it cannot be looked at.
    return f"{said}; {'not ' * (short.outcome == 'no')}{_own_names(short.detail)}"


def _own_names(text: str) -> str:
    """Measures by the names of `docs/reference/measures.md`, where a claim has others."""
    return re.sub(r"\b\w+(?=\()|(?<=\brank\()\w+", lambda found: ALIASES.get(found[0], found[0]), text)


def _runs(figures: Sequence[str], there: Mapping[str, Standing]) -> str:
    """The version and the number of seeds."""
    entries = [
        standing.entry
        for label, standing in there.items()
        if standing.entry and label.rpartition("/")[2] in figures and standing.counts
    ]
    versions = sorted({entry.version.partition("+")[2] or entry.version for entry in entries})
    seeds = sorted({len(entry.seeds) for entry in entries})
    quick = ", quick" if any(entry.quick for entry in entries) else ""
    return f"{', '.join(versions)}; {', '.join(map(str, seeds))} seeds{quick}" if entries else "none needed"
