"""Running experiments from Python: a run is a handle, polled; frames are polars."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from narrows import cross_backend
from narrows.errors import bad_input
from narrows.experiment import GIVEN, Experiment
from narrows.results import Results
from narrows.runs import bar
from narrows.runs.backends import MAX_JOBS, Backend
from narrows.runs.index import DEFAULT_ROOT, Index, entry_of
from narrows.runs.partial import part_of
from narrows.runs.processes import Processes, default_workers
from narrows.runs.running import Batch, Wanted
from narrows.runs.store import Store

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from narrows.experiment import Seeds
    from narrows.runs.index import Entry
    from narrows.runs.running import Executor, Finished, Progress

RUNS = DEFAULT_ROOT
"""Where results are kept unless told otherwise."""

On = Literal["local", "ray"]
"""Where runs are made: on this machine's cores, or by a Ray cluster that is there already."""


class Handle:
    """An experiment under way. Poll `progress`; `cancel` stops it; `join` waits and gives its results."""

    def __init__(
        self,
        experiment: Experiment,
        *,
        out: str | Path = RUNS,
        jobs: int | None = None,
        on: On = "local",
        ray_address: str | None = None,
        threads: int = 1,
    ) -> None:
        _refuse(experiment.backend, on=on, threads=threads, jobs=jobs, ray_address=ray_address)
        root = _folder(out)
        if experiment.given is not None:
            experiment.file = experiment.given.path_in(root / GIVEN, experiment.file.name)
        self.experiment = experiment
        self.entry: Entry | None = None
        """What the index keeps of it, once it is finished."""
        self._store = Store(root)
        wanted = Wanted([experiment], self._store, threads=threads)
        self._reservation = wanted.reservation
        self._batch = Batch(wanted, _executor(self._store, wanted, jobs, on, ray_address, threads))

    def progress(self) -> Progress:
        """A snapshot of how far it is."""
        return self._batch.progress()

    def done(self) -> bool:
        """Whether `join` returns at once."""
        return self._batch.done()

    def cancel(self) -> None:
        """Stops; finished runs are kept and are not run again."""
        self._batch.cancel()

    def __repr__(self) -> str:
        now = self.progress()
        return f"<{self.identifier}: {now.finished + now.skipped} of {now.total} runs are there>"

    def finish(self) -> tuple[Finished, ...]:
        """Waits and records the experiment in the index. Raises what `Batch.join` raises."""
        finished = self._batch.join()
        if self.experiment.given is not None:
            self.experiment.given.write(self.experiment.file)
        self.entry = Index(self.root).record(self._entry())
        self._reservation.release()
        return finished

    def _entry(self) -> Entry:
        version = self.experiment.backend.version()
        return entry_of(self.experiment, version=version, root=self.root)

    @property
    def root(self) -> Path:
        """The folder of its results."""
        return self._store.root

    def so_far(self) -> Results | None:
        """Results of what is there while runs are made: the seeds with which every plan has been run.

        Before any seed is complete, the plans that have been run with the first; `None` before the first run has ended.
        Raises `BadInput` where a run is damaged, or none of these counts.
        """
        whole = self._entry()
        entry = part_of(whole, self._batch.there())
        return None if entry is None else Results(entry, self._store, recorded=whole)

    @property
    def identifier(self) -> str:
        """What its results are called."""
        return self.experiment.identifier if self.entry is None else self.entry.identifier

    def join(self, *, progress: bool | None = None) -> Results:
        """Waits for the results, with a progress bar.

        Args:
            progress: Whether to show the bar (default: in a notebook or on a terminal, where tqdm is installed).

        Raises:
            Cancelled: The runs were stopped; those that had finished are kept.
            RunFailed: A run ended without results.
            BadInput: A run refused the experiment, or a result cannot be written.
            EnvironmentLacks: This machine or the cluster lacks something; or tqdm, where a bar is asked for.
        """
        bar.follow(self, self.identifier, wanted=progress)
        self.finish()
        return self.results()

    def results(self) -> Results:
        """What has been recorded by `finish`."""
        assert self.entry is not None
        return Results(self.entry, self._store)


def run(
    source: str | Path | Mapping[str, Any],
    *,
    quick: bool = False,
    seeds: Seeds | None = None,
    settings: Mapping[str, str] | None = None,
    out: str | Path = RUNS,
    jobs: int | None = None,
    on: On = "local",
    ray_address: str | None = None,
    threads: int = 1,
    backend: Literal["sim", "guest", "host", "native"] = "sim",
) -> Handle:
    """Starts an experiment: `Experiment(…).run(…)`, where the arguments are explained."""
    experiment = Experiment(source, quick=quick, seeds=seeds, settings=settings or {}, backend=backend)
    return experiment.run(out=out, jobs=jobs, on=on, ray_address=ray_address, threads=threads)


def _name(name: object) -> str:
    if not isinstance(name, str | Path):
        raise bad_input(f"results cannot be called {name!r}", "give a text, such as an experiment's name, or a path")
    return str(name)


def _choice(name: str, value: object, known: Sequence[str]) -> None:
    if value not in known:
        raise bad_input(f"{name} cannot be {value!r}", f"choose one of {', '.join(map(repr, known))}")


def _count(name: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MAX_JOBS:
        raise bad_input(f"{name} cannot be {value!r}", f"give a whole number from 1 to {MAX_JOBS}")


def _folder(out: object) -> Path:
    try:
        if isinstance(out, (str, Path)) and "\0" not in os.fsdecode(os.fsencode(out)):
            return Path(out)
    except UnicodeError:
        pass
    raise bad_input(f"out cannot be {out!r}", "give the path of a folder, such as out='runs'")


def _refuse(backend: Backend, *, on: object, threads: object, jobs: object, ray_address: object) -> None:
    """Raises `BadInput` for what no run, or no live run, can have."""
    _choice("on", on, ["local", "ray"])
    _count("threads", threads)
    if jobs is not None:
        _count("jobs", jobs)
    if not isinstance(ray_address, str | None):
        raise bad_input(f"ray_address cannot be {ray_address!r}", 'give a text, such as "head:6379"')
    if ray_address is not None and on != "ray":
        raise bad_input("an address of a Ray cluster is for runs on a cluster", 'give on="ray" (--on ray) too')
    if not backend.is_live:
        return
    if on == "ray":
        raise bad_input(
            f"runs with --backend {backend} are made on this machine, not by a cluster", "leave out --on ray"
        )
    if threads != 1:
        raise bad_input(
            f"--threads is for the simulator: with --backend {backend} the kernel decides", "leave out --threads"
        )
    if backend is Backend.HOST and jobs not in {None, 1}:
        raise bad_input(
            "runs on this machine's own kernel are made one at a time: several would disturb each other's clocks",
            "leave out --jobs",
        )


def _executor(
    store: Store, wanted: Wanted, jobs: int | None, on: On, ray_address: str | None, threads: int
) -> Executor:
    missing = len(wanted.missing)
    if on == "ray" and missing:
        from narrows.runs.cluster import Cluster

        return Cluster(store, address=ray_address, limit=jobs, threads=threads)
    backends = {job.backend for job in wanted.missing}
    if Backend.HOST in backends:
        most = 1
    elif Backend.GUEST in backends:  # a guest's clock wants a core to itself
        most = min(jobs or default_workers(), default_workers())
    else:
        most = jobs or max(1, default_workers() // threads)
    return Processes(store, min(most, missing))


def load(name: str | Path, *, out: str | Path = RUNS) -> Results:
    """Results that are there already, by the experiment's identifier, name, place, file or folder.

    `@guest` or `@host` behind it names those of a real kernel, `~1` those from before its file was edited. Raises
    `BadInput`.
    """
    store = Store(_folder(out))
    return Results(Index(store.root).find(_name(name)), store)


def load_beside(names: Sequence[str | Path], *, out: str | Path = RUNS) -> list[Results]:
    """Several results; those of the same plans on different backends as one, with cases that say which.

    Raises `BadInput`.
    """
    store = Store(_folder(out))
    return cross_backend.joined([Index(store.root).find(_name(name)) for name in names], store)
