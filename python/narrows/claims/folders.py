"""The folders `experiments/<paper>/<figure>`: where they are, which are meant, which paper a file belongs to."""

from __future__ import annotations

import difflib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

from narrows import packaged
from narrows.claims import catalogue, readings
from narrows.errors import BadInput, bad_input
from narrows.experiment import FILE as EXPERIMENT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    import altair as alt

    from narrows.claims.judge import Verdict
    from narrows.claims.readings import Readings
    from narrows.results import Results
    from narrows.runs.store import Store

_FAVOURED = " (the reading that the text favours)"
CLAIMS = "claims.toml"
"""Marks the folder of a paper."""
COMPARISON = "fidelity.toml"
"""Marks the folder whose experiments compare the simulator with a kernel."""


@dataclass(frozen=True)
class Figure:
    """A figure's folder."""

    folder: Path

    @property
    def name(self) -> str:
        """`fig13`."""
        return self.folder.name

    @property
    def paper(self) -> Path:
        """The paper's folder."""
        return self.folder.parent

    @property
    def label(self) -> str:
        """`gemini/fig13`, as `reproduce` takes it."""
        return f"{self.paper.name}/{self.name}"

    @property
    def experiment(self) -> Path:
        """The experiment file."""
        return self.folder / EXPERIMENT

    def picture(self, *, quick: bool) -> str:
        """Name of its picture's files in `runs/figures`, without the ending."""
        return self.label.replace("/", "-") + ("-quick" if quick else "")

    def draw(self, results: Results) -> alt.TopLevelMixin:
        """The figure from our runs, once for each reading of the paper, and below it what was run."""
        from narrows.figures import caption, style  # not needed for lists of figures, and slow

        with style.assembling():
            if (plain := self.plain(results)) is None:
                raise bad_input(f"{self.folder} has no figure.py", "add one with a function `draw(results)`")
            lines = caption.intervals(results.entry) if style.shows_intervals(plain) else ""
            return style.captioned(plain, f"{caption.of(results.entry)} {lines}".rstrip())

    @property
    def readings(self) -> Readings | None:
        """The readings of the paper that its experiment runs, if there are several."""
        return catalogue.readings_of(self.paper).get(self.name)

    def plain(self, results: Results) -> alt.TopLevelMixin | None:
        """The figure alone; `None` where the folder draws none."""
        module = catalogue.module_from(self.folder / "figure.py")
        if module is None:
            return None
        draw = cast("Callable[[Results], alt.TopLevelMixin]", module.draw)
        several = self.readings
        if several is None or not several.drawn_apart:
            return draw(results)
        from narrows.figures import style

        titles = {name: about + _FAVOURED * (name == several.favoured) for name, about in several.about.items()}
        there = several.there(results)
        if len(there) == 1:
            return draw(*there.values())
        return style.stacked(style.headed(draw(own), titles[name]) for name, own in there.items())


def root(start: Path | None = None) -> Path:
    """The `experiments` folder: of the working directory or one above it, else that of the package."""
    here = (start or Path.cwd()).resolve()
    for found in (*(folder / "experiments" for folder in (here, *here.parents)), packaged.experiments()):
        if any(next(found.glob(f"*/{mark}"), None) for mark in (CLAIMS, COMPARISON)):
            return _shortest(found)
    raise bad_input(
        "there is no folder `experiments` here or above, and the package has none",
        "install the package again, or change to a checkout of the project",
    )


def _shortest(path: Path) -> Path:
    """Relative to the working directory where it lies below it: results and reports then name no machine's paths."""
    try:
        return path.resolve().relative_to(Path.cwd().resolve())
    except ValueError:
        return path


def papers() -> list[catalogue.Paper]:
    """Every paper, by name, and after them the folders of statements of our own. Raises `BadInput`."""
    found = [catalogue.load(path.parent) for path in sorted(root().glob(f"*/{CLAIMS}"))]
    return sorted(found, key=lambda paper: bool(paper.title))


def names() -> list[str]:
    """What `select` takes: papers, figures and claims, without reading how claims are measured. Raises `BadInput`."""
    found: list[str] = []
    for path in sorted(root().glob(f"*/{CLAIMS}")):
        paper = path.parent
        found += [paper.name, *(f"{paper.name}/{own.parent.name}" for own in sorted(paper.glob(f"*/{EXPERIMENT}")))]
        found += [str(claim["id"]) for claim in catalogue.read(path).get("claim", ()) if "id" in claim]
    return found


def figures(paper: catalogue.Paper) -> list[Figure]:
    """A paper's figures, by name."""
    return [Figure(path.parent) for path in sorted(paper.folder.glob(f"*/{EXPERIMENT}"))]


@dataclass(frozen=True)
class Selection:
    """What is to be reproduced."""

    papers: tuple[catalogue.Paper, ...]
    figures: tuple[Figure, ...]
    """What has to be run."""
    names: frozenset[str]
    """Papers and figures that were asked for: every claim about them is meant."""
    claims: frozenset[str]
    """Claims that were asked for by name."""

    def includes(self, paper: catalogue.Paper, claim: catalogue.Claim) -> bool:
        """Whether a claim was asked for: by name, by its paper, or by a figure of its own."""
        about = {f"{paper.name}/{name}" for name in paper.figures_of(claim)}
        return self._whole(paper) or claim.identifier in self.claims or not about.isdisjoint(self.names)

    def of(self, paper: catalogue.Paper) -> str:
        """What of a paper was asked for, by name: `gemini`, or `gemini/fig12, gem-001`."""
        if self._whole(paper):
            return paper.name
        own = sorted(name for name in self.names if name.startswith(f"{paper.name}/"))
        return ", ".join([*own, *(claim.identifier for claim in paper.claims if claim.identifier in self.claims)])

    def _whole(self, paper: catalogue.Paper) -> bool:
        every = {figure.label for figure in figures(paper)}
        return paper.name in self.names or (bool(every) and every <= self.names)


def select(wanted: Sequence[str], *, also: Sequence[str] = ()) -> Selection:
    """By `PAPER`, `PAPER/FIGURE` or a claim's identifier. Raises `BadInput` with the nearest names there are.

    `also` are names of other things that might have been meant.
    """
    everything = papers()
    names: dict[str, list[Figure]] = {}
    claims: dict[str, list[Figure]] = {}
    for paper in everything:
        own = figures(paper)
        names[paper.name] = own
        names |= {figure.label: [figure] for figure in own}
        for claim in paper.claims:
            needed = paper.figures_of(claim)
            claims[claim.identifier] = [figure for figure in own if figure.name in needed]
    asked = [text.strip("/") for text in wanted]
    for text, name in zip(wanted, asked, strict=True):
        if text.endswith("/") and any(paper.name == name for paper in everything):
            examples = ", ".join(figure.label for figure in names[name][:3])
            raise bad_input(f"'{text}' names no figure", f"such as {examples}; '{name}' is the whole paper")
    chosen: dict[Figure, None] = {}
    for name in asked:
        found = names.get(name, claims.get(name))
        if found is None:
            near = difflib.get_close_matches(name, [*names, *claims, *also], n=3, cutoff=0.5)
            options = (
                f"the nearest: {', '.join(near)}"
                if near
                else f"there are {', '.join(paper.name for paper in everything)}"
            )
            raise bad_input(
                f"no paper, figure or claim is called '{name}'", f"{options}; `narrows reproduce` lists all"
            )
        chosen |= dict.fromkeys(found)
    meant = frozenset(asked) & claims.keys() - names.keys()
    about = {name.partition("/")[0] for name in asked if name in names}
    held = [
        paper for paper in everything if paper.name in about or any(claim.identifier in meant for claim in paper.claims)
    ]
    return Selection(tuple(held), tuple(chosen), frozenset(asked) & names.keys(), meant)


def figure_at(place: str) -> Figure | None:
    """The figure of this label; `None` where it is none of the papers' here.

    Code beside an experiment is run only if it is below the project's own `experiments`: other files may be anybody's.
    """
    try:
        folders = [path.parent for path in root().glob(f"*/*/{EXPERIMENT}")]
    except BadInput:
        return None
    found = (Figure(folder) for folder in folders if (folder.parent / CLAIMS).is_file())
    return next((figure for figure in found if figure.label == place), None)


def verdicts(paper: catalogue.Paper, store: Store, *, quick: bool, read: Iterable[Results] = ()) -> list[Verdict]:
    """Every claim of a paper, judged from those results in the store that count; what is `read` is not read again."""
    from narrows.results import Results
    from narrows.runs.freshness import standings

    read = list(read)
    found: dict[str, Results] = {}
    stale: dict[str, str] = {}
    own = figures(paper)
    for figure, standing in zip(own, standings(own, store, quick=quick).values(), strict=True):
        if standing.entry is None:
            continue
        if not standing.counts:
            stale[figure.name] = standing.reason
            continue
        try:
            here = (results for results in read if standing.entry and results.is_all_of(standing.entry))
            found[figure.name] = next(here, None) or Results(standing.entry, store)
        except BadInput as error:
            stale[figure.name] = str(error).splitlines()[0].removeprefix("error: ")
    return [_told(verdict, paper, stale) for verdict in readings.judged(paper, found, quick=quick)]


def _told(verdict: Verdict, paper: catalogue.Paper, stale: Mapping[str, str]) -> Verdict:
    """The verdict with what keeps the results of its figures from counting, where they are there."""
    missing = tuple(f"{name} ({stale[name]})" if name in stale else name for name in verdict.missing)
    about = [name for name in sorted(paper.figures_of(verdict.claim)) if name in stale]
    if not (about and verdict.absent):
        return replace(verdict, missing=missing)
    command = f"narrows reproduce {paper.name}/{about[0]}{' --quick' if verdict.quick else ''}"
    return replace(verdict, reason=f"{stale[about[0]]}: `{command}` runs it again", missing=missing)
