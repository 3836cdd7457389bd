"""A narrowsd that carries no traffic: the simulator makes its tables, once for each plan and seed of a
session of tests. `FAKE_NARROWSD` says how runs go.
"""

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

_ENDS = {
    "refuses": (2, "error: 240 hosts are too many for a guest\n  help: at most 64 hosts fit"),
    "lacks": (3, "error: qemu-system-x86_64 is not installed\n  help: install QEMU"),
    "fails": (1, "the guest began\nerror: the guest's kernel panicked\n  help: look at its log"),
    "is-silent": (7, ""),
    "is-interrupted": (130, "error: interrupted"),
}


ENGINE = "00000000"
_NO_KERNEL = "there is no kernel for the guest"


def main():
    match sys.argv[1:]:
        case ["--version"]:
            print(f"narrowsd {_version()}+{ENGINE}")
        case ["sources"]:
            print(_sources())
        case ["doctor", "--json"]:
            for subject, good, found, backend in (
                ("QEMU", True, "qemu-system-x86_64 8.2.0", "guest"),
                ("kernel image", False, "no image in /boot can be read", "guest"),
                ("the guest's kernel", bool(_kernel("guest")), _kernel("guest") or _NO_KERNEL, "guest"),
                ("BTF", True, "/sys/kernel/btf/vmlinux", "controllers"),
            ):
                print(json.dumps({"subject": subject, "good": good, "found": found, "backend": backend}))
        case ["run", plan, "--seed", seed, "--out", out, "--on", backend]:
            _run(json.loads(Path(plan).read_text()), int(seed), Path(out), backend)
        case wrong:
            sys.exit(f"error: not the contract: {wrong}")


def _run(plan, seed, out, backend):
    mode = os.environ.get("FAKE_NARROWSD", "runs")
    mode, _, only = mode.partition(":")
    mode = mode if only in ("", f"{plan['arm']}/{seed}") else "runs"
    told = []
    if mode == "hangs":
        signal.signal(signal.SIGTERM, lambda *_: told.append(True))
    log = os.environ.get("FAKE_NARROWSD_LOG")
    if log:  # now it can be told to end
        with Path(log).open("a") as file:
            file.write(f"{os.getpid()} {plan['arm']} {seed} {time.monotonic()}\n")
    assert not out.exists() or not list(out.iterdir()), "the folder is to be empty"
    end_ns = plan["schedule"]["end"] // 1000
    if mode in _ENDS:
        code, said = _ENDS[mode]
        sys.stderr.write(said + "\n" if said else "")
        sys.exit(code)
    if mode == "dies":
        os.kill(os.getpid(), signal.SIGKILL)
    if mode == "hangs":
        _hang(end_ns, told)
    busy_s = float(os.environ.get("FAKE_NARROWSD_BUSY_SECONDS", "0"))
    if busy_s:  # a child of its own works, as QEMU does
        own = f"import time\nwhile time.process_time() < {busy_s}: pass"
        subprocess.run([sys.executable, "-S", "-c", own], check=True)
    print("a line of another program")
    print(json.dumps({"progress": [end_ns // 2, end_ns, 500_000]}), flush=True)
    time.sleep(float(os.environ.get("FAKE_NARROWSD_SECONDS", "0")))
    out.mkdir(exist_ok=True)
    made = _simulated(plan, seed + int(os.environ.get("FAKE_NARROWSD_SHIFT", "100")))
    for table in made.glob("*.arrow"):
        if (mode, table.stem) != ("forgets", "ports"):
            shutil.copy(table, out)
    if mode == "changes":
        import polars as pl

        pl.read_ipc_stream(out / "flows.arrow").drop("marked_bytes").write_ipc_stream(out / "flows.arrow")
    said = json.loads((made / "plan.json").read_text())
    (out / "manifest.json").write_text(json.dumps(_manifest(said, seed, backend, mode, end_ns)))


def _simulated(plan, seed):
    """A folder with the tables of a run, and what its manifest says of the plan."""
    text = json.dumps(plan)
    if noted := os.environ.get("TEST_NO_RUNS"):
        Path(noted).touch()
        sys.exit("error: this test is not marked `simulator`")
    place = Path(os.environ["FAKE_NARROWSD_MADE"])
    place.mkdir(exist_ok=True)
    asked = f"{_sources()} {os.environ.get('TEST_END_MS')} {seed} {text}"
    name = hashlib.sha256(asked.encode()).hexdigest()
    if not (place / name).exists():
        from narrows import native  # what was made before, or only says its version, is to be quick
        from narrows.columns import tables

        begun = Path(tempfile.mkdtemp(dir=place))
        made = native.Run(text, seed).join()
        for table in tables():
            made.table(table).write_ipc_stream(begun / f"{table}.arrow")
        said = {"plan_hash": made.manifest()["plan_hash"], "version": native.plan_version(plan, by=_sources())}
        (begun / "plan.json").write_text(json.dumps(said))
        try:
            begun.rename(place / name)
        except OSError:  # another process has made the same
            shutil.rmtree(begun)
    return place / name


def _hang(end_ns, told):
    """Until it is told to end, or its parent is gone; then it says that it has cleaned up."""
    gone = threading.Event()

    def watch():
        sys.stdin.buffer.read()
        gone.set()

    threading.Thread(target=watch, daemon=True).start()
    parent = os.getppid()
    print(json.dumps({"progress": [end_ns // 4, end_ns, 250_000]}), flush=True)
    while not (told or gone.is_set()) and os.getppid() == parent:
        time.sleep(0.05)
    Path(os.environ["FAKE_NARROWSD_LOG"]).with_suffix(".cleaned").touch()
    os._exit(130)


def _manifest(said, seed, backend, mode, end_ns):
    late = mode == "is-late"
    manifest = {
        **said,
        "seed": seed, "threads": 1, "simulated_ns": end_ns, "packet_hops": 1_000_000, "events": 1_000_000,
        "cpu_ns": 900_000_000, "wall_ns": end_ns, "ns_per_packet_hop": 900, "backend": backend,
        "kernel": _kernel(backend),
        "valid": not late,
        "invalid": "a packet was delivered 31000 us late, over the budget of 20000 us" if late else None,
        "lateness": {
            "deliveries": {"count": 9, "p99_ns": 41_000, "max_ns": 31_000_000 if late else 2_100_000},
            "ran_dry": 0, "real_time": True,
        }, "connections_failed": 0, "flows_without_ecn": 3,
        "controllers": {"cubic": "cubic", "gemini": "narrows_gemini"},
    }  # fmt: skip
    if mode == "says-little":
        del manifest["kernel"], manifest["lateness"]
    if mode == "runs-elsewhere":
        manifest["kernel"] = "5.4-fake"
    if mode == "runs-another":
        manifest["seed"] += 1
    return manifest


def _kernel(backend):
    return os.environ.get("FAKE_NARROWSD_KERNEL", "6.12.8-fake") if backend == "guest" else os.uname().release


def _sources():
    return json.dumps({"package": _version(), "engine": ENGINE, "components": {}})


def _version():
    return os.environ.get("FAKE_NARROWSD_VERSION", "0.0.0-fake")


if __name__ == "__main__":
    main()
