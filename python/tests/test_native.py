"""The real native module against what the lab relies on; skipped, saying so, where it is not built."""

import json
import os
import sys
import types
import typing
from pathlib import Path

import pytest
from conftest import CHECKOUT, FIG13, TWO_ARMS, lines, said_by

from narrows import components, native
from narrows.errors import BadInput, EnvironmentLacks
from narrows.experiment import Experiment, body, summary

SCRIPT = """
import json, sys
from narrows import native
from narrows.columns import conform, tables
from narrows.errors import BadInput
from narrows.experiment import Experiment
from narrows.runs.backends import program_of
four, thirteen = (Experiment(f"experiments/gemini/{name}/experiment.toml", quick=True) for name in ("fig04", "fig13"))
plan = four.plans[0]
small = Experiment("experiments/gemini/fig04/experiment.toml", quick=True,
               settings=[("run.end", "200ms"), ("run.warmup", "20ms"), ("run.drain", "2s")])
run = native.Run(json.dumps(small.plans[0].body), 1)
run.progress()
results = run.join()
for name in tables():
    conform(name, results.table(name))
manifest = results.manifest()
swept = Experiment("experiments/gemini/fig10/experiment.toml")
beta = dict(next(item for item in swept.differences if item.path == "cc.gemini.beta").values)
try:
    refused = native.Run("{}", 1).join()
except BadInput:
    refused = True
json.dump({
    "shared": {plan.hash for plan in four.plans} < {plan.hash for plan in thirteen.plans},
    "cases": list(beta) == [plan.case for plan in swept.plans],
    "axes": all(f"beta={value}" in case for case, value in beta.items() if case != "cubic") and beta["cubic"] == "–",
    "undeclared": [item.path for item in thirteen.differences if not item.declared],
    "warmup_ns": plan.warmup_ns,
    "hash": manifest["plan_hash"] == small.plans[0].hash,
    "costs": all(manifest[key] > 0 for key in ("packet_hops", "cpu_ns", "hold_ns", "ns_per_packet_hop")),
    "version": manifest["version"] == small.plans[0].version == native.plan_version(small.plans[0].body),
    "engine": f"0.1.0+{manifest['sources']['engine']}" == program_of(plan.version) == native.version(),
    "sources": sorted(manifest["sources"]),
    "refused": refused,
}, sys.stdout)
"""


def unlike(value, kind, where):
    """What of a value of JSON is not of its type: a summary has all keys and no more, a body those that are read."""
    if typing.is_typeddict(kind):
        if not isinstance(value, dict):
            yield f"{where}: {value!r}"
            return
        hints = typing.get_type_hints(kind)
        extras = typing.get_type_hints(kind, include_extras=True)
        may_lack = {key for key, its in extras.items() if typing.get_origin(its) is typing.NotRequired}
        more = value.keys() - hints.keys() if kind.__module__ == summary.__name__ else set()
        if wrong := sorted(more | hints.keys() - value.keys() - may_lack):
            yield f"{where}: {wrong}"
        for key in value.keys() & hints.keys():
            yield from unlike(value[key], hints[key], f"{where}.{key}")
    elif typing.get_origin(kind) is types.UnionType:
        of_each = [list(unlike(value, one, where)) for one in typing.get_args(kind)]
        yield from min(of_each, key=len)
    elif typing.get_origin(kind) in (list, tuple):
        own = typing.get_args(kind)
        own = own * len(value) if typing.get_origin(kind) is list else own
        if not isinstance(value, list) or len(own) != len(value):
            yield f"{where}: {value!r}"
            return
        for at, (item, its) in enumerate(zip(value, own, strict=True)):
            yield from unlike(item, its, f"{where}[{at}]")
    elif kind is not typing.Any and not isinstance(value, typing.get_origin(kind) or kind):
        yield f"{where}: {value!r}"


@pytest.mark.parametrize("file", [
    "experiments/gemini/fig13/experiment.toml", "experiments/annulus/a1/experiment.toml",
    "experiments/dctcp/fig18/experiment.toml", "examples/equal-paths.toml", "examples/in-python.toml",
    "examples/lossless.toml", "examples/changing.toml", "examples/slow.toml",
])  # fmt: skip
def test_plans_and_their_summaries_are_as_they_are_typed(file):
    for plan in Experiment(CHECKOUT / file, quick=True).plans:
        assert not list(unlike(plan.summary, summary.Summary, "summary"))
        assert not list(unlike(plan.body, body.Body, "body"))
        stated = native.long_flows(plan.body)
        assert not list(unlike(stated, list[summary.LongFlow], "long"))


def test_what_is_not_as_it_is_typed_is_found():
    plan = Experiment(FIG13, quick=True).plans[0]
    assert list(unlike(plan.summary | {"new": 1}, summary.Summary, "it")) == ["it: ['new']"]
    assert list(unlike(plan.body | {"arm": 1}, body.Body, "it")) == ["it.arm: 1"]
    without = {key: value for key, value in plan.body.items() if key != "traffic"}
    assert list(unlike(without, body.Body, "it")) == ["it: ['traffic']"]


def test_the_native_module_keeps_its_contract(real):
    assert json.loads(said_by(real, "-c", SCRIPT, program=sys.executable, cwd=CHECKOUT)) == {
        "shared": True,
        "cases": True,
        "axes": True,
        "undeclared": [],
        "warmup_ns": 4_000_000_000,
        "hash": True,
        "costs": True,
        "version": True,
        "engine": True,
        "sources": ["cc/cubic", "engine"],
        "refused": True,
    }


MEMORY = """
import json, sys
import polars as pl
from narrows import _native
FILE, PEAK, NOW = sys.argv[1], "VmHWM", "VmRSS"
def resident(what):
    return next(int(line.split()[1]) * 1000 for line in open("/proc/self/status") if line.startswith(what))
plan = json.loads(_native.expand(FILE))["plans"][0]
body, before = json.dumps(plan["plan"]), resident(NOW)
outcome = _native.start(body, 1).join()
for name in ("flows", "ports"):
    pl.DataFrame(outcome.table(name)).write_parquet(FILE + ".parquet")
json.dump([plan["summary"]["memory"], resident(PEAK) - before], sys.stdout)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="resident memory is read from /proc")
@pytest.mark.parametrize(("flows", "size"), [(1_000, "200KB"), (10_000, "200KB"), (10_000, "2MB")])
def test_memory_is_estimated_within_a_third_of_what_a_run_takes(real, folder, flows, size):
    file = folder / "many.toml"
    file.write_text(f"""
        [topology.two-datacenters]
        [[traffic]]
        long = {{ flows = {flows}, size = "{size}", spread = "100ms" }}
        between = "datacenters"
        [[arm]]
        name = "cubic"
        cc = "cubic"
        [run]
        end = "1s"
        drain = "4s"
    """)
    estimated, taken = json.loads(said_by(real, "-c", MEMORY, file, program=sys.executable, cwd=CHECKOUT))
    assert 0.75 < estimated / taken < 1.35, (estimated, taken)


def test_the_page_of_components_is_what_the_module_declares():
    page = (CHECKOUT / "docs/reference/components.md").read_text()
    assert page == components.document(), "regenerate it: python -m narrows.components"


def test_what_may_not_be_meant_is_told(real, folder):
    (folder / "locked.toml").write_text("""
        [topology.two-datacenters]
        [[traffic]]
        long = {}
        between = "datacenters"
        [[arm]]
        name = "a"
        cc = "cubic"
        [[arm]]
        name = "b"
        cc = "dctcp"
        [run]
        end = "1s"
        seeds = 1
    """)
    events = lines(said_by(real, "check", "locked.toml", "--json"))
    told = [event["text"] for event in events if event["event"] == "warning"]
    assert len(told) == 2, told
    assert told[0].startswith("flows may lock each other out at the drop-tail ports"), told
    assert told[1].startswith("b: `dctcp` needs ECN marks, and no port on the paths of `traffic-1` marks; give"), told


@pytest.mark.simulator
def test_what_the_module_refuses_has_advice_that_fits(folder):
    (plan, *_) = Experiment(TWO_ARMS).plans
    stopped = [{**link, "rate": 0} for link in plan.body["network"]["links"]]
    refused = {
        "run the experiment again": [
            lambda: native.Run("{}", 1), lambda: native.plan_version({}), lambda: native.plan_version({}, by="{}"),
            lambda: native.long_flows({}),
        ],
        "name two hosts": [lambda: native.base_rtt_ns(plan.body, "a1-1", "nobody")],
        "mend what it names": [
            native.Run(json.dumps({**plan.body, "network": {**plan.body["network"], "links": stopped}}), 1).join,
        ],
        "texts in UTF-8": [lambda: native.expand("\udc80.toml", sets=[], quick=False)],
    }  # fmt: skip
    for advice, calls in refused.items():
        for call in calls:
            with pytest.raises(BadInput, match=f"\n  help: .*{advice}"):
                call()


@pytest.mark.parametrize("sources", ["", "0.0.1", "{}", '{"engine": 1}'])
def test_a_narrowsd_of_another_version_is_the_environments(folder, sources):
    (plan, *_) = Experiment(TWO_ARMS).plans
    with pytest.raises(EnvironmentLacks, match=r"narrowsd is one of another version: .*\n  help: .*`make narrowsd`"):
        native.plan_version(plan.body, by=sources)


@pytest.mark.parametrize(
    ("memory", "container", "processors", "allowed"),
    [
        (24, "max", 2, 12), (24, "", 2, 12), (256, "max", 32, 8), (256, "64000000000", 4, 16), (256, "max", 128, 4),
        (2, "max", 1, 4), (24, "64000000000", 2, 12),
    ],
)  # fmt: skip
def test_a_run_may_need_its_share_of_the_memory_or_4_gb(monkeypatch, tmp_path, memory, container, processors, allowed):
    (tmp_path / "memory.max").write_text(container)
    monkeypatch.setattr(native, "_CONTAINER", tmp_path / "memory.max")
    monkeypatch.setattr(os, "sysconf", {"SC_PHYS_PAGES": memory * 250_000, "SC_PAGE_SIZE": 4_000}.__getitem__)
    monkeypatch.setattr(os, "cpu_count", lambda: processors)
    assert native.memory_limit_bytes() == allowed * 10**9
