"""Makes one run on a real kernel: narrowsd carries the plan's traffic, and what it measured is read and judged here."""

from __future__ import annotations

import json
import os
import resource
import selectors
import subprocess
import time
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from narrows.columns import tables
from narrows.errors import Cancelled, RunFailed
from narrows.experiment import case_name
from narrows.runs import daemon, origin
from narrows.runs.simulate import LOOK_SECONDS, Made, Request
from narrows.runs.store import encoded

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from narrows.native import TableName

    Look = Callable[[tuple[int, int, int]], bool]

PATIENCE_SECONDS: Final = 20.0
"""For narrowsd to leave the machine as it found it, after it was told to end."""
CHUNK_BYTES: Final = 1 << 16
SAID_BYTES: Final = 1 << 14
"""Of the end of what it complained of, that is read."""

_NEEDED: Final[dict[str, type | tuple[type, ...]]] = {
    "version": str, "plan_hash": str, "seed": int, "packet_hops": int, "simulated_ns": int,
    "backend": str, "kernel": str, "valid": bool, "lateness": dict,
}  # fmt: skip
"""What a live run's manifest must say."""


def make(request: Request, look: Look, scratch: Path, version: str) -> Made:
    """Runs a plan to its end with narrowsd and a kernel of this `version`, in an empty folder that another removes.

    `look` hears (ns so far, ns at the end, packet-hops) ten times a second and says whether to go on. Raises
    `Cancelled` if it does not, `BadInput` if the plan cannot be run there, `EnvironmentLacks` if the machine lacks
    something, and `RunFailed` if narrowsd failed or what it left is not whole.
    """
    plan, out, errors = scratch / "plan.json", scratch / "out", scratch / "errors"
    plan.write_text(json.dumps(request.plan), encoding="utf-8")
    arguments = ["run", str(plan), "--seed", str(request.seed), "--out", str(out), "--on", request.backend]
    before_ns = _cpu_ns()
    with errors.open("wb") as complaints:
        process = daemon.start(arguments, complaints.fileno())
    try:
        stopped = _follow(process, look)
    finally:
        _end(process)
    code = process.returncode
    if code != 0:
        if stopped:
            raise Cancelled("run cancelled")
        case = case_name(request.plan.get("arm", "the plan"), request.plan.get("axes", ()))
        raise daemon.trouble(code, _tail(errors), what=f"{case} on {request.backend}")
    manifest = _manifest(out, request, version) | {"cpu_ns": _cpu_ns() - before_ns}
    manifest["ns_per_packet_hop"] = manifest["cpu_ns"] / max(1, manifest["packet_hops"])
    manifest |= origin.completed(request.origin) | {"plan": request.unlabelled}
    return Made({name: _table(out, name) for name in tables()}, manifest)


def _cpu_ns() -> int:
    """Processor time of all children that were waited for, and of theirs: QEMU's is among it. ns, in steps of 1000.

    narrowsd cannot say what it took: in a guest its clock counts instructions, and the emulator is outside of it.
    """
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return round(1e6 * (used.ru_utime + used.ru_stime)) * 1000


def _follow(process: subprocess.Popen[bytes], look: Look) -> bool:
    """Hears what narrowsd reports until it has ended; whether it was told to end. If it does not, it is killed."""
    assert process.stdout is not None
    progress, said = (0, 0, 0), b""
    told_s: float | None = None
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        while process.poll() is None:
            if selector.get_map() and selector.select(LOOK_SECONDS):
                chunk = os.read(process.stdout.fileno(), CHUNK_BYTES)
                if not chunk:
                    selector.unregister(process.stdout)
                *lines, said = (said + chunk).split(b"\n")
                for found in _progress(lines):
                    progress = found
            elif not selector.get_map():
                time.sleep(LOOK_SECONDS)  # it has closed its output, and is about to end
            if not look(progress) and told_s is None:
                told_s = time.monotonic()
                process.terminate()
            if told_s is not None and time.monotonic() - told_s > PATIENCE_SECONDS:
                process.kill()
    return told_s is not None


def _progress(lines: list[bytes]) -> Iterator[tuple[int, int, int]]:
    """What the lines report; another one's words are passed over."""
    for line in lines:
        try:
            message = json.loads(line)
        except ValueError:
            continue
        match message:
            case {"progress": [int(so_far_ns), int(end_ns), int(packet_hops)]}:
                yield so_far_ns, end_ns, packet_hops


def _end(process: subprocess.Popen[bytes]) -> None:
    """Leaves no narrowsd behind, whatever happened here."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.close()
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(timeout=PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    process.stdout.close()


def _tail(errors: Path) -> str:
    with errors.open("rb") as file:
        file.seek(max(0, errors.stat().st_size - SAID_BYTES))
        return file.read().decode("utf-8", errors="replace")


def _manifest(out: Path, request: Request, version: str) -> dict[str, Any]:
    """What the run was. Raises `RunFailed` where it does not say, or was another run than was asked for."""
    try:
        read = json.loads((out / "manifest.json").read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise RunFailed(f"narrowsd left no manifest that can be read: {error}") from error
    if not isinstance(read, dict):
        raise RunFailed("narrowsd left a manifest that is none")
    lacking = [key for key, kind in _NEEDED.items() if not isinstance(read.get(key), kind)]
    if lacking:
        raise RunFailed(f"narrowsd left a manifest without {', '.join(lacking)}")
    _compare(read, {"plan_hash": request.hash, "seed": request.seed, "backend": request.backend})
    carried = f"{read['version']} on {read['kernel']}"
    if version.split(",", maxsplit=1)[0] != carried:
        raise RunFailed(f"narrowsd's run says version {carried}, and {version} was asked for")
    return read | {"version": version}


def _compare(found: Mapping[str, Any], asked: Mapping[str, Any]) -> None:
    for key, value in asked.items():
        if found[key] != value:
            raise RunFailed(f"narrowsd's run says {key} {found[key]}, and {value} was asked for")


def _table(out: Path, name: TableName) -> bytes:
    """A table as the store keeps it. Raises `RunFailed` where it is absent, cut off or another one."""
    try:
        return encoded(name, pl.read_ipc_stream(out / f"{name}.arrow"))
    except (OSError, AssertionError, pl.exceptions.PolarsError) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise RunFailed(f"narrowsd left no whole table of {name}: {reason}") from error
