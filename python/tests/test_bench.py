"""`narrows bench`: what it prints, what it refuses, the gate, and what it reads of callgrind and ns-3."""

import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest
from conftest import CHECKOUT, NIGHTLY, children, installed, lines, until, until_gone
from rich.console import Console
from typer.testing import CliRunner

from narrows import marked, native
from narrows.bench import callgrind, gate, machine, ns3, tables, workloads
from narrows.bench.gate import Baseline, Judged, Verdict
from narrows.bench.measure import Measurement, Sample
from narrows.cli import app
from narrows.errors import BadInput, EnvironmentLacks, RunFailed

KEYS = {
    "workload": str,
    "simulator": str,
    "ns_per_packet_hop": float,
    "hold_ns": float,
    "packet_hops": int,
    "instructions_per_packet_hop": float,
    "events_per_packet_hop": float,
    "peak_rss_mib": float,
}


def bench(*arguments):
    return CliRunner().invoke(app, ["bench", *arguments])


@pytest.fixture(autouse=True)
def short(monkeypatch):
    """Workloads of 50 ms."""
    monkeypatch.setenv("TEST_END_MS", "50")


@pytest.fixture
def counts(monkeypatch):
    """Instructions per packet-hop by workload, in place of valgrind's."""
    found = {"W1": 400.0, "W2": 300.0, "W3": 200.0}
    monkeypatch.setattr(callgrind, "require", lambda: None)
    monkeypatch.setattr(callgrind, "present", lambda: True)
    monkeypatch.setattr(callgrind, "per_packet_hop", lambda workload: found[workload.name])
    return found


def test_json_is_a_line_for_each_workload_with_its_keys(counts):
    done = bench("w1", "W3", "--repeat", "2", "--json")
    assert done.exit_code == 0, done.output
    records = lines(done.stdout)
    assert [record["workload"] for record in records] == ["W1", "W3"]
    for record in records:
        assert {name: type(record[name]) for name in KEYS} == KEYS
        assert record["instructions_per_packet_hop"] == counts[record["workload"]]
        assert record["packet_hops"] > 10
        assert record["holds_per_packet_hop"] == pytest.approx(record["ns_per_packet_hop"] / record["hold_ns"], rel=0.2)
        assert 0.5 < record["events_per_packet_hop"] < 2
        assert record["peak_rss_mib"] > 1
        assert record["repeats"] == 2
        assert record["read_ns"] > 1
        unit = record["must"].split()[1]
        meets = record[f"{unit}_per_packet_hop"] <= record[f"must_{unit}"]
        assert record["meets_must"] is (None if record["noise"] or record["must_within_runs"] else meets)
        assert record["simulated_seconds_per_cpu_second"] > 0
    assert records[0]["must_holds"] == 0.46
    assert [record["must"].split()[1] for record in records] == ["holds", "reads"]


def test_the_table_has_units_and_verdicts(counts):
    done = bench("W2", "--repeat", "1")
    assert done.exit_code == 0, done.output
    head, row = done.stdout[: done.stdout.index("W2")], done.stdout[done.stdout.index("W2") :]
    for words in ("CPU ns", "must", "holds", "instructions", "MiB"):
        assert words in head
    assert re.search(r"0\.600 holds [✓✗?]", row), row
    assert re.search(r"Of 1\s+`must`\s+goal\s+(none|1)\s+is\s+met|No\s+goal\s+is\s+judged", row)
    assert "wall s" in row
    assert "spread of" in row
    assert re.search(r"A hold took [\d.]+\s+ns, a read\s+[\d.]+\s+ns\.\s+One\s+run\s+of\s+each", row)


def test_threads_are_compared_with_one(counts):
    done = bench("W2", "--repeat", "2", "--threads", "2", "--json")
    assert done.exit_code == 0, done.output
    (record,) = lines(done.stdout)
    assert len(record["wall_seconds_on_threads"]) == 2
    assert record["threads"] == 1, "so short a run is not cut"
    mean = sum(record["wall_seconds_on_threads"]) / 2
    assert record["speedup"] == pytest.approx(record["wall_seconds"] / mean)
    done = bench("W2", "--repeat", "1", "--threads", "2")
    assert re.search(r"times +least and most", done.stdout), done.stdout
    assert lines(bench("W2", "--repeat", "1", "--json").stdout)[0]["speedup"] is None
    refused = bench("--check", "file", "--threads", "2")
    assert (refused.exit_code, "--threads" in refused.stderr) == (2, True)


def sample(ns_per_packet_hop=40, waited=1.0):
    cpu_ns = 1000 * ns_per_packet_hop
    return Sample(1000, 1000, 10**9, cpu_ns, round(waited * cpu_ns), 75.0, 2**24, 25.0)


@pytest.mark.parametrize(
    ("samples", "load", "said"),
    [
        ([sample(40), sample(44)], 0.1, []),
        ([sample(40), sample(44)], None, []),
        ([sample(40), sample(44)], 1.26, ["the load was 1.3 before the first run"]),
        ([sample(40, waited=1.5), sample(44, waited=1.7)], 0.1, ["W1 took 1.60 times its CPU time"]),
        ([sample(40), sample(48)], 0.1, ["the runs of W1 differ by 18%"]),
    ],
)
def test_where_the_machine_is_busy_no_goal_is_judged(samples, load, said):
    found = Measurement(workloads.select(["W1"])[0], tuple(samples), None).record(load)
    assert found["noise"] == said
    assert found["meets_must"] is (None if said else False)


@pytest.mark.parametrize(("must", "meets"), [(1.5, False), (1.7, True)])
def test_a_goal_in_reads_is_judged_by_reads(must, meets):
    workload = replace(workloads.select(["W3"])[0], must_reads=must)
    found = Measurement(workload, (sample(40), sample(40)), None).record(0.1)
    assert (found["reads_per_packet_hop"], found["must"]) == (1.6, f"{must:.2f} reads")
    assert found["meets_must"] is meets


@pytest.mark.parametrize(
    ("costs", "meets", "shown"), [((34, 36, 37), None, "≈"), ((34, 35, 36), None, "≈"), ((32, 33, 34), True, "✓")]
)
def test_a_goal_that_only_some_runs_meet_is_not_judged(costs, meets, shown):
    workload = replace(workloads.select(["W1"])[0], must_holds=35 / 75)
    found = Measurement(workload, tuple(sample(cost) for cost in costs), None).record(0.1)
    # The first two differ in which side the median is on.
    costs = tables.costs([found])[0]
    assert (found["noise"], found["meets_must"], costs[4]) == ([], meets, f"0.467 holds {shown}")
    assert found["must_within_runs"] is (meets is None)


def test_it_is_said_how_many_goals_are_met_and_which_are_missed():
    def found(name, *costs):
        return Measurement(workloads.select([name])[0], tuple(map(sample, costs)), None).record(0.1)

    records = [found("W1", 30, 31), found("W2", 60, 60), found("W5", 58, 61)]
    assert tables.goals(records) == (
        "Of 3 `must` goals 1 is met; missed: W2 (0.800 of 0.600 holds). Some runs meet it and others do not (≈): W5."
    )
    busy = Measurement(workloads.select(["W2"])[0], (sample(60),), None).record(3.0)
    assert tables.goals([busy]) == "No goal is judged."


@pytest.mark.parametrize(("quickest", "meets"), [(20.1, True), (19.9, None)])
def test_a_goal_in_reads_is_not_judged_where_memory_was_disturbed(quickest, meets):
    workload = replace(workloads.select(["W3"])[0], must_reads=2)
    found = Measurement(workload, (sample(40), sample(40)), None).record(0.1, quickest)
    assert found["meets_must"] is meets
    assert found["noise"] == ([] if meets else ["a read took 25.0 ns beside W3, and 19.9 ns at another time"])


def test_a_goal_in_holds_asks_nothing_of_memory():
    found = Measurement(workloads.select(["W1"])[0], (sample(40), sample(40)), None).record(0.1, 1.0)
    assert (found["meets_must"], found["noise"]) == (False, [])


def test_a_busy_machine_is_named_below_the_table(counts, monkeypatch):
    monkeypatch.setattr(machine, "load", lambda: 3.0)
    done = bench("W1", "--repeat", "1")
    assert "0.460 holds ?" in done.stdout
    assert "the load was 3 before the first run" in " ".join(done.stdout.split())


def test_it_waits_for_a_quiet_machine(monkeypatch):
    loads = iter([2.0, 1.5, 0.2])
    monkeypatch.setattr(machine, "load", lambda: next(loads))
    monkeypatch.setattr(machine.time, "sleep", lambda _: None)
    said = []
    assert machine.quiet_load(0.8, 60, said.append) == 0.2
    assert ["1.5" in one for one in said] == [False, True]


@pytest.mark.parametrize("load", [None, 3.0])
def test_it_does_not_wait_where_it_may_not_or_the_load_is_unknown(monkeypatch, load):
    monkeypatch.setattr(machine, "load", lambda: load)
    assert machine.quiet_load(0.8, 60 if load is None else 0, lambda _: pytest.fail("it waits")) == load


def test_the_widest_tables_fit_a_terminal_of_80_columns():
    cost = {
        "workload": "W5-default", "ns_per_packet_hop": 123.4, "holds_per_packet_hop": 1.234,
        "reads_per_packet_hop": 12.34, "must": "0.552 holds",
        "meets_must": None, "must_within_runs": False, "noise": ["busy"],
        "aim_holds": 0.123, "instructions_per_packet_hop": 1234.5, "packet_hops": 123_456_789,
        "peak_rss_mib": 123.4, "events_per_packet_hop": 1.2345, "simulated_seconds_per_cpu_second": 0.001234,
        "wall_seconds_per_cpu_second": 1.2345, "spread": 0.1234, "simulated_us": 600,
        "peer_ns_per_packet_hop": 16_994.0, "ratio": 127.0, "peer_packet_hops": 12_185_676, "peer_peak_rss_mib": 242.1,
    }  # fmt: skip
    judged = Judged("W5-default", 1234.5, 1234.5, 1300.1)
    for head, rows in (
        (tables.COSTS, tables.costs([cost])),
        (tables.MORE, tables.more([cost])),
        (tables.PEERS, tables.peers([cost | {"workload": "W5"}])),
        (tables.GATE, tables.gate([judged])),
    ):
        out = Console(width=200, file=io.StringIO())
        out.print(tables.rich(head, rows))
        assert max(len(row.rstrip()) for row in out.file.getvalue().splitlines()) <= 80, head


@pytest.mark.simulator
def test_without_instructions_there_is_null(monkeypatch):
    monkeypatch.setattr(callgrind, "per_packet_hop", lambda _: pytest.fail("counted"))
    record = json.loads(bench("W1", "--repeat", "1", "--no-instructions", "--json").stdout)
    assert record["instructions_per_packet_hop"] is None


@pytest.mark.simulator
def test_without_valgrind_there_is_null_and_a_way_to_get_it(monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda _: None)
    done = bench("W1", "--repeat", "1", "--json")
    assert json.loads(done.stdout)["instructions_per_packet_hop"] is None
    assert "apt-get install valgrind" in done.stderr


def test_an_unknown_workload_is_two_with_the_list():
    done = bench("W1", "W9")
    assert done.exit_code == 2
    assert done.stderr == (
        "error: no workload is called 'W9'\n"
        "  help: there are: W1, W2, W3, W4, W5, W1-default, W2-default, W5-default, W2-long, W5-loss\n"
    )


def test_every_workload_has_its_experiment():
    for each in workloads.ALL:
        assert tomllib.loads(each.file.read_text())["name"] == each.name.lower()
        assert each.aim_holds < each.must_holds


def baseline(folder, compiler="", least=None, **accepted):
    file = folder / "instructions.toml"
    file.write_text(gate.text(Baseline(compiler or native.build(), accepted, least or accepted)))
    return str(file)


def test_a_written_baseline_reads_as_it_was(folder):
    counted = {"W1": 401.5, "W2-long": 30.0}
    made = Baseline("rustc 1.0 (a 2026-01-01), release", counted, {**counted, "W1": 380.0})
    (folder / "instructions.toml").write_text(gate.text(made))
    assert gate.read(folder / "instructions.toml") == made


def test_the_accepted_counts_are_those_of_the_compiler_that_is_pinned():
    channel = tomllib.loads((CHECKOUT / "rust-toolchain.toml").read_text())["toolchain"]["channel"]
    assert gate.read(CHECKOUT / "bench" / "instructions.toml").compiler.startswith(f"rustc {channel} (")


@pytest.mark.parametrize(
    ("counted", "verdict"),
    [
        (100, Verdict.PASSES),
        (100.9, Verdict.PASSES),
        (101.1, Verdict.FAILS),
        (99.1, Verdict.PASSES),
        (98.9, Verdict.LOWER),
    ],
)
def test_one_per_cent_is_forgiven(counted, verdict):
    assert Judged("W1", 100.0, 99.0, counted).verdict is verdict


@pytest.mark.parametrize(("least", "verdict"), [(95.3, Verdict.PASSES), (95.1, Verdict.CREEPS)])
def test_small_steps_that_were_accepted_add_up(least, verdict):
    assert Judged("W1", 100.0, least, 100.0).verdict is verdict


def test_the_gate_passes_on_what_was_accepted_and_fails_above(counts, folder):
    good = bench("--check", baseline(folder, W1=400.0, W3=200.0))
    assert (good.exit_code, good.stderr) == (0, "")
    bad = bench("--check", baseline(folder, W1=400.0, W3=190.0), "--json")
    assert bad.exit_code == 1
    assert [record["verdict"] for record in lines(bad.stdout)] == ["passes", "fails"]
    assert "more than 1 % above" in bad.stderr
    crept = bench("--check", baseline(folder, least={"W1": 370.0, "W3": 200.0}, W1=400.0, W3=200.0), "--json")
    assert crept.exit_code == 1
    assert [record["verdict"] for record in lines(crept.stdout)] == ["creeps", "passes"]
    assert "[least]" in crept.stderr
    named = bench("W1", "--check", baseline(folder, W1=400.0, W3=190.0))
    assert named.exit_code == 0, "only W1 is asked for"


def test_the_gate_says_when_the_file_should_be_lowered(counts, folder):
    done = bench("--check", baseline(folder, W1=500.0))
    assert done.exit_code == 0
    assert "--update" in done.stderr


def test_update_writes_what_check_accepts(counts, folder):
    assert bench("--update", "new.toml").exit_code == 0
    first = dict(counts)
    assert gate.read(Path("new.toml")) == Baseline(native.build(), first, first)
    counts.update(W1=350.0, W3=counts["W3"] + 4.0)
    assert bench("--update", "new.toml").exit_code == 0
    assert gate.read(Path("new.toml")).instructions_per_packet_hop == counts
    assert gate.read(Path("new.toml")).least == {**first, "W1": 350.0}, "lowered, and never raised"
    assert bench("--check", "new.toml").exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("--check", "file.toml", "--repeat", "5"), "--repeat"),
        (("--check", "file.toml", "--peers", "--markdown", "page.md"), "--peers and --markdown"),
        (("--check", "file.toml", "--update", "file.toml"), "--update"),
        (("--check", "file.toml", "--no-instructions"), "--no-instructions"),
        (("--update", "file.toml", "--json"), "--json"),
        (("--update", "file.toml", "--repeat", "1"), "--repeat"),
    ],
)
def test_an_option_that_would_be_ignored_is_refused(counts, folder, arguments, named):
    done = bench(*arguments)
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr == (
        f"error: {arguments[0]} only counts instructions: it does not go with {named}\n"
        f"  help: leave out {named}, or {arguments[0]}\n"
    )
    assert not Path("file.toml").exists()


def test_where_nothing_can_be_judged_it_is_three_and_not_passed(counts, folder, monkeypatch):
    other = bench("--check", baseline(folder, compiler="rustc 9.9, release", W1=400.0))
    assert (other.exit_code, other.stdout) == (3, "")
    assert "rustc 9.9" in other.stderr

    def lacks():
        raise EnvironmentLacks("valgrind is not installed")

    monkeypatch.setattr(callgrind, "require", lacks)
    assert bench("--check", baseline(folder, W1=400.0)).exit_code == 3


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[",
        "compiler = 1",
        'compiler = "c"\n[instructions_per_packet_hop]\n',
        'compiler = "c"\n[instructions_per_packet_hop]\nW1 = 0\n',
        'compiler = "c"\n[instructions_per_packet_hop]\nW1 = 400.0\nW2 = nan\n',
        'compiler = "c"\n[instructions_per_packet_hop]\nW1 = inf\n',
        'compiler = "c"\n[instructions_per_packet_hop]\nW1 = 1\n',
        'compiler = "c"\n[instructions_per_packet_hop]\nW1 = 1\n[least]\nW1 = 0\n',
        'compiler = "c"\n[instructions_per_packet_hop]\nW9 = 1\n[least]\nW9 = 1\n',
    ],
)
def test_a_wrong_baseline_is_two(counts, folder, text):
    (folder / "wrong.toml").write_text(text)
    done = bench("--check", "wrong.toml")
    assert done.exit_code == 2
    assert "wrong.toml" in done.stderr
    assert bench("--check", "absent.toml").exit_code == 2


def test_the_total_of_a_profile_is_read():
    profile = "version: 1\nevents: Ir\nsummary: 9\n\nfn=(1) _native::run::advance\n12 34\n\ntotals: 222679147\n"
    assert callgrind.instructions(profile) == 222_679_147
    for empty in ("totals: 0\n", "version: 1\n"):
        with pytest.raises(RunFailed):
            callgrind.instructions(empty)


def test_the_figures_of_ns3_are_read():
    text = (
        "w2 flows=60 mean_MB=1.711 load=0.9 dirs=2\n"
        "w2 sim_s=0.5 setup_user_s=0.017 run_user_s=0.939 run_wall_s=0.940 events=539407 rx_MB=36.2 "
        "rss_setup_MiB=18.0 rss_peak_MiB=24.5"
    )
    assert ns3.parse(text + "\n") == ns3.Report(0.939, 24.5, None, None)
    assert ns3.parse(text + " hops=256055 drops=3\n") == ns3.Report(0.939, 24.5, 256_055, 3)
    for broken in ("", "msg=assert\n", text.replace("0.939", "many")):
        with pytest.raises(RunFailed):
            ns3.parse(broken)


PROGRAM = """#!/bin/sh
hops=
for option; do [ "$option" = --count=1 ] && hops=" hops=2000000 drops=5"; done
echo "w1 sim_s=1 run_user_s=4.000 rss_peak_MiB=33.1$hops"
"""


def checkout(folder, script):
    """A folder in which ns-3's programs can be built, or cannot."""
    build = folder / "bench" / "ns3" / "build.sh"
    build.parent.mkdir(parents=True)
    build.write_text(f"#!/bin/sh\n{script}\n")
    build.chmod(0o755)
    program = folder / "program"
    program.write_text(PROGRAM)
    program.chmod(0o755)


@pytest.mark.simulator
def test_peers_take_time_from_one_pass_and_packet_hops_from_the_other(folder):
    checkout(folder, 'mkdir -p "$1" && cp program "$1/w1" && echo 3.99')
    done = bench("W1", "--repeat", "1", "--no-instructions", "--peers", "--json")
    assert done.exit_code == 0, done.output
    ours, peer = lines(done.stdout)
    assert [record["simulator"] for record in (ours, peer)] == ["narrows", "ns-3"]
    assert (peer["workload"], peer["peer"], peer["peer_packet_hops"], peer["peer_drops"]) == (
        "W1",
        "ns-3 3.99",
        2_000_000,
        5,
    )
    assert peer["peer_ns_per_packet_hop"] == 2000.0
    assert peer["ratio"] == pytest.approx(2000 / peer["ns_per_packet_hop"])
    table = bench("W1", "--repeat", "1", "--no-instructions", "--peers").stdout
    assert "ns-3 3.99" in table


@pytest.mark.parametrize(("script", "code", "said"), [
    ("echo 'ns-3 is not installed: apt-get install libns3-dev' >&2; exit 3", 3, "help: apt-get install libns3-dev"),
    ("echo 'no such header' >&2; exit 1", 1, "no such header"),
])  # fmt: skip
def test_peers_that_cannot_be_built_are_told_before_anything_runs(folder, script, code, said):
    checkout(folder, script)
    done = bench("W1", "--peers")
    assert (done.exit_code, done.stdout) == (code, "")
    assert said in done.stderr


def test_a_page_keeps_what_stands_around_its_tables(folder):
    page = folder / "page.md"
    page.write_text("before\n<!-- costs -->\nold\n<!-- /costs -->\nafter\n")
    marked.replace_part(page, "costs", tables.markdown(("a", "b"), [["1", "2"]]))
    expected = "before\n<!-- costs -->\n| a | b |\n| --- | ---: |\n| 1 | 2 |\n<!-- /costs -->\nafter\n"
    assert page.read_text() == expected
    with pytest.raises(BadInput):
        marked.replace_part(page, "peers", "")


def test_the_results_page_has_both_places(counts, folder):
    shutil.copy(CHECKOUT / "bench" / "RESULTS.md", folder / "page.md")
    assert bench("W1", "--repeat", "1", "--markdown", "page.md").exit_code == 0
    text = (folder / "page.md").read_text()
    assert re.search(r"\| W1 \| [\d.]+ \| [\d.]+ \| [\d.]+ \| 0\.460 holds [✓✗?] \|", text)
    assert "<!-- peers -->" in text


def test_a_page_without_places_and_a_workload_without_peer_are_told_before_anything_runs(folder):
    (folder / "page.md").write_text("nothing\n")
    for arguments in (("W1", "--markdown", "page.md"), ("W5-loss", "--peers")):
        done = bench(*arguments)
        assert (done.exit_code, done.stdout) == (2, "")


def in_place_of_valgrind(folder):
    """A program of that name that runs what it is given, as valgrind does: in its own process."""
    program = folder / "bin" / "valgrind"
    program.parent.mkdir()
    program.write_text('#!/bin/sh\nwhile [ "${1#--}" != "$1" ]; do shift; done\nexec "$@"\n')
    program.chmod(0o755)
    return os.pathsep.join([str(program.parent), os.environ["PATH"]])


@pytest.mark.simulator
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("options", [("--no-instructions",), ("--update", "new.toml")])
def test_an_interrupt_is_a_hundred_and_thirty_and_leaves_no_child(folder, how, options):
    environment = os.environ | {"TEST_SECONDS": "60", "PATH": in_place_of_valgrind(folder)}
    started = subprocess.Popen(
        [sys.executable, "-m", "narrows", "bench", "W1", *options], env=environment,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    found = until(lambda: children(started.pid))
    os.kill(started.pid, how)
    out, errors = started.communicate(timeout=30)
    assert (started.returncode, out, errors) == (130, "", "interrupted\n")
    until_gone(found)
    assert not (folder / "new.toml").exists()


@pytest.mark.skipif(shutil.which("valgrind") is None, reason="valgrind is not installed")
def test_the_real_count_is_the_same_twice_and_the_gate_works_on_it(real, folder):
    def run(*arguments):
        return installed(real, "bench", *arguments, timeout=240)

    assert run("W1", "--update", "true.toml").returncode == 0
    once = gate.read(Path("true.toml"))
    (accepted,) = once.instructions_per_packet_hop.values()
    assert 100 < accepted < 5000, "instructions of an event loop, and not those of the interpreter"
    # It passes what is accepted in `make test`, too, where valgrind is.
    if NIGHTLY:
        assert run("W1", "--check", "true.toml").returncode == 0
    Path("lowered.toml").write_text(gate.text(Baseline(once.compiler, {"W1": accepted / 1.02}, once.least)))
    failed = run("--check", "lowered.toml", "--json")
    again = json.loads(failed.stdout)
    assert again["instructions_per_packet_hop"] == pytest.approx(accepted, rel=1e-3)
    assert (failed.returncode, again["verdict"]) == (1, "fails")


def test_the_real_child_measures_the_simulation_alone(real, folder):
    done = installed(real, "bench", "W1", "--repeat", 2, "--no-instructions", "--json", timeout=240)
    assert (done.returncode, done.stderr) == (0, "")
    record = json.loads(done.stdout)
    # 1 Gbit/s is 81,274 packets of 1,538 bytes a second; each crosses three ports, and so does its acknowledgement.
    assert record["packet_hops"] == pytest.approx(10 * 81_274 * 6, rel=0.03)
    assert record["peak_rss_mib"] < 40, "no polars in the child"
    assert record["holds_per_packet_hop"] == pytest.approx(record["ns_per_packet_hop"] / record["hold_ns"], rel=0.5)
