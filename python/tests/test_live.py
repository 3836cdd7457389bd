"""Runs on a real kernel, made by a narrowsd that keeps the contract and carries no traffic."""

import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import polars as pl
import pytest
from conftest import CHECKOUT, TWO_ARMS, fake_narrowsd, lines, until
from typer.testing import CliRunner

import narrows
from narrows import api
from narrows.claims import folders
from narrows.cli.app import app
from narrows.errors import BadInput, Cancelled, EnvironmentLacks, RunFailed
from narrows.figures import palette
from narrows.frames import Frames
from narrows.measures import bottleneck
from narrows.measures.named import value_by_seed
from narrows.measures.stats import geometric_ratio
from narrows.report import agreement, headline
from narrows.report.page import render
from narrows.runs import backends, daemon
from narrows.runs.backends import Backend
from narrows.runs.freshness import standings
from narrows.runs.index import Index
from narrows.runs.store import Store
from narrows.wording import number


def command(*arguments):
    """A command in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "narrows", *arguments], capture_output=True, text=True, timeout=120, check=False
    )


def begun(folder):
    """Every run that was begun: process, arm, seed, when."""
    log = folder / "narrowsd.log"
    return [line.split() for line in log.read_text().splitlines()] if log.exists() else []


def runs_in(folder):
    return sorted(str(path.parent.relative_to(folder / "runs")) for path in (folder / "runs").glob("*/*/manifest.json"))


def is_there(pid):
    return Path(f"/proc/{pid}").exists() and Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"


def test_what_the_checkout_has_built_is_found(monkeypatch):
    monkeypatch.delenv("NARROWSD", raising=False)
    monkeypatch.setattr(shutil, "which", lambda _: None)
    monkeypatch.setattr(daemon, "_can_run", lambda path: True)
    assert daemon.find() == CHECKOUT / daemon.BUILT


def test_live_runs_lie_beside_the_simulated_ones(two_arms, narrowsd, folder):
    simulated = api.run(two_arms).join()
    live = api.run(two_arms, backend="guest").join()
    plans = [member.hash for member in simulated.entry.members]
    assert [member.hash for member in live.entry.members] == plans
    assert runs_in(folder) == sorted(
        f"{plan}{end}/{seed}" for plan in plans for end in ("", "-guest") for seed in (1, 2)
    )
    assert (simulated.entry.identifier, live.entry.identifier) == ("two", "two@guest")
    assert simulated.flows["fct_ns"].to_list() != live.flows["fct_ns"].to_list()
    manifest = json.loads((folder / "runs" / f"{plans[0]}-guest" / "1" / "manifest.json").read_text())
    assert (manifest["backend"], manifest["kernel"], manifest["valid"]) == ("guest", "6.12.8-fake", True)
    assert (
        manifest["plan"]["schedule"]
        == json.loads((folder / "runs" / plans[0] / "1" / "manifest.json").read_text())["plan"]["schedule"]
    )
    assert not list((folder / "runs").glob("*/.*")), "nothing is left of the work"


def test_the_index_gives_what_was_asked_for_and_nothing_else(two_arms, narrowsd, folder):
    live = api.run(two_arms, backend="guest", seeds="1..=1")
    live.finish()
    with pytest.raises(BadInput, match=r"no result is called 'two.toml'.*\n.*two-seeds-1-1@guest"):
        api.load("two.toml")
    assert api.load("two.toml@guest").entry.identifier == "two-seeds-1-1@guest"
    api.run(two_arms).finish()
    assert api.load("two").entry.backend is Backend.SIM
    assert api.load("two@guest").entry.backend is Backend.GUEST
    with pytest.raises(BadInput, match=r"no result is called 'two@host'"):
        api.load("two@host")
    assert {entry.command for entry in Index(folder / "runs").entries().values()} == {
        "narrows run two.toml",
        "narrows run two.toml --seeds 1..1 --backend guest",
    }


def test_an_index_from_before_there_were_backends_is_of_the_simulator(two_arms, folder):
    api.run(two_arms).finish()
    path = folder / "runs" / "index.json"
    raw = json.loads(path.read_text())
    del raw["experiments"]["two"]["backend"]
    path.write_text(json.dumps(raw))
    assert [member.backend for member in Index(folder / "runs").find("two").members] == [Backend.SIM] * 2


def test_finished_live_runs_are_skipped_until_narrowsd_is_another(two_arms, narrowsd, folder, monkeypatch):
    assert not any(item.skipped for item in api.run(two_arms, backend="guest").finish())
    assert all(item.skipped for item in api.run(two_arms, backend="guest").finish())
    monkeypatch.setenv("TEST_VERSION", "0.0.1-fake")
    assert all(item.skipped for item in api.run(two_arms, backend="guest").finish()), (
        "the simulator's is another matter"
    )
    monkeypatch.setenv("FAKE_NARROWSD_VERSION", "0.0.1-fake")
    assert not any(item.skipped for item in api.run(two_arms, backend="guest").finish())
    assert len(begun(folder)) == 8
    monkeypatch.setenv("FAKE_NARROWSD_KERNEL", "6.13.1-fake")
    assert not any(item.skipped for item in api.run(two_arms, backend="guest").finish()), "another kernel's"
    made = Index(folder / "runs").find("two@guest")
    assert made.version == "0.0.1-fake+00000000 on 6.13.1-fake, QEMU 8.2.0"
    assert all(item.skipped for item in api.run(two_arms, backend="guest").finish())


def test_a_kernel_that_is_not_there_is_said(two_arms, narrowsd, monkeypatch):
    monkeypatch.setenv("FAKE_NARROWSD_KERNEL", "")
    with pytest.raises(EnvironmentLacks, match="there is no kernel for the guest"):
        api.run(two_arms, backend="guest").finish()


def test_a_run_of_another_kernel_than_was_found_is_none(two_arms, narrowsd, monkeypatch):
    monkeypatch.setenv("FAKE_NARROWSD", "runs-elsewhere")
    with pytest.raises(
        RunFailed, match=r"says version (0\.0\.0-fake\+00000000\.\w{8}) on 5\.4-fake, and \1 on 6\.12\.8-fake"
    ):
        api.run(two_arms, backend="guest").finish()


def test_progress_is_narrowsds(two_arms, narrowsd, monkeypatch):
    monkeypatch.setenv("FAKE_NARROWSD_SECONDS", "0.6")
    handle = api.run(two_arms, backend="guest", seeds="1..=1", jobs=1)
    seen = set()
    while not handle.done():
        seen.add((handle.progress().simulated_ns, handle.progress().packet_hops))
        time.sleep(0.05)
    handle.finish()
    assert (1_500_000_000, 500_000) in seen


def test_what_a_live_run_cost_is_the_processor_time_of_narrowsd_and_its_children(two_arms, narrowsd, monkeypatch):
    monkeypatch.setenv("FAKE_NARROWSD_BUSY_SECONDS", "1.5")
    results = api.run(two_arms, backend="guest", seeds="1..=1", jobs=1).join()
    for manifest in results.manifests:  # narrowsd says 0.9 s, and that two runs are made by one worker adds nothing
        assert 1.5e9 <= manifest["cpu_ns"] < 3e9
        assert manifest["ns_per_packet_hop"] == manifest["cpu_ns"] / 1_000_000


def test_native_runs_are_made_one_at_a_time(two_arms, narrowsd, folder, monkeypatch):
    monkeypatch.setenv("FAKE_NARROWSD_SECONDS", "0.4")
    api.run(two_arms, backend="host").finish()
    times = sorted(float(when) for *_, when in begun(folder))
    assert len(times) == 4
    assert min(later - earlier for earlier, later in itertools.pairwise(times)) >= 0.4
    assert {path.split("/")[0].rpartition("-")[2] for path in runs_in(folder)} == {"host"}


@pytest.mark.parametrize(
    ("mode", "kind", "said"),
    [
        (
            "refuses",
            BadInput,
            "error: cubic on guest: 240 hosts are too many for a guest\n  help: at most 64 hosts fit",
        ),
        ("lacks", EnvironmentLacks, "qemu-system-x86_64 is not installed\n  help: install QEMU"),
        (
            "fails",
            RunFailed,
            "(cubic, seed 1) ended without results: the guest's kernel panicked\n  help: look at its log",
        ),
        ("is-silent", RunFailed, "narrowsd ended with code 7 and said nothing"),
        ("dies", RunFailed, "narrowsd was killed (SIGKILL)\n  help: by somebody, or for want of memory"),
        ("forgets", RunFailed, "narrowsd left no whole table of ports"),
        (
            "changes",
            RunFailed,
            "narrowsd left no whole table of flows: table flows is not what the simulator declares: missing",
        ),
        ("says-little", RunFailed, "narrowsd left a manifest without kernel, lateness"),
        ("runs-another", RunFailed, "narrowsd's run says seed 2, and 1 was asked for"),
        ("is-interrupted", Cancelled, "stopped; "),
    ],
)
def test_a_run_that_ends_badly_is_said_and_leaves_nothing(two_arms, narrowsd, folder, monkeypatch, mode, kind, said):
    monkeypatch.setenv("FAKE_NARROWSD", f"{mode}:cubic/1")
    with pytest.raises(kind) as failure:
        api.run(two_arms, backend="guest", jobs=1).finish()
    assert said in str(failure.value)
    assert not (folder / "runs" / "index.json").exists()
    plan = narrows.Experiment(two_arms).plans[0].hash
    assert f"{plan}-guest/1" not in runs_in(folder)
    assert all(list(made.iterdir()) for made in (folder / "runs").glob("*-guest")), "no folder of nothing"
    assert not list((folder / "runs").glob("*/.*"))


@pytest.mark.parametrize(("mode", "code"), [("refuses", 2), ("lacks", 3), ("fails", 1)])
def test_the_command_ends_with_the_code_of_the_trouble(two_arms, narrowsd, monkeypatch, mode, code):
    monkeypatch.setenv("FAKE_NARROWSD", mode)
    done = command("run", "two.toml", "--backend", "guest")
    assert done.returncode == code
    assert done.stderr.count("error: ") == 1
    assert "help: " in done.stderr
    assert "Traceback" not in done.stderr


def test_a_plan_that_one_arm_cannot_run_there_keeps_what_is_finished(two_arms, narrowsd, folder, monkeypatch):
    monkeypatch.setenv("FAKE_NARROWSD", "fails:gemini/2")
    with pytest.raises(RunFailed, match="gemini"):
        api.run(two_arms, backend="guest", jobs=1).finish()
    assert len(runs_in(folder)) == 3


def test_cancelling_ends_narrowsd_which_cleans_up(two_arms, narrowsd, folder, monkeypatch):
    monkeypatch.setenv("FAKE_NARROWSD", "hangs")
    handle = api.run(two_arms, backend="guest", jobs=1)
    until(lambda: handle.progress().simulated_ns)
    handle.cancel()
    with pytest.raises(Cancelled, match="0 of 4 runs are finished"):
        handle.finish()
    ((pid, *_),) = begun(folder)
    assert not is_there(pid)
    assert (folder / "narrowsd.cleaned").exists()
    assert not list((folder / "runs").glob("*/.*"))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_command_that_is_ended_leaves_no_narrowsd_behind(two_arms, narrowsd, folder, monkeypatch, number):
    monkeypatch.setenv("FAKE_NARROWSD", "hangs")
    process = subprocess.Popen(
        [sys.executable, "-m", "narrows", "run", "two.toml", "--backend", "guest", "--jobs", "1"],
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    ((pid, *_),) = until(lambda: begun(folder))
    process.send_signal(number)
    _, said = process.communicate(timeout=30)
    assert process.returncode == (130 if number != signal.SIGKILL else -signal.SIGKILL), said
    until(lambda: not is_there(pid))
    until((folder / "narrowsd.cleaned").exists)


def test_a_worker_that_is_killed_leaves_no_narrowsd_behind(two_arms, narrowsd, folder, monkeypatch):
    monkeypatch.setenv("FAKE_NARROWSD", "hangs")
    handle = api.run(two_arms, backend="guest", jobs=1)
    ((pid, *_),) = until(lambda: begun(folder))
    worker = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    os.kill(worker, signal.SIGKILL)
    until(lambda: not is_there(pid))
    until(lambda: len(begun(folder)) > 1)  # tried once more, by another worker
    handle.cancel()
    with pytest.raises(Cancelled):
        handle.finish()
    assert not any(is_there(pid) for pid, *_ in begun(folder))
    api.Store(folder / "runs").prepare()
    assert not list((folder / "runs").glob("*/.*")), "what the killed one left is gone"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--on", "ray"), "not by a cluster"),
        (("--threads", "2"), "--threads is for the simulator"),
        (("--backend", "host", "--jobs", "2"), "one at a time"),
    ],
)
def test_what_a_live_run_cannot_have_is_two(two_arms, narrowsd, folder, options, said):
    done = CliRunner().invoke(app, ["run", "two.toml", "--backend", "guest", *options])
    assert (done.exit_code, done.stdout) == (2, "")
    assert said in done.stderr
    assert "help: leave out" in done.stderr
    assert not (folder / "runs").exists()


def test_without_narrowsd_it_is_three(two_arms, folder, monkeypatch):
    monkeypatch.delenv("NARROWSD", raising=False)
    monkeypatch.setattr(shutil, "which", lambda _: None)
    monkeypatch.setattr(daemon, "BUILT", "target/absent")
    done = CliRunner().invoke(app, ["run", "two.toml", "--backend", "guest"])
    assert done.exit_code == 3
    assert "help: run `make narrowsd` in a checkout" in done.stderr
    monkeypatch.setenv("NARROWSD", str(folder / "nothing"))
    done = CliRunner().invoke(app, ["run", "two.toml", "--backend", "guest"])
    assert done.exit_code == 3
    assert "which is no program" in done.stderr


def test_what_is_not_narrowsd_is_refused(folder, monkeypatch):
    other = folder / "other"
    other.write_text("#!/bin/sh\necho hello, world, how are you\n")
    other.chmod(0o755)
    monkeypatch.setenv("NARROWSD", str(other))
    with pytest.raises(EnvironmentLacks, match="is not narrowsd: it calls itself 'hello, world"):
        daemon.version()
    with pytest.raises(EnvironmentLacks, match="does not say what it found"):
        daemon.doctor()


def test_it_is_looked_for_where_it_is_said_then_installed_then_built(folder, narrowsd, monkeypatch):
    assert daemon.find() == narrowsd
    monkeypatch.delenv("NARROWSD")
    monkeypatch.setattr(shutil, "which", lambda _: str(folder / "narrowsd"))
    assert daemon.find() == narrowsd
    monkeypatch.setattr(shutil, "which", lambda _: None)
    monkeypatch.setattr(daemon, "BUILT", str(narrowsd))
    assert daemon.find() == narrowsd


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("linux/gemini-wan", ("linux/gemini-wan", Backend.SIM)),
        ("linux/gemini-wan@guest", ("linux/gemini-wan", Backend.GUEST)),
        ("a@b@host", ("a@b", Backend.HOST)),
        ("a@b@native", ("a@b", Backend.HOST)),
        ("a@b", ("a@b", Backend.SIM)),
    ],
)
def test_a_name_says_its_backend(name, parts):
    assert backends.split(name) == parts


def test_a_run_that_does_not_count_is_kept_said_and_left_out(two_arms, narrowsd, folder, monkeypatch):
    monkeypatch.setenv("FAKE_NARROWSD", "is-late:gemini/2")
    done = CliRunner().invoke(app, ["run", "two.toml", "--backend", "guest"])
    assert done.exit_code == 0, done.stderr
    reason = "1 of 4 runs does not count: a packet was delivered 31000 us late, over the budget of 20000 us"
    assert f"{reason}; reports leave them out" in done.stdout
    results = api.load("two@guest")
    kept = results.ports.select("case", "seed").unique(maintain_order=True).rows()
    assert kept == [("cubic", 1), ("cubic", 2), ("gemini", 1)]
    assert sorted(results.flows.select("case", "seed").unique().rows()) == sorted(kept)
    assert len(results.manifests) == 4
    assert results.frames.first_seed == 1
    told = lines(command("run", "two.toml", "--backend", "guest", "--json").stdout)
    assert [event["manifest"]["valid"] for event in told[:-1]] == [True, True, True, False]
    assert (told[-1]["invalid"], told[-1]["skipped"]) == (1, 4), "it is not made again"


def test_where_no_run_counts_there_is_nothing_to_show(two_arms, narrowsd, monkeypatch):
    monkeypatch.setenv("FAKE_NARROWSD", "is-late")
    api.run(two_arms, backend="guest").finish()
    with pytest.raises(
        BadInput,
        match=r"4 of 4 runs do not count.*\n  help: mend that reason .* delete .*-guest and its like",
    ):
        api.load("two@guest")


def test_claims_are_judged_from_the_simulator_alone(gemini, narrowsd, monkeypatch):
    folder = narrowsd.parent / "gemini"
    shutil.copytree(gemini / "experiments" / "gemini", folder / "experiments" / "gemini")
    monkeypatch.chdir(folder)
    api.run("experiments/gemini/fig13/experiment.toml", quick=True, backend="guest", seeds="1..=1").finish()
    figure = folders.figure_at("gemini/fig13")
    assert standings([figure], Store(api.RUNS), quick=True)["gemini/fig13"].reason == "not run yet"
    assert api.load("gemini/fig13@guest").entry.place == "gemini/fig13"


def test_doctor_shows_what_narrowsd_finds_and_fails_for_none_of_it(two_arms, narrowsd, monkeypatch):
    done = command("doctor", "--json")
    found = {line["subject"]: line for line in lines(done.stdout)}
    assert done.returncode == 0, done.stderr
    assert (found["guest: kernel image"]["good"], found["guest: kernel image"]["required"]) == (False, False)
    assert found["guest: QEMU"]["good"] is True
    assert found["simulator"]["required"] is True
    shown = command("doctor").stdout
    assert "– guest: kernel image" in " ".join(shown.split())
    monkeypatch.setenv("NARROWSD", "/nothing")
    broken = command("doctor")
    assert broken.returncode == 3, "what is named and is no program is broken, not absent"
    assert "✗ narrowsd" in " ".join(broken.stdout.split())


def test_experiments_of_two_backends_have_names_of_their_own(two_arms):
    two_arms.write_text(TWO_ARMS)
    sim, guest = (narrows.Experiment(two_arms, quick=True, backend=one) for one in (Backend.SIM, Backend.GUEST))
    assert (sim.identifier, guest.identifier) == ("two-quick", "two-quick@guest")
    assert [plan.hash for plan in sim.plans] == [plan.hash for plan in guest.plans]


@pytest.fixture(scope="module")
def made_by_both(tmp_path_factory):
    """A store of two arms with two seeds from the simulator, and with three from a guest."""
    folder = tmp_path_factory.mktemp("both")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("NARROWSD", str(fake_narrowsd(folder)))
        (folder / "two.toml").write_text(TWO_ARMS)
        api.run("two.toml").finish()
        api.run("two.toml", backend="guest", seeds="1..=3").finish()
    return folder / "runs"


@pytest.fixture
def both(made_by_both, two_arms, narrowsd):
    """The same in a store of the test's own."""
    shutil.copytree(made_by_both, two_arms.parent / "runs")
    return Path("two.toml")


def test_the_same_plans_on_two_backends_are_one_results_with_the_seeds_that_both_have(both):
    (results,) = api.load_beside(["two-seeds-1-3@guest", "two"])
    assert results.entry.identifier == "two@sim+guest"
    assert results.frames.cases == ("cubic · sim", "cubic · guest", "gemini · sim", "gemini · guest")
    assert results.frames.seeds == (1, 2)
    assert results.flows.columns[:4] == ["case", "arm", "backend", "seed"]
    assert results.flows.select("arm", "backend").unique(maintain_order=True).rows() == [
        ("cubic", "sim"), ("cubic", "guest"), ("gemini", "sim"), ("gemini", "guest"),
    ]  # fmt: skip
    simulated = api.load("two").frames.of(["gemini"])
    beside = results.frames.of(["gemini · sim"])
    assert beside.flows["fct_ns"].to_list() == simulated.flows["fct_ns"].to_list(), "no row of the other backend"
    assert results.matching("gemini*").frames.cases == ("gemini · sim", "gemini · guest")
    assert dict(results.matching("gemini*").entry.differences[0].values) == {"gemini": "gemini"}


@pytest.mark.parametrize(
    ("profile", "hosts"), [("linux-4.9", "Linux 4.9"), ("dctcp-2010", "a Windows of 2009"), ("linux-6", None)]
)
def test_hosts_that_are_no_model_of_the_kernel_are_said(two_arms, narrowsd, profile, hosts):
    two_arms.write_text(TWO_ARMS.replace("servers = 2", f'servers = 2\nhost = {{ profile = "{profile}" }}'))
    said = f"The simulator's hosts are {hosts} (host.profile), and the real ones Linux 6.12: "
    first = CliRunner().invoke(app, ["run", "two.toml"])
    assert "The simulator's hosts" not in first.stdout, "nothing stands beside it"
    second = CliRunner().invoke(app, ["run", "two.toml", "--backend", "guest"])
    assert (said in second.stdout) is (hosts is not None)
    page = render(api.load_beside(["two", "two@guest"])[0], [])
    assert ("The simulator&#39;s hosts are" in page) is (hosts is not None)
    assert "The simulator&#39;s hosts are" not in render(api.load("two@guest"), [])


def test_what_has_other_plans_stays_by_itself(both, folder):
    api.run(both, quick=False, settings={"run.end": "2s"}).finish()
    other = next(name for name in Index(folder / "runs").entries() if "+" in name)
    names = [results.entry.identifier for results in api.load_beside([other, "two-seeds-1-3@guest", "two"])]
    assert names == [other, "two@sim+guest"]
    api.run(both, backend="guest", seeds="3..=3").finish()
    names = [results.entry.identifier for results in api.load_beside(["two", "two-seeds-3-3@guest"])]
    assert names == ["two", "two-seeds-3-3@guest"], "they have no seed in common"


def test_one_page_shows_both(both, folder):
    done = CliRunner().invoke(app, ["report", "two", "two-seeds-1-3@guest"])
    assert done.exit_code == 0, done.stderr
    assert done.stdout == "runs/reports/report-two@sim+guest.html\n"
    text = (folder / "runs" / "reports" / "report-two@sim+guest.html").read_text()
    for words in (
        '<h2>Simulator and kernel</h2>', '<h2>Live runs</h2>', 'data-case="gemini · guest"', "6.12.8-fake",
        "gemini as narrows_gemini", "<dt>packets, p99</dt><dd>41.0 µs</dd>",
        "<dt>packets, largest</dt><dd>2.10 ms</dd>", "<dt>flows held up</dt><dd>0</dd>",
        "<dt>run time</dt><dd>3 s</dd>",
        "In a guest the clock counts instructions", "in a guest they do with the same kernel, narrowsd and QEMU",
        "narrows run two.toml --seeds 1..3 --backend guest",
        f"simulator, Narrows {narrows.version()}; Linux in a guest (guest), narrowsd 0.0.0-fake",
    ):  # fmt: skip
        assert words in text, words
    assert "in real time" not in text
    assert "guest / sim" not in api.load("two").entry.title
    alone = render(api.load("two-seeds-1-3@guest"), [])
    assert "<h2>Simulator and kernel</h2>" not in alone
    assert "<h2>Live runs</h2>" in alone
    assert "<h2>Live runs</h2>" not in render(api.load("two"), [])


def test_a_page_of_native_runs_says_that_they_are_of_this_machine_and_in_real_time(two_arms, narrowsd):
    text = render(api.run(two_arms, backend="host", seeds="1..=1").join(), [])
    assert "emulated in real time" in text
    assert "On this machine&#39;s own kernel what is the same are the flows" in text
    assert "counts instructions" not in text


def test_agreement_is_the_ratio_within_a_seed(both):
    (results,) = api.load_beside(["two", "two-seeds-1-3@guest"])
    (table,) = agreement.tables(results.entry, results.frames)
    assert (table.first, table.other) == ("sim", "guest")
    assert [(arm.name, arm.first_case, arm.other_case) for arm in table.arms] == [
        ("cubic", "cubic · sim", "cubic · guest"), ("gemini", "gemini · sim", "gemini · guest"),
    ]  # fmt: skip
    by_backend = [value_by_seed(results.frames, "fct_mean", (case,)) for case in ("gemini · guest", "gemini · sim")]
    place = [quantity.measure for quantity in headline.columns(results.frames)].index("fct_mean")
    assert table.arms[1].cells[place].ratio == number(geometric_ratio(*by_backend).mean)
    assert agreement.tables(api.load("two").entry, api.load("two").frames) == []


def test_a_run_that_does_not_count_takes_its_seed_from_both_sides(two_arms, narrowsd, monkeypatch):
    monkeypatch.setenv("FAKE_NARROWSD", "is-late:gemini/2")
    api.run(two_arms).finish()
    api.run(two_arms, backend="guest").finish()
    (results,) = api.load_beside(["two", "two@guest"])
    kept = results.ports.select("case", "seed").unique(maintain_order=True).rows()
    assert kept == [("cubic · sim", 1), ("cubic · sim", 2), ("cubic · guest", 1), ("cubic · guest", 2),
                    ("gemini · sim", 1), ("gemini · guest", 1)]  # fmt: skip
    of_one = [value_by_seed(api.load(name).frames, "fct_mean", ("gemini",))[1] for name in ("two", "two@guest")]
    (table,) = agreement.tables(results.entry, results.frames)
    place = [quantity.measure for quantity in headline.columns(results.frames)].index("fct_mean")
    assert table.arms[1].cells[place].means == " → ".join(number(mean) for mean in of_one)
    found = lines(command("compare", "two", "two@guest", "--json").stdout)
    left_out = [one["text"].partition(":")[0] for one in found if one["event"] == "left_out"]
    assert left_out == ["1 of 4 runs does not count"]
    rows = [one for one in found if one["event"] == "comparison"]
    (compared,) = (one for one in rows if one["measure"] == "fct_mean" and one["base"] == "sim gemini")
    assert [compared["base_mean"], compared["other_mean"]] == pytest.approx(of_one)
    assert "what the other backend made with the same seed" in render(results, [])


def test_an_arm_whose_live_runs_do_not_count_is_on_the_page_without_numbers(two_arms, narrowsd, monkeypatch):
    monkeypatch.setenv("FAKE_NARROWSD", "is-late:gemini/1")
    api.run(two_arms, seeds="1..=1").finish()
    api.run(two_arms, seeds="1..=1", backend="guest").finish()
    (results,) = api.load_beside(["two-seeds-1-1", "two-seeds-1-1@guest"])
    assert results.frames.cases == ("cubic · sim", "cubic · guest")
    assert "1 of 1 run does not count" in render(results, [])


def test_round_trips_and_the_watched_queue_stand_beside_each_other(both):
    (results,) = api.load_beside(["two", "two-seeds-1-3@guest"])
    (table,) = agreement.tables(results.entry, results.frames)
    assert [column.measure for column in table.columns[-3:]] == ["rtt_mean", "queue_p50", "queue_p99"]
    assert "Queue, p99" in render(results, [])
    found = [one for one in lines(command("compare", "two", "two-seeds-1-3@guest", "--json").stdout) if "base" in one]
    compared = {one["measure"]: one for one in found if one["base"] == "sim gemini"}
    for cell, name in zip(table.arms[1].cells[-3:], ("rtt_mean", "queue_p50", "queue_p99"), strict=True):
        one = compared[name]
        assert (one["unit"], cell.ratio) == ("ms", number(one["ratio"]))
        assert cell.means == f"{number(one['base_mean'])} → {number(one['other_mean'])}"
    # The backlog of the WAN's port is time at its 100 Mbit/s.
    simulated = api.load("two").frames
    ports = simulated.of(["gemini"]).ports
    port = ports.filter(name=bottleneck.watched(ports))
    assert port["role"].unique().to_list() == ["wan"]
    for percent in (50, 99):
        expected = port[f"queue_p{percent}_bytes"].mean() * 8 / 1e8 * 1e3
        assert compared[f"queue_p{percent}"]["base_mean"] == pytest.approx(expected)


def test_the_queue_that_is_compared_is_of_the_port_that_the_first_side_used_most():
    def side(case, use, rtts):
        rows = [(case, 1, name, used, 250_000 * place, 500_000 * place, 10**9)
                for place, (name, used) in enumerate(use.items(), 1)]  # fmt: skip
        names = ["case", "seed", "name", "utilisation", "queue_p50_bytes", "queue_p99_bytes", "rate_bps"]
        flows = pl.DataFrame(
            {"case": [case] * len(rtts), "seed": 1, "flow": range(len(rtts)), "rtt_mean_ns": rtts},
            schema_overrides={"rtt_mean_ns": pl.UInt64},
        )
        empty = pl.DataFrame(schema={"case": pl.String})
        return Frames(flows, pl.DataFrame(rows, schema=names, orient="row"), empty.lazy(), empty), case

    one = side("a", {"up": 0.9, "down": 0.1}, [10_000_000, 30_000_000, None])
    other = side("b", {"up": 0.3, "down": 0.8}, [None])
    assert bottleneck.of_same_queue(one, other) == {
        "rtt_mean": ({1: 20.0}, {}), "queue_p50": ({1: 2.0}, {1: 2.0}), "queue_p99": ({1: 4.0}, {1: 4.0}),
    }  # fmt: skip
    assert bottleneck.of_same_queue(other, one)["queue_p50"] == ({1: 4.0}, {1: 4.0})


def test_means_beside_a_ratio_are_of_the_seeds_that_both_have():
    beside = agreement._beside({1: 10.0, 2: 90.0}, {1: 20.0, 3: 500.0})
    assert (beside.ratio, beside.means) == ("2.00", "10.0 → 20.0")
    assert agreement._beside({1: 10.0}, {}).means == "10.0 → –"
    assert agreement._beside({1: 10.0}, {2: 10.0}).means == ""


def test_the_best_is_the_best_of_its_backend(both):
    (results,) = api.load_beside(["two", "two-seeds-1-3@guest"])
    for place in (0, 3):  # small flows and all flows have a mean in every case
        ranks = {row.case: row.cells[place].rank for row in headline.table(results.frames)}
        for backend in ("sim", "guest"):
            assert [rank for case, rank in ranks.items() if case.endswith(backend)].count("best") == 1, ranks
    titles = [card.title for card in headline.cards(results.frames)]
    assert titles[:2] == ["Small flows, mean · sim", "Small flows, mean · guest"]


def test_a_page_says_which_runs_it_leaves_out(two_arms, narrowsd, monkeypatch):
    monkeypatch.setenv("FAKE_NARROWSD", "is-late:gemini/1")
    api.run(two_arms, backend="guest").finish()
    text = render(api.load("two@guest"), [])
    assert "1 of 4 runs does not count: a packet was delivered 31000 us late" in text
    assert "1 of 2 runs does not count" in text, "and of which arm"
    assert "Seed 2, reduced" in " ".join(text.split()).replace("seed 2, reduced", "Seed 2, reduced")


def test_compare_puts_backends_side_by_side(both):
    found = [one for one in lines(command("compare", "two", "two-seeds-1-3@guest", "--json").stdout) if "base" in one]
    assert {(one["base"], one["other"]) for one in found} == {
        ("sim cubic", "guest cubic"), ("sim gemini", "guest gemini"),
    }  # fmt: skip
    assert {one["seeds"] for one in found if one["measure"] in ("fct_mean", "rtt_mean")} == {2}
    assert all(one["ratio"] != 1 for one in found if one["measure"].startswith("fct")), "they are different runs"


def advice(*options):
    """What a run says is next."""
    done = CliRunner().invoke(app, ["run", "two.toml", *options])
    assert done.exit_code == 0, done.stderr
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("next: ")]
    return line.removeprefix("next: narrows report ")


def test_a_run_is_advised_to_be_reported_beside_the_other_backend_whichever_came_first(both):
    assert advice("--backend", "guest") == "two two@guest"
    assert advice() == "two two@guest", "which has the same seeds"
    assert advice("--seeds", "3..3") == "two-seeds-3-3 two-seeds-1-3@guest"
    assert advice("--seeds", "3..3", "--backend", "guest") == "two-seeds-3-3 two-seeds-3-3@guest"
    assert advice("--seeds", "4..4", "--backend", "guest") == "two-seeds-4-4@guest", "no other has this seed"


QUICKLY = TWO_ARMS.replace("[run]", '[run]\nquick = { seeds = "1..=1" }')
"""Quick runs are of the same plans with fewer seeds."""


def test_a_quick_run_is_not_advised_to_be_reported_beside_a_full_one(two_arms, narrowsd):
    two_arms.write_text(QUICKLY)
    assert advice() == "two"
    assert advice("--quick", "--backend", "guest") == "two-quick@guest"
    assert advice("--quick") == "two-quick two-quick@guest"
    assert advice() == "two"


def test_a_page_with_a_quick_side_is_a_quick_page_and_takes_no_full_ones_place(two_arms, narrowsd):
    two_arms.write_text(QUICKLY)
    api.run(two_arms).finish()
    api.run(two_arms, backend="guest").finish()
    api.run(two_arms, backend="guest", quick=True).finish()
    (full,) = api.load_beside(["two", "two@guest"])
    (mixed,) = api.load_beside(["two", "two-quick@guest"])
    assert (full.entry.identifier, full.entry.quick) == ("two@sim+guest", False)
    assert (mixed.entry.identifier, mixed.entry.quick) == ("two-quick@sim+guest", True)
    assert "quick run</span>" in render(mixed, [])


def test_a_page_of_fewer_seeds_takes_no_other_pages_place(both):
    api.run(both, backend="guest", seeds="2..=2").finish()
    names = [api.load_beside(["two", f"two-seeds-{seeds}@guest"])[0].entry.identifier for seeds in ("1-3", "2-2")]
    assert names == ["two@sim+guest", "two-seeds-2-2@sim+guest"]


def test_an_arm_has_one_colour_and_its_live_case_a_shade_of_it():
    alone = palette.colours(["cubic", "gemini"])
    beside = palette.colours(["cubic · sim", "cubic · guest", "gemini · sim", "gemini · host"])
    assert (beside["cubic · sim"], beside["gemini · sim"]) == (alone["cubic"], alone["gemini"])
    assert len(set(beside.values())) == 4
