"""Plans × seeds, made somewhere. Finished runs are skipped; stopping leaves every finished run whole."""

from __future__ import annotations

import threading
import time
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from narrows.errors import BadInput, Cancelled, RunFailed
from narrows.runs import origin
from narrows.runs.backends import Backend
from narrows.runs.experiments import write_copy
from narrows.runs.reservation import Key, Reservation
from narrows.runs.simulate import Request
from narrows.runs.store import State

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from narrows.experiment import Experiment, Plan
    from narrows.runs.store import Store

WAIT_SECONDS = 0.1
"""Between two looks whether the work shall stop."""

ELSEWHERE_SECONDS = 1.0
"""Between two looks at runs that another command makes."""

ATTEMPTS = 2
"""At a run whose process was killed, before it counts as failed: what kills twice is the run and no accident."""


@dataclass(frozen=True)
class Job:
    """A run to make: one plan, one seed."""

    plan: Plan
    seed: int
    version: str
    """Of its results, as they would be made now."""
    threads: int = 1
    """Most threads; the results do not depend on them."""
    backend: Backend = Backend.SIM
    """What runs it."""
    origin: Mapping[str, Any] = field(default_factory=dict)
    """Where it comes from, for the manifest."""

    @property
    def key(self) -> Key:
        """What names its results."""
        return self.backend.stored(self.plan.hash), self.seed

    @property
    def request(self) -> Request:
        """What is sent to where it is made."""
        return Request(
            hash=self.plan.hash,
            seed=self.seed,
            plan=self.plan.body,
            unlabelled=self.plan.unlabelled,
            threads=self.threads,
            backend=self.backend.value,
            origin=self.origin,
        )


@dataclass(frozen=True)
class Progressed:
    """A run goes on."""

    key: Key
    simulated_ns: int
    packet_hops: int


@dataclass(frozen=True)
class Stored:
    """A run is in the store."""

    key: Key
    manifest: Mapping[str, Any]
    made: bool
    """Whether we made it; otherwise another command did meanwhile."""


@dataclass(frozen=True)
class Busy:
    """Another command makes this run."""

    key: Key


@dataclass(frozen=True)
class Stopped:
    """A run ended without results because it was told to."""

    key: Key


@dataclass(frozen=True)
class Lost:
    """Where the run was made is gone; it may be tried again."""

    key: Key
    reason: str


@dataclass(frozen=True)
class Failed:
    """A run ended without results, and would again."""

    key: Key
    message: str
    is_input: bool
    """Whether it is the user's to mend, and would spoil the other runs too."""


Event = Progressed | Stored | Busy | Stopped | Lost | Failed


class Executor(Protocol):
    """Where runs are made: it is given jobs and tells what became of them. It puts results into the store.

    Used by one thread. Every job taken ends with one event that is not `Progressed`.
    """

    def room(self) -> int:
        """How many more jobs it would take now."""
        ...

    def take(self, job: Job) -> None:
        """Begins a run, or keeps it until there is a processor for it."""
        ...

    def events(self, seconds: float) -> Sequence[Event]:
        """What has happened; waits for something to happen, but not longer than this.

        Raises `EnvironmentLacks` where nothing more can be made there.
        """
        ...

    def stop(self) -> None:
        """Asks all runs to end soon."""
        ...

    def close(self) -> None:
        """Gives everything back. There is no use of it afterwards."""
        ...


@dataclass(frozen=True)
class Progress:
    """How far the work is. A snapshot: ask again."""

    finished: int
    skipped: int
    """Runs that were there already."""
    elsewhere: int
    """Runs that another command makes, for which we wait."""
    total: int
    """Runs wanted, all of these among them."""
    fraction: float
    """Of the simulated time still to be simulated when the work began, 0 to 1."""
    simulated_ns: int
    packet_hops: int
    elapsed_s: float

    @property
    def packet_hops_per_second(self) -> float:
        """Over all workers since the start, wall time."""
        return self.packet_hops / self.elapsed_s if self.elapsed_s > 0 else 0.0


@dataclass(frozen=True)
class Finished:
    """A run that is in the store."""

    job: Job
    manifest: Mapping[str, Any]
    skipped: bool
    """Whether it was made by another command, before or meanwhile."""


class Wanted:
    """The runs of some experiments: those that are there, and those that are missing. None is removed meanwhile."""

    def __init__(self, experiments: Sequence[Experiment], store: Store, *, threads: int = 1) -> None:
        """Raises `EnvironmentLacks` where what makes the runs is not here."""
        versions = [item.backend.versions_of(item.plans) for item in experiments]
        store.prepare()
        self.jobs = _distinct(
            Job(plan, seed, version[plan.hash], threads, item.backend, own)
            for item, version, own in zip(experiments, versions, map(origin.of, experiments), strict=True)
            for seed in item.seeds
            for plan in item.plans
        )
        contents = [item.content for item in experiments if item.content is not None]
        self.reservation = Reservation(
            store.root, (job.key for job in self.jobs), (content.digest for content in contents)
        )
        """To be released when the experiments are recorded."""
        for content in contents:
            write_copy(store.root, content)
        self.missing = tuple(job for job in self.jobs if store.state(*job.key, job.version) is not State.WHOLE)
        missing = {job.key for job in self.missing}
        self.there = tuple(
            Finished(job, store.manifest(*job.key) or {}, skipped=True) for job in self.jobs if job.key not in missing
        )


class Batch:
    """Wanted runs under way. Poll `progress`; `cancel` stops; `join` waits and raises."""

    def __init__(self, wanted: Wanted, executor: Executor) -> None:
        self._wanted = wanted
        self._executor = executor
        self._started = time.monotonic()
        self._total_ns = sum(job.plan.end_ns for job in wanted.missing)
        self._jobs = {job.key: job for job in wanted.missing}
        self._waiting = deque(wanted.missing)
        self._elsewhere: list[Job] = []
        self._busy: set[Key] = set()
        self._look_elsewhere = 0.0
        self._lost: dict[Key, int] = {}
        self._under_way: dict[Key, Progressed] = {}
        self._finished: dict[Key, Finished] = {}
        self._failures: list[Failed] = []
        self._trouble: BaseException | None = None
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    def progress(self) -> Progress:
        """A snapshot."""
        with self._lock:
            finished = tuple(self._finished.values())
            under_way = tuple(self._under_way.values())
            elsewhere = len(self._busy)
        done_ns = sum(item.job.plan.end_ns for item in finished)
        done_ns += sum(min(item.simulated_ns, self._jobs[item.key].plan.end_ns) for item in under_way)
        hops = sum(int(item.manifest["packet_hops"]) for item in finished if not item.skipped)
        there = len(self._wanted.there)
        meanwhile = sum(item.skipped for item in finished)
        return Progress(
            finished=len(finished) - meanwhile,
            skipped=there + meanwhile,
            elsewhere=elsewhere,
            total=len(self._wanted.jobs),
            fraction=min(1.0, done_ns / self._total_ns) if self._total_ns else 1.0,
            simulated_ns=done_ns,
            packet_hops=hops + sum(item.packet_hops for item in under_way),
            elapsed_s=time.monotonic() - self._started,
        )

    def there(self) -> frozenset[Key]:
        """The runs that are in the store by now."""
        with self._lock:
            return frozenset((*(item.job.key for item in self._wanted.there), *self._finished))

    def done(self) -> bool:
        """Whether `join` returns at once."""
        return not self._thread.is_alive()

    def cancel(self) -> None:
        """Stops the runs under way and starts no others. Finished runs stay."""
        self._stopping.set()

    def join(self) -> tuple[Finished, ...]:
        """Waits for the end, when all runs wanted are in the store.

        Raises `Cancelled`, `BadInput`, `RunFailed`, or `EnvironmentLacks` where this machine or the cluster lacks
        something.
        """
        while self._thread.is_alive():
            self._thread.join(0.2)
        if self._trouble is not None:
            raise self._trouble
        for failure in self._failures:
            if failure.is_input:
                raise BadInput(f"{failure.message}\n  in {self._name(failure.key)}")
        if self._failures:
            raise RunFailed(self._what_failed())
        made = {item.job.key: item for item in (*self._wanted.there, *self._finished.values())}
        if len(made) < len(self._wanted.jobs):
            raise Cancelled(f"stopped; {len(made)} of {len(self._wanted.jobs)} runs are finished and kept")
        return tuple(made[job.key] for job in self._wanted.jobs)

    def _name(self, key: Key) -> str:
        return f"run {key[0]}/{key[1]} ({self._jobs[key].plan.case}, seed {key[1]})"

    def _what_failed(self) -> str:
        first = self._failures[0]
        text = f"{self._name(first.key)} ended without results: {first.message}"
        others = len(self._failures) - 1
        return text + (f"\n  {others} more failed; those that are finished are kept" if others else "")

    def _work(self) -> None:
        try:
            try:
                self._serve()
            finally:
                self._executor.close()
        except BaseException as error:  # noqa: BLE001 - raised again by `join`, on the caller's thread
            self._trouble = error

    def _serve(self) -> None:
        """Hands out jobs until none is left."""
        told = False
        while self._waiting or self._elsewhere or self._under_way:
            if self._stopping.is_set():
                self._waiting.clear()
                self._elsewhere.clear()
                if not told:
                    told = True
                    self._executor.stop()
            if self._elsewhere and time.monotonic() >= self._look_elsewhere:
                self._waiting.extend(self._elsewhere)
                self._elsewhere.clear()
            while self._waiting and self._executor.room() > 0:
                job = self._waiting.popleft()
                with self._lock:
                    self._under_way[job.key] = Progressed(job.key, 0, 0)
                self._executor.take(job)
            for event in self._executor.events(WAIT_SECONDS):
                with self._lock:
                    self._note(event)

    def _note(self, event: Event) -> None:
        job = self._jobs[event.key]
        if isinstance(event, Progressed):
            self._under_way[event.key] = event
            self._busy.discard(event.key)
            return
        del self._under_way[event.key]
        self._busy.discard(event.key)
        match event:
            case Stored():
                self._finished[event.key] = Finished(job, event.manifest, skipped=not event.made)
            case Busy():
                self._busy.add(event.key)
                self._elsewhere.append(job)
                self._look_elsewhere = time.monotonic() + ELSEWHERE_SECONDS
            case Lost():
                self._lost[event.key] = self._lost.get(event.key, 0) + 1
                if self._lost[event.key] < ATTEMPTS:
                    self._waiting.append(job)
                else:
                    self._failures.append(Failed(event.key, event.reason, is_input=False))
            case Failed():
                self._failures.append(event)
                if event.is_input:
                    self._stopping.set()
            case Stopped():
                pass


def _distinct(jobs: Iterable[Job]) -> tuple[Job, ...]:
    """Experiments that share a plan run it once."""
    return tuple({job.key: job for job in jobs}.values())
