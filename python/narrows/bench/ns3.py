"""ns-3 on the same work, in turn with ours, by the programs in `bench/ns3` of a checkout and Debian's libns3-dev."""

from __future__ import annotations

import re
import signal
import subprocess
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Final

from narrows.bench import measure
from narrows.errors import EnvironmentLacks, RunFailed

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from narrows.bench.measure import Sample
    from narrows.bench.workloads import Workload

TURNS: Final = 2
"""Times that each simulator runs a workload."""

_ENDS_US: Final = {"W1": 4_000_000, "W2": 2_000_000, "W3": 5_000, "W4": 600, "W5": 300_000}
"""Simulated µs: what ns-3 does in less than a minute."""

_PROGRAMS: Final = {"W1": ("w1",), "W2": ("w2",), "W3": ("w3",), "W4": ("w3", "--k=16"), "W5": ("w5",)}

_LACKS: Final = 3
"""What the build script ends with where ns-3 is not installed."""


@dataclass(frozen=True)
class Report:
    """The line of figures of one run of a program."""

    run_user_s: float
    """CPU time without the set-up."""
    peak_rss_mib: float
    packet_hops: int | None
    """Only of a run that counts, whose time does not count."""
    drops: int | None


@dataclass(frozen=True)
class Comparison:
    """A workload in both simulators."""

    workload: str
    simulated_us: int
    ours: tuple[Sample, ...]
    theirs: tuple[Report, ...]
    packet_hops: int
    """Of ns-3: it frames packets more tightly, and its traffic is drawn otherwise."""
    drops: int
    version: str

    def record(self) -> dict[str, object]:
        """For programs: units are in the names, times are medians over the turns."""
        ours = median(sample.ns_per_packet_hop for sample in self.ours)
        theirs = median(report.run_user_s for report in self.theirs) * 1e9 / self.packet_hops
        return {
            "workload": self.workload,
            "simulator": "ns-3",
            "peer": f"ns-3 {self.version}",
            "simulated_us": self.simulated_us,
            "ns_per_packet_hop": ours,
            "peer_ns_per_packet_hop": theirs,
            "ratio": theirs / ours,
            "packet_hops": self.ours[0].packet_hops,
            "peer_packet_hops": self.packet_hops,
            "peer_drops": self.drops,
            "peak_rss_mib": median(sample.peak_rss_bytes for sample in self.ours) / 2**20,
            "peer_peak_rss_mib": median(report.peak_rss_mib for report in self.theirs),
            "turns": len(self.ours),
        }


class Programs:
    """The programs, built."""

    def __init__(self) -> None:
        """Builds what is not there. Raises `EnvironmentLacks` without a checkout or without ns-3."""
        checkout = _checkout()
        self._folder = checkout / "target" / "ns3"
        built = subprocess.run(
            [checkout / "bench" / "ns3" / "build.sh", self._folder], capture_output=True, text=True, check=False
        )
        if built.returncode == _LACKS:
            raise EnvironmentLacks(built.stderr.strip().replace(": ", "\n  help: ", 1))
        if built.returncode != 0:
            raise RunFailed(f"ns-3's programs cannot be built\n{built.stderr.strip()}")
        self.version = built.stdout.strip().splitlines()[-1]

    def run(self, workload: str, *, count: bool) -> Report:
        """One run of a workload's program."""
        program, *options = _PROGRAMS[workload]
        command = [str(self._folder / program), *options, f"--seconds={_ENDS_US[workload] / 1e6:g}"]
        ended = subprocess.run(
            [*command, *(["--count=1"] if count else [])], capture_output=True, text=True, check=False
        )
        if ended.returncode == -signal.SIGINT:
            raise KeyboardInterrupt
        if ended.returncode != 0:
            raise RunFailed(f"{' '.join(command)} ended with code {ended.returncode}\n{ended.stderr.strip()}")
        return parse(ended.stdout)


def parse(output: str) -> Report:
    """What a program printed. Raises `RunFailed` if it is no line of figures."""
    found = dict(re.findall(r"(\w+)=(\S+)", output.strip().splitlines()[-1] if output.strip() else ""))
    try:
        return Report(
            run_user_s=float(found["run_user_s"]),
            peak_rss_mib=float(found["rss_peak_MiB"]),
            packet_hops=int(found["hops"]) if "hops" in found else None,
            drops=int(found["drops"]) if "drops" in found else None,
        )
    except (KeyError, ValueError) as error:
        raise RunFailed(f"ns-3 printed no figures ({error}): {output.strip()[-200:]}") from None


def comparable(chosen: Sequence[Workload]) -> tuple[Workload, ...]:
    """Those of the workloads that ns-3 has a program for."""
    return tuple(workload for workload in chosen if workload.name in _PROGRAMS)


def compare(programs: Programs, workload: Workload, say: Callable[[str], None]) -> Comparison:
    """Ours, theirs, ours, theirs; and one more of theirs that counts."""
    end_us = _ENDS_US[workload.name]
    job = measure.work(workload, end=f"{end_us}us")
    ours, theirs = [], []
    for turn in range(1, TURNS + 1):
        say(f"{workload.name} beside ns-3, run {turn} of {TURNS}")
        ours.append(measure.sample(job))
        theirs.append(programs.run(workload.name, count=False))
    say(f"{workload.name}, ns-3's packet-hops")
    counted = programs.run(workload.name, count=True)
    if not counted.packet_hops or counted.drops is None:
        raise RunFailed(f"ns-3 counted no packet-hops of {workload.name}")
    return Comparison(
        workload.name, end_us, tuple(ours), tuple(theirs), counted.packet_hops, counted.drops, programs.version
    )


def _checkout() -> Path:
    here = Path.cwd().resolve()
    for folder in (here, *here.parents, *Path(__file__).resolve().parents):
        if (folder / "bench" / "ns3" / "build.sh").is_file():
            return folder
    raise EnvironmentLacks("ns-3's programs are not here\n  help: change to a checkout of the project")
