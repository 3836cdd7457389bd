"""A paper's scorecard as one page: how many claims hold, then every figure with its picture and its claims."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import TYPE_CHECKING

from narrows.claims import folders, scorecard
from narrows.figures import caption
from narrows.measures.named import LANGUAGE
from narrows.report import bundle
from narrows.report.templates import template

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from narrows.claims import Verdict
    from narrows.claims.catalogue import Paper
    from narrows.runs.freshness import Standing
    from narrows.runs.index import Entry
    from narrows.runs.store import Store


@dataclass(frozen=True)
class Section:
    """A figure, or what belongs to none, and its claims."""

    name: str
    title: str
    caption: str
    """What was run, or why it does not count; empty where it belongs to no figure."""
    picture: str
    """A data address; empty if there is no picture."""
    report: str
    """The report's file, beside this page; empty if there is none."""
    verdicts: tuple[Verdict, ...]


def render(
    paper: Paper, verdicts: Sequence[Verdict], there: Mapping[str, Standing], store: Store, *, quick: bool
) -> str:
    """The page's text. It needs nothing beside itself."""
    return template("claims.html.j2").render(
        paper=paper,
        heading=scorecard.heading(paper),
        stated_by=scorecard.stated_by(verdicts),
        quick=quick,
        policy="default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'",
        stylesheet=bundle.stylesheet(),
        words=scorecard.WORDS,
        tally=scorecard.tally(verdicts),
        origin=scorecard.origin(there, quick=quick),
        command=scorecard.command(paper, quick=quick),
        terms=scorecard.TERMS,
        rules=scorecard.RULES,
        about_readings=scorecard.READINGS,
        readings=scorecard.readings(paper),
        sections=_sections(paper, verdicts, there, store, quick=quick),
        language=LANGUAGE,
        measures=scorecard.used(verdicts),
    )


def _sections(
    paper: Paper, verdicts: Sequence[Verdict], there: Mapping[str, Standing], store: Store, *, quick: bool
) -> list[Section]:
    """Figures by name, each claim under the first that it is about; at the end what needs no figure."""
    by_figure: dict[str, list[Verdict]] = {}
    for verdict in verdicts:
        home = paper.figures_of(verdict.claim)
        by_figure.setdefault(home[0] if home else "", []).append(verdict)
    made = []
    for figure in folders.figures(paper):
        standing = there[figure.label]
        entry = standing.entry if standing.counts else None
        picture = store.root / "figures" / f"{figure.picture(quick=quick)}.svg"
        report = store.root / "reports" / f"report-{entry.identifier}.html" if entry else None
        drawn = _data(picture.read_bytes()) if entry and picture.is_file() else ""
        made.append(
            Section(
                name=figure.name,
                title=standing.entry.title if standing.entry else figure.name,
                caption=_caption(entry, drawn=bool(drawn)) if entry else _sentence(standing.reason),
                picture=drawn,
                report=report.name if report else "",
                verdicts=tuple(by_figure.pop(figure.name, [])),
            )
        )
    rest = tuple(verdict for group in by_figure.values() for verdict in group)
    if rest:
        made.append(Section("without-a-run", "Arithmetic, parameters, and what has no figure", "", "", "", rest))
    return made


def _caption(entry: Entry, *, drawn: bool) -> str:
    """What was run; of a picture only what it does not say itself."""
    return caption.traffic(entry) if drawn else f"{caption.of(entry)} {caption.traffic(entry)}"


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


def _data(svg: bytes) -> str:
    return f"data:image/svg+xml;base64,{base64.b64encode(svg).decode()}"
