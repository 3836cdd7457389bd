"""One worker process: `python -m narrows.runs.worker` takes runs as JSON lines on its input and reports on its output.

In:  `{"root": "…", "hash": "…", "seed": 1, "plan": {…}, "unlabelled": {…}, "backend": "sim"}` is a run;
`{"cancel": true}` stops it.
Out: `{"progress": [simulated_ns, end_ns, packet_hops]}`, then one of `{"made": {manifest}}`, `{"there": {manifest}}`,
`{"busy": true}` (another process makes this run), `{"cancelled": true}`, `{"failed": "…", "input": bool}`,
`{"lacks": "…"}` (the machine lacks something). The end of the input stops the worker, so it does not outlive its
parent.
"""

from __future__ import annotations

import json
import os
import queue
import signal
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from narrows.errors import BadInput, Cancelled, EnvironmentLacks, RunFailed
from narrows.runs import live, simulate
from narrows.runs.backends import Backend
from narrows.runs.simulate import Request
from narrows.runs.store import Lock, Store

if TYPE_CHECKING:
    from collections.abc import Mapping

    from narrows.runs.live import Look
    from narrows.runs.simulate import Made

GRACE_SECONDS = 5
"""For a run to notice that nobody waits for it, before the process ends whatever it does."""


class _Inbox:
    """What the parent says, read on a thread of its own so that a run can be cancelled while it goes on."""

    def __init__(self, stream: TextIO) -> None:
        self.jobs: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
        self.cancelled = threading.Event()
        threading.Thread(target=self._read, args=(stream,), daemon=True).start()

    def _read(self, stream: TextIO) -> None:
        try:
            for line in stream:
                message = json.loads(line)
                if "cancel" in message:
                    self.cancelled.set()
                else:
                    self.jobs.put(message)
        finally:  # also where the parent died in the middle of a word, or no memory is left to hear it
            self.cancelled.set()
            self.jobs.put(None)
            time.sleep(GRACE_SECONDS)
            os._exit(1)


def main() -> None:
    """Works until the input ends. Interrupts are the parent's business: it decides and says so."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    inbox = _Inbox(sys.stdin)
    reports = _claim_output()
    while (job := inbox.jobs.get()) is not None:
        _report(reports, _perform(job, inbox.cancelled, reports))


def _claim_output() -> TextIO:
    """Keeps the channel to the parent for reports: whatever else prints, prints to the error stream."""
    channel = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    return channel


def _report(reports: TextIO, message: Mapping[str, object]) -> None:
    try:
        reports.write(json.dumps(message) + "\n")
        reports.flush()
    except BrokenPipeError:
        os._exit(1)  # the parent is gone, and so is the reader of whatever else we might say


def _perform(job: dict[str, Any], cancelled: threading.Event, reports: TextIO) -> dict[str, object]:
    store = Store(Path(job.pop("root")))
    request = Request(**job)

    def look(progress: tuple[int, int, int]) -> bool:
        _report(reports, {"progress": progress})
        return not cancelled.is_set()

    try:
        version = Backend(request.backend).version(request.plan)
        match store.claim(request.stored, request.seed, version):
            case None:
                return {"busy": True}
            case Lock() as lock:
                with lock:
                    made = _make(request, look, store, version)
                    store.write(request.stored, request.seed, made.files, made.manifest)
                return {"made": made.manifest}
            case manifest:
                return {"there": manifest}
    except Cancelled:
        return {"cancelled": True}
    except BadInput as error:
        return {"failed": str(error), "input": True}
    except EnvironmentLacks as error:
        return {"lacks": str(error)}
    except RunFailed as error:
        return {"failed": str(error), "input": False}
    except BaseException as error:  # noqa: BLE001 - a panic of the simulator is reported by the parent, with the run's name
        return {"failed": f"{type(error).__name__}: {error}", "input": False}


def _make(request: Request, look: Look, store: Store, version: str) -> Made:
    """The run, made by what its backend is; the caller holds its lock."""
    if not Backend(request.backend).is_live:
        return simulate.make(request, look)
    with store.scratch(request.stored, request.seed) as scratch:
        return live.make(request, look, scratch, version)


if __name__ == "__main__":
    main()
