"""A paper's claims as a table of Markdown, between the marks of a page that people write.

Figures are run at different times: a claim that is not judged from what is there keeps its row.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from narrows.claims import causes, scorecard

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from narrows.claims.catalogue import Paper
    from narrows.claims.judge import Verdict
    from narrows.runs.freshness import Standing

HEADER: Final = (
    "| claim | stated | accepted | measured | verdict | other readings | class | runs |",
    "|---|---|---|---|---|---|---|---|",
)
_ROW: Final = re.compile(r"^\| (?P<name>[\w-]+) \((?P<grade>[HML])\).*$", re.MULTILINE)
NOT_JUDGED: Final = "not judged"
"""In the place of a verdict."""


def mark(paper: Paper) -> str:
    """What the places in a page are called."""
    return f"claims of {paper.name}"


def rows(text: str) -> dict[str, str]:
    """The rows of a table, by claim."""
    return {found["name"]: found[0] for found in _ROW.finditer(text)}


def table(paper: Paper, verdicts: Sequence[Verdict], there: Mapping[str, Standing], page: Path) -> str:
    """The table with what has been judged, and the page's own rows of what has not; how many hold above it."""
    held = rows(page.read_text(encoding="utf-8"))
    why = causes.read(paper.folder)
    made: list[str] = []
    for verdict in verdicts:
        name = verdict.claim.identifier
        complete = verdict.word != "not-run" and not verdict.missing
        made.append(_row(paper, verdict, there, why.get(name)) if complete or name not in held else held[name])
    return "\n".join([counts(made), "", *HEADER, *made])


def counts(made: Sequence[str]) -> str:
    """How many hold, of those that a run can refute and of the others, by confidence: a small table."""
    from collections import Counter

    found: Counter[tuple[str, str]] = Counter()
    for row in made:
        match = _ROW.match(row)
        assert match is not None
        found[match["grade"], cells(row)[4]] += 1
    words = [*(word for word in scorecard.WORDS if word != "not-run"), NOT_JUDGED]
    lines = [f"| confidence | {' | '.join(words)} |", f"|---|{'---|' * len(words)}"]
    lines += [
        f"| {grade} | {' | '.join(str(found[grade, word]) for word in words)} |"
        for grade in "HML"
        if any(found[grade, word] for word in words)
    ]
    return "\n".join(lines)


def cells(row: str) -> list[str]:
    """The cells of a row."""
    return [cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", row)[1:-1]]


def _row(paper: Paper, verdict: Verdict, there: Mapping[str, Standing], cause: causes.Cause | None) -> str:
    claim = verdict.claim
    figures = paper.figures_of(claim)
    judged = verdict.word != "not-run"
    made = (
        f"{claim.identifier} ({claim.confidence}), {claim.item}",
        claim.metric if claim.kind == "ordering" else f"{claim.metric}: {claim.expect}",
        "" if claim.kind == "ordering" else scorecard.accepted(claim),
        _measured(verdict) if judged else verdict.reason,
        verdict.word if judged else NOT_JUDGED,
        "; ".join(f"{other.reading}: {other.word}" for other in verdict.others),
        cause.kind if cause and verdict.word in ("partly", "fails") else "",
        _runs(figures, there) if judged else "",
    )
    return "| " + " | ".join(scorecard.cell(text) for text in made) + " |"


def _measured(verdict: Verdict) -> str:
    """The value with its interval; of relations how many hold, and the first that does not."""
    good = sum(part.outcome == "yes" for part in verdict.parts)
    short = next((part for part in verdict.parts if part.outcome != "yes"), None)
    if verdict.claim.kind != "ordering":
        values = "; ".join(scorecard.interval(part.estimate) for part in verdict.parts[: scorecard.MAX_LISTED])
        more = len(verdict.parts) - scorecard.MAX_LISTED
        return values if more <= 0 else f"{values}; and {more} more"
    said = f"{good} of {len(verdict.parts)} relations hold"
    return said if short is None else f"{said}; not {short.detail}"


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
    return f"{', '.join(versions)}; {', '.join(map(str, seeds))} seeds{quick}" if entries else "no run"
