"""Pages with marks for tables, which `narrows reproduce --write` fills."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from narrows import marked
from narrows.errors import bad_input

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from narrows.claims.catalogue import Paper
    from narrows.claims.folders import Figure, Selection


@dataclass
class Pages:
    """Which pages have a place for what was asked for."""

    claims: dict[str, list[Path]] = field(default_factory=dict)
    """By the name of the paper."""
    results: dict[str, list[Path]] = field(default_factory=dict)
    """By the label of the figure."""
    scenarios: list[Path] = field(default_factory=list)

    def of_claims(self, paper: Paper) -> list[Path]:
        """Pages with the paper's claims."""
        return self.claims.get(paper.name, [])

    def of_results(self, figure: Figure) -> list[Path]:
        """Pages with the figure's numbers."""
        return self.results.get(figure.label, [])


def find(given: Sequence[Path], selection: Selection, *, scenarios: bool, quick: bool) -> Pages:
    """Looks for marks in pages, and in those of folders, before anything is run.

    Raises `BadInput` where a page cannot be read, or it, or a folder, has no place for anything that was asked for.
    """
    from narrows.claims import page as claims
    from narrows.fidelity import page as fidelity
    from narrows.report import written

    if given and quick and selection.papers:
        raise bad_input("--write is for full runs of papers", "leave out --quick, or --write")
    found = Pages()
    labels = {figure.label for figure in selection.figures}
    for path in given:
        taken = False
        for page in sorted(path.rglob("*.md")) if path.is_dir() else [path]:
            text = marked.read(page)
            for paper in selection.papers:
                if marked.has(text, claims.mark(paper)):
                    found.claims.setdefault(paper.name, []).append(page)
                    taken = True
            for label in labels & written.figures(text):
                found.results.setdefault(label, []).append(page)
                taken = True
            if scenarios and marked.has(text, fidelity.MARK):
                found.scenarios.append(page)
                taken = True
        if not taken:
            marks = [claims.mark(paper) for paper in selection.papers] + [fidelity.MARK] * scenarios
            example = f"<!-- {marks[0]} --> and <!-- /{marks[0]} -->"
            raise bad_input(f"{path} has no place for what was asked for", f"write {example} where a table belongs")
    return found
