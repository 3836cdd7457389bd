"""One worker process: `python -m narrows.worker` takes jobs as JSON lines on its input and reports on its output.

In:  `{"plan": {…}, "unlabelled": {…}, "hash": "…", "seed": 1, "threads": 1, "root": "…"}` is a run;
`{"cancel": true}` stops it.
Out: `{"progress": [simulated_ns, end_ns, packet_hops]}`, then one of `{"finished": {manifest}}`, `{"cancelled": true}`,
`{"failed": "…", "input": bool}`. The end of the input stops the worker, so it does not outlive its parent.
"""

from __future__ import annotations

import json
import os
import queue
import signal
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from narrows import native
from narrows.columns import TABLES
from narrows.errors import BadInput, Cancelled
from narrows.store import Store

if TYPE_CHECKING:
    from collections.abc import Mapping

POLL_SECONDS = 0.1


class _Inbox:
    """What the parent says, read on a thread of its own so that a run can be cancelled while it goes on."""

    def __init__(self, stream: TextIO) -> None:
        self.jobs: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
        self.cancelled = threading.Event()
        threading.Thread(target=self._read, args=(stream,), daemon=True).start()

    def _read(self, stream: TextIO) -> None:
        for line in stream:
            message = json.loads(line)
            if "cancel" in message:
                self.cancelled.set()
            else:
                self.jobs.put(message)
        self.cancelled.set()
        self.jobs.put(None)


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
        raise SystemExit(1) from None


def _perform(job: Mapping[str, Any], cancelled: threading.Event, reports: TextIO) -> dict[str, object]:
    try:
        run = native.Run(json.dumps(job["plan"]), job["seed"], threads=job["threads"])
        results = _simulate(run, cancelled, reports)
        manifest = results.manifest()
        if manifest["plan_hash"] != job["hash"]:
            return {"failed": f"the simulator ran plan {manifest['plan_hash']}, not {job['hash']}", "input": False}
        tables = {name: results.table(name) for name in TABLES}
        Store(Path(job["root"])).write(job["hash"], job["seed"], tables, manifest | {"plan": job["unlabelled"]})
    except Cancelled:
        return {"cancelled": True}
    except BadInput as error:
        return {"failed": str(error), "input": True}
    except BaseException as error:  # noqa: BLE001 - a panic of the simulator is reported by the parent, with the run's name
        return {"failed": f"{type(error).__name__}: {error}", "input": False}
    return {"finished": manifest}


def _simulate(run: native.Run, cancelled: threading.Event, reports: TextIO) -> native.RunResults:
    """Waits for the run on a second thread, so that this one can report and cancel."""
    outcome: queue.SimpleQueue[native.RunResults | BaseException] = queue.SimpleQueue()

    def wait() -> None:
        try:
            outcome.put(run.join())
        except BaseException as error:  # noqa: BLE001 - raised again on the other thread
            outcome.put(error)

    threading.Thread(target=wait, daemon=True).start()
    asked = False
    while True:
        try:
            ended = outcome.get(timeout=POLL_SECONDS)
        except queue.Empty:
            _report(reports, {"progress": run.progress()})
            if cancelled.is_set() and not asked:
                asked = True
                run.cancel()
            continue
        if isinstance(ended, BaseException):
            raise ended
        return ended


if __name__ == "__main__":
    main()
