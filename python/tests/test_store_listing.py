"""What a store says of its results, and how they are removed: nothing that is used goes."""

import json
import os
import platform
import subprocess
import time
from datetime import datetime
from pathlib import Path

import pytest
from conftest import CHECKOUT, SMALL, installed, lines, narrows, until

from narrows import api
from narrows.errors import BadInput
from narrows.runs import removal
from narrows.runs.experiments import experiment_text
from narrows.runs.index import Index
from narrows.runs.removal import collect, removable, remove, unreferenced
from narrows.runs.store import Store, size_of

pytestmark = pytest.mark.simulator
LONGER = SMALL.replace('end = "100ms"', 'end = "120ms"')


@pytest.fixture
def small(folder):
    """Results of `small.toml` in `runs`."""
    (folder / "small.toml").write_text(SMALL)
    return api.run("small.toml").join()


def listed(*options):
    """By name what `narrows runs` says."""
    return {one["name"]: one for one in lines(narrows("runs", "--json", *options).stdout)}


def made(root):
    """Every run that is there, as its plan and seed."""
    return {f"{path.parent.parent.name}/{path.parent.name}" for path in root.glob("*/*/manifest.json")}


def git(*arguments, cwd):
    names = ["-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "commit.gpgsign=false"]
    done = subprocess.run(["git", *names, *arguments], cwd=cwd, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_a_manifest_says_where_its_run_comes_from_and_tables_do_not(folder):
    lab = folder / "lab"
    lab.mkdir()
    (lab / "small.toml").write_text(SMALL)
    before = time.time()
    first = api.run("lab/small.toml", seeds=1, out="one").join().manifests[0]
    assert before - 1 <= datetime.fromisoformat(first["origin"]["date"]).timestamp() <= time.time()
    assert first["origin"]["machine"]["cores"] == os.cpu_count()
    assert platform.node() not in json.dumps(first["origin"]["machine"])
    assert (first["origin"]["command"], first["origin"]["git"]) == ("narrows run lab/small.toml --seeds 1..1", None)
    git("init", "--quiet", cwd=lab)
    git("add", "small.toml", cwd=lab)
    git("commit", "--quiet", "-m", "x", cwd=lab)
    clean = api.run("lab/small.toml", seeds=1, out="two").join().manifests[0]
    assert clean["origin"]["git"] == {"commit": git("rev-parse", "HEAD", cwd=lab), "dirty": False}
    (lab / "small.toml").write_text(f"# the same\n{SMALL}")
    dirty = api.run("lab/small.toml", seeds=1, out="three").join().manifests[0]
    assert dirty["origin"]["git"] == clean["origin"]["git"] | {"dirty": True}
    (lab / "new.toml").write_text(SMALL)
    git("checkout", "--quiet", "small.toml", cwd=lab)
    untracked = api.run("lab/new.toml", seeds=1, out="four").join().manifests[0]
    assert untracked["origin"]["git"]["dirty"], "the commit does not have it"
    assert first["tables"] == clean["tables"] == dirty["tables"] == untracked["tables"]


def test_the_text_of_an_experiment_is_kept_as_it_was_with_small_files_that_it_names(folder):
    (folder / "sizes.cdf").write_text("1000 0\n2000 1\n")
    text = SMALL.replace('cdf = "web-search"', 'file = "sizes.cdf"')
    (folder / "small.toml").write_text(text)
    api.run("small.toml", seeds=1).join()
    (folder / "small.toml").write_text(text.replace("100ms", "50ms"))
    (folder / "sizes.cdf").write_text("1000 0\n9000 1\n")
    entry = Index(folder / "runs").find("small")
    assert experiment_text(entry) == text
    (copy,) = (folder / "runs" / "experiments").glob("sha256-*/small.toml")
    assert (copy.with_name("sizes.cdf")).read_text() == "1000 0\n2000 1\n"
    again = narrows("run", copy, "--seeds", "1", "--json")
    assert [one.get("skipped") for one in lines(again.stdout)] == [True, True, 2], "the copy asks for the same runs"
    copy.write_text(text.replace("100ms", "60ms"))
    assert experiment_text(entry) is None, "it is not what was written"


def test_an_experiment_that_was_given_as_a_text_is_kept_too(folder):
    entry = api.run(SMALL, seeds=1).join().entry
    assert experiment_text(entry) == SMALL


def test_results_of_earlier_versions_are_listed_and_read(small, folder):
    index = folder / "runs" / "index.json"
    raw = json.loads(index.read_text())
    for key in ("experiment", "imported"):
        del raw["experiments"]["small"][key]
    index.write_text(json.dumps(raw))
    for path in (folder / "runs").glob("*/*/manifest.json"):
        manifest = json.loads(path.read_text())
        del manifest["origin"]
        path.write_text(json.dumps(manifest))
        os.utime(path, (1_600_000_000, 1_600_000_000))
    assert listed()["small"]["date"] == "2020-09-13T12:26:40Z"
    assert listed()["small"]["state"] == "current"
    assert narrows("show", "small").returncode == 0
    assert experiment_text(api.load("small").entry) is None


def test_a_store_that_somebody_has_written_into_is_listed_or_named(small, folder):
    for path in (folder / "runs").glob("*/*/manifest.json"):
        path.write_text(json.dumps(json.loads(path.read_text()) | {"origin": "x"}))
    assert listed()["small"]["state"] == "current"
    assert narrows("show", "small").returncode == 0
    index = folder / "runs" / "index.json"
    raw = json.loads(index.read_text())
    raw["experiments"]["small"]["seeds"] = [float("inf")]
    index.write_text(json.dumps(raw))
    done = narrows("runs")
    assert (done.returncode, "cannot read runs/index.json" in done.stderr) == (2, True)


def test_results_are_current_stale_or_incomplete(small, folder, monkeypatch):
    one = listed()["small"]
    files = [path for path in (folder / "runs").glob("*/*/*") if path.is_file() and path.parent.name.isdigit()]
    assert (one["state"], one["runs"], one["reasons"]) == ("current", 4, [])
    assert one["bytes"] == sum(path.stat().st_size for path in files)
    (folder / "small.toml").write_text(f"# a remark\n{SMALL}")
    assert listed()["small"]["state"] == "current"
    (folder / "small.toml").write_text(LONGER)
    assert (listed()["small"]["state"], listed()["small"]["reasons"]) == ("stale", ["small.toml has changed since"])
    (folder / "small.toml").unlink()
    assert (listed()["small"]["state"], listed()["small"]["reasons"]) == ("current", ["small.toml is gone"])
    monkeypatch.setenv("TEST_VERSION", "9.9.9+other")
    assert listed()["small"]["state"] == "stale"
    assert listed()["small"]["reasons"][0].startswith("made by another version, 0.")
    monkeypatch.delenv("TEST_VERSION")
    files[0].parent.joinpath("manifest.json").unlink()
    assert (listed()["small"]["state"], listed()["small"]["absent"]) == ("incomplete", 1)
    assert narrows("runs").stdout.splitlines()[1].split()[0] == "small"


def test_removing_asks_and_leaves_what_others_use(small, folder):
    root = folder / "runs"
    api.run("small.toml", seeds="1..3").join()
    (root / "reports").mkdir()
    for name in ("small", "small-gem-+0a1b2c", "small-seeds-1-3", "small-seeds-1-3-gem+0a1b2c"):
        (root / "reports" / f"report-{name}.html").write_text("x")
    asked = narrows("rm", "small-seeds-1-3")
    assert (asked.returncode, asked.stderr.splitlines()[1]) == (2, "  help: give --yes")
    assert asked.stdout.startswith("removes small-seeds-1-3: 2 runs and 2 files, ")
    assert asked.stdout.endswith("; 4 runs of other results stay\n")
    assert len(made(root)) == 6
    assert narrows("rm", "small-seeds-1-3", "--yes").returncode == 0
    assert listed().keys() == {"small"}
    assert {run.rpartition("/")[2] for run in made(root)} == {"1", "2"}
    left = {path.name for path in (root / "reports").iterdir()}
    assert left == {"report-small.html", "report-small-gem-+0a1b2c.html"}
    assert narrows("compare", "small").returncode == 0
    assert narrows("rm", "small", "--yes").returncode == 0
    assert made(root) == set()
    assert sorted(path.name for path in root.iterdir()) == [".index.lock", "experiments", "index.json", "reports"]
    assert list((root / "reports").iterdir()) == list((root / "experiments").iterdir()) == []
    assert narrows("rm", "small", "--yes").returncode == 2


def test_earlier_results_are_removed_one_by_one_or_with_the_last(small, folder):
    root = folder / "runs"
    for end in ("110ms", "120ms"):
        (folder / "small.toml").write_text(SMALL.replace('end = "100ms"', f'end = "{end}"'))
        api.run("small.toml").join()
    assert listed("--all").keys() == {"small", "small~1", "small~2"}
    oldest = {member.hash for member in Index(root).find("small~2").members}
    newer = {member.hash for member in Index(root).find("small~1").members}
    assert collect(Store(root)).is_empty, "earlier results are results"
    store = Store(root)
    remove(store, removable(store, ["small~1"]))
    assert listed("--all").keys() == {"small", "small~1"}
    assert {member.hash for member in Index(root).find("small~1").members} == oldest
    assert not newer & {run.partition("/")[0] for run in made(root)}
    remove(store, removable(store, ["small"]))
    assert made(root) == set()


def test_what_changes_while_the_command_asks_is_not_removed(small, folder):
    """A file that is run again makes `small~1` what `small` was."""
    store = Store(folder / "runs")
    for end in ("110ms", "120ms"):
        planned = removable(store, ["small~1"]) if end == "120ms" else None
        (folder / "small.toml").write_text(SMALL.replace('end = "100ms"', f'end = "{end}"'))
        api.run("small.toml").join()
    before = made(store.root)
    with pytest.raises(BadInput, match="small~1 changed meanwhile"):
        remove(store, planned)
    assert made(store.root) == before
    assert listed("--all").keys() == {"small", "small~1", "small~2"}


def test_runs_that_nothing_refers_to_and_old_temporary_files_are_removed(small, folder):
    root = folder / "runs"
    plan = small.entry.members[0].hash
    (root / plan / "2").rename(root / plan / "7")
    (root / ".removed.1").mkdir()
    (root / "notes").mkdir()
    (root / "notes" / "1").write_text("mine")
    for name, age_s in (("old", 7200), ("new", 0)):
        path = root / "reports" / f".{name}.html.1.partial"
        path.parent.mkdir(exist_ok=True)
        path.write_text("x")
        os.utime(path, (time.time() - age_s,) * 2)
    would = lines(narrows("gc", "--dry-run", "--json").stdout)[0]
    assert would["runs"] == [f"{plan}/7"]
    assert len(would["files"]) == 2
    assert f"{plan}/7" in made(root)
    assert lines(narrows("gc", "--json").stdout)[0] == would | {"dry_run": False}
    assert f"{plan}/7" not in made(root)
    assert [path.name for path in (root / "reports").iterdir()] == [".new.html.1.partial"]
    assert (root / "notes" / "1").read_text() == "mine"
    assert narrows("gc").stdout == "nothing to remove\n"


def test_what_others_remove_meanwhile_has_no_size(small, folder, monkeypatch):
    store = Store(folder / "runs")
    (folder / "sized" / "gone").mkdir(parents=True)
    (folder / "sized" / "file").write_text("12345")
    scan = os.scandir

    def late(path):
        if str(path).endswith("gone"):
            Path(path).rmdir()
        return scan(path)

    monkeypatch.setattr(os, "scandir", late)
    assert size_of(folder / "sized") == 5
    monkeypatch.setattr(removal, "_stale", lambda root: iter([root / ".removed.meanwhile"]))
    assert unreferenced(store).size_bytes == 0


def test_nothing_is_removed_without_an_index_that_says_what_is_used(small, folder):
    index = folder / "runs" / "index.json"
    for content in ('{"format": 99}', None):
        index.write_text(content) if content else index.unlink()
        with pytest.raises(BadInput):
            collect(Store(folder / "runs"))
        assert len(made(folder / "runs")) == 4


def test_a_run_that_goes_on_loses_nothing(folder, monkeypatch):
    """Its first runs are finished and in no index while the last is made; nor are those that it reuses."""
    root = folder / "runs"
    (folder / "small.toml").write_text(SMALL)
    api.run("small.toml", seeds=1).join()
    index = Index(root)
    with index.locked():
        index.forget(["small-seeds-1-1"])
    monkeypatch.setenv("TEST_SECONDS", "1")
    handle = api.run("small.toml", seeds="1..2", jobs=1)
    until(lambda: len(made(root)) == 3)
    assert collect(Store(root)).is_empty
    assert unreferenced(Store(root)).is_empty
    assert len(handle.join().manifests) == 4
    assert collect(Store(root)).is_empty
    assert not list(root.glob(".in-use.*"))


def test_what_a_killed_command_had_in_use_is_removed(real, folder):
    """The lock of a reservation ends with its process, however that ends."""
    (folder / "small.toml").write_text(SMALL)
    script = "import os, narrows\nhandle = narrows.run('small.toml')\nhandle._batch.join()\nos._exit(9)\n"
    (folder / "dies.py").write_text(script)
    api.run("small.toml", seeds=9).join()
    done = subprocess.run(
        [installed.__kwdefaults__["program"].with_name("python"), "dies.py"], env=real, cwd=folder, timeout=60
    )
    assert done.returncode == 9
    root = folder / "runs"
    assert len(made(root)) == 6
    assert list(root.glob(".in-use.*"))
    assert len(collect(Store(root)).runs) == 4
    assert {run.rpartition("/")[2] for run in made(root)} == {"9"}
    assert not list(root.glob(".in-use.*"))


def test_the_checkout_says_its_commit_of_its_own_experiments():
    from narrows.runs.origin import commit_of

    found = commit_of(CHECKOUT / "experiments" / "gemini" / "fig13" / "experiment.toml")
    if found is None:
        pytest.skip("this is no work tree of git")
    assert len(found["commit"]) == 40
