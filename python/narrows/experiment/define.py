"""An experiment as the lab sees it: a file, a text or a dict, expanded into plans × seeds."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from narrows import native, wording
from narrows.errors import BadInput, bad_input
from narrows.experiment.content import Content, kept_content, read_content
from narrows.experiment.given import Given, given
from narrows.experiment.plans import ABSENT, Pairs, apart, difference_from, plan_from
from narrows.experiment.report import report_from
from narrows.experiment.seeds import chosen_seeds, seeds_text
from narrows.runs.backends import Backend
from narrows.tables import Tabular

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl

    from narrows.api import Handle, On
    from narrows.experiment.seeds import Seeds

FILE = "experiment.toml"
"""What the experiment file of a figure is called."""
GIVEN = "experiments"
"""Folder of a store for experiments that were given as a text or a dict."""


class Experiment(Tabular):
    """An experiment: its plans, its seeds, and what differs between its schemes. `run` makes its runs."""

    def __init__(
        self,
        source: str | Path | Mapping[str, Any],
        *,
        quick: bool = False,
        seeds: Seeds | None = None,
        settings: Mapping[str, str] | Sequence[tuple[str, str]] = (),
        backend: Backend | Literal["sim", "guest", "host", "native"] = Backend.SIM,
    ) -> None:
        """Reads and expands an experiment.

        Args:
            source: The path of an experiment file, its text (of several lines), or a dict of the same shape.
            quick: Whether `run.quick` of the file shall hold: few seeds, a short time.
            seeds: Instead of the file's: `3`, `"1..10"` (both included), `range(1, 11)` or `[1, 5, 9]`.
            settings: Values that override the file's: `{"run.end": "20s"}`.
            backend: What carries the traffic: the simulator, Linux in a guest, or this machine's Linux.

        Raises:
            BadInput: The experiment or an argument has a mistake; the message says where, what and how to mend it.
        """
        if backend not in (*Backend, "native"):
            names = ", ".join(repr(item.value) for item in Backend)
            raise bad_input(f"backend cannot be {backend!r}", f"choose one of {names}")
        if not isinstance(quick, bool):
            raise bad_input(f"quick cannot be {quick!r}", "give True or False")
        sets = _pairs(settings)
        self.given = _given(source, sets)
        """The experiment, if it is not a file."""
        before = None if self.given is not None else read_content(Path(str(source)), "", sets)
        try:
            if self.given is None:
                raw = native.expand(str(source), sets=sets, quick=quick)
            else:
                raw = self.given.expand(sets=sets, quick=quick)
        except BadInput as error:
            raise _of_settings(error) from None
        self.name = str(raw["name"])
        """What it is called: of the file's `name`, or its folder or file."""
        self.title = str(raw.get("title") or raw["name"])
        """One line for reports; the name where the file has none."""
        own = tuple(int(seed) for seed in raw["seeds"])
        self.seeds = own if seeds is None else chosen_seeds(seeds)
        """Each makes a run of each plan."""
        self.other_seeds = self.seeds != own
        """Whether the seeds are not the file's."""
        self.plans = tuple(plan_from(plan) for plan in raw["plans"])
        """One for each scheme and point of the sweep."""
        self.differences = tuple(difference_from(item, self.plans) for item in raw["differences"])
        """Settings whose values are not the same in all plans."""
        self.report = report_from(raw.get("report"), "experiment" if self.given is not None else str(source))
        """What the charts of a sweep show, if the experiment says it."""
        self.file = (
            _shortest(Path(str(source))) if self.given is None else Path(f"{identifier(self.name, quick=False)}.toml")
        )
        """Where it is, or would be."""
        self.content = self._content(sets, before)
        """Its text and the small files that it names; `None` if it is too large to be kept."""
        self.quick = quick
        """Whether `run.quick` of the file holds."""
        self.sets: Pairs = sets
        """Values that override the file's, by path."""
        self.backend = Backend(backend)
        """What carries the traffic."""
        self.warnings = tuple(_warning(item) for item in raw["warnings"])
        """What may not be as meant, in sentences."""

    @property
    def remarks(self) -> tuple[str, ...]:
        """The warnings, and which plans give the same results with every seed."""
        fixed = [plan.case for plan in self.plans if not plan.draws] if len(self.seeds) > 1 else []
        if not fixed:
            return self.warnings
        which = "these plans" if len(fixed) == len(self.plans) else ", ".join(fixed)
        same = f"nothing in {which} is random: all {len(self.seeds)} seeds give the same results; one seed is enough"
        return (*self.warnings, same)

    @property
    def has_program(self) -> bool:
        """Whether ranks run: a `program` is among the traffic."""
        return any("program" in entry["pattern"] for plan in self.plans for entry in plan.body["traffic"])

    @property
    def heading(self) -> str:
        """Title, plans and seeds."""
        return f"{self.title}: {wording.plural(len(self.plans), 'plan')} × seeds {seeds_text(self.seeds)}"

    @property
    def table(self) -> pl.DataFrame:
        """A row for each plan: its case, its hash, and the settings in which it differs from others."""
        import polars as pl

        shown, _ = apart(self.differences)
        settings = [(item.path, dict(item.values)) for item in shown]
        rows = [
            {"case": plan.case, "plan": plan.hash[:8]}
            | {path: by_case.get(plan.case, ABSENT) for path, by_case in settings}
            for plan in self.plans
        ]
        return pl.DataFrame(rows)

    def run(
        self,
        *,
        out: str | Path = "runs",
        jobs: int | None = None,
        on: On = "local",
        ray_address: str | None = None,
        threads: int = 1,
    ) -> Handle:
        """Starts every plan with every seed that is not in `out` already.

        Args:
            out: Folder where results are kept.
            jobs: Number of runs under way at once (default: as many as the cores have room for).
            on: Where runs are made: `"local"`, or `"ray"`, a cluster that is there.
            ray_address: Address of the Ray cluster (default: local).
            threads: Maximum threads of one run; they do not change its results.

        Returns:
            A handle: `progress()`, `cancel()`, and `join()`, which gives the results.

        Raises:
            BadInput: An argument is one that no run can have, or `out` cannot be written.
            EnvironmentLacks: There is no cluster, or no `narrowsd`.
        """
        from narrows.api import Handle

        return Handle(self, out=out, jobs=jobs, on=on, ray_address=ray_address, threads=threads)

    def _content(self, sets: Pairs, before: Content | None) -> Content | None:
        """What is kept. Raises `BadInput` where it is not what it was `before` it was expanded."""
        name = identifier(self.name, quick=False)
        if self.given is not None:
            return kept_content(self.given.text, name, self.given.files)
        found = read_content(self.file, name, sets)
        if before != (None if found is None else replace(found, name="")):
            raise bad_input(
                f"{self.file}, or a file that it names, changed while it was read", "give the command again"
            )
        return found

    @property
    def place(self) -> str:
        """The figure that it is the experiment of, wherever one stands: `gemini/fig13`; nothing for any other file."""
        return place_of(self.file.resolve()) if self.given is None else ""

    @property
    def identifier(self) -> str:
        """What `compare` and `report` call its results; other settings, seeds or backends are another identifier."""
        seeds = self.seeds if self.other_seeds else ()
        return self.backend.named(identifier(self.name, quick=self.quick, sets=self.sets, seeds=seeds))


def _given(source: str | Path | Mapping[str, Any], sets: Pairs) -> Given | None:
    """The experiment as a text; `None` for the path of a file."""
    if isinstance(source, Mapping) or (isinstance(source, str) and "\n" in source):
        return given(source, sets)
    if not isinstance(source, (str, Path)):
        raise bad_input(f"{source!r} is no experiment", "give the path of a file, its text, or a dict")
    if not _is_text(str(source)):
        raise bad_input(f"{str(source)!r} is no name in UTF-8", "rename the file or its folder")
    return None


def _pairs(settings: Any) -> Pairs:
    """Overridden settings. Raises `BadInput` for what is none."""
    pairs = list(settings.items()) if isinstance(settings, Mapping) else settings
    is_list = isinstance(pairs, (list, tuple))
    if not (is_list and all(isinstance(it, (list, tuple)) and [*map(_is_text, it)] == [True, True] for it in pairs)):
        raise bad_input(f"settings cannot be {settings!r}", 'give texts, for example settings={"run.end": "20s"}')
    return tuple((key, value) for key, value in pairs)


def _of_settings(error: BadInput) -> BadInput:
    """A mistake in an overridden setting, which the simulator calls `--set`, in terms of the argument."""
    text = re.sub(r"^--set:\d+:\d+: ", "settings: ", str(error))
    found = BadInput(text.replace("write --set path=value", 'give settings={"path": "value"}'))
    found.for_command = str(error)
    return found


def _is_text(value: object) -> bool:
    """Whether it is a text that UTF-8 holds: half of a surrogate pair is none."""
    return isinstance(value, str) and not any("\ud800" <= character <= "\udfff" for character in value)


def _warning(item: Mapping[str, Any]) -> str:
    """The schemes that it is about if not all, what may not be meant, and what to do about it."""
    schemes = ", ".join(item["schemes"])
    return f"{schemes}: {item['text']}; {item['help']}" if schemes else f"{item['text']}; {item['help']}"


def place_of(file: Path) -> str:
    """`gemini/fig13` of `…/gemini/fig13/experiment.toml`; nothing where the path does not say."""
    folder = file.parent
    return f"{folder.parent.name}/{folder.name}" if file.name == FILE and folder.parent.name else ""


def _shortest(path: Path) -> Path:
    """Relative to the working directory where it lies below it, so that results name no machine's paths."""
    try:
        return path.relative_to(Path.cwd()) if path.is_absolute() else path
    except (ValueError, FileNotFoundError):  # it does not, or the working directory is gone
        return path


def identifier(name: str, *, quick: bool, sets: Sequence[tuple[str, str]] = (), seeds: Sequence[int] = ()) -> str:
    """A file name's worth of the experiment's name; quick runs, other seeds and overridden settings are told apart."""
    text = re.sub(r"[^0-9A-Za-z._]+", "-", name).strip("-.")[:120] or "experiment"
    if quick:
        text += "-quick"
    if seeds:
        listed = seeds_text(seeds).replace("..", "-").replace(",", "_")
        text += f"-seeds-{listed if len(listed) <= 40 else hashlib.sha256(listed.encode()).hexdigest()[:6]}"
    if sets:
        text += "+" + hashlib.sha256(json.dumps(sorted(sets)).encode()).hexdigest()[:6]
    return text
