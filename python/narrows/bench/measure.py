"""Runs workloads in processes of their own, again and again in turn, and takes medians."""

from __future__ import annotations

import itertools
import json
import signal
import subprocess
import sys
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Any, Final

from narrows.errors import RunFailed
from narrows.experiment import Experiment
from narrows.runs import subprocess_env

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from narrows.bench.workloads import Workload


MAX_LOAD: Final = 0.5
"""Other programs that may be running, on average over a minute."""

MAX_WAITED: Final = 1.05
"""Wall time over CPU time of a run that nothing disturbs."""

MAX_SPREAD: Final = 0.15
"""From the fastest run of a workload to the slowest, as a share of the median."""

MAX_SLOW_MEMORY: Final = 1.25
"""A read beside a workload over that beside another of the command: other tenants of a processor share its memory."""


@dataclass(frozen=True)
class Sample:
    """What one run cost."""

    packet_hops: int
    events: int
    simulated_ns: int
    cpu_ns: int
    """Of the thread that simulates: set-up, run, results."""
    wall_ns: int
    """From its beginning to its end."""
    hold_ns: float
    """Nanoseconds per hold in the same process, right after the run."""
    peak_rss_bytes: int
    """Of the process: the simulation, and some 13 MiB of interpreter."""
    read_ns: float
    """Nanoseconds per read along a random chain through 8 MB of memory, in the same process, after the run."""
    threads: int = 1
    """That it ran on."""

    @property
    def ns_per_packet_hop(self) -> float:
        """CPU time."""
        return self.cpu_ns / self.packet_hops

    @property
    def holds_per_packet_hop(self) -> float:
        """CPU time in the machine's own unit."""
        return self.ns_per_packet_hop / self.hold_ns

    @property
    def reads_per_packet_hop(self) -> float:
        """CPU time in the unit of the machine's memory."""
        return self.ns_per_packet_hop / self.read_ns


@dataclass(frozen=True)
class Measurement:
    """A workload's samples, and what callgrind counted."""

    workload: Workload
    samples: tuple[Sample, ...]
    instructions_per_packet_hop: float | None
    """Of the quick variant; `None` where they were not counted."""
    on_threads: tuple[Sample, ...] = ()
    """The same on up to several threads, if that was asked for."""

    @property
    def holds_per_packet_hop(self) -> float:
        """Median of the samples' ratios."""
        return median(sample.holds_per_packet_hop for sample in self.samples)

    @property
    def reads_per_packet_hop(self) -> float:
        """Median of the samples' ratios."""
        return median(sample.reads_per_packet_hop for sample in self.samples)

    @property
    def meets_must(self) -> bool | None:
        """Whether a packet-hop costs no more than it may; `None` where some runs say so and others not."""
        if self.workload.must_reads is not None:
            costs = [sample.reads_per_packet_hop / self.workload.must_reads for sample in self.samples]
        else:
            costs = [sample.holds_per_packet_hop / self.workload.must_holds for sample in self.samples]
        return median(costs) <= 1 if (min(costs) <= 1) == (max(costs) <= 1) else None

    @property
    def waited(self) -> float:
        """Wall time over CPU time, median: above 1 where other programs had the processor."""
        return median(sample.wall_ns / sample.cpu_ns for sample in self.samples)

    @property
    def spread(self) -> float:
        """From the fastest run to the slowest, as a share of the median; 0 of one run."""
        costs = [sample.ns_per_packet_hop for sample in self.samples]
        return (max(costs) - min(costs)) / median(costs)

    @property
    def read_ns(self) -> float:
        """Median of the samples."""
        return median(sample.read_ns for sample in self.samples)

    def noise(self, load: float | None, quickest_read_ns: float | None = None) -> list[str]:
        """Why times of this machine do not say whether a goal is met, if they do not.

        `load` is the number of other programs that were running before the first run, `None` where it is not known;
        `quickest_read_ns` is the least median of the command's workloads.
        """
        name = self.workload.name
        why = []
        if load is not None and load > MAX_LOAD:
            why.append(f"the load was {load:.2g} before the first run")
        if self.waited > MAX_WAITED:
            why.append(f"{name} took {self.waited:.2f} times its CPU time")
        if self.spread > MAX_SPREAD:
            why.append(f"the runs of {name} differ by {self.spread:.0%}")
        quickest = quickest_read_ns or self.read_ns
        if self.workload.must_reads is not None and self.read_ns > MAX_SLOW_MEMORY * quickest:
            why.append(f"a read took {self.read_ns:.1f} ns beside {name}, and {quickest:.1f} ns at another time")
        return why

    @property
    def speedup(self) -> float | None:
        """How many times less wall time it takes on its threads than on one; `None` if that was not asked for."""
        if not self.on_threads:
            return None
        return median(one.wall_ns for one in self.samples) / median(each.wall_ns for each in self.on_threads)

    def record(self, load: float | None, quickest_read_ns: float | None = None) -> dict[str, object]:
        """For programs: units are in the names, times are medians over the samples. The rest is as for `noise`."""
        first = self.samples[0]
        noise = self.noise(load, quickest_read_ns)
        return {
            "workload": self.workload.name,
            "simulator": "narrows",
            "ns_per_packet_hop": median(sample.ns_per_packet_hop for sample in self.samples),
            "hold_ns": median(sample.hold_ns for sample in self.samples),
            "holds_per_packet_hop": self.holds_per_packet_hop,
            "must_holds": self.workload.must_holds,
            "read_ns": self.read_ns,
            "reads_per_packet_hop": self.reads_per_packet_hop,
            "must_reads": self.workload.must_reads,
            "must": self.workload.must,
            "meets_must": None if noise else self.meets_must,
            "must_within_runs": self.meets_must is None,
            "noise": noise,
            "aim_holds": self.workload.aim_holds,
            "instructions_per_packet_hop": self.instructions_per_packet_hop,
            "events_per_packet_hop": first.events / first.packet_hops,
            "packet_hops": first.packet_hops,
            "peak_rss_mib": median(sample.peak_rss_bytes for sample in self.samples) / 2**20,
            "simulated_seconds_per_cpu_second": median(s.simulated_ns / s.cpu_ns for s in self.samples),
            "wall_seconds_per_cpu_second": self.waited,
            "spread": self.spread,
            "wall_seconds": median(sample.wall_ns for sample in self.samples) / 1e9,
            "threads": max((sample.threads for sample in self.on_threads), default=1),
            "wall_seconds_on_threads": [sample.wall_ns / 1e9 for sample in self.on_threads],
            "speedup": self.speedup,
            "repeats": len(self.samples),
        }


@dataclass(frozen=True)
class Work:
    """A plan and a seed, as the child takes them."""

    name: str
    plan_json: str
    seed: int


def work(workload: Workload, *, quick: bool = False, end: str | None = None) -> Work:
    """What a workload asks of the simulator: as its file has it, quick, or until another end."""
    expanded = Experiment(workload.file, quick=quick, settings=[("run.end", end)] if end else [])
    return Work(workload.name, json.dumps(expanded.plans[0].body), expanded.seeds[0])


def sample(job: Work, *, threads: int = 1, under: Sequence[str] = ()) -> Sample:
    """One run in a process of its own; `under` is a command in front of it. Raises `RunFailed`."""
    ended = subprocess.run(
        [*under, sys.executable, "-m", "narrows.bench.child", str(job.seed), str(threads)],
        input=job.plan_json,
        capture_output=True,
        text=True,
        encoding="utf-8",
        env=subprocess_env.environment(),
        check=False,
    )
    if ended.returncode in (-signal.SIGINT, 128 + signal.SIGINT):
        raise KeyboardInterrupt
    if ended.returncode != 0:
        raise RunFailed(f"workload {job.name} ended with code {ended.returncode}\n{ended.stderr.strip()}")
    manifest: dict[str, Any] = json.loads(ended.stdout)
    return Sample(**{name: manifest[name] for name in Sample.__dataclass_fields__})


def repeated(
    workloads: Sequence[Workload], repeat: int, say: Callable[[str], None], *, threads: int = 1
) -> list[tuple[tuple[Sample, ...], tuple[Sample, ...]]]:
    """`repeat` samples of each workload, on one thread and, if `threads` are more, on these too.

    In turn, so that a busy minute does not fall on one of them alone.
    """
    jobs = [work(workload) for workload in workloads]
    numbers = (1, threads) if threads > 1 else (1,)
    samples: dict[tuple[str, int], list[Sample]] = {(job.name, number): [] for job in jobs for number in numbers}
    for turn in range(1, repeat + 1):
        for job, number in itertools.product(jobs, numbers):
            say(f"{job.name}, run {turn} of {repeat}" + (f", {number} threads" if number > 1 else ""))
            samples[job.name, number].append(sample(job, threads=number))
            if samples[job.name, number][-1].packet_hops != samples[job.name, 1][0].packet_hops:
                raise RunFailed(f"workload {job.name} is not the same twice: a defect of the simulator")
    on_threads = [tuple(samples[job.name, threads]) if threads > 1 else () for job in jobs]
    return [(tuple(samples[job.name, 1]), several) for job, several in zip(jobs, on_threads, strict=True)]
