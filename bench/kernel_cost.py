"""What a controller costs the processor: BPF GEMINI against the kernel's CUBIC, in turn, on this machine's kernel.

As root, on an idle machine, where `make narrowsd` was run:  python bench/kernel_cost.py

Two network namespaces and a pair of veth devices, one flow at a rate that TCP's own pacer holds for both
(SO_MAX_PACING_RATE), segmentation offload as it is; then both again with one packet at a time (gso_max_segs 1).

Two measures. What is left: on each processor a thread of the idle class counts as long as nothing else runs, and the
cost of a flow is what this count loses, of all processors, beside a stretch in which nothing is sent. It has all of the
difference and all of the machine's noise. And what the kernel counts of GEMINI's programs themselves
(kernel.bpf_stats_enabled), its own reading of the clock included: what they add at most, CUBIC's hooks taken as free.
"""

from __future__ import annotations

import os
import socket
import statistics
import subprocess
import sys
import time
from multiprocessing import Event, Process, Value
from pathlib import Path
from typing import Any

NARROWSD = Path("target/narrowsd")
SECONDS = 3.0
ROUNDS = 5
RATE_BYTES = {"as large as it likes": 4_000_000_000 // 8, "one packet": 200_000_000 // 8}
"""A second: by the pieces that the device takes, what leaves the processors some time to count in."""
STATISTICS = Path("/proc/sys/kernel/bpf_stats_enabled")
PORT = 5300
PIECE = bytes(1 << 18)
ENDS = {"nrwcost-a": "192.0.2.1", "nrwcost-b": "192.0.2.2"}
"""Namespaces of our own, with addresses for documentation [RFC 5737]."""


def spin(count: Any, processor: int) -> None:
    """Counts in the idle class."""
    os.sched_setaffinity(0, {processor})
    os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    while True:
        for _ in range(2_000):
            pass
        count.value += 1


def enter(namespace: str) -> None:
    """Moves this process into a namespace."""
    with Path(f"/run/netns/{namespace}").open() as file:
        if libc().setns(file.fileno(), 0x4000_0000) != 0:
            raise OSError(f"cannot enter {namespace}: run this as root")


def libc() -> Any:
    """The C library."""
    import ctypes

    return ctypes.CDLL(None, use_errno=True)


def receive(controller: str, listens: Any) -> None:
    """Takes what comes over one connection; says when it can come."""
    enter("nrwcost-b")
    with socket.create_server(("", PORT)) as listener:
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, controller.encode())
        listens.set()
        connection, _ = listener.accept()
        with connection:
            while connection.recv(1 << 18, socket.MSG_TRUNC):
                pass


def send(controller: str, rate: int, sent: Any) -> None:
    """Sends for as long as a flow lasts."""
    enter("nrwcost-a")
    with socket.socket() as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, controller.encode())
        connection.setsockopt(socket.SOL_SOCKET, 47, rate)  # SO_MAX_PACING_RATE
        connection.connect((ENDS["nrwcost-b"], PORT))
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            sent.value += connection.send(PIECE)


def flow(controller: str, rate: int) -> int:
    """One flow; bytes sent."""
    sent = Value("q", 0, lock=False)
    listens = Event()
    ends = [Process(target=receive, args=(controller, listens), daemon=True)]
    ends.append(Process(target=send, args=(controller, rate, sent), daemon=True))
    ends[0].start()
    if not listens.wait(timeout=10):
        raise RuntimeError(f"the receiver of {controller} does not listen")
    ends[1].start()
    for end in ends:
        end.join(timeout=SECONDS + 10)
        end.kill()
    if sent.value == 0:
        raise RuntimeError(f"a flow of {controller} sent nothing")
    return int(sent.value)


def programs_ns(process: int) -> int:
    """Nanoseconds that the programs took which a process holds."""
    said = [line for entry in Path(f"/proc/{process}/fdinfo").iterdir() for line in entry.read_text().splitlines()]
    return sum(int(line.split()[1]) for line in said if line.startswith("run_time_ns:"))


def cost(counts: list[Any], controller: str | None, rate: int = 0) -> tuple[float, float]:
    """Processors' nanoseconds per gigabyte, and the gigabytes; for no controller, counts in a second and none."""
    before, began = sum(count.value for count in counts), time.monotonic()
    if controller is None:
        time.sleep(SECONDS + 0.5)
        return (sum(count.value for count in counts) - before) / (time.monotonic() - began), 0
    sent = flow(controller, rate)
    left, took = sum(count.value for count in counts) - before, time.monotonic() - began
    after, _ = cost(counts, None)
    idle = (after + FREE[-1]) / 2 if FREE else after
    FREE.append(after)
    lost_s = (idle * took - left) / (idle / len(counts))
    return lost_s * 1e9 / (sent / 1e9), sent / 1e9


FREE: list[float] = []
"""What was counted in a second while nothing was sent, the last one last."""


def run(*command: str) -> None:
    """Runs a command that must succeed."""
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def measure(counts: list[Any], rate: int, holder: int) -> tuple[list[float], list[float]]:
    """Of each round: GEMINI's cost over CUBIC's, and that of its programs alone over all of CUBIC's."""
    ratios, shares = [], []
    for _ in range(ROUNDS):
        cubic, _ = cost(counts, "cubic", rate)
        before = programs_ns(holder)
        gemini, gigabytes = cost(counts, "narrows_gemini", rate)
        programs = (programs_ns(holder) - before) / gigabytes
        ratios.append(gemini / cubic)
        shares.append(programs / cubic)
        print(
            f"  cubic {cubic / 1e6:.0f}, gemini {gemini / 1e6:.0f} ms per GB: {ratios[-1]:.3f};"
            f" its programs {programs / 1e6:.1f} ms ({gigabytes:.2f} GB)",
            flush=True,
        )
    return ratios, shares


def main() -> None:
    """Prints the median ratio with and without offload."""
    counts = [Value("q", 0, lock=False) for _ in range(os.cpu_count() or 1)]
    spinners = [Process(target=spin, args=(count, place), daemon=True) for place, count in enumerate(counts)]
    holder: subprocess.Popen[bytes] | None = None
    collected = STATISTICS.read_text()
    try:
        for namespace in ENDS:
            run("ip", "netns", "add", namespace)
        run("ip", "link", "add", "nrwc0", "netns", "nrwcost-a", "type", "veth", "peer", "nrwc0", "netns", "nrwcost-b")
        for namespace, address in ENDS.items():
            run("ip", "-n", namespace, "addr", "add", f"{address}/24", "dev", "nrwc0")
            run("ip", "-n", namespace, "link", "set", "nrwc0", "up")
        # In the foreground: it goes with its process.
        holder = subprocess.Popen(
            [NARROWSD, "cc", "load", "gemini", "--foreground", "--set", "capacity=10Gbps"], stdout=subprocess.DEVNULL
        )
        time.sleep(1)
        for spinner in spinners:
            spinner.start()
        STATISTICS.write_text("1")
        for segments, told in zip((65535, 1), RATE_BYTES, strict=True):
            for namespace in ENDS:
                run("ip", "-n", namespace, "link", "set", "nrwc0", "gso_max_segs", str(segments))
            print(f"pieces handed to the device: {told}")
            ratios, shares = measure(counts, RATE_BYTES[told], holder.pid)
            print(
                f"  GEMINI's cost over CUBIC's: median {statistics.median(ratios):.3f},"
                f" from {min(ratios):.3f} to {max(ratios):.3f};"
                f" its programs over all of CUBIC's: median {statistics.median(shares):.3f}, at most {max(shares):.3f}"
            )
    finally:
        STATISTICS.write_text(collected)
        for spinner in spinners:
            if spinner.pid is not None:
                spinner.kill()
        if holder is not None:
            holder.terminate()
            holder.wait()
        for namespace in ENDS:
            subprocess.run(["ip", "netns", "del", namespace], check=False)


if __name__ == "__main__":
    sys.exit(main())
