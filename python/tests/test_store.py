import fcntl
import hashlib
import itertools
import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import polars as pl
import pytest
from conftest import TWO_ARMS

from narrows import api, native
from narrows.claims import folders
from narrows.columns import conform, tables
from narrows.errors import BadInput
from narrows.experiment import Experiment
from narrows.report.page import build
from narrows.runs.index import Index
from narrows.runs.store import State, Store, encoded

pytestmark = pytest.mark.simulator
COSTS = {"packet_hops": 1_000_000, "cpu_ns": 76_000_000, "ns_per_packet_hop": 76.0}


@cache
def tables_of_a_run():
    run = native.Run(json.dumps(Experiment(TWO_ARMS).plans[0].body), 1).join()
    return {name: run.table(name) for name in tables()}


@cache
def files():
    return {name: encoded(name, table) for name, table in tables_of_a_run().items()}


@pytest.fixture
def store(tmp_path):
    made = Store(tmp_path / "runs")
    made.prepare()
    return made


def write(store, version="1"):
    with store.lock("abcd", 3):
        store.write("abcd", 3, files(), {"version": version, **COSTS})


def test_a_run_is_whole_or_absent(store):
    assert store.state("abcd", 3, "1") is State.ABSENT
    write(store)
    assert store.state("abcd", 3, "1") is State.WHOLE
    assert sorted(path.name for path in store.folder("abcd", 3).iterdir()) == [
        "bridges.parquet", "events.parquet", "flows.parquet", "manifest.json", "ports.parquet", "ranks.parquet",
        "requests.parquet", "series.parquet",
    ]  # fmt: skip
    assert [path.name for path in store.folder("abcd", 3).parent.iterdir()] == ["3"]


ON_A_SMALL_DISK = """
from pathlib import Path
import test_store
from narrows.errors import BadInput
from narrows.experiment import Experiment
store = test_store.Store(Path("small"))
store.prepare()
try:
    test_store.write(store)
except BadInput as error:
    print(str(error).splitlines()[0].rpartition(": ")[2])
print(store.state("abcd", 3, "1").name, *(path.name for path in store.root.glob("*/*")))
"""


@pytest.mark.parametrize(("pages", "said"), [
    *((pages, ["No space left on device", "ABSENT"]) for pages in (1, 3, 5, 6, 9)), (40, ["WHOLE 3"]),
])  # fmt: skip
def test_a_full_disk_leaves_nothing_and_says_so(tmp_path, pages, said):
    """On a file system that really is full, after this many 4 KiB pages."""
    alone = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c"]
    mount = f"mount -t tmpfs -o size={4 * pages}k none small"
    (tmp_path / "small").mkdir()
    if subprocess.run([*alone, mount], cwd=tmp_path).returncode:
        pytest.skip("this system does not let a user mount a file system")
    (tmp_path / "fill.py").write_text(ON_A_SMALL_DISK)
    paths = os.pathsep.join([os.environ["PYTHONPATH"], str(Path(__file__).parent)])
    done = subprocess.run(
        [*alone, f"{mount} && {sys.executable} fill.py"], cwd=tmp_path, env=os.environ | {"PYTHONPATH": paths},
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert done.stdout.splitlines() == said, done.stderr


def test_results_of_another_version_are_recognised_and_replaced(store):
    write(store, "1")
    assert store.state("abcd", 3, "2") is State.OTHER_VERSION
    write(store, "2")
    assert store.state("abcd", 3, "2") is State.WHOLE


DIES_AT_EVERY_STEP = """
import itertools, os, sys
from pathlib import Path
import test_store
from narrows.runs.store import State

def step(event, _):
    global left
    left -= event.startswith(("open", "os.", "shutil."))
    if left == 0:
        os._exit(9)

for number in itertools.count(1):
    store = test_store.Store(Path(str(number)))
    store.prepare()
    test_store.write(store, "1")
    child = os.fork()
    if child == 0:
        left = number
        sys.addaudithook(step)
        test_store.write(store, "2")
        os._exit(0)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    state = store.state("abcd", 3, "2")
    if state is not State.ABSENT:
        for name, content in test_store.files().items():
            assert (store.folder("abcd", 3) / f"{name}.parquet").read_bytes() == content
    print(code, state.name)
    store.prepare()
    assert len(list(store.root.glob("*/*"))) == (state is not State.ABSENT)
    test_store.write(store, "2")
    assert store.state("abcd", 3, "2") is State.WHOLE
    if code == 0:
        break
"""


def test_plans_with_programs_and_edited_files_are_compared():
    from narrows.runs import freshness

    def plan(text, rate=1, program=None):
        controller = {"name": "one", "program": {"file": "one.c", "text": text, "parameters": {}}}
        return {"rate": rate, "traffic": [{"controller": controller, "pattern": {"program": program or {"ranks": 4}}}]}

    def told(one, other):
        return [(item.text, item.file) for item in freshness._differences(one, other)]

    assert told(plan("a\nb"), plan("a\nb")) == []
    assert told(plan("a\nb"), plan("a\nc")) == [("one.c, line 2", "one.c")]
    assert told(plan("a\nb\nc"), plan("a\nb")) == [("one.c, line 2", "one.c")], "where the last line is gone"
    assert told(plan("a", rate=2), plan("b", program={"ranks": 8})) == [
        ("rate 2 → 1", ""), ("one.c, line 1", "one.c"), ("traffic.pattern.program.ranks 4 → 8", "")
    ]  # fmt: skip


def test_a_process_killed_at_any_step_of_writing_leaves_the_old_run_the_new_one_or_none(tmp_path):
    """Dies at the first thing it does to the file system, then at the second, and so on until it lives."""
    (tmp_path / "steps.py").write_text(DIES_AT_EVERY_STEP)
    paths = os.pathsep.join([os.environ["PYTHONPATH"], str(Path(__file__).parent)])
    done = subprocess.run(
        [sys.executable, "steps.py"], cwd=tmp_path, env=os.environ | {"PYTHONPATH": paths}, capture_output=True,
        text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    *died, lived = done.stdout.splitlines()
    assert lived == "0 WHOLE"
    assert [said for said, _ in itertools.groupby(died)] == ["9 OTHER_VERSION", "9 ABSENT", "9 WHOLE"]


def test_results_of_another_format_are_recognised(store):
    write(store)
    path = store.folder("abcd", 3) / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"format": 0}))
    assert store.state("abcd", 3, "1") is State.OTHER_VERSION


@pytest.mark.parametrize("damage", [
    lambda _: "{", lambda _: "[]", lambda _: "7", lambda _: "\xff",
    *(lambda manifest, key=key: json.dumps(json.loads(manifest) | {key: None}) for key in ("version", *COSTS)),
    *(lambda manifest, key=key: json.dumps(json.loads(manifest) | {key: True if key == "plan" else [7]})
      for key in ("tables", "plan", "simulated_ns", "hold_ns", "sources")),
])  # fmt: skip
def test_a_broken_manifest_is_an_absent_run(store, damage):
    write(store)
    path = store.folder("abcd", 3) / "manifest.json"
    path.write_text(damage(path.read_text()), encoding="latin-1")
    assert store.state("abcd", 3, "1") is State.ABSENT
    write(store)
    assert store.state("abcd", 3, "1") is State.WHOLE


def test_a_run_is_claimed_until_it_is_there(store):
    lock = store.claim("abcd", 3, "1")
    assert store.claim("abcd", 3, "1") is None, "who has claimed it makes it"
    lock.release()
    write(store)
    assert store.claim("abcd", 3, "1")["packet_hops"] == COSTS["packet_hops"]
    assert [path.name for path in store.folder("abcd", 3).parent.iterdir()] == ["3"], "no lock is left"
    with store.claim("abcd", 3, "2"):
        assert store.claim("abcd", 3, "2") is None, "another version's run is made again"


def flip(path, place):
    content = bytearray(path.read_bytes())
    content[place] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize("damage", [
    Path.unlink, lambda path: path.write_bytes(path.read_bytes()[:-40]), lambda path: path.write_bytes(b""),
    lambda path: path.write_bytes(files()["requests"]), lambda path: flip(path, 1000),
])  # fmt: skip
def test_a_damaged_table_names_the_folder_to_delete(store, damage):
    write(store)
    folder = store.folder("abcd", 3)
    damage(folder / "flows.parquet")
    with pytest.raises(BadInput, match=rf"{folder}/flows\.parquet.*\n  help: delete {folder}, then run") as raised:
        store.scan("abcd", 3, "flows")
    assert len(str(raised.value).splitlines()) == 2
    assert store.scan("abcd", 3, "ports").collect().height > 0


def test_a_damaged_table_of_a_run_without_digests_is_noticed(store):
    """Runs of earlier versions have none; what is damaged is found when the table is read, and not later."""
    write(store)
    folder = store.folder("abcd", 3)
    told = json.loads((folder / "manifest.json").read_text())
    (folder / "manifest.json").write_text(json.dumps({key: value for key, value in told.items() if key != "tables"}))
    assert store.scan("abcd", 3, "flows").collect().height > 0
    path = folder / "ports.parquet"
    path.write_bytes(path.read_bytes()[:4] + bytes(60) + path.read_bytes()[64:])
    with pytest.raises(BadInput, match=rf"{path}.*\n  help: delete {folder}"):
        store.scan("abcd", 3, "ports")


def test_equal_tables_give_equal_bytes(tmp_path):
    digests = []
    for name in ("one", "other"):
        store = Store(tmp_path / name)
        store.prepare()
        write(store)
        files = sorted(store.folder("abcd", 3).glob("*.parquet"))
        digests.append([hashlib.sha256(path.read_bytes()).hexdigest() for path in files])
    assert digests[0] == digests[1]


LEFT = (".9.partial", ".9.old", ".9.lock")


def leave(store):
    for name in LEFT[:2]:
        (store.root / "abcd" / name).mkdir(parents=True)
        (store.root / "abcd" / name / "flows.parquet").write_bytes(b"PAR1")
    (store.root / "abcd" / LEFT[2]).touch()


def beside(store):
    return sorted(path.name for path in (store.root / "abcd").glob("*"))


def test_what_a_killed_process_left_is_removed(store):
    write(store)
    leave(store)
    store.prepare()
    assert beside(store) == ["3"]


HOLD = """
import sys
from pathlib import Path
from narrows.runs.store import Store
lock = Store(Path(sys.argv[1])).lock("abcd", 9)
print("held", flush=True)
sys.stdin.read()
"""


def test_what_a_living_process_makes_is_left_alone(store):
    holder = subprocess.Popen([sys.executable, "-c", HOLD, store.root], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert holder.stdout.readline() == b"held\n"
    leave(store)
    assert store.lock("abcd", 9) is None
    store.prepare()
    assert beside(store) == sorted(LEFT)
    holder.kill()
    holder.communicate()
    with store.lock("abcd", 9):
        assert beside(store) == [".9.lock"], "a lock whose holder died is free, and what he left is gone"
    assert beside(store) == []


def test_a_lock_whose_file_went_away_meanwhile_is_no_lock(store, monkeypatch):
    """Between opening the file and locking it, its holder gives it back and somebody else makes a new one."""
    flock, first, third = fcntl.flock, store.lock("abcd", 3), []

    def late(descriptor, how):
        monkeypatch.setattr(fcntl, "flock", flock)
        first.release()
        third.append(store.lock("abcd", 3))
        flock(descriptor, how)

    monkeypatch.setattr(fcntl, "flock", late)
    assert store.lock("abcd", 3) is None
    third.pop().release()
    assert beside(store) == []


@pytest.mark.parametrize("error", [FileExistsError, FileNotFoundError])
def test_a_folder_that_its_last_holder_removes_meanwhile_is_made_again(store, monkeypatch, error):
    mkdir, refused = Path.mkdir, []

    def once(path, *how, **further):
        if refused:
            return mkdir(path, *how, **further)
        refused.append(path)
        raise error(path)

    monkeypatch.setattr(Path, "mkdir", once)
    with store.lock("abcd", 3):
        assert beside(store) == [".3.lock"]
    assert len(refused) == 1


def test_a_folder_that_is_a_file_is_the_users_error(store):
    (store.root / "abcd").parent.mkdir(parents=True, exist_ok=True)
    (store.root / "abcd").write_text("")
    with pytest.raises(BadInput):
        store.lock("abcd", 3)


def test_a_folder_that_leads_nowhere_is_the_users_error(store):
    store.root.mkdir(parents=True, exist_ok=True)
    (store.root / "abcd").symlink_to(store.root / "unmounted")
    with pytest.raises(BadInput):
        store.lock("abcd", 3)


def test_a_folder_that_cannot_be_written_is_the_users_error(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(BadInput, match="--out"):
        Store(tmp_path / "file" / "runs").prepare()


@pytest.mark.parametrize("change", [lambda frame: frame.drop("flow"), lambda frame: frame.with_columns(extra=1)])
def test_a_column_that_is_not_described_is_a_defect(change):
    with pytest.raises(AssertionError, match="what the simulator declares"):
        conform("flows", change(tables_of_a_run()["flows"]))


def test_only_a_nullable_column_may_hold_a_null():
    flows = tables_of_a_run()["flows"]
    conform("flows", flows.with_columns(fct_ns=pl.lit(None, dtype=pl.UInt64)))
    with pytest.raises(AssertionError, match="size_bytes"):
        conform("flows", flows.with_columns(size_bytes=pl.lit(None, dtype=pl.UInt64)))


def test_every_column_is_described():
    for table in tables().values():
        for column in table.columns:
            assert column.meaning
            assert column.unit
            for unit in ("ns", "bytes", "packets", "bps"):
                if column.name.endswith(f"_{unit}"):
                    assert column.unit == {"bps": "bit/s"}.get(unit, unit)


@pytest.mark.parametrize("where", ["key", "hash"])
def test_an_index_from_elsewhere_leads_nowhere_else(folder, two_arms, where):
    api.run(two_arms).join()
    path = folder / "runs" / "index.json"
    raw = json.loads(path.read_text())
    if where == "key":
        raw["experiments"]["../../etc/two"] = raw["experiments"].pop("two")
    else:
        raw["experiments"]["two"]["members"][0]["hash"] = "../elsewhere"
    path.write_text(json.dumps(raw))
    with pytest.raises(BadInput, match="outside its folder"):
        Index(folder / "runs").find("two")


def test_a_run_that_is_made_again_while_it_is_read_is_not_damaged(store):
    write(store)
    store.scan("abcd", 3, "flows")
    with store.lock("abcd", 3):
        Store(store.root).write("abcd", 3, files() | {"ports": files()["requests"]}, {"version": "1", **COSTS})
    with pytest.raises(BadInput, match="columns of ports"):
        store.scan("abcd", 3, "ports")


def test_files_of_one_name_keep_their_own_entries(folder, two_arms):
    other = folder / "lab" / "two.toml"
    other.parent.mkdir()
    other.write_text(two_arms.read_text().replace('end = "3s"', 'end = "2s"'))
    names = [api.run(path.relative_to(folder)).join().entry.identifier for path in (two_arms, other, two_arms)]
    assert names == ["two", "two-lab-two", "two"]
    index = Index(folder / "runs")
    assert {key: entry.file for key, entry in index.entries().items()} == {"two": "two.toml", names[1]: "lab/two.toml"}
    assert index.find("lab/two.toml").identifier == names[1]
    with pytest.raises(BadInput, match=r"no result two-lab-two~1\n  help: of two-lab-two 0 earlier"):
        index.find("two-lab-two~1")
    other.unlink()
    moved = folder / "moved.toml"
    moved.write_text(two_arms.read_text())
    two_arms.unlink()
    assert api.run("moved.toml").join().entry.identifier == "two", "the name of a file that is gone is free"


def test_an_edited_file_says_what_changed_and_its_former_results_are_kept(folder, two_arms):
    first = api.run("two.toml").join()
    assert first.notices == ()
    edited = two_arms.read_text().replace('end = "3s"', 'end = "2s"').replace("1..=2", "1..=3")
    two_arms.write_text(edited.replace('"cubic"\ncc', '"CUBIC"\ncc'))
    (notice,) = api.load("two").notices
    assert notice == (
        "two.toml has changed since these runs: added CUBIC; removed cubic; changed gemini "
        "(schedule.end 3000000000000 → 2000000000000); "
        "seeds 1..2 → 1..3; `narrows run two.toml` runs it as it is now"
    )
    second = api.run("two.toml").join()
    assert (second.notices, second.entry.seeds) == ((), (1, 2, 3))
    earlier = api.load("two~1")
    assert earlier.entry.seeds == (1, 2)
    assert earlier.flows.equals(first.flows)
    assert len(earlier.notices) == 1
    two_arms.write_text("name = ")
    assert api.load("two").notices == (
        "two.toml has changed since these runs, and has a mistake, which `narrows check two.toml` shows",
    )


def test_an_index_of_another_format_is_recognised_and_written_anew(folder, two_arms):
    api.run(two_arms).join()
    index = Index(folder / "runs")
    index.path.write_text(json.dumps({"format": 1, "experiments": {"two": {"name": "two"}}}))
    with pytest.raises(BadInput, match="another version"):
        index.find("two")
    handle = api.run(two_arms)
    assert handle.join().entry.name == "two"
    assert handle.progress().skipped == handle.progress().total
    index.path.write_text(index.path.read_text().replace('"setting"', '"settings"'))
    with pytest.raises(BadInput, match="rename it"):
        index.find("two")


def test_code_beside_a_foreign_experiment_is_not_run(folder, two_arms):
    paper = folder / "downloaded" / "paper"
    (paper / "fig").mkdir(parents=True)
    (paper / "claims.toml").write_text("claim = []")
    (paper / "bindings.py").write_text("raise SystemExit('executed')")
    two_arms.rename(paper / "fig" / "experiment.toml")
    results = api.run("downloaded/paper/fig/experiment.toml").join()
    assert folders.figure_at(results.entry.place) is None
    assert build(results, Store(api.RUNS)).exists()


def test_results_name_no_machines_paths(folder, two_arms):
    assert api.run(two_arms.resolve()).join().entry.file == "two.toml"
