"""Every test has the real native module, and may steer it, in this process and in those it starts."""

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

# Tables of tests are small: threads cost more than they save. Before polars is imported, which reads it then.
os.environ["POLARS_MAX_THREADS"] = "1"

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

NARROWS = Path(sys.executable).with_name("narrows")
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
SMALL = """\
[topology.two-datacenters]
servers = 2
[[traffic]]
name = "web"
between = "datacenters"
arrivals = { poisson = { load = 0.5, of = "wan" } }
size = { cdf = "web-search" }
[[arm]]
name = "cubic"
cc = "cubic"
[[arm]]
name = "gemini"
cc = "gemini"
[run]
end = "100ms"
drain = "1s"
seeds = "1..=2"
"""


CHROMIUM = Path("/usr/bin/chromium")

SIMULATE = {
    "real",
    "gemini",
    "two_arms",
    "made",
    "office",
    "linux",
    "many",
    "counts",
    "lossless",
    "sweep",
    "alike",
    "mixed",
}
"""Fixtures of tests that make runs."""


def pytest_collection_modifyitems(items):
    """Marks what drives a browser and what makes runs; other tests that make runs mark themselves."""
    for item in items:
        if "browser" in item.fixturenames:
            item.add_marker(pytest.mark.system)
        if not SIMULATE.isdisjoint(item.fixturenames):
            item.add_marker(pytest.mark.simulator)


MAY_RUN = {"simulator", "page", "system", "ray", "live", "guest"}
"""Marks of tests that may make runs; `make quick` leaves all of them out."""

NOTED = Path(tempfile.gettempdir()) / f"narrows-tests-{os.getpid()}"
"""Where runs of other tests are noted, in whichever process."""


def pytest_configure():
    """Files of tests make no runs while they are imported."""
    os.environ["TEST_NO_RUNS"] = str(NOTED)


@pytest.fixture(autouse=True, scope="session")
def tables_of_the_fake_narrowsd(tmp_path_factory):
    """Where it keeps what it has made."""
    os.environ["FAKE_NARROWSD_MADE"] = str(tmp_path_factory.mktemp("fake"))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_setup(item):
    """Before any fixture: a run of a test without such a mark is refused."""
    NOTED.unlink(missing_ok=True)
    if MAY_RUN.isdisjoint(mark.name for mark in item.iter_markers()):
        os.environ["TEST_NO_RUNS"] = str(NOTED)
    else:
        os.environ.pop("TEST_NO_RUNS", None)
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    """A run that was refused fails its test, even where the test expects a failure."""
    try:
        return (yield)
    finally:
        if NOTED.exists():
            NOTED.unlink()
            pytest.fail(f"{item.nodeid} makes runs and is not marked `simulator`")


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


def installed(environment, *arguments, program=NARROWS, timeout=240, **options):
    """The command, in a process of its own with this environment."""
    command = [program, *map(str, arguments)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=timeout, **options)


def said_by(environment, *arguments, **options):
    """What the command prints, which does not fail."""
    done = installed(environment, *arguments, **options)
    assert done.returncode == 0, (arguments, done.stderr)
    return done.stdout


NIGHTLY = os.environ.get("NARROWS_NIGHTLY", "0") != "0"
"""Experiments of the documentation are run as they stand, and what a first figure costs is measured."""


def shorter(text, *pairs):
    """A page whose experiments end sooner and have fewer seeds: (what it says, what is run)."""
    for said, meant in pairs:
        assert said in text
        text = text if NIGHTLY else text.replace(said, meant)
    return text


def lines(printed):
    """What a command printed for programs."""
    return [json.loads(line) for line in printed.splitlines()]


def until(found, seconds=60, *, why="it did not happen"):
    """What is found at last."""
    deadline = time.monotonic() + seconds
    while not (value := found()):
        assert time.monotonic() < deadline, why
        time.sleep(0.02)
    return value


def children(parent):
    """Processes that this one started."""
    try:
        tasks = list(Path(f"/proc/{parent}/task").iterdir())
        return [int(child) for task in tasks for child in (task / "children").read_text().split()]
    except OSError:
        return []


def until_gone(processes, seconds=60):
    """Processes end soon after what started them."""
    until(lambda: not any(Path(f"/proc/{process}").exists() for process in processes), seconds, why="one lives on")


@pytest.fixture(scope="session")
def real():
    """The environment of a process that nobody steers."""
    return {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "POLARS_MAX_THREADS")}


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
    sizes, times = [size for size, _ in rows], [time for _, time in rows]
    table = pl.DataFrame(
        {
            "size_bytes": sizes,
            "fct_ns": [None if time is None else int(time * 1e6) for time in times],
            "slowdown": [None if time is None else float(time) for time in times],
            "retransmitted_bytes": [size // 10 for size in sizes],
            "class": ["intra" if size < 1_000_000 else "inter" for size in sizes],
            "dropped_bytes": [size // 20 for size in sizes],
            "finished": [time is not None for time in times],
            "sized": True,
            "source": "h1",
            "workload": "web",
            "controller": "cubic",
            "timeouts": 1,
        },
        schema_overrides={"fct_ns": pl.UInt64, "size_bytes": pl.UInt64, "slowdown": pl.Float64},
    )
    return labelled(table, case, seed)


def ports(*rows, case="a", seed=1):
    """Port rows from (node, role, sent, dropped, utilisation)."""
    table = pl.DataFrame(
        [
            {
                "name": f"{node}->x", "node": node, "role": role,
                "sent_packets": sent, "dropped_packets": dropped, "dropped_limit_packets": dropped,
                "dropped_pool_packets": 0, "dropped_aqm_packets": 0, "marked_packets": 0, "utilisation": used,
                "queue_p99_bytes": 0, "queue_mean_bytes": 125_000.0, "rate_bps": 1_000_000_000,
            }
            for node, role, sent, dropped, used in rows
        ]
    )  # fmt: skip
    return labelled(table, case, seed)


def labelled(table, case="a", seed=1):
    """A table whose rows are of this run."""
    return table.with_columns(case=pl.lit(case), arm=pl.lit(case), seed=pl.lit(seed, pl.UInt64))


def samples(*rows, case="a", seed=1):
    """Samples from (entity, time in ns, quantity, value)."""
    schema = {"entity": pl.String, "time_ns": pl.UInt64, "quantity": pl.String, "value": pl.Float64}
    return labelled(pl.LazyFrame(rows, schema=schema, orient="row"), case, seed)


def frames(flow_frames, port_frames, series=None):
    """Frames of several runs."""
    from narrows.frames import Frames

    return Frames(
        pl.concat(flow_frames),
        pl.concat(port_frames),
        samples() if series is None else series,
        pl.DataFrame(schema={"case": pl.String}),
    )


def reported(folder, text):
    """Results of an experiment that is run in a folder, and their page."""
    from narrows import api
    from narrows.report.page import build
    from narrows.runs.store import Store

    before = Path.cwd()
    os.chdir(folder)
    try:
        (folder / "experiment.toml").write_text(text)
        results = api.run("experiment.toml").join()
        yield results, folder / build(results, Store(api.RUNS))
    finally:
        os.chdir(before)


@pytest.fixture(scope="module")
def browser():
    if not CHROMIUM.exists():
        pytest.skip(f"{CHROMIUM} is not installed: the page is not driven")
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: the page is not driven")
    with sync_api.sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=str(CHROMIUM), args=["--no-sandbox"])
        yield started
        started.close()


class Driven:
    """A page, all that it asked for and all that it complained of."""

    def __init__(self, browser, path, width=1366, **options):
        self.asked, self.complaints = [], []
        self.page = browser.new_page(viewport={"width": width, "height": 768}, offline=True, **options)
        self.page.route(re.compile(r"^(?!file:)"), self._refuse)
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.goto(path.as_uri())
        self.page.wait_for_selector("body[data-drawn]", timeout=30_000)

    def _refuse(self, route):
        route.abort()


@pytest.fixture
def linux_modules(folder):
    """The working directory, with the files of the modules."""
    if named := os.environ.get("LINUX_SOURCE"):
        for path in (Path(named) / "net" / "ipv4").glob("tcp_*.[ch]"):
            shutil.copy(path, folder)
        return folder
    packed = sorted(Path("/usr/src").glob("linux-source-*.tar.xz"))
    if not packed:
        pytest.skip("LINUX_SOURCE names no kernel source, and no linux-source package is installed: no module is tried")
    with tarfile.open(packed[0]) as archive:
        for member in archive:
            path = Path(member.name)
            if path.match("linux-source-*/net/ipv4/tcp_*.[ch]"):
                (folder / path.name).write_bytes(archive.extractfile(member).read())
    return folder
