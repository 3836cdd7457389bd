"""Runs as tasks of a Ray cluster that is there already. Nodes simulate; this process writes the results."""

from __future__ import annotations

import logging
import os
import re
import socket
import time
from typing import TYPE_CHECKING, Any, Final

from narrows.errors import BadInput, EnvironmentLacks, bad_input
from narrows.runs.running import Busy, Event, Failed, Job, Stopped, Stored
from narrows.runs.store import Lock

if TYPE_CHECKING:
    from collections.abc import Callable

    from narrows.runs.store import Store

SPARE: Final = 2
"""Tasks beyond those that the cluster has processors for, so that none idles while a result travels."""

RETRIES: Final = 3
"""Of a task whose node or process died, by Ray."""

KNOCK_SECONDS: Final = 5.0
"""For the cluster's first machine to answer."""

CENSUS_SECONDS: Final = 5.0
"""Between two counts of the cluster's processors: nodes come and go."""

GONE_SECONDS: Final = 30.0
"""Without an answer from its first machine the cluster is gone. Ray itself would end this process after 60."""

_HOST_PORT: Final = re.compile(r"(?P<host>[^\s:/\[\]]+|\[[0-9a-fA-F:]+\]):(?P<port>\d{1,5})")
"""An address that can be knocked at; IPv6 in brackets."""


class Cluster:
    """Makes runs on the nodes of a Ray cluster. Results equal those of this machine, byte for byte."""

    def __init__(self, store: Store, *, address: str | None = None, limit: int | None = None, threads: int = 1) -> None:
        """Connects. `limit` bounds the tasks in flight, each of which takes so many threads.

        Raises `EnvironmentLacks` without Ray, without a cluster or where no node has so many processors, `BadInput`
        for an address that is none.
        """
        import polars as pl

        self._ray = _connected(address)
        largest = max(_processors(self._ray), default=0)
        if threads > largest:  # Ray would wait for such a node without a word
            raise EnvironmentLacks(
                f"a run with --threads {threads} needs a node of {threads} processors; the largest of the cluster has "
                f"{largest}\n  help: give fewer --threads, or let a larger node join the cluster first"
            )
        self._store = store
        self._limit = limit
        self._threads = threads
        self._polars = pl.__version__
        self._task = self._ray.remote(num_cpus=threads, max_retries=RETRIES)(_task())
        self._flying: dict[Any, tuple[Job, Lock]] = {}
        self._said: list[Event] = []
        self._at_once = 0
        self._next_census = 0.0
        self._door = _door(self._ray.get_runtime_context().gcs_address)
        self._answered = time.monotonic()

    def room(self) -> int:
        """Tasks that the cluster would take. Raises `EnvironmentLacks` if it went away."""
        self._census()
        most = self._at_once + SPARE
        return min(most, self._limit or most) - len(self._flying)

    def take(self, job: Job) -> None:
        """Makes it a task, unless another command has it."""
        match self._store.claim(*job.key, job.version):
            case None:
                self._said.append(Busy(job.key))
            case Lock() as lock:
                versions = {"narrows": job.version, "polars": self._polars}
                reference = self._task.remote(vars(job.request), versions)
                self._flying[reference] = job, lock
            case manifest:
                self._said.append(Stored(job.key, manifest, made=False))

    def events(self, seconds: float) -> list[Event]:
        """What has come back, put into the store.

        Raises `EnvironmentLacks` if a node has another version or the cluster went away.
        """
        self._census()
        events, self._said = self._said, []
        if not self._flying:
            time.sleep(0 if events else seconds)
            return events
        ready, _ = self._ray.wait(list(self._flying), timeout=0 if events else seconds)
        return [*events, *map(self._ended, ready)]

    def stop(self) -> None:
        """Cancels the tasks."""
        for reference in self._flying:
            self._ray.cancel(reference)

    def close(self) -> None:
        """Leaves no task behind. The connection stays for the next experiment of this process."""
        self.stop()
        for _, lock in self._flying.values():
            lock.release()
        self._flying.clear()

    def _census(self) -> None:
        """Counts processors now and then, where the cluster still answers: else Ray would wait and say nothing."""
        if time.monotonic() < self._next_census:
            return
        try:
            _knock(self._door)
        except OSError as error:
            if time.monotonic() - self._answered > GONE_SECONDS:
                raise EnvironmentLacks(
                    f"the Ray cluster went away: {error}\n"
                    "  help: what was finished is kept; run the same command again when the cluster is back"
                ) from error
        else:
            self._answered = time.monotonic()
            self._at_once = sum(processors // self._threads for processors in _processors(self._ray))
        self._next_census = time.monotonic() + CENSUS_SECONDS

    def _ended(self, reference: Any) -> Event:
        # Forgetting the reference lets the cluster forget the result.
        job, lock = self._flying.pop(reference)
        with lock:
            try:
                outcome = self._ray.get(reference)
            except self._ray.exceptions.TaskCancelledError:
                return Stopped(job.key)
            except self._ray.exceptions.RayError as error:
                reason = str(error).strip().splitlines() or [""]
                return Failed(job.key, f"{type(error).__name__}: {reason[0]}", is_input=False)
            match outcome:
                case {"made": files, "manifest": manifest}:
                    try:
                        self._store.write(*job.key, files, manifest)
                    except BadInput as error:
                        return Failed(job.key, str(error), is_input=True)
                    return Stored(job.key, manifest, made=True)
                case {"lacks": sentence}:
                    raise EnvironmentLacks(sentence)
                case _:
                    return Failed(job.key, outcome["failed"], is_input=outcome["input"])


def _task() -> Callable[[dict[str, Any], dict[str, str]], dict[str, Any]]:
    """The task. Being a function in a function it travels as code, so that it can speak on a node without Narrows."""

    def task(request: dict[str, Any], expected: dict[str, str]) -> dict[str, Any]:
        import os
        import platform

        import ray

        os.environ.setdefault("POLARS_MAX_THREADS", "1")
        here = f"node {ray.util.get_node_ip_address()} ({platform.node()})"
        cure = "\n  help: install on every node what this machine has; versions name results"
        try:
            import polars as pl

            from narrows import native

            found = {"narrows": native.plan_version(request["plan"]), "polars": pl.__version__}
        except Exception as error:  # noqa: BLE001 - whatever keeps it from loading
            return {"lacks": f"{here} cannot load narrows: {error}{cure}"}
        if found != expected:
            differences = (f"{name} {found[name]}, and the command {expected[name]}" for name in expected)
            return {"lacks": f"{here} has {'; '.join(differences)}{cure}"}
        from narrows.runs import node

        outcome = node.perform(request)
        if "failed" in outcome and not outcome["input"]:
            outcome["failed"] += f", on {here}"
        return outcome

    return task


def _processors(ray: Any) -> list[int]:
    """Of each node of the cluster. A task's processors are all of one node."""
    return [int(node["Resources"].get("CPU", 0)) for node in ray.nodes() if node["Alive"]]


def _connected(address: str | None) -> Any:
    """The module `ray`, connected to its cluster."""
    # Else a task that a node kills for want of memory is tried again for ever.
    os.environ.setdefault("RAY_task_oom_retries", str(RETRIES))
    # Ray prints what goes on in the cluster to the output, which is for results; what matters comes with the tasks.
    os.environ.setdefault("RAY_DEDUP_LOGS_SKIP_REGEX", ".")
    try:
        import ray
    except ImportError as missing:
        raise EnvironmentLacks(
            f"Ray is not installed ({missing})\n  help: pip install 'narrows[ray]'; in a checkout, pip install '.[ray]'"
        ) from missing
    if ray.is_initialized():
        return ray
    address = address or os.environ.get("RAY_ADDRESS") or "auto"
    door = None if address == "auto" else _door(address)
    try:
        if door:
            _knock(door)  # Ray itself would take two minutes to say that nobody is there
        ray.init(address=address, logging_level=logging.ERROR, log_to_driver=False)
    except (OSError, RuntimeError, ValueError, SystemExit) as error:  # Ray ends a process that finds no cluster in time
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise EnvironmentLacks(
            f"no Ray cluster at {'this machine' if address == 'auto' else address}: {reason}\n"
            "  help: start one with `ray start --head --port=6379`, then give --ray-address HOST:6379"
        ) from error
    return ray


def _door(address: str) -> tuple[str, int]:
    """Host and port. Raises `BadInput` if it is no address that can be knocked at."""
    found = _HOST_PORT.fullmatch(address)
    if found is None or not 0 < int(found["port"]) < 1 << 16:
        raise bad_input(
            f"'{address}' is not the address of a Ray cluster",
            "write HOST:PORT, as in 10.0.0.1:6379, or auto for this machine's cluster, in --ray-address or RAY_ADDRESS",
        )
    return found["host"].strip("[]"), int(found["port"])


def _knock(door: tuple[str, int]) -> None:
    """Raises `OSError` if nobody answers."""
    socket.create_connection(door, timeout=KNOCK_SECONDS).close()
