"""Running experiments from Python: a run is a handle, polled; frames are polars."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

from narrows import native
from narrows.experiment import Experiment, expand
from narrows.index import Index, entry_of
from narrows.processes import Processes, default_workers
from narrows.results import Results
from narrows.running import Batch, Wanted
from narrows.store import Store

if TYPE_CHECKING:
    from collections.abc import Mapping

    from narrows.running import Executor, Finished, Progress

RUNS = Path("runs")
"""Where results are kept unless told otherwise."""

On = Literal["local", "ray"]
"""Where runs are made: on this machine's cores, or by a Ray cluster that is there already."""


class Handle:
    """An experiment under way. Poll `progress`; `cancel` stops it; `join` waits and gives its results."""

    def __init__(
        self,
        experiment: Experiment,
        *,
        out: Path = RUNS,
        jobs: int | None = None,
        on: On = "local",
        ray_address: str | None = None,
        threads: int = 1,
    ) -> None:
        self.experiment = experiment
        self._store = Store(out)
        wanted = Wanted([experiment], self._store, threads=threads)
        self._batch = Batch(wanted, _executor(self._store, len(wanted.missing), jobs, on, ray_address, threads))

    def progress(self) -> Progress:
        """A snapshot of how far it is."""
        return self._batch.progress()

    def done(self) -> bool:
        """Whether `join` returns at once."""
        return self._batch.done()

    def cancel(self) -> None:
        """Stops; finished runs are kept and are not run again."""
        self._batch.cancel()

    def finish(self) -> tuple[Finished, ...]:
        """Waits and records the experiment in the index. Raises `Cancelled`, `BadInput` or `RunFailed`."""
        finished = self._batch.join()
        entry = entry_of(self.experiment, version=native.version(), command=command_for(self.experiment))
        Index(self._store.root).record(entry)
        return finished

    def join(self) -> Results:
        """Waits for the results. Raises `Cancelled`, `BadInput` or `RunFailed`."""
        self.finish()
        return load(self.experiment.identifier, out=self._store.root)


def run(
    file: str | Path,
    *,
    quick: bool = False,
    seeds: str | None = None,
    settings: Mapping[str, str] | None = None,
    out: str | Path = RUNS,
    jobs: int | None = None,
    on: On = "local",
    ray_address: str | None = None,
    threads: int = 1,
) -> Handle:
    """Starts an experiment: every plan with every seed that is not in `out` already.

    `jobs` is the number of runs under way at once, by default as many as the cores have room for; each takes up to
    `threads` threads, which do not change its results. Raises `BadInput`, and `EnvironmentLacks`
    where there is no cluster.
    """
    experiment = expand(file, sets=tuple((settings or {}).items()), quick=quick, seeds=seeds)
    return Handle(experiment, out=Path(out), jobs=jobs, on=on, ray_address=ray_address, threads=threads)


def _executor(store: Store, missing: int, jobs: int | None, on: On, ray_address: str | None, threads: int) -> Executor:
    if on == "ray" and missing:
        from narrows.cluster import Cluster

        return Cluster(store, address=ray_address, limit=jobs, threads=threads)
    return Processes(store, min(jobs or max(1, default_workers() // threads), missing))


def load(name: str, *, out: str | Path = RUNS) -> Results:
    """Results that are there already, by the experiment's identifier, name, file or folder. Raises `BadInput`."""
    store = Store(Path(out))
    return Results(Index(store.root).find(name), store)


def command_for(experiment: Experiment) -> str:
    """The command that makes these results."""
    options = [f"--set {key}={value}" for key, value in experiment.sets]
    if experiment.other_seeds:
        options.insert(0, f"--seeds {experiment.seeds[0]}..{experiment.seeds[-1]}")
    if experiment.quick:
        options.insert(0, "--quick")
    return " ".join(["narrows run", experiment.file.as_posix(), *options])
