"""Commands that are killed while they work, or share a folder: nothing finished is lost, nothing is half-written."""

import hashlib
import json
import os
import random
import re
import signal
import subprocess
import time

import pytest
from conftest import NARROWS, SMALL, children, lines, until, until_gone

EXPERIMENT = SMALL.replace('end = "100ms"', 'end = "1s"').replace("1..=2", "1..=15")
RUNS = 30
CLOCKS = {"cpu_ns", "wall_ns", "hold_ns", "ns_per_packet_hop", "holds_per_packet_hop", "origin"}

pytestmark = pytest.mark.system


@pytest.fixture
def many(folder):
    """A folder with an experiment of many runs."""
    (folder / "many.toml").write_text(EXPERIMENT)
    return folder


def start(environment, folder, out="runs"):
    """A command with two workers, in a session of its own, so that it can be signalled like a terminal's."""
    return subprocess.Popen(
        [NARROWS, "run", "many.toml", "--jobs", "2", "--out", out, "--json"], cwd=folder, env=environment,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip


def finish(command):
    """What the command says of each run."""
    out, errors = command.communicate(timeout=120)
    assert command.returncode == 0, errors
    return [said for said in lines(out) if said["event"] == "run"]


def whole(root):
    """Every run with the digests of its tables and its manifest without clocks."""
    found = {}
    for run in root.glob("*/[0-9]*"):
        files = {path.name: path.read_bytes() for path in run.iterdir()}
        manifest = json.loads(files.pop("manifest.json"))
        assert len(files) == 7
        digests = {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}
        left = {key: value for key, value in manifest.items() if key not in CLOCKS}
        found[run.relative_to(root).as_posix()] = (digests, left)
    return found


def written(root):
    """When each run was written."""
    return {path.parent: path.stat().st_mtime_ns for path in root.glob("*/[0-9]*/manifest.json")}


def beside(root):
    """What is neither a run nor the index."""
    return [path.name for path in root.glob("*/.*")]


@pytest.fixture(scope="module")
def clean(real, tmp_path_factory):
    """The store of a command that nobody disturbed."""
    folder = tmp_path_factory.mktemp("clean")
    (folder / "many.toml").write_text(EXPERIMENT)
    finish(start(real, folder, "runs"))
    found = whole(folder / "runs")
    assert len(found) == RUNS
    return found


@pytest.mark.parametrize("seed", range(1, 1 + int(os.environ.get("NARROWS_KILLING_SEEDS", "2"))))
def test_a_command_killed_again_and_again_ends_with_the_same_results(real, many, clean, seed):
    """Kills the command, a worker, both, or asks it to stop, at random moments; the same command goes on."""
    chance, root = random.Random(seed), many / "runs"
    ways = ["parent", "worker", "both", "terminate", "interrupt"]
    chance.shuffle(ways)
    kept = {}
    for way in ways:
        command = start(real, many, "runs")
        time.sleep(chance.uniform(0.2, 1.6))
        workers = children(command.pid)
        if way in ("worker", "both") and workers:
            os.kill(chance.choice(workers), signal.SIGKILL)
        if way in ("parent", "both"):
            command.kill()
        if way == "terminate":
            command.terminate()
        if way == "interrupt":
            os.killpg(command.pid, signal.SIGINT)
        _, errors = command.communicate(timeout=120)
        assert way != "worker" or command.returncode == 0, "another worker takes the place of one that dies"
        until_gone(workers, 10)
        assert "Traceback" not in errors or "KeyboardInterrupt" in errors, "the latter while Python starts"
        now = written(root)
        assert kept.items() <= now.items(), "what was finished stays as it was"
        assert whole(root).items() <= clean.items()
        kept = now
    finish(start(real, many, "runs"))
    assert kept.items() <= written(root).items()
    assert whole(root) == clean
    assert beside(root) == []


def test_two_commands_on_one_folder_share_the_work(real, many, clean):
    commands = [start(real, many, "runs") for _ in range(2)]
    said = [finish(command) for command in commands]
    made = [{(run["plan"], run["seed"]) for run in of_one if not run["skipped"]} for of_one in said]
    assert [len(of_one) for of_one in said] == [RUNS, RUNS], "each ends when all runs are there"
    assert len(made[0]) + len(made[1]) == RUNS
    assert made[0].isdisjoint(made[1]), "no run is made twice"
    assert min(map(len, made)) > 0
    assert whole(many / "runs") == clean
    assert beside(many / "runs") == []


def test_a_command_takes_over_what_a_killed_one_was_making(real, many, clean):
    first, second = (start(real, many, "runs") for _ in range(2))
    until(lambda: written(many / "runs"))
    first.kill()
    finish(second)
    first.communicate()
    assert whole(many / "runs") == clean
    assert beside(many / "runs") == []


def test_workers_in_the_middle_of_a_long_run_end_with_their_parent(real, folder):
    """The parent dies without a word."""
    (folder / "many.toml").write_text(EXPERIMENT.replace('end = "1s"', 'end = "1000s"'))
    command = start(real, folder, "runs")
    until(lambda: list((folder / "runs").glob("*/.*.lock")))
    workers = children(command.pid)
    assert workers
    command.kill()
    command.communicate()
    until_gone(workers, 6)
    assert written(folder / "runs") == {}


def test_a_run_that_outgrows_the_memory_fails_alone(real, folder):
    """Workers may have the memory that a short run needs: the long ones fail and are named, the short ones stay."""
    arms = EXPERIMENT.replace('seeds = "1..=15"', 'seeds = "1..=1"')
    (folder / "many.toml").write_text(arms + '[sweep]\n"run.end" = ["1s", "20s"]\n[sample]\nqueues = "10us"\n')
    command = ["prlimit", "--as=1200000000", NARROWS, "run", "many.toml", "--jobs", "1"]
    done = subprocess.run(command, cwd=folder, env=real, capture_output=True, text=True, timeout=120)
    assert done.returncode == 1, done.stderr
    assert re.search(r"end=20s, seed 1\) ended without results: .*\(SIGABRT\)\n  help: .* memory", done.stderr)
    made = [json.loads((run / "manifest.json").read_text()) for run in written(folder / "runs")]
    assert len(made) == 2
    assert all(manifest["simulated_ns"] < 10e9 for manifest in made)


def test_a_full_disk_ends_the_command_and_keeps_what_had_room(real, many, clean):
    """The folder is a file system of 400 KB, which is then made larger."""
    (many / "runs").mkdir()
    again = f"{NARROWS} run many.toml --jobs 2; echo code $?"
    script = f"""
        mount -t tmpfs -o size=400k none runs || {{ echo no mount; exit; }}
        {again}
        cp -r runs kept
        mount -o remount,size=40m runs
        {again}
        cp -r runs all
    """
    alone = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", script]
    done = subprocess.run(alone, cwd=many, env=real, capture_output=True, text=True, timeout=120)
    if "code" not in done.stdout:
        pytest.skip(f"this system does not let a user mount a file system: {done.stdout}{done.stderr}")
    assert re.findall(r"^code \d+", done.stdout, re.MULTILINE) == ["code 2", "code 0"]
    said = r"^error: cannot write run \w+/\d+ to runs: No space left on device\n  help: free some"
    assert re.search(said, done.stderr, re.MULTILINE)
    assert 0 < len(whole(many / "kept")) < RUNS
    assert whole(many / "kept").items() <= clean.items()
    assert beside(many / "kept") == []
    assert whole(many / "all") == clean
