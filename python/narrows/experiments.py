"""The folders `experiments/<paper>/<figure>`: where they are, which are meant, which paper a file belongs to."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

from narrows.claims import catalogue
from narrows.claims.judge import Verdict, judge
from narrows.errors import BadInput, bad_input
from narrows.index import Index
from narrows.results import Frames, Results

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import altair as alt

    from narrows.store import Store

EXPERIMENT = "experiment.toml"
CLAIMS = "claims.toml"


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
        """The paper's figure from our runs."""
        module = catalogue.module_from(self.folder / "figure.py")
        if module is None:
            raise bad_input(f"{self.folder} has no figure.py", "add one with a function `draw(results)`")
        return cast("Callable[[Results], alt.TopLevelMixin]", module.draw)(results)


def root(start: Path | None = None) -> Path:
    """The `experiments` folder: of the working directory or one above it, else of the checkout this code is in."""
    here = (start or Path.cwd()).resolve()
    for folder in (here, *here.parents, *Path(__file__).resolve().parents):
        found = folder / "experiments"
        if any(found.glob(f"*/{CLAIMS}")):
            return _shortest(found)
    raise bad_input("there is no folder `experiments` here or above", "change to a checkout of the project")


def _shortest(path: Path) -> Path:
    """Relative to the working directory where it lies below it: results and reports then name no machine's paths."""
    try:
        return path.resolve().relative_to(Path.cwd().resolve())
    except ValueError:
        return path


def papers() -> list[catalogue.Paper]:
    """Every paper, by name. Raises `BadInput`."""
    return [catalogue.load(path.parent) for path in sorted(root().glob(f"*/{CLAIMS}"))]


def figures(paper: catalogue.Paper) -> list[Figure]:
    """A paper's figures, by name."""
    return [Figure(path.parent) for path in sorted(paper.folder.glob(f"*/{EXPERIMENT}"))]


@dataclass(frozen=True)
class Selection:
    """What is to be reproduced."""

    papers: tuple[catalogue.Paper, ...]
    figures: tuple[Figure, ...]
    claims: frozenset[str]
    """The claims that were asked for by name; none: every claim that the figures or papers are about."""

    def includes(self, paper: catalogue.Paper, claim: catalogue.Claim) -> bool:
        """Whether a claim was asked for: by name, by its paper, or by a figure of its own."""
        if self.claims:
            return claim.identifier in self.claims
        chosen = {figure.name for figure in self.figures if figure.paper == paper.folder}
        return chosen == {figure.name for figure in figures(paper)} or not chosen.isdisjoint(paper.figures_of(claim))


def select(wanted: Sequence[str]) -> Selection:
    """By `PAPER`, `PAPER/FIGURE` or a claim's identifier. Raises `BadInput` with the nearest names there are."""
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
    chosen: dict[Figure, None] = {}
    meant: set[str] = set()
    for text in wanted:
        name = text.strip("/")
        found = names.get(name, claims.get(name))
        if found is None:
            near = difflib.get_close_matches(name, [*names, *claims], n=3, cutoff=0.5)
            options = f"the nearest: {', '.join(near)}" if near else f"there are: {', '.join(names)}"
            raise bad_input(
                f"no paper, figure or claim is called '{text}'", f"{options}; `narrows reproduce` lists all"
            )
        chosen |= dict.fromkeys(found)
        meant |= {name} & claims.keys()
    about = {name.partition("/")[0] for name in (text.strip("/") for text in wanted) if name in names}
    held = [
        paper for paper in everything if paper.name in about or any(claim.identifier in meant for claim in paper.claims)
    ]
    return Selection(tuple(held), tuple(chosen), frozenset() if about else frozenset(meant))


def figure_of(file: str) -> Figure | None:
    """The figure that an experiment file belongs to; `None` for a file outside the papers' folders.

    Code beside an experiment is run only if it is below the project's own `experiments`: other files may be anybody's.
    """
    path = Path(file).resolve()
    try:
        ours = root().resolve()
    except BadInput:
        return None
    paper = path.parent.parent
    belongs = path.name == EXPERIMENT and paper.parent == ours and (paper / CLAIMS).is_file()
    return Figure(_shortest(path.parent)) if belongs else None


def verdicts(paper: catalogue.Paper, store: Store, *, quick: bool) -> list[Verdict]:
    """Every claim of a paper, judged from what the store holds."""
    return judge(paper, _frames(paper, store, quick=quick), quick=quick)


def _frames(paper: catalogue.Paper, store: Store, *, quick: bool) -> dict[str, Frames]:
    """Frames of those figures of a paper that were run in this mode, without overridden settings."""
    found: dict[str, Frames] = {}
    for entry in Index(store.root).entries().values():
        figure = figure_of(entry.file)
        if figure is None or entry.quick != quick or entry.sets or figure.paper.resolve() != paper.folder.resolve():
            continue
        try:
            found[figure.name] = Results(entry, store).frames
        except BadInput:
            continue
    return found
