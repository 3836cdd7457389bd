"""The native module, steered by the environment; every answer is its own.

`TEST_VERSION` is what it calls itself, `TEST_SECONDS` how much longer each run takes. Runs of arms called `panics`,
`dies`, `is-killed`, `faults` and `never-returns` end so. `TEST_END_MS` ends arrivals earlier. Where `TEST_NO_RUNS` is a
file's path, a run is noted there and refused.
"""

import json
import os
import signal
import threading
import time
from pathlib import Path

from narrows import _native

_start, _expand, _version, _plan_version = _native.start, _native.expand, _native.version, _native.plan_version


class Run:
    def __init__(self, plan_json, seed, threads, substitute):
        plan = json.loads(plan_json)
        self._arm = plan.get("arm")
        if "TEST_END_MS" in os.environ:
            plan["schedule"] |= {"end": int(1e9 * float(os.environ["TEST_END_MS"])), "warmup": 0}
            plan_json = json.dumps(plan)
        self._run = _start(plan_json, seed, threads=threads, substitute=substitute)
        self._seconds = float(os.environ.get("TEST_SECONDS", "0"))
        self._ends = time.monotonic() + self._seconds
        self._cancelled = threading.Event()

    def progress(self):
        now, end, hops = self._run.progress()
        left = max(0.0, self._ends - time.monotonic())
        share = 1 - left / self._seconds if self._seconds else 1.0
        return int(now * share), end, int(hops * share)

    def cancel(self):
        self._cancelled.set()
        self._run.cancel()

    def join(self):
        if self._cancelled.wait(max(0.0, self._ends - time.monotonic())):
            raise _native.Cancelled
        match self._arm:
            case "panics":
                raise RuntimeError("a packet was lost twice")
            case "dies":
                os._exit(9)
            case "is-killed":
                os.kill(os.getpid(), signal.SIGKILL)
            case "faults":
                os.kill(os.getpid(), signal.SIGSEGV)
            case "never-returns":
                os._exit(70)
        return Outcome(self._run.join())


class Outcome:
    def __init__(self, outcome):
        self.table = outcome.table
        self._manifest = outcome.manifest

    def manifest(self):
        made = json.loads(self._manifest())
        if "TEST_VERSION" in os.environ:
            made |= {"version": version(), "sources": {"engine": version()}}
        return json.dumps(made)


def start(plan_json, seed, *, threads=1, substitute=None):
    if note := os.environ.get("TEST_NO_RUNS"):
        Path(note).touch()
        raise RuntimeError("this test makes runs and is not marked `simulator`")
    return Run(plan_json, seed, threads, substitute)


def version():
    return os.environ.get("TEST_VERSION") or _version()


def plan_version(plan_json, by=None):
    return version() if "TEST_VERSION" in os.environ and by is None else _plan_version(plan_json, by)


def expand(path, **options):
    expanded = _expand(path, **options)
    if "TEST_VERSION" not in os.environ:
        return expanded
    read = json.loads(expanded)
    for plan in read["plans"]:
        plan["version"] = version()
    return json.dumps(read)


_native.version, _native.plan_version, _native.expand = version, plan_version, expand
_native.start = start
