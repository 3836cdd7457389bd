"""Plans × seeds on worker processes. Finished runs are skipped; stopping leaves every finished run whole."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import narrows
from narrows import native
from narrows.errors import BadInput, Cancelled, RunFailed
from narrows.store import State, Store

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from narrows.experiment import Experiment, Plan


@dataclass(frozen=True)
class Job:
    """A run to make: one plan, one seed."""

    plan: Plan
    seed: int

    @property
    def key(self) -> tuple[str, int]:
        """What names its results."""
        return self.plan.hash, self.seed


@dataclass(frozen=True)
class Progress:
    """How far the work is. A snapshot: ask again."""

    finished: int
    skipped: int
    """Runs that were there already."""
    total: int
    """Runs wanted, the skipped ones among them."""
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
    manifest: dict[str, Any]
    skipped: bool


@dataclass
class _Live:
    simulated_ns: int = 0
    end_ns: int = 1
    packet_hops: int = 0


@dataclass
class _Shared:
    waiting: queue.SimpleQueue[Job]
    lock: threading.Lock = field(default_factory=threading.Lock)
    live: dict[tuple[str, int], _Live] = field(default_factory=dict)
    finished: list[Finished] = field(default_factory=list)
    failures: list[tuple[Job, str, bool]] = field(default_factory=list)
    stopping: threading.Event = field(default_factory=threading.Event)


class Batch:
    """The runs of some experiments under way. Poll `progress`; `cancel` stops; `join` waits."""

    def __init__(
        self, experiments: Sequence[Experiment], store: Store, *, workers: int | None = None, threads: int = 1
    ) -> None:
        store.prepare()
        self._store = store
        self._threads_per_run = threads
        self._started = time.monotonic()
        version = native.version()
        jobs = _distinct(Job(plan, seed) for item in experiments for plan in item.plans for seed in item.seeds)
        missing = [job for job in jobs if store.state(*job.key, version) is not State.WHOLE]
        self._wanted = jobs
        self._total_ns = sum(job.plan.end_ns for job in missing)
        self._shared = _Shared(queue.SimpleQueue())
        for job in missing:
            self._shared.waiting.put(job)
        todo = {job.key for job in missing}
        self.skipped = tuple(
            Finished(job, store.manifest(*job.key) or {}, skipped=True) for job in jobs if job.key not in todo
        )
        count = min(workers or max(1, (os.cpu_count() or 1) // threads), len(missing))
        self._threads = [threading.Thread(target=self._serve, daemon=True) for _ in range(count)]
        for thread in self._threads:
            thread.start()

    def progress(self) -> Progress:
        """A snapshot."""
        shared = self._shared
        with shared.lock:
            done_ns = sum(item.job.plan.end_ns for item in shared.finished)
            live_ns = sum(min(live.simulated_ns, live.end_ns) for live in shared.live.values())
            hops = sum(int(item.manifest["packet_hops"]) for item in shared.finished)
            hops += sum(live.packet_hops for live in shared.live.values())
            finished = len(shared.finished)
        fraction = min(1.0, (done_ns + live_ns) / self._total_ns) if self._total_ns else 1.0
        return Progress(
            finished=finished,
            skipped=len(self.skipped),
            total=len(self._wanted),
            fraction=fraction,
            simulated_ns=done_ns + live_ns,
            packet_hops=hops,
            elapsed_s=time.monotonic() - self._started,
        )

    def done(self) -> bool:
        """Whether `join` returns at once."""
        return not any(thread.is_alive() for thread in self._threads)

    def cancel(self) -> None:
        """Stops the runs under way and starts no others. Finished runs stay."""
        self._shared.stopping.set()

    def join(self) -> tuple[Finished, ...]:
        """Waits for the end, when all runs wanted are in the store. Raises `Cancelled`, `BadInput` or `RunFailed`."""
        for thread in self._threads:
            while thread.is_alive():
                thread.join(0.2)
        if self._shared.failures:
            job, message, is_input = self._shared.failures[0]
            if is_input:
                raise BadInput(message)
            raise RunFailed(f"run {job.plan.hash}/{job.seed} ({job.plan.case}) ended without results: {message}")
        made = {item.job.key: item for item in (*self.skipped, *self._shared.finished)}
        if len(made) < len(self._wanted):
            raise Cancelled(f"stopped; {len(made)} of {len(self._wanted)} runs are finished and kept")
        return tuple(made[job.key] for job in self._wanted)

    def _serve(self) -> None:
        """One thread per worker process: hands it a job, follows it, takes the next."""
        shared = self._shared
        with _Worker() as worker:
            while not shared.stopping.is_set():
                try:
                    job = shared.waiting.get_nowait()
                except queue.Empty:
                    return
                outcome = self._follow(worker, job)
                with shared.lock:
                    shared.live.pop(job.key, None)
                    if "finished" in outcome:
                        shared.finished.append(Finished(job, outcome["finished"], skipped=False))
                    elif "failed" in outcome:
                        shared.failures.append((job, outcome["failed"], outcome["input"]))
                        shared.stopping.set()

    def _follow(self, worker: _Worker, job: Job) -> dict[str, Any]:
        live = _Live(end_ns=job.plan.end_ns)
        with self._shared.lock:
            self._shared.live[job.key] = live
        worker.send(
            {
                "plan": job.plan.body,
                "unlabelled": job.plan.unlabelled,
                "hash": job.plan.hash,
                "seed": job.seed,
                "threads": self._threads_per_run,
                "root": str(self._store.root),
            }
        )
        asked = False
        while (message := worker.receive()) is not None:
            if "progress" not in message:
                return message
            live.simulated_ns, _, live.packet_hops = message["progress"]
            if self._shared.stopping.is_set() and not asked:
                asked = True
                worker.send({"cancel": True})
        return {"failed": f"its process ended with code {worker.code()}", "input": False}


class _Worker:
    """A child process that runs one job after another."""

    def __init__(self) -> None:
        package = str(Path(narrows.__file__).parents[1])
        paths = [package, *filter(None, [os.environ.get("PYTHONPATH")])]
        self._process = subprocess.Popen(
            [sys.executable, "-m", "narrows.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            env=os.environ | {"PYTHONPATH": os.pathsep.join(paths), "POLARS_MAX_THREADS": "1"},
            start_new_session=True,
        )

    def __enter__(self) -> _Worker:
        return self

    def __exit__(self, *_: object) -> None:
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        with contextlib.suppress(BrokenPipeError):
            stdin.close()
        try:
            self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        stdout.close()

    def send(self, message: dict[str, Any]) -> None:
        """One line to the worker. If it has died, `receive` says so."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(message) + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            pass

    def receive(self) -> dict[str, Any] | None:
        """The next line, or `None` when the worker has ended."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        return json.loads(line) if line else None

    def code(self) -> int:
        """Its exit code."""
        return self._process.wait()


def _distinct(jobs: Iterable[Job]) -> tuple[Job, ...]:
    """Experiments that share a plan run it once."""
    return tuple({job.key: job for job in jobs}.values())
