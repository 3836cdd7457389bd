"""What a controller costs the processor: BPF GEMINI against the kernel's CUBIC, in turn, on this machine's kernel.

As root, on an idle machine, where `make narrowsd` was run:  python bench/kernel_cost.py

Two network namespaces and a pair of veth devices, one flow at 500 Mbit/s that TCP's own pacer holds there for both
(SO_MAX_PACING_RATE), segmentation offload as it is; then both again with one packet at a time (gso_max_segs 1).
What is measured is what is left: on each processor a thread of the idle class counts as long as nothing else runs. The
cost of a flow is what this count loses, of all processors, beside a stretch in which nothing is sent.
"""

from __future__ import annotations

import os
import socket
import statistics
import subprocess
import sys
import time
from multiprocessing import Process, Value
from pathlib import Path
from typing import Any

NARROWSD = Path("target/x86_64-unknown-linux-gnu/release/narrowsd")
SECONDS = 4.0
ROUNDS = 7
RATE_BYTES = 500_000_000 // 8
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


def receive(controller: str) -> None:
    """Takes what comes over one connection."""
    enter("nrwcost-b")
    with socket.create_server(("", PORT)) as listener:
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, controller.encode())
        connection, _ = listener.accept()
        with connection:
            while connection.recv(1 << 18, socket.MSG_TRUNC):
                pass


def send(controller: str, sent: Any) -> None:
    """Sends for as long as a flow lasts."""
    enter("nrwcost-a")
    with socket.socket() as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, controller.encode())
        connection.setsockopt(socket.SOL_SOCKET, 47, RATE_BYTES)  # SO_MAX_PACING_RATE
        connection.connect((ENDS["nrwcost-b"], PORT))
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            sent.value += connection.send(PIECE)


def flow(controller: str) -> int:
    """One flow; bytes sent."""
    sent = Value("q", 0, lock=False)
    ends = [Process(target=receive, args=(controller,), daemon=True)]
    ends.append(Process(target=send, args=(controller, sent), daemon=True))
    for end in ends:
        end.start()
        time.sleep(0.2)
    for end in ends:
        end.join(timeout=SECONDS + 10)
        end.kill()
    if sent.value == 0:
        raise RuntimeError(f"a flow of {controller} sent nothing")
    return int(sent.value)


def cost(counts: list[Any], controller: str | None) -> float:
    """Counts lost per gigabyte; for no controller, counts in as long a time."""
    before, began = sum(count.value for count in counts), time.monotonic()
    if controller is None:
        time.sleep(SECONDS + 0.5)
        return (sum(count.value for count in counts) - before) / (time.monotonic() - began)
    sent = flow(controller)
    left, took = sum(count.value for count in counts) - before, time.monotonic() - began
    after = cost(counts, None)
    idle = (after + FREE[-1]) / 2 if FREE else after
    FREE.append(after)
    return (idle * took - left) / (sent / 1e9)


FREE: list[float] = []
"""What was counted in a second while nothing was sent, the last one last."""


def run(*command: str) -> None:
    """Runs a command that must succeed."""
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def measure(counts: list[Any]) -> list[float]:
    """GEMINI's cost over CUBIC's, of each round."""
    ratios = []
    for _ in range(ROUNDS):
        cubic, gemini = cost(counts, "cubic"), cost(counts, "narrows_gemini")
        ratios.append(gemini / cubic)
        print(f"  cubic {cubic:.0f}, gemini {gemini:.0f} counts per GB: {ratios[-1]:.3f}", flush=True)
    return ratios


def main() -> None:
    """Prints the median ratio with and without offload."""
    counts = [Value("q", 0, lock=False) for _ in range(os.cpu_count() or 1)]
    spinners = [Process(target=spin, args=(count, place), daemon=True) for place, count in enumerate(counts)]
    holder: subprocess.Popen[bytes] | None = None
    try:
        for namespace in ENDS:
            run("ip", "netns", "add", namespace)
        run("ip", "link", "add", "nrwc0", "netns", "nrwcost-a", "type", "veth", "peer", "nrwc0", "netns", "nrwcost-b")
        for namespace, address in ENDS.items():
            run("ip", "-n", namespace, "addr", "add", f"{address}/24", "dev", "nrwc0")
            run("ip", "-n", namespace, "link", "set", "nrwc0", "up")
        # In the foreground: it goes with its process.
        holder = subprocess.Popen(
            [NARROWSD, "cc", "load", "gemini", "--foreground", "--set", "capacity=1Gbps"], stdout=subprocess.DEVNULL
        )
        time.sleep(1)
        for spinner in spinners:
            spinner.start()
        for segments, told in ((65535, "as large as it likes"), (1, "one packet")):
            for namespace in ENDS:
                run("ip", "-n", namespace, "link", "set", "nrwc0", "gso_max_segs", str(segments))
            print(f"pieces handed to the device: {told}")
            ratios = measure(counts)
            print(f"  median {statistics.median(ratios):.3f}, from {min(ratios):.3f} to {max(ratios):.3f}")
    finally:
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
