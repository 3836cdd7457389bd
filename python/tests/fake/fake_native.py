"""A simulator that simulates nothing: the native module's interface over synthetic tables."""

import hashlib
import json
import os
import re
import signal
import threading
import time
import tomllib
from pathlib import Path

import synthetic

_LABELS = ("experiment", "arm", "axes", "declared")
_KEYS = {"arm", "cc", "name", "run", "sample", "sweep", "title", "topology", "traffic"}


class BadInput(ValueError):
    pass


class Cancelled(Exception):
    pass


def version():
    return os.environ.get("FAKE_VERSION", "0.0.0-fake")


def plan_version(plan_json, by=None):
    return json.loads(by)["package"] if by else version()


def build():
    return os.environ.get("FAKE_BUILD", "rustc 0.0.0-fake, release")


def tables():
    """As the real module answered: `test_native.py` holds the two together."""
    return (Path(__file__).parent / "tables.json").read_text()


def components():
    window = {"name": "k", "kind": "packets", "default": "50pkt", "range": "1pkt..", "about": "Marking threshold."}
    growth = [
        {"name": name, "kind": {"real": {"bits": bits}}, "default": default, "range": None, "about": "Growth."}
        for name, bits, default in (("h", 36, "1.2e-7"), ("h-min", 10, "0.1"), ("h-max", 10, "5"))
    ]
    found = [
        {"name": "cubic", "title": "CUBIC", "about": "The default.", "source": "RFC 9438", "ecn": False,
         "parameters": []},
        {"name": "gemini", "title": "GEMINI", "about": "Two signals, one window.", "source": "ICNP 2019", "ecn": True,
         "parameters": [window, *growth]},
        {"name": "vegas", "title": "Vegas", "about": "Delay.", "source": "SIGCOMM 1994", "ecn": False,
         "parameters": [{**window, "name": "alpha", "default": "2pkt"}, {**window, "name": "beta", "default": "4pkt"}]},
    ]  # fmt: skip
    return json.dumps([{"kind": "controller"} | item for item in found])


def schema():
    return json.dumps({"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object"})


def calibrate():
    return 25.0


def expand(path, *, sets=(), quick=False, seeds=None, memory_limit_bytes=None):
    text = _read(path)
    raw = tomllib.loads(text)
    for key in raw:
        if key not in _KEYS:
            known = ", ".join(sorted(_KEYS))
            line = next(number for number, it in enumerate(text.splitlines(), 1) if key in it)
            raise BadInput(f"{path}:{line}:1: error: unknown key `{key}`\n  help: keys are {known}")
    raw["arm"] = [{"cc": raw["cc"]} | arm if "cc" in raw else arm for arm in raw["arm"]]
    run = raw["run"] | (raw["run"].get("quick", {}) if quick else {})
    overrides = dict(sets)
    end_s = _seconds(overrides.get("run.end", run["end"]))
    chosen = _seeds(seeds or run["seeds"])
    plans = []
    for arm in raw["arm"]:
        declared = [(key, _label(value)) for key, value in arm.items() if key in ("cc", "ecn")]
        declared += sorted((key, str(value)) for key, value in arm.get("set", {}).items())
        controller = {"name": _name(arm["cc"]), "values": _values(arm["cc"]), "ecn": arm.get("ecn", False)}
        body = {
            "experiment": raw["name"],
            "arm": arm["name"],
            "axes": [],
            "declared": declared,
            "network": {"nodes": [], "links": []},
            "traffic": [{"name": f"web/{way}", "set": declared, "controller": controller} for way in ("1-2", "2-1")],
            "schedule": {"end": int(end_s * 1e12), "drain": int(1e12), "warmup": int(end_s * 1e11)},
            "sampling": {"queues": 0, "windows": 0, "goodput": 0},
            "arm-for-the-synthesis": arm["name"],
        }
        plans.append({
            "hash": _hash(body), "version": version(),
            "arm": arm["name"], "axes": [], "declared": declared, "plan": body,
            "summary": _summary(end_s),
        })  # fmt: skip
    arms = [plan["arm"] for plan in plans]
    marked_at = [dict(plan["declared"]).get("fabric.aqm.threshold.mark-at", "–") for plan in plans]
    own = [str(_parameters(arm["cc"]).get("alpha", "–")) for arm in raw["arm"]]
    differences = [
        {"path": "cc", "values": [_name(arm["cc"]) for arm in raw["arm"]], "declared": True},
        {"path": "cc.vegas.alpha", "values": own, "declared": True},
        {"path": "fabric.aqm.threshold.mark-at", "values": marked_at, "declared": True},
    ]
    if len(set(own)) == 1:
        del differences[1]
    if "bbr" in arms:
        paced = ["on" if arm in ("bbr", "gemini") else "off" for arm in arms]
        differences.append({"path": "host.pacing", "values": paced, "declared": False})
    return json.dumps({
        "name": raw["name"], "title": raw.get("title"), "seeds": chosen,
        "plans": plans, "differences": differences, "warnings": [],
    })  # fmt: skip


def _seconds(text):
    number, unit = re.fullmatch(r"([\d.]+)(s|ms|us)", text).groups()
    return float(number) / {"s": 1, "ms": 1e3, "us": 1e6}[unit]


def _name(written):
    return written if isinstance(written, str) else next(iter(written))


def _parameters(written):
    return {} if isinstance(written, str) else next(iter(written.values()))


def _values(written):
    if _name(written) == "gemini":
        return [{"packets": 50}]
    counts = (str(value).removesuffix("pkt") for value in _parameters(written).values())
    return [{"packets": int(count)} if count.isdigit() else {"choice": 1} for count in counts]


def _label(value):
    return value if isinstance(value, str) else json.dumps(value)


def _summary(end_s):
    traffic = {"controller": "cubic", "sizes": "web-search", "mean_size_bytes": 1_711_250.0, "flows_per_second": 61.9}
    roles = {"host": 0.1125, "edge": 0.1125, "fabric": 0.45, "wan": 0.9}
    return {
        "hosts": 16, "switches": 6, "links": 42,
        "traffic": [{"name": f"web/{way}", **traffic, "flows": end_s * 61.9} for way in ("1-2", "2-1")],
        "roles": [{"role": role, "ports": 8, "mean_load": load, "max_load": load} for role, load in roles.items()],
        "bottlenecks": [{"link": "border-a->border-b", "load": 0.9, "long_flows": 0.0}],
        "packets": end_s * 2.2e5, "packet_hops": end_s * 1.1e6, "work": end_s * 1.1e6,
        "memory": 7_396_224, "cpu_time": int(end_s * 8.8e10),
    }  # fmt: skip


def start(plan_json, seed, *, threads=1):
    return Run(json.loads(plan_json), seed)


class Run:
    def __init__(self, plan, seed):
        self._plan, self._seed = plan, seed
        self._end = plan["schedule"]["end"] // 1000
        self._seconds = float(os.environ.get("FAKE_SECONDS", "0.02"))
        self._began = time.monotonic()
        self._cancel = threading.Event()

    def progress(self):
        share = min(1.0, (time.monotonic() - self._began) / self._seconds)
        return int(self._end * share), self._end, int(1e6 * share)

    def cancel(self):
        self._cancel.set()

    def join(self):
        if self._cancel.wait(self._seconds):
            raise Cancelled
        if self._plan["arm"] == "panics":
            raise RuntimeError("a packet was lost twice")
        if self._plan["arm"] == "dies":
            os._exit(9)
        if self._plan["arm"] == "is-killed":
            os.kill(os.getpid(), signal.SIGKILL)
        return Results(self._plan, self._seed)


class Results:
    def __init__(self, plan, seed):
        self._plan, self._seed = plan, seed
        self._tables = synthetic.tables(plan["arm-for-the-synthesis"], seed, plan["schedule"]["end"] / 1e12)

    def table(self, name):
        return _Stream(self._tables[name])

    def manifest(self):
        hops = 1_000_000
        return json.dumps({
            "version": version(), "plan_hash": _hash(self._plan), "seed": self._seed, "packet_hops": hops,
            "events": 1_050_000, "cpu_ns": 76_000_000, "wall_ns": time.monotonic_ns() % 10**9, "hold_ns": 25.0,
            "ns_per_packet_hop": 76.0, "simulated_ns": self._plan["schedule"]["end"] // 1000,
        })  # fmt: skip


class _Stream:
    def __init__(self, frame):
        self._frame = frame

    def __arrow_c_stream__(self, requested_schema=None):
        return self._frame.__arrow_c_stream__(requested_schema)


def _read(path):
    try:
        return Path(path).read_text()
    except OSError as error:
        raise BadInput(f"{path}: error: {error.strerror}\n  help: give the path of an experiment file") from None


def _seeds(text):
    first, last = re.fullmatch(r"(\d+)\.\.=?(\d+)", text).groups()
    return list(range(int(first), int(last) + 1))


def _hash(body):
    bare = {key: value for key, value in body.items() if key not in _LABELS}
    return hashlib.sha256(json.dumps(bare, sort_keys=True).encode()).hexdigest()[:16]
