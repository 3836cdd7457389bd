"""Instructions per packet-hop, by valgrind's callgrind: the same on a busy machine as on a quiet one."""

from __future__ import annotations

import re
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from narrows.bench.measure import sample, work
from narrows.errors import EnvironmentLacks, RunFailed

if TYPE_CHECKING:
    from narrows.bench.workloads import Workload

_COUNTED: Final = "narrows_sim::simulation::Simulation::advance*"
"""The function of `crates/narrows-sim/src/simulation.rs` within which instructions are counted: no set-up."""

_TOTALS = re.compile(r"^totals: (\d+)$", re.MULTILINE)


def present() -> bool:
    """Whether this machine can count."""
    return shutil.which("valgrind") is not None


def require() -> None:
    """Raises `EnvironmentLacks` where this machine cannot count."""
    if not present():
        raise EnvironmentLacks(
            "valgrind is not installed, and instructions are counted by it\n  help: apt-get install valgrind"
        )


def per_packet_hop(workload: Workload) -> float:
    """Instructions per packet-hop of the quick variant. Raises `EnvironmentLacks` or `RunFailed`."""
    require()
    with tempfile.TemporaryDirectory() as folder:
        profile = Path(folder) / "callgrind.out"
        command = ("valgrind", "--quiet", "--tool=callgrind", f"--callgrind-out-file={profile}")
        taken = sample(work(workload, quick=True), under=(*command, f"--toggle-collect={_COUNTED}"))
        return instructions(profile.read_text(encoding="utf-8")) / taken.packet_hops


def instructions(profile: str) -> int:
    """The total of a callgrind profile. Raises `RunFailed` if nothing was counted."""
    found = _TOTALS.search(profile)
    if found is None or found[1] == "0":
        raise RunFailed(f"callgrind counted nothing: the native module has no symbol {_COUNTED}")
    return int(found[1])
