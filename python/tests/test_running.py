import itertools
import json
import math
import os
import re
import shutil
import signal
import subprocess
import sys
import textwrap
import time

import pytest
from conftest import TESTS, TWO_ARMS, children, said_by, until, until_gone

import narrows
from narrows import api
from narrows.experiment import Experiment, seeds_text
from narrows.results import mixed_versions, versions
from narrows.runs.index import Index
from narrows.runs.listing import Listing
from narrows.runs.processes import Processes
from narrows.runs.running import Batch, Wanted
from narrows.runs.store import Store


def runs_in(folder):
    return sorted(str(path.parent.relative_to(folder / "runs")) for path in (folder / "runs").glob("*/*/manifest.json"))


def test_a_run_gives_frames_that_know_arm_and_seed(two_arms):
    results = narrows.run(two_arms).join()
    assert results.flows.columns[:3] == ["case", "arm", "seed"]
    assert sorted(results.flows["arm"].unique()) == ["cubic", "gemini"]
    assert sorted(results.ports["seed"].unique()) == [1, 2]
    assert results.series.height == results.scan("series").collect().height


def test_finished_runs_are_skipped(two_arms):
    api.run(two_arms).join()
    again = api.run(two_arms)
    assert [item.skipped for item in again.finish()] == [True] * 4
    more = api.run(two_arms, seeds="1..=3").finish()
    assert [item.skipped for item in more] == [True] * 4 + [False] * 2, "seed by seed"


def test_results_of_another_version_are_made_again(two_arms, monkeypatch):
    api.run(two_arms).join()
    monkeypatch.setenv("TEST_VERSION", "0.0.1-fake")
    assert not any(item.skipped for item in api.run(two_arms).finish())


def test_experiments_share_runs(two_arms, folder):
    api.run(two_arms).join()
    other = folder / "other.toml"
    other.write_text(
        TWO_ARMS.replace('"two"', '"other"').replace('name = "cubic"', 'name = "renamed"').replace("50pkt", "60pkt")
    )
    first, second = Experiment(two_arms), Experiment(other)
    assert first.plans[0].hash == second.plans[0].hash
    store = Store(folder / "runs")
    batch = Batch(Wanted([first, second], store), Processes(store, 1))
    assert (batch.progress().skipped, batch.progress().total) == (4, 6)
    batch.cancel()


def test_the_manifest_holds_the_plan_without_labels(two_arms, folder):
    handle = api.run(two_arms)
    handle.finish()
    plan = handle.experiment.plans[0]
    manifest = json.loads((folder / "runs" / plan.hash / "1" / "manifest.json").read_text())
    assert manifest["plan"]["schedule"] == plan.body["schedule"]
    assert not {"arm", "axes", "declared", "experiment"} & manifest["plan"].keys()


def test_cancelling_keeps_what_is_finished_and_goes_on_later(two_arms, folder, monkeypatch):
    monkeypatch.setenv("TEST_SECONDS", "0.5")
    handle = api.run(two_arms, jobs=1)
    until(lambda: handle.progress().finished)
    handle.cancel()
    with pytest.raises(narrows.Cancelled, match="of 4 runs are finished and kept"):
        handle.finish()
    kept = runs_in(folder)
    assert 1 <= len(kept) < 4
    assert not list((folder / "runs").glob("*/.*"))
    assert Index(folder / "runs").entries() == {}
    finished = api.run(two_arms).finish()
    assert sum(item.skipped for item in finished) == len(kept)


def test_progress_grows_and_ends_at_one(two_arms, monkeypatch):
    monkeypatch.setenv("TEST_SECONDS", "0.4")
    handle = api.run(two_arms, jobs=2)
    seen = []
    while not handle.done():
        seen.append(handle.progress().fraction)
        time.sleep(0.05)
    made = handle.finish()
    assert seen == sorted(seen)
    assert any(0 < fraction < 1 for fraction in seen)
    last = handle.progress()
    assert (last.fraction, last.finished, last.packet_hops) == (
        1.0,
        4,
        sum(item.manifest["packet_hops"] for item in made),
    )


@pytest.mark.parametrize(
    ("arm", "reason"),
    [
        ("panics", "a packet was lost twice"),
        ("dies", "its process ended with code 9"),
        ("is-killed", r"its process was killed \(SIGKILL\)\n  help: .*fewer --jobs"),
    ],
)
def test_a_run_that_fails_is_named_and_the_others_stay(two_arms, folder, arm, reason):
    two_arms.write_text(TWO_ARMS.replace('name = "gemini"', f'name = "{arm}"'))
    with pytest.raises(narrows.RunFailed, match=f"{arm}.*{reason}") as failure:
        api.run(two_arms, jobs=1).finish()
    assert str(failure.value).endswith("1 more failed; those that are finished are kept")
    assert len(runs_in(folder)) == 2


IN_C = """#include <narrows.h>
static void on_ack(struct narrows_sender *s, const struct narrows_ack *ack, const struct narrows_path *path)
{
	if (path->now > ZERO) s->window = 1 / (int)ZERO;
}
static void on_congestion(struct narrows_sender *s, enum narrows_cause cause, const struct narrows_path *path) {}
NARROWS_CONTROLLER(one, .on_ack = on_ack, .on_congestion = on_congestion);
"""


@pytest.mark.parametrize(
    ("arm", "said"),
    [
        ("faults", r"error: one\.c: the controller's process was killed \(SIGSEGV\)\n  help: a pointer"),
        (
            "never-returns",
            r"error: one\.c: a call of the controller has not returned for 10 s\n  help: look for a loop",
        ),
        ("divides", r"error: one\.c:4: divides by zero\n  help: mend the controller"),
    ],
)
def test_a_fault_of_a_controllers_file_is_told_with_its_name_and_not_tried_again(two_arms, folder, arm, said):
    (folder / "one.c").write_text(IN_C.replace("ZERO", "0" if arm == "divides" else "1000000"))
    two_arms.write_text(
        TWO_ARMS.replace('name = "gemini"\ncc = "gemini"', f'name = "{arm}"\ncc = {{ file = "one.c" }}')
    )
    with pytest.raises(narrows.BadInput, match=said) as fault:
        api.run(two_arms, jobs=1).finish()
    assert str(fault.value).splitlines()[-1].endswith(f"({arm}, seed 1)")


@pytest.mark.simulator
def test_runs_with_an_edited_controller_say_which_lines_are_others(two_arms, folder):
    (folder / "one.c").write_text(IN_C.replace("ZERO", "1000000"))
    two_arms.write_text(TWO_ARMS.replace('cc = "gemini"', 'cc = { file = "one.c" }'))
    results = api.run(two_arms, seeds=1).join()
    assert not [notice for notice in results.notices if "changed" in notice]
    (folder / "one.c").write_text(IN_C.replace("ZERO", "2000000").replace("#include", "/* Edited. */\n#include"))
    (notice,) = [notice for notice in api.load("two").notices if "changed" in notice]
    assert notice == (
        "one.c has changed since these runs: changed gemini (one.c, lines 1, 5); "
        "`narrows run two.toml --seeds 1..1` runs it as it is now"
    )
    (listed,) = Listing(Store(folder / "runs")).results()
    assert listed.reasons == ("one.c has changed since",)


def test_a_run_whose_process_dies_by_accident_is_made_by_another(two_arms, folder, monkeypatch):
    monkeypatch.setenv("TEST_SECONDS", "0.5")
    handle = api.run(two_arms, jobs=1)
    until(lambda: handle.progress().simulated_ns)
    (worker,) = children(os.getpid())
    os.kill(worker, signal.SIGKILL)
    assert [item.skipped for item in handle.finish()] == [False] * 4


def test_a_run_that_somebody_else_makes_is_waited_for(two_arms, folder):
    plan = Experiment(two_arms).plans[0].hash
    store = Store(folder / "runs")
    lock = store.lock(plan, 2)
    handle = api.run(two_arms)
    until(lambda: (handle.progress().finished, handle.progress().elsewhere) == (3, 1))
    assert not handle.done()
    copied(store, plan, 1, 2, seed=2)
    lock.release()
    assert [item.skipped for item in handle.finish()] == [False, False, True, False]
    assert (handle.progress().skipped, handle.progress().elsewhere) == (1, 0)


def test_a_plain_script_needs_no_guard(two_arms, folder):
    script = folder / "script.py"
    script.write_text("import narrows\nprint(narrows.run('two.toml', jobs=2).join().flows.height > 0)\n")
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.returncode) == ("True\n", 0)


def test_an_interrupt_stops_the_command_with_130_and_leaves_whole_runs(two_arms, folder):
    environment = os.environ | {"TEST_SECONDS": "1.0"}
    command = [sys.executable, "-m", "narrows", "run", "two.toml", "--jobs", "1"]
    process = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)
    until(lambda: runs_in(folder))
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == 130
    assert re.search(r"^interrupted: stopped; \d of 4 runs are finished and kept\n  help: ", errors, re.MULTILINE)
    assert "Traceback" not in errors
    assert not list((folder / "runs").glob("*/.*"))
    assert subprocess.run([*command[:-2], "--json"], capture_output=True, text=True).returncode == 0


def test_absent_runs_are_said_when_results_are_loaded(two_arms, folder):
    handle = api.run(two_arms)
    handle.finish()
    shutil.rmtree(folder / "runs" / handle.experiment.plans[1].hash)
    with pytest.raises(narrows.BadInput, match="2 of 4 runs of 'two' are absent"):
        api.load("two")


def test_overridden_settings_are_other_results(two_arms):
    api.run(two_arms).join()
    changed = api.run(two_arms, settings={"run.end": "2s"})
    changed.join()
    assert changed.experiment.identifier.startswith("two+")
    assert set(Index(api.RUNS).entries()) == {"two", changed.experiment.identifier}


def test_other_seeds_are_other_results_and_their_command_names_them(two_arms):
    api.run(two_arms).join()
    fewer = api.run(two_arms, seeds="2..=2").join().entry
    assert (fewer.identifier, fewer.seeds) == ("two-seeds-2-2", (2,))
    assert fewer.command == "narrows run two.toml --seeds 2..2"
    same = api.run(two_arms, seeds="1..=2").join().entry
    assert (same.identifier, same.command) == ("two", "narrows run two.toml")
    assert {key: entry.seeds for key, entry in Index(api.RUNS).entries().items()} == {
        "two": (1, 2),
        "two-seeds-2-2": (2,),
    }
    changed = api.run(two_arms, seeds="2..=2", settings={"run.end": "2s"}).experiment.identifier
    assert changed.startswith("two-seeds-2-2+")


REFUSED = [
    ({"jobs": -3}, "jobs cannot be -3"), ({"jobs": 0}, "jobs cannot be 0"), ({"jobs": 1.5}, "jobs cannot be 1.5"),
    ({"jobs": True}, "jobs cannot be True"), ({"threads": 0}, "threads cannot be 0"),
    ({"threads": "2"}, "threads cannot be '2'"), ({"threads": None}, "threads cannot be None"),
    ({"on": "mars"}, "on cannot be 'mars'"), ({"backend": "moon"}, "backend cannot be 'moon'"),
    ({"ray_address": "10.0.0.1:1"}, "an address of a Ray cluster"), ({"quick": "yes"}, "quick cannot be 'yes'"),
    ({"settings": {"run.end": 2}}, "settings cannot be"), ({"seeds": True}, "True names no seeds"),
    *(({"seeds": seeds}, "names no seeds") for seeds in ([], [1, 1], [-1], [1.0], ["1"], "5..1", "1..", "", "1,1")),
    *(({"seeds": seeds}, "names no seeds") for seeds in (2**63, "1..10001", itertools.count())),
    ({"seeds": 1.5}, "seeds cannot be 1.5"), ({"seeds": b"12"}, "seeds cannot be b'12'"),
    ({"seeds": bytearray(b"12")}, "seeds cannot be bytearray(b'12')"),
]  # fmt: skip


@pytest.mark.parametrize(("arguments", "sentence"), REFUSED, ids=str)
def test_what_no_run_can_have_is_refused_at_once(two_arms, folder, arguments, sentence):
    with pytest.raises(narrows.BadInput, match=rf"error: .*{re.escape(sentence)}.*\n  help: "):
        narrows.run(two_arms, **arguments)
    assert not (folder / "runs").exists()


@pytest.mark.parametrize(("seeds", "expected"), [
    (3, (3,)), ("3", (3,)), ("1..3", (1, 2, 3)), ("1..=3", (1, 2, 3)), (range(4, 6), (4, 5)), ([9, 1], (9, 1)),
    ("9, 1", (9, 1)), (iter([5]), (5,)), ("1,3,5..9", (1, 3, 5, 6, 7, 8, 9)), (" 1 .. 3 ", (1, 2, 3)),
])  # fmt: skip
def test_seeds_are_a_number_a_range_or_a_list(two_arms, seeds, expected):
    found = Experiment(two_arms, seeds=seeds)
    assert (found.seeds, found.other_seeds) == (expected, True)
    assert Experiment(two_arms, seeds=seeds_text(expected)).seeds == expected


@pytest.mark.parametrize("text", ["1,3,5..9", " 1 .. 3 ", "1..= 2", "9,1..2", "0", str(2**63 - 1)])
def test_a_text_of_seeds_is_the_same_in_a_file_and_beside_it(two_arms, text):
    beside = Experiment(two_arms, seeds=text).seeds
    two_arms.write_text(TWO_ARMS.replace("1..=2", text))
    assert Experiment(two_arms).seeds == beside


@pytest.mark.parametrize(
    "text", ["", "1,", "..3", "3..1", "1,1", "1..3,2", "+1", "-1", "1.5", str(2**63), "0..10000", "１"]
)
def test_a_text_that_names_no_seeds_does_so_in_a_file_and_beside_it(two_arms, text):
    with pytest.raises(narrows.BadInput, match="names no seeds"):
        Experiment(two_arms, seeds=text)
    two_arms.write_text(TWO_ARMS.replace("1..=2", text))
    with pytest.raises(narrows.BadInput, match="seeds"):
        Experiment(two_arms)


def test_runs_of_two_versions_are_said(two_arms, folder, monkeypatch):
    two_arms.write_text(TWO_ARMS.replace("1..=2", "1..=1"))
    before, version = api.run(two_arms).join(), narrows.version()
    assert before.notices == ()
    monkeypatch.setenv("TEST_VERSION", "0.0.1-test")
    other = api.run(two_arms, settings={"run.end": "4s"}).join()
    assert mixed_versions([before, other]) == (
        f"these results come from different versions of Narrows: two by {version}; "
        f"{other.entry.identifier} by 0.0.1-test"
    )
    copied(Store(folder / "runs"), before.entry.members[1].stored, 1, 1, version="0.0.1-test")
    (notice,) = api.load("two").notices
    assert notice == (
        f"runs of 2 versions of Narrows are mixed ({version}: 1 run, 0.0.1-test: 1 run): `narrows run two.toml` makes "
        "the others again"
    )


def test_runs_of_an_edited_controller_are_told_apart_and_different_controllers_are_not():
    def run(**sources):
        return {"version": f"0.1.0+{sources['engine'] * 8}.{'0' * 8}", "sources": sources}

    cubic, vegas, edited = run(engine="1", cubic="a"), run(engine="1", vegas="b"), run(engine="1", cubic="c")
    assert versions([cubic, vegas]) == ["0.1.0+11111111"] * 2
    assert versions([cubic, vegas, edited]) == ["cubic a", "", "cubic c"]
    assert versions([cubic, run(engine="2", cubic="c")]) == ["0.1.0+11111111", "0.1.0+22222222"]


def copied(store, plan, of, to, **changed):
    """Writes a run's tables as those of another seed, with what is changed in that one's manifest."""
    files = {path.stem: path.read_bytes() for path in store.folder(plan, of).glob("*.parquet")}
    store.write(plan, to, files, (store.manifest(plan, to) or store.manifest(plan, of)) | changed)


def copy_of_the_first_seed(store, plan):
    for seed in (2, 3):
        copied(store, plan, 1, seed)


def test_seeds_that_change_nothing_count_as_one(two_arms, folder):
    two_arms.write_text(TWO_ARMS.replace("1..=2", "1..=3"))
    entry = api.run(two_arms).join().entry
    store = Store(folder / "runs")
    first, second = (member.stored for member in entry.members)
    copy_of_the_first_seed(store, first)
    assert (api.load("two").entry.seeds, api.load("two").notices) == ((1, 2, 3), ()), "one arm still differs"
    copy_of_the_first_seed(store, second)
    results = api.load("two")
    assert results.entry.seeds == (1,)
    assert results.frames.seeds == (1,)
    assert results.notices == (SAME_SEEDS,)
    part = results.matching("cubic")
    assert (part.entry.seeds, part.notices) == ((1,), (SAME_SEEDS,)), "a part says so, too"
    assert SAME_SEEDS.removeprefix("s") in api.load("two").report(cases="cubic").read_text()


SAME_SEEDS = "seeds 2, 3 gave the same results as seed 1 in every plan: 3 seeds count as 1"


@pytest.mark.simulator
def test_seeds_that_change_nothing_are_compared_with_each_seed_of_others(folder):
    def results(name, *, alike):
        out = folder / name
        made = narrows.Experiment(TWO_ARMS.replace('"two"', f'"{name}"').replace("1..=2", "1..=3")).run(out=out).join()
        for member in made.entry.members if alike else ():
            copy_of_the_first_seed(Store(out), member.stored)
        return narrows.load(name, out=out)

    varies, fixed = results("varies", alike=False), results("fixed", alike=True)
    mean = varies.measure("fct_mean", "cubic")["value"]
    (only,) = fixed.measure("fct_mean", "cubic")["value"]
    assert mean.n_unique() == 3
    for one, other in ((varies, fixed), (fixed, varies)):
        compared = one.compare(other)
        row = compared.table.filter(measure="fct_mean", base=f"{one.entry.identifier} cubic").row(0, named=True)
        own = {varies: mean.mean(), fixed: only}
        assert (row["base_mean"], row["other_mean"]) == pytest.approx((own[one], own[other]))
        ratio = only / mean if other is fixed else mean / only
        assert (row["seeds"], row["interval"]) == (3, "range")
        assert (row["ratio"], row["low"], row["high"]) == pytest.approx(
            (math.exp(ratio.log().mean()), ratio.min(), ratio.max())
        )
        (told,) = [notice for notice in compared.notices if "the ratio" not in notice]
        assert told.startswith("'fixed': seeds 2, 3 gave the same results as seed 1 in every plan: each is paired with")
    again = fixed.compare(fixed)
    assert set(again.table["seeds"].drop_nulls()) == {1}, "no side varies"
    assert [notice for notice in again.notices if "the ratio" not in notice] == [SAME_SEEDS]


def test_the_worker_ends_with_its_parent(two_arms, folder):
    script = folder / "script.py"
    script.write_text(
        textwrap.dedent("""
        import os, narrows, conftest
        handle = narrows.run("two.toml", jobs=1)
        while handle.progress().simulated_ns == 0: pass
        print(*conftest.children(os.getpid()), flush=True)
        os._exit(0)
        """)
    )
    paths = os.pathsep.join([os.environ["PYTHONPATH"], str(TESTS)])
    environment = os.environ | {"TEST_SECONDS": "60", "PYTHONPATH": paths}
    workers = said_by(environment, script, program=sys.executable).split()
    assert workers
    until_gone(workers, 10)
