"""Every test has the real native module, and may steer it, in this process and in those it starts."""

import os
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

import polars as pl
import pytest
from typer.testing import CliRunner

TESTS = Path(__file__).parent
CHECKOUT = TESTS.parents[1]
STEERED = TESTS / "steered"
os.environ["PYTHONPATH"] = os.pathsep.join([str(TESTS.parent), str(STEERED)])
sys.path.insert(0, str(STEERED))

import steer  # noqa: E402, F401

from narrows.cli import app  # noqa: E402

QUICK = 'quick = { end = "40s", warmup = "4s", drain = "10s"'
FIG13 = CHECKOUT / "experiments" / "gemini" / "fig13" / "experiment.toml"

TWO_ARMS = """
name = "two"
title = "Two arms"
[topology.two-datacenters]
servers = 2
fabric = { rate = "100Mbps" }
wan = { rate = "100Mbps", delay = "2ms", limit = "300pkt" }
[[traffic]]
name = "web"
between = "datacenters"
arrivals = { poisson = { load = 0.6, of = "wan" } }
size = { cdf = "web-search" }
[sample]
queues = "10ms"
[[arm]]
name = "cubic"
cc = "cubic"
[[arm]]
name = "gemini"
cc = "gemini"
set = { "fabric.aqm.threshold.mark-at" = "50pkt" }
[run]
end = "3s"
seeds = "1..=2"
"""


SIMULATE = {"real", "gemini", "two_arms", "made", "office", "linux", "many", "counts"}
"""Fixtures of tests that make runs."""


def pytest_collection_modifyitems(items):
    """Marks what drives a browser and what makes runs; files of guests, clusters and killing mark themselves."""
    for item in items:
        if "browser" in item.fixturenames:
            item.add_marker(pytest.mark.system)
        if not SIMULATE.isdisjoint(item.fixturenames):
            item.add_marker(pytest.mark.simulator)


@dataclass(frozen=True)
class Done:
    """What a command left behind, as `subprocess.run` tells it."""

    returncode: int
    stdout: str
    stderr: str


def narrows(*arguments):
    """The command, in this process: most of what a process of its own takes is its imports."""
    found = CliRunner().invoke(app, [str(argument) for argument in arguments])
    if found.exception is not None and not isinstance(found.exception, SystemExit):
        raise found.exception
    return Done(found.exit_code, found.stdout, found.stderr)


@pytest.fixture(scope="session")
def real():
    """The environment of a process that nobody steers."""
    return {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty working directory."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def two_arms(folder):
    """A small experiment file in the working directory."""
    path = folder / "two.toml"
    path.write_text(TWO_ARMS)
    return path


@pytest.fixture
def without_charts(monkeypatch):
    """Reports without charts, which take most of a page's time, for tests that look at nothing of them."""
    from narrows.report import page

    monkeypatch.setattr(page, "_charts", lambda frames: [])


def fake_narrowsd(folder):
    """A program that keeps narrowsd's contract, and carries no traffic."""
    path = folder / "narrowsd"
    path.write_text(
        f"#!{sys.executable}\nimport sys\nsys.path.insert(0, {str(STEERED)!r})\n"
        "import fake_narrowsd\nfake_narrowsd.main()\n"
    )
    path.chmod(0o755)
    return path


@pytest.fixture
def narrowsd(folder, monkeypatch):
    """The fake, where `NARROWSD` says; what it was told to do is in `narrowsd.log`."""
    path = fake_narrowsd(folder)
    monkeypatch.setenv("NARROWSD", str(path))
    monkeypatch.setenv("FAKE_NARROWSD_LOG", str(folder / "narrowsd.log"))
    return path


@pytest.fixture(scope="session")
def gemini(tmp_path_factory):
    """A working directory with the project's experiments, and quick results of Fig. 13 in `runs`."""
    from narrows import api

    base = tmp_path_factory.mktemp("gemini")
    shutil.copytree(CHECKOUT / "experiments", base / "experiments")
    for figure in ("fig04", "fig13"):
        file = base / "experiments" / "gemini" / figure / "experiment.toml"
        text = file.read_text()
        assert QUICK in text
        file.write_text(text.replace(QUICK, 'quick = { end = "4s", warmup = "400ms", drain = "4s"'))
    before = Path.cwd()
    os.chdir(base)
    try:
        handle = api.run("experiments/gemini/fig13/experiment.toml", quick=True)
        handle.join()
    finally:
        os.chdir(before)
    return base


def flows(*rows, case="a", seed=1):
    """Flow rows from (size in bytes, completion time in ms or nothing)."""
    return pl.DataFrame(
        {
            "case": [case] * len(rows),
            "arm": [case] * len(rows),
            "seed": [seed] * len(rows),
            "source": ["h1"] * len(rows),
            "workload": ["web"] * len(rows),
            "controller": ["cubic"] * len(rows),
            "size_bytes": [size for size, _ in rows],
            "fct_ns": [None if fct is None else int(fct * 1e6) for _, fct in rows],
            "slowdown": [None if fct is None else float(fct) for _, fct in rows],
            "retransmitted_bytes": [size // 10 for size, _ in rows],
            "timeouts": [1] * len(rows),
            "class": ["intra" if size < 1_000_000 else "inter" for size, _ in rows],
            "dropped_bytes": [size // 20 for size, _ in rows],
            "finished": [fct is not None for _, fct in rows],
        },
        schema_overrides={"fct_ns": pl.UInt64, "seed": pl.UInt64, "size_bytes": pl.UInt64, "slowdown": pl.Float64},
    )


def ports(*rows, case="a", seed=1):
    """Port rows from (node, role, sent, dropped, utilisation)."""
    return pl.DataFrame(
        [
            {
                "case": case, "arm": case, "seed": seed, "name": f"{node}->x", "node": node, "role": role,
                "sent_packets": sent, "dropped_packets": dropped, "dropped_limit_packets": dropped,
                "dropped_pool_packets": 0, "dropped_aqm_packets": 0, "marked_packets": 0, "utilisation": used,
                "queue_p99_bytes": 0, "queue_mean_bytes": 125_000.0, "rate_bps": 1_000_000_000,
            }
            for node, role, sent, dropped, used in rows
        ],
        schema_overrides={"seed": pl.UInt64},
    )  # fmt: skip


def frames(flow_frames, port_frames, series=None):
    """Frames of several runs."""
    from narrows.frames import Frames

    empty = pl.LazyFrame(schema={"case": pl.String, "quantity": pl.String, "entity": pl.String, "value": pl.Float64})
    return Frames(
        pl.concat(flow_frames),
        pl.concat(port_frames),
        series if series is not None else empty,
        pl.DataFrame(schema={"case": pl.String}),
    )
