"""The folders `experiments/<paper>/<figure>`: where they are, which are meant, which paper a file belongs to."""

from __future__ import annotations

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


def select(wanted: Sequence[str]) -> list[Figure]:
    """Figures by `PAPER` or `PAPER/FIGURE`; all of them if none is named. Raises `BadInput`."""
    base = root()
    everything = [Figure(path.parent) for path in sorted(base.glob(f"*/*/{EXPERIMENT}"))]
    if not wanted:
        return everything
    chosen: list[Figure] = []
    for name in wanted:
        matches = [figure for figure in everything if name.strip("/") in (figure.label, figure.paper.name)]
        if not matches:
            known = ", ".join(figure.label for figure in everything)
            raise bad_input(f"no paper or figure is called '{name}'", f"there are: {known}")
        chosen += [figure for figure in matches if figure not in chosen]
    return chosen


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


def verdicts(paper_folder: Path, store: Store, *, quick: bool) -> list[Verdict]:
    """Every claim of a paper, judged from what the store holds."""
    paper = catalogue.load(paper_folder)
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
