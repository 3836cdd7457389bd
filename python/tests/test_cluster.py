"""Runs on a real Ray cluster: two nodes on this machine, on loopback addresses. `make nightly` runs this."""

import importlib.util
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from conftest import CHECKOUT, NARROWS, STEERED, children, installed, lines, until, until_gone
from test_killing import EXPERIMENT, beside, finish, whole, written

pytestmark = [
    pytest.mark.system,
    pytest.mark.ray,
    pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="ray is not installed: pip install '.[ray]'"),
]
HOW_TO = (CHECKOUT / "docs" / "how-to" / "experiments.md").read_text()
START_HEAD, START_NODE, RUN = re.findall(r"^(?:head|node)\$ \.venv/bin/(.*)$", HOW_TO, re.MULTILINE)
LONGER = EXPERIMENT.replace('end = "1s"', 'end = "15s"').replace("1..=15", "1..=8")
RUNS = 16
HEAD, NODE = "127.0.0.2", "127.0.0.3"  # Ray takes 127.0.0.1 for the machine's outward address


def descendants(process):
    found = children(process)
    return found + [deeper for child in found for deeper in descendants(child)]


class RayCluster:
    """Nodes by address. `kill` ends one as a machine that loses power would, and no process but its own."""

    def __init__(self, environment):
        self.environment = {key: value for key, value in environment.items() if key != "RAY_ADDRESS"}
        self.environment |= {"RAY_USAGE_STATS_ENABLED": "0", "RAY_health_check_period_ms": "500"}
        with socket.socket() as free:
            free.bind((HEAD, 0))
            self.address = f"{HEAD}:{free.getsockname()[1]}"
        self.folder = tempfile.mkdtemp(prefix="narrows-ray-")  # short: sockets lie in it
        self.nodes = {}

    def here(self, command):
        """A command of the how-to, for this machine."""
        command = command.replace("HEAD:6379", self.address).replace("=6379", "=" + self.address.rpartition(":")[2])
        verb, *arguments = shlex.split(command)
        return [Path(sys.executable).with_name(verb), *arguments]

    def start(self, node, *, processors=1, **environment):
        written = [*self.here(START_HEAD), "--temp-dir", self.folder] if node == HEAD else self.here(START_NODE)
        small = ["--node-ip-address", node, f"--num-cpus={processors}", "--object-store-memory=100000000", "--block"]
        self.nodes[node] = process = subprocess.Popen(
            [*written, *small], env=self.environment | environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True,
        )  # fmt: skip
        for line in process.stdout:
            if "--block" in line:
                return
        raise AssertionError(f"node {node} did not start")

    def kill(self, node):
        process = self.nodes.pop(node)
        family = [process.pid, *descendants(process.pid)]
        for member in family:
            try:
                os.kill(member, signal.SIGKILL)
            except ProcessLookupError:
                continue
        process.communicate()
        until_gone(family, 10)

    def end(self):
        for node in reversed(list(self.nodes)):
            self.kill(node)
        shutil.rmtree(self.folder, ignore_errors=True)

    def command(self, folder, out):
        return subprocess.Popen(
            [*self.here(RUN.replace("mine.toml", "many.toml")), "--out", out, "--json"],
            cwd=folder, env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip

    def tasks(self):
        """Processes of the nodes that work on a task."""
        names = {}
        for process in (member for node in self.nodes.values() for member in descendants(node.pid)):
            try:
                names[process] = Path(f"/proc/{process}/cmdline").read_text()
            except OSError:
                continue
        return [process for process, name in names.items() if name.startswith("ray::task")]


@pytest.fixture
def cluster(real):
    made = RayCluster(real)
    try:
        made.start(HEAD)
        yield made
    finally:
        made.end()


@pytest.fixture(scope="module")
def local(real, tmp_path_factory):
    """The same runs by processes of this machine."""
    folder = tmp_path_factory.mktemp("local")
    (folder / "many.toml").write_text(LONGER)
    installed(real, "run", "many.toml", cwd=folder, check=True, timeout=300)
    found = whole(folder / "runs")
    assert len(found) == RUNS
    return found


def until_some_are_finished(command, root, number):
    until(lambda: len(written(root)) >= number or command.poll() is not None, 120)
    assert command.poll() is None, command.communicate()


def test_a_node_that_dies_costs_no_run(cluster, folder, local):
    cluster.start(NODE)
    (folder / "many.toml").write_text(LONGER)
    command = cluster.command(folder, "runs")
    until_some_are_finished(command, folder / "runs", 2)
    until(lambda: len(cluster.tasks()) >= 2, 10, why="both nodes work")  # between two tasks a process has no name
    cluster.kill(NODE)
    assert len(written(folder / "runs")) < RUNS
    said = finish(command)
    assert len({(run["plan"], run["seed"]) for run in said}) == len(said) == RUNS
    assert not any(run["skipped"] for run in said)
    assert whole(folder / "runs") == local
    assert beside(folder / "runs") == []


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_the_command_goes_on_where_it_was_ended(cluster, folder, local, how):
    (folder / "many.toml").write_text(LONGER)
    command = cluster.command(folder, "runs")
    until_some_are_finished(command, folder / "runs", 3)
    tasks = cluster.tasks()
    assert tasks
    command.send_signal(how)
    _, errors = command.communicate(timeout=30)
    assert command.returncode == (-how if how == signal.SIGKILL else 130)
    if how != signal.SIGKILL:
        assert re.search(rf"stopped; \d+ of {RUNS} runs are finished and kept", errors)
        assert beside(folder / "runs") == []
    until_gone(tasks, 20)
    kept = written(folder / "runs")
    assert whole(folder / "runs").items() <= local.items()
    said = finish(cluster.command(folder, "runs"))
    assert sum(run["skipped"] for run in said) == len(kept) < RUNS
    assert kept.items() <= written(folder / "runs").items()
    assert whole(folder / "runs") == local
    assert beside(folder / "runs") == []


def test_a_cluster_and_a_machine_share_the_work_of_one_folder(cluster, folder, local):
    (folder / "many.toml").write_text(LONGER)
    there = cluster.command(folder, "runs")
    here = subprocess.Popen(
        [NARROWS, "run", "many.toml", "--jobs", "1", "--json"], cwd=folder, env=cluster.environment,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    said = [finish(there), finish(here)]
    assert sum(not run["skipped"] for of_one in said for run in of_one) == RUNS
    assert whole(folder / "runs") == local


def test_a_node_with_another_version_is_named(cluster, folder):
    cluster.start(NODE, PYTHONPATH=os.pathsep.join([str(STEERED.parents[1]), str(STEERED)]), TEST_VERSION="0.0.0-other")
    (folder / "many.toml").write_text(LONGER)
    command = cluster.command(folder, "runs")
    _, errors = command.communicate(timeout=120)
    assert command.returncode == 3
    assert re.match(rf"error: node {NODE} \(\S+\) has narrows 0\.0\.0-other, and the command \d\S+; polars", errors)
    assert "help: install on every node" in errors
    assert beside(folder / "runs") == []


def test_a_run_for_which_no_node_has_memory_is_named(real, folder):
    """The head finds that it lacks memory whatever a task needs."""
    cluster = RayCluster(real)
    try:
        cluster.start(HEAD, RAY_memory_usage_threshold="0.001", RAY_memory_monitor_refresh_ms="50")
        (folder / "many.toml").write_text(LONGER.replace("1..=8", "1..=1"))
        command = cluster.command(folder, "runs")
        _, errors = command.communicate(timeout=120)
    finally:
        cluster.end()
    assert command.returncode == 1
    assert re.match(r"error: run \w+/1 \(\w+, seed 1\) ended without results: OutOfMemoryError: ", errors)
    assert beside(folder / "runs") == []


def test_a_run_that_fits_no_node_is_refused_and_one_that_fits_is_made(cluster, folder):
    """The node has one processor."""
    (folder / "many.toml").write_text(EXPERIMENT.replace("1..=15", "1..=1"))
    command = ["run", "many.toml", "--on", "ray", "--ray-address", cluster.address, "--threads"]
    two, one = (installed(cluster.environment, *command, threads, timeout=60) for threads in (2, 1))
    assert (two.returncode, two.stdout) == (3, "")
    assert two.stderr == (
        "error: a run with --threads 2 needs a node of 2 processors; the largest of the cluster has 1\n"
        "  help: give fewer --threads, or let a larger node join the cluster first\n"
    )
    assert one.returncode == 0, one.stderr


def test_as_many_tasks_fly_as_nodes_have_processors_for(cluster, monkeypatch):
    """Two nodes of one and of five processors: two runs of two threads, where six processors would hold three."""
    cluster.start(NODE, processors=5)
    for variable in ("RAY_USAGE_STATS_ENABLED", "RAY_health_check_period_ms"):
        monkeypatch.setenv(variable, cluster.environment[variable])
    from narrows.runs.cluster import SPARE, Cluster
    from narrows.runs.store import Store

    made = Cluster(Store(Path("runs")), address=cluster.address, threads=2)
    try:
        assert made.room() == 2 + SPARE
    finally:
        made.close()
        sys.modules["ray"].shutdown()


def test_a_cluster_that_goes_away_ends_the_command_and_keeps_what_is_finished(cluster, folder, local):
    (folder / "many.toml").write_text(LONGER)
    command = cluster.command(folder, "runs")
    until_some_are_finished(command, folder / "runs", 2)
    cluster.kill(HEAD)
    _, errors = command.communicate(timeout=55)
    assert command.returncode == 3
    assert re.search(
        r"^error: the Ray cluster went away: .*refused\n  help: what was finished is kept; run the same command again",
        errors, re.MULTILINE,
    )  # fmt: skip
    kept = whole(folder / "runs")
    assert kept
    assert kept.items() <= local.items()
    assert beside(folder / "runs") == []


@pytest.mark.parametrize(
    "address", ["ray://127.0.0.2:10001", "nonsense", "127.0.0.2", "127.0.0.2:", ":6379", "h:99999"]
)
@pytest.mark.parametrize("how", ["option", "environment"])
def test_what_is_no_address_is_said_at_once(real, folder, address, how):
    (folder / "many.toml").write_text(EXPERIMENT)
    option = ["--ray-address", address] if how == "option" else []
    environment = real | ({"RAY_ADDRESS": address} if how == "environment" else {})
    done = installed(environment, "run", "many.toml", "--on", "ray", *option, timeout=20)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(
        f"error: '{address}' is not the address of a Ray cluster\n  help: write HOST:PORT, as in 10.0.0.1:6379"
    )


@pytest.mark.parametrize("how", ["option", "environment", "nothing"])
def test_auto_is_the_cluster_that_ray_finds(cluster, folder, how):
    """Ray finds it by a file in its folder, or by the processes of this machine."""
    (folder / "many.toml").write_text(EXPERIMENT.replace("1..=15", "1..=1"))
    option = ["--ray-address", "auto"] if how == "option" else []
    environment = cluster.environment | ({"RAY_ADDRESS": "auto"} if how == "environment" else {})
    done = installed(environment, "run", "many.toml", "--on", "ray", "--json", *option)
    assert done.returncode == 0, done.stderr
    assert [run["skipped"] for run in lines(done.stdout)[:-1]] == [False, False]


def test_a_cluster_that_is_not_there_is_said_soon(real, folder):
    (folder / "many.toml").write_text(EXPERIMENT)
    done = installed(real, "run", "many.toml", "--on", "ray", "--ray-address", f"{HEAD}:9", timeout=20)
    assert done.returncode == 3
    assert re.match(rf"error: no Ray cluster at {HEAD}:9: .*refused\n  help: start one with `ray start", done.stderr)
    assert "Traceback" not in done.stderr
