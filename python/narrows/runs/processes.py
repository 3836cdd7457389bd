"""Runs on worker processes of this machine."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Any

from narrows.errors import EnvironmentLacks
from narrows.runs import subprocess_env
from narrows.runs.running import Busy, Event, Failed, Job, Lost, Progressed, Stopped, Stored

if TYPE_CHECKING:
    from collections.abc import Iterator

    from narrows.runs.reservation import Key
    from narrows.runs.simulate import Request
    from narrows.runs.store import Store

ENVIRONMENT = {
    "POLARS_MAX_THREADS": "1",
    # A backtrace needs memory: a process that dies for lack of it would hang while it prints one.
    "RUST_BACKTRACE": "0",
    "NARROWS_WORKER": "1",
}
NO_RETURN = 70
"""What a process ends with when a call of a controller in a file does not return."""
FAULTS = (signal.SIGSEGV, signal.SIGBUS, signal.SIGILL, signal.SIGFPE, signal.SIGTRAP)
"""What code that does wrong is killed by."""
CHUNK_BYTES = 1 << 16
CLOSE_SECONDS = 10
"""For a worker to end of itself; it takes its own grace before that."""


def default_workers() -> int:
    """One for each core that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Processes:
    """Makes runs on this machine: a fixed number of processes, each of which makes one run after another."""

    def __init__(self, store: Store, workers: int) -> None:
        self._root = str(store.root)
        self._selector = selectors.DefaultSelector()
        # All at once: each spends a while on its imports.
        self._workers = [_Worker(self._selector) for _ in range(workers)]

    def room(self) -> int:
        """Workers without a job."""
        return sum(worker.job is None for worker in self._workers)

    def take(self, job: Job) -> None:
        """Gives a job to a worker that has none."""
        place = next(place for place, worker in enumerate(self._workers) if worker.job is None)
        if self._workers[place].ended:
            self._workers[place].close()
            self._workers[place] = _Worker(self._selector)
        self._workers[place].begin(job, self._root)

    def events(self, seconds: float) -> list[Event]:
        """What the workers say. Raises `EnvironmentLacks` where a run found that this machine cannot make it."""
        ready = self._selector.select(seconds)
        return [event for key, _ in ready for event in key.data.events()]

    def stop(self) -> None:
        """Tells the workers."""
        for worker in self._workers:
            if worker.job is not None:
                worker.send({"cancel": True})

    def close(self) -> None:
        """Ends all workers."""
        for worker in self._workers:
            worker.hang_up()
        for worker in self._workers:
            worker.close()
        self._selector.close()


class _Worker:
    """A child process that runs one job after another."""

    def __init__(self, selector: selectors.BaseSelector) -> None:
        self.job: Key | None = None
        self._files: tuple[str, ...] = ()
        self.ended = False
        self._said = b""
        self._selector = selector
        self._process = subprocess.Popen(
            [sys.executable, "-m", "narrows.runs.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
            env=subprocess_env.environment() | ENVIRONMENT,
            start_new_session=True,
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._stdin, self._stdout = self._process.stdin, self._process.stdout
        selector.register(self._stdout, selectors.EVENT_READ, self)

    def begin(self, job: Job, root: str) -> None:
        """Starts a run."""
        self.job = job.key
        self._files = _controllers(job.request)
        self.send({"root": root, **vars(job.request)})

    def send(self, message: dict[str, Any]) -> None:
        """One line to the worker. If it has died, `events` says so."""
        line = memoryview(json.dumps(message).encode() + b"\n")
        with contextlib.suppress(BrokenPipeError):
            while line:
                line = line[self._stdin.write(line) :]

    def events(self) -> Iterator[Event]:
        """What it has said since, and whether it has died; called when there is something to read."""
        chunk = os.read(self._stdout.fileno(), CHUNK_BYTES)
        if not chunk:
            self.ended = True
            self._selector.unregister(self._stdout)
            if self.job is not None:
                yield self._ended(self._died(self.job, self._process.wait()))
            return
        *lines, self._said = (self._said + chunk).split(b"\n")
        for line in lines:
            assert self.job is not None, "a worker speaks of its job"
            yield self._event(self.job, json.loads(line))

    def hang_up(self) -> None:
        """Says that nothing will follow: it stops what it does and ends."""
        with contextlib.suppress(BrokenPipeError):
            self._stdin.close()

    def close(self) -> None:
        """Waits until the process is gone, for which `hang_up` has asked."""
        self.hang_up()
        try:
            self._process.wait(timeout=CLOSE_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._stdout.close()

    def _event(self, key: Key, message: dict[str, Any]) -> Event:
        match message:
            case {"progress": [int(simulated_ns), _, int(packet_hops)]}:
                return Progressed(key, simulated_ns, packet_hops)
            case {"made": manifest}:
                return self._ended(Stored(key, manifest, made=True))
            case {"there": manifest}:
                return self._ended(Stored(key, manifest, made=False))
            case {"busy": _}:
                return self._ended(Busy(key))
            case {"cancelled": _}:
                return self._ended(Stopped(key))
            case {"lacks": str(sentence)}:
                self.job = None
                raise EnvironmentLacks(sentence)
            case _:
                return self._ended(Failed(key, message["failed"], is_input=message["input"]))

    def _ended(self, event: Event) -> Event:
        self.job = None
        return event

    def _died(self, key: Key, code: int) -> Event:
        """What becomes of the run: a controller's fault would come again."""
        files = " or ".join(self._files)
        if files and code == NO_RETURN:
            said = f"error: {files}: a call of the controller has not returned for 10 s"
            return Failed(key, f"{said}\n  help: look for a loop without end", is_input=True)
        if code >= 0:
            return Lost(key, f"its process ended with code {code}")
        name = signal.Signals(-code).name
        in_c = " or ".join(file for file in self._files if not file.endswith(".py"))
        if in_c and -code in FAULTS:
            said = f"error: {in_c}: the controller's process was killed ({name})"
            return Failed(key, f"{said}\n  help: a pointer of the controller may lead nowhere", is_input=True)
        own = f". Or {in_c} gives back memory that it does not have" if in_c and -code == signal.SIGABRT else ""
        return Lost(
            key,
            f"its process was killed ({name})\n"
            f"  help: if this machine ran out of memory, give fewer --jobs; the same command goes on from there{own}",
        )


def _controllers(request: Request) -> tuple[str, ...]:
    """The files of the controllers that a run loads."""
    programs = (traffic["controller"].get("program") for traffic in request.plan["traffic"])
    return tuple(dict.fromkeys(program["file"] for program in programs if program))
