"""Readings of a paper: set-ups that its text allows. An experiment runs each, and claims are judged under each.

They are the values of one axis of the experiment's sweep or, where only some schemes differ, further schemes. A paper's
`readings.py` names them, by figure: `READINGS = {"fig13": Readings({"both-ways": "…", "one-way": "…"}, why="…")}`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from narrows.claims.catalogue import Claim, Paper
    from narrows.claims.judge import Verdict
    from narrows.results import Results

AXIS = "reading"
"""What an experiment calls the axis, unless its figure says otherwise."""


@dataclass(frozen=True)
class Readings:
    """Of one figure."""

    about: Mapping[str, str]
    """What each is, by its value of the axis. The first is the one that the text favours."""
    why: str
    """Why the text favours it."""
    axis: str = AXIS
    """Path or name of the axis."""
    schemes: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """By reading the schemes that stand for those which claims name: `{"kept": {"tcp": "tcp-kept"}}`. Then there is no
    axis."""
    together: bool = False
    """Whether the figure draws all values of the axis by itself; otherwise it is drawn for each."""

    @property
    def drawn_apart(self) -> bool:
        """Whether the figure is drawn once for each reading. Further schemes stand in it beside the others."""
        return not (self.schemes or self.together)

    @property
    def favoured(self) -> str:
        """The one by which claims are judged."""
        return next(iter(self.about))

    def of(self, results: Results, reading: str) -> Results | None:
        """The results under one reading, whose cases do not name it; `None` where none of its runs were asked for."""
        if not self.schemes:
            return results.under(self.axis, reading)
        every = {own for schemes in self.schemes.values() for own in schemes.values()}
        return results.standing_for(self.schemes.get(reading, {}), without=every)

    def there(self, results: Results) -> dict[str, Results]:
        """Each reading that the results have, the favoured one first; results without the axis are of that one."""
        if not self.schemes and self.axis not in results.entry.axes:
            return {self.favoured: results}
        found = {reading: self.of(results, reading) for reading in self.about}
        return {reading: own for reading, own in found.items() if own is not None}


def judged(paper: Paper, figures: Mapping[str, Results], *, quick: bool) -> list[Verdict]:
    """Every claim of a paper, under the reading that the text favours, with its verdicts under the others.

    A claim about several figures is judged under the same reading of all; where a figure has no such reading, under
    the one that is favoured there.
    """
    from narrows.claims.judge import judge  # slow, and lists of claims do not need it

    readings = {name: paper.readings[name].there(own) for name, own in figures.items() if name in paper.readings}
    plain = {name: own.frames for name, own in figures.items() if name not in readings}
    favoured = {name: own[paper.readings[name].favoured].frames for name, own in readings.items() if own}
    first = judge(paper, plain | favoured, quick=quick)
    others: dict[str, list[Verdict]] = {claim.identifier: [] for claim in paper.claims}
    for reading in dict.fromkeys(name for own in readings.values() for name in own):
        changed = {
            figure: own[reading].frames
            for figure, own in readings.items()
            if reading in own and reading != paper.readings[figure].favoured
        }
        about = tuple(
            claim
            for claim in paper.claims
            if not changed.keys().isdisjoint(paper.figures_of(claim)) and not _is_computed(paper, claim)
        )
        if about:
            for verdict in judge(replace(paper, claims=about), plain | favoured | changed, quick=quick):
                others[verdict.claim.identifier].append(replace(verdict, reading=reading))
    return [_beside(verdict, _favoured(paper, verdict), others[verdict.claim.identifier], paper) for verdict in first]


def _beside(verdict: Verdict, reading: str, others: Sequence[Verdict], paper: Paper) -> Verdict:
    """The verdict with those under the other readings; its binding may say by which it is judged."""
    every = [replace(verdict, reading=reading), *others]
    binding = paper.bindings.get(verdict.claim.identifier)
    chosen = next((own for own in every if binding and own.reading == binding.reading), every[0])
    return replace(chosen, others=tuple(own for own in every if own is not chosen))


def _is_computed(paper: Paper, claim: Claim) -> bool:
    binding = paper.bindings.get(claim.identifier)
    return binding is not None and binding.computed is not None


def _favoured(paper: Paper, verdict: Verdict) -> str:
    """The reading, or readings, under which a claim is judged; nothing where none of its figures has several."""
    if _is_computed(paper, verdict.claim):
        return ""
    own = (paper.readings[name].favoured for name in paper.figures_of(verdict.claim) if name in paper.readings)
    return ", ".join(dict.fromkeys(own))
