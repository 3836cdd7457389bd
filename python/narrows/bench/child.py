"""A run in a process of its own, so that its peak memory is its own: `python -m narrows.bench.child SEED THREADS`.

A plan goes in as JSON; the manifest comes out as JSON, with `peak_rss_bytes` and `read_ns`. No polars here: it would be
measured too.
"""

from __future__ import annotations

import json
import resource
import signal
import sys
from pathlib import Path

from narrows import native


def main() -> None:
    """Runs the plan and says what it cost."""
    # Python hears an interrupt only when the simulator returns; the system ends the process at once.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    manifest = native.Run(sys.stdin.read(), int(sys.argv[1]), threads=int(sys.argv[2])).join().manifest()
    manifest["peak_rss_bytes"] = _peak_rss_bytes()  # before memory is read through, which is no part of the run
    manifest["read_ns"] = native.calibrate_memory()
    sys.stdout.write(json.dumps(manifest) + "\n")


def _peak_rss_bytes() -> int:
    try:
        status = Path("/proc/self/status").read_text(encoding="utf-8")
    except OSError:
        # Not on Linux, whose `ru_maxrss` would remember the parent's memory. Bytes on macOS.
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return 1024 * next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM:"))


if __name__ == "__main__":
    main()
