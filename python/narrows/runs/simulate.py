"""Simulates one run in this process. Worker processes and nodes of a cluster do the same thing here."""

from __future__ import annotations

import json
import threading
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from narrows import native
from narrows.columns import tables
from narrows.errors import RunFailed
from narrows.runs import origin
from narrows.runs.backends import Backend
from narrows.runs.store import encoded

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from narrows.native import TableName

LOOK_SECONDS = 0.1


@dataclass(frozen=True)
class Request:
    """A run to make, as it travels: plain values only."""

    hash: str
    seed: int
    plan: Mapping[str, Any]
    """What the simulator is given."""
    unlabelled: Mapping[str, Any]
    """What the manifest keeps of it."""
    threads: int = 1
    """Most threads; the results do not depend on them."""
    backend: str = Backend.SIM.value
    """What runs it; only the simulator does in this process."""
    origin: Mapping[str, Any] = field(default_factory=dict)
    """Where it comes from, for the manifest."""

    @property
    def stored(self) -> str:
        """The name of the folder of its runs."""
        return Backend(self.backend).stored(self.hash)


@dataclass(frozen=True)
class Made:
    """A finished run that is not in a store yet."""

    files: Mapping[TableName, bytes]
    manifest: Mapping[str, Any]


def make(request: Request, look: Callable[[tuple[int, int, int]], bool]) -> Made:
    """Simulates a plan to its end.

    `look` hears (simulated ns, ns at the end, packet-hops) ten times a second and says whether to go on. Raises
    `Cancelled` if it does not, `BadInput` if the simulator refuses the plan, `RunFailed` if it ran another one.
    """
    results = joined(native.Run(json.dumps(request.plan), request.seed, threads=request.threads), look)
    manifest = results.manifest()
    if manifest["plan_hash"] != request.hash:
        raise RunFailed(f"the simulator ran plan {manifest['plan_hash']}, not {request.hash}")
    files = {name: encoded(name, results.table(name)) for name in tables()}
    return Made(files, manifest | origin.completed(request.origin) | {"plan": request.unlabelled})


def joined(run: native.Run, look: Callable[[tuple[int, int, int]], bool]) -> native.RunResults:
    """Waits for the run on a second thread, so that this one can look. Whatever interrupts this one stops the run."""
    outcome: Future[native.RunResults] = Future()

    def wait() -> None:
        try:
            outcome.set_result(run.join())
        except BaseException as error:  # noqa: BLE001 - raised again on the other thread
            outcome.set_exception(error)

    threading.Thread(target=wait, daemon=True).start()
    try:
        while True:
            try:
                return outcome.result(timeout=LOOK_SECONDS)
            except TimeoutError:
                if not look(run.progress()):
                    run.cancel()
    finally:
        run.cancel()
