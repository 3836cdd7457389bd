"""Transcripts: what is typed, what is printed where, and the exit code."""

import json
import re
import sys
from pathlib import Path

import pytest
from conftest import SMALL, lines, narrows
from typer.testing import CliRunner

from narrows import native
from narrows.cli import app, progress
from narrows.experiment import MAX_SEEDS, Experiment
from narrows.runs.running import Progress

CONTROLLERS = [item["name"] for item in native.controllers()]
SEEDS_HELP = (
    f"  help: give a range such as 1..10 (both included) or different numbers such as 1,5,9; at most {MAX_SEEDS}\n"
)

ERRORS = [
    (
        ("check", "absent.toml"),
        "absent.toml: cannot read `absent.toml`: there is no such file\nhelp: check the path and the permissions\n",
    ),
    (
        ("run", "typo.toml"),
        "typo.toml:2:1: unknown key `arn`\n  |\n2 | arn = 1\n  | ^^^\nhelp: did you mean `arm`?\n",
    ),
    (
        ("run", "two.toml", "--set", 'run.ned="1s"'),
        '--set:1:1: unknown key `ned`\n  |\n1 | run.ned="1s"\n  | ^^^^^^^\nhelp: did you mean `end`?\n',
    ),
    (
        ("run", "two.toml", "--set", "run.end"),
        'error: --set run.end has no value\n  help: write --set key=value, for example --set run.end="20s"\n',
    ),
    (
        ("run", "two.toml", "--out", "two.toml/runs"),
        (
            "error: cannot write to the output folder two.toml/runs: Not a directory\n"
            "  help: choose another folder with --out, or change its permissions\n"
        ),
    ),
    *(
        (
            (verb, "empty"),
            (
                "error: empty holds no experiment.toml, nor does a folder in it\n"
                "  help: give an experiment file, or a folder of such folders\n"
            ),
        )
        for verb in ("run", "check")
    ),
    (
        ("report", "two"),
        "error: no result is called 'two' in runs\n  help: there are none yet; `narrows run FILE` makes some\n",
    ),
    (
        ("check", "two.toml", "--seeds", "0..x"),
        "error: 0..x names no seeds\n" + SEEDS_HELP,
    ),
    (
        ("cc", "show", "reno"),
        "error: no controller is called 'reno'\n  help: there are: "
        + ", ".join(CONTROLLERS)
        + "; `narrows show reno` looks among all components\n",
    ),
]


@pytest.mark.parametrize(("arguments", "message"), ERRORS)
def test_bad_input_is_two_and_printed_as_it_is(two_arms, folder, arguments, message):
    (folder / "typo.toml").write_text('name = "x"\narn = 1\n')
    (folder / "empty").mkdir()
    done = narrows(*arguments)
    assert (done.returncode, done.stderr, done.stdout) == (2, message, "")
    assert not (folder / "runs").exists()


def test_run_then_again_then_report_and_compare(two_arms, folder):
    first = narrows("run", "two.toml")
    assert re.fullmatch(
        r"two: 4 new, 0 reused; results in runs; took .*\n"
        r"(?P<table>(.+\n)+)"
        r"means over 2 seeds, with the smallest and the largest\n"
        r"next: narrows report two\n      narrows compare two\n      narrows explain two\n",
        first.stdout,
    ), first.stdout
    assert re.search(r"; took [\d.]+ m?s$", first.stdout, re.MULTILINE)
    assert (first.stderr, first.returncode) == ("", 0)
    assert narrows("run", "two.toml").stdout.startswith("two: 0 new, 4 reused")
    assert narrows("report", "two").stdout == "runs/reports/report-two.html\n"
    assert (folder / "runs" / "reports" / "report-two.html").stat().st_size < 8_000_000
    told = lines(narrows("compare", "two", "--json").stdout)
    compared = [item for item in told if item["event"] == "comparison"]
    assert all("is over 1 of 2 seeds" in item["text"] for item in told if item not in compared)
    assert {item["other"] for item in compared} == {"gemini"}
    small = next(item for item in compared if item["measure"] == "fct_small_mean")
    assert small["ratio"] < 1
    assert (small["interval"], small["seeds"]) == ("range", 2)
    assert "fct_small_mean" in narrows("compare", "two").stdout


def test_a_folder_runs_every_experiment_in_it(folder, two_arms):
    inner = folder / "set" / "one"
    inner.mkdir(parents=True)
    two_arms.rename(inner / "experiment.toml")
    done = narrows("run", "set", "--json", "--seeds", "1..1")
    events = lines(done.stdout)
    assert [event["event"] for event in events] == ["run", "run", "finished"]
    manifests = [event["manifest"] for event in events[:2]]
    cpu_ns, hops, hold_ns = (sum(one[name] for one in manifests) for name in ("cpu_ns", "packet_hops", "hold_ns"))
    assert events[-1]["packet_hops"] == hops > 1000
    assert events[-1]["cpu_ns_per_packet_hop"] == pytest.approx(cpu_ns / hops)
    assert events[-1]["holds_per_packet_hop"] == pytest.approx(cpu_ns / hops / (hold_ns / 2))
    assert events[-1]["wall_s"] > 0
    assert "plan" not in events[0]["manifest"]


class Slow:
    """Work of 100 s, two runs beside one that is there: 7 s go by whenever it is asked, and it ends early."""

    elapsed_s = 0

    def progress(self):
        self.elapsed_s += 7
        done = self.elapsed_s / 100
        return Progress(int(2 * done), 1, 0, 3, done, 0, 0, self.elapsed_s)

    def done(self):
        return self.elapsed_s > 90


def test_without_a_terminal_progress_is_a_line_now_and_then(monkeypatch, capsys):
    monkeypatch.setattr(progress.time, "sleep", lambda _: None)
    progress.follow(Slow(), "fig [1]")
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.splitlines() == [
        "fig [1]: 1/3 runs after 35 s, about 1 min 5 s left",
        "fig [1]: 2/3 runs after 1 min 10 s, about 30 s left",
    ]


def test_a_run_with_a_damaged_manifest_is_made_again(two_arms, folder):
    assert narrows("run", "two.toml").returncode == 0
    one, two, *_ = sorted((folder / "runs").glob("*/*/manifest.json"))
    one.write_text("[]")
    two.write_text('{"format": 2, "version": "0.0.0-other"}')
    done = narrows("report", "two")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: 2 of 4 runs of 'two' are absent")
    again = narrows("run", "two.toml")
    assert again.stdout.startswith("two: 2 new, 2 reused"), again.stderr
    assert narrows("report", "two").returncode == 0


@pytest.mark.parametrize("verb", ["report", "compare"])
@pytest.mark.parametrize("damage", [Path.unlink, lambda path: path.write_bytes(path.read_bytes()[:-100])])
def test_a_damaged_table_is_two_and_names_the_folder_to_delete(two_arms, folder, verb, damage):
    assert narrows("run", "two.toml").returncode == 0
    table = sorted((folder / "runs").glob("*/*/ports.parquet"))[1].relative_to(folder)
    damage(table)
    done = narrows(verb, "two")
    assert (done.returncode, done.stdout) == (2, "")
    assert re.match(rf"error: (cannot read )?{table} \((cubic|gemini), seed [12]\)(: | is damaged)", done.stderr)
    assert done.stderr.splitlines()[1:] == [
        f"  help: delete {table.parent}, then run the experiment again; its other runs are kept"
    ]


@pytest.mark.parametrize("option", ["--threads", "--jobs"])
@pytest.mark.parametrize(("number", "said"), [("0", "greater than or equal to 1"), ("5000000000", "equal to 1024")])
def test_a_number_of_threads_or_jobs_that_no_machine_has_is_two(two_arms, folder, option, number, said):
    done = narrows("run", "two.toml", option, number)
    assert (done.returncode, done.stdout) == (2, "")
    assert f"Invalid value for '{option}'" in done.stderr
    assert said in done.stderr
    assert not (folder / "runs").exists()


def test_seeds_on_the_command_line_include_the_last(two_arms):
    events = lines(narrows("check", "two.toml", "--seeds", "1..10", "--json").stdout)
    events = [event for event in events if event["event"] != "network"]
    assert events[0]["seeds"] == list(range(1, 11))
    assert [event["event"] for event in events[:3]] == ["experiment", "plan", "plan"]
    assert {event["event"] for event in events[3:]} == {"difference"}
    parameters = {
        f"cc.{each['name']}.{parameter['name']}"
        for each in native.controllers()
        if each["name"] in ("cubic", "gemini")
        for parameter in each["parameters"]
    }
    marks = {f"{role}.aqm.threshold.mark-at" for role in ("edge", "fabric")}
    assert [event["path"] for event in events[3:]] == sorted({"cc", "ecn"} | parameters | marks)


def test_check_says_what_ports_do(two_arms):
    text = " ".join(narrows("check", "two.toml").stdout.split())
    assert "nodes 8 hosts in 4 racks of 2 datacenters; switches: 4 tor, 2 border" in text
    assert "WAN links 2 of 100Mbps, delay 2ms, buffer 300pkt" in text
    assert "AQM threshold: mark-at 50pkt" in text
    assert "base RTT 200 µs in a rack" in text


def test_check_takes_a_folder_as_run_does(folder, two_arms):
    for name in ("one", "other"):
        (folder / "set" / name).mkdir(parents=True)
        (folder / "set" / name / "experiment.toml").write_text(two_arms.read_text().replace('"two"', f'"{name}"'))
    events = lines(narrows("check", "set", "--json").stdout)
    assert [event["name"] for event in events if event["event"] == "experiment"] == ["one", "other"]
    refused = narrows("check", "set", "--plans", "plans")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert refused.stderr == "error: set holds 2 experiments\n  help: --plans takes one experiment file\n"


def test_check_writes_plans_as_narrowsd_takes_them_and_overwrites_none(folder, two_arms):
    done = narrows("check", "two.toml", "--plans", "plans")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-2:] == ["plans/cubic.json", "plans/gemini.json"]
    bodies = [json.loads((folder / "plans" / f"{arm}.json").read_text()) for arm in ("cubic", "gemini")]
    assert bodies == [json.loads(json.dumps(plan.body)) for plan in Experiment("two.toml").plans]
    (folder / "plans" / "cubic.json").unlink()
    again = narrows("check", "two.toml", "--plans", "plans")
    assert again.returncode == 2
    assert again.stderr.startswith("error: plans/gemini.json is there already\n  help: ")
    assert not (folder / "plans" / "cubic.json").exists(), "nothing is written where something is refused"


def test_check_shows_units(two_arms):
    done = narrows("check", "two.toml")
    assert "2 plans × 2 seeds = 4 runs" in done.stdout
    for words in ("8 hosts", "wan 60 %", "flows each", "memory"):
        assert words in done.stdout
    assert re.search(r"mark-at +50pkt +gemini\n", done.stdout), "which scheme has which value"
    assert done.returncode == 0


def test_without_the_native_module_it_is_three(two_arms, monkeypatch):
    def absent():
        raise native.EnvironmentLacks("the simulator's native module cannot be loaded")

    monkeypatch.setattr(native, "_module", absent)
    done = CliRunner().invoke(app, ["check", "two.toml"])
    assert done.exit_code == 3


def test_version_controllers_and_doctor(folder):
    assert narrows("--version").stdout == f"narrows {native.version()}\n"
    assert [item["name"] for item in lines(narrows("cc", "list", "--json").stdout)] == CONTROLLERS
    assert "the marking threshold of the switches" in narrows("cc", "show", "gemini").stdout
    done = narrows("doctor", "--json")
    assert done.returncode == 0
    assert all(item["good"] for item in lines(done.stdout) if item["required"])
    assert not (folder / "runs").exists()


def test_show_describes_every_component(folder):
    for item in native.components():
        done = narrows("show", item["kind"], item["name"])
        assert done.returncode == 0, done.stderr
        assert str(item["about"]).split(maxsplit=1)[0] in done.stdout


def test_show_of_what_there_is_not_says_what_is_near(folder):
    near = narrows("show", "gemni")
    assert near.returncode == 2
    assert "help: did you mean gemini? there are: newreno, " in near.stderr
    claim = narrows("show", "gem-081")
    assert (claim.returncode, claim.stderr.splitlines()[1]) == (2, "  help: `narrows reproduce gem-081` judges it")


def test_show_describes_a_measure_without_its_kind(folder):
    done = narrows("show", "fct_mean")
    assert done.returncode == 0, done.stderr
    assert done.stdout == narrows("show", "measure", "fct_mean").stdout
    assert "Mean completion time" in done.stdout


@pytest.mark.simulator
def test_results_with_the_name_of_a_component_are_told_of_and_shown_by_their_path(folder):
    (folder / "pie.toml").write_text(SMALL)
    assert narrows("run", "pie.toml", "--seeds", "1", "--quiet").returncode == 0
    shown = narrows("show", "pie")
    assert "in an experiment:" in shown.stdout
    assert "there are results of this name, too: narrows show runs/pie" in shown.stderr
    assert "pie.toml" in narrows("show", "runs/pie").stdout
    absent = narrows("show", "runs/absent")
    assert (absent.returncode, absent.stderr.splitlines()[0]) == (2, "error: there are no results runs/absent")


def test_doctor_without_a_writable_folder_is_three(folder):
    (folder / "file").write_text("")
    done = narrows("doctor", "--json", "--out", "file/runs")
    assert done.returncode == 3
    lacking = [item["subject"] for item in lines(done.stdout) if item["required"] and not item["good"]]
    assert lacking == ["output folder"]


def test_reproduce_runs_draws_judges_and_reports(gemini, monkeypatch):
    monkeypatch.chdir(gemini)
    done = narrows("reproduce", "gemini/fig04", "--quick", "--json")
    assert (done.stderr, done.returncode) == ("", 0)
    events = lines(done.stdout)
    runs = [event for event in events if event["event"] == "run"]
    assert len(runs) == 18
    assert all(event["skipped"] for event in runs), "Fig. 4 shares every run with Fig. 13"
    files = [event["path"] for event in events if event["event"] in ("figure", "report")]
    assert [path.removeprefix("runs/") for path in files] == [
        "figures/gemini-fig04-quick.svg",
        "figures/gemini-fig04-quick.png",
        "reports/report-gemini-fig04-quick.html",
    ]
    (card,) = [event for event in events if event["event"] == "scorecard"]
    verdicts = {event["id"]: event for event in events if event["event"] == "claim"}
    assert len(verdicts) == 17, "the claims about the figure"
    assert (gemini / card["path"]).suffix == ".html"
    assert sum(card[word] for word in ("holds", "partly", "fails", "not-run")) == 17
    assert sum(card["refutable"].values()) == 14, "three check the load that is offered"
    assert verdicts["gem-035"]["verdict"] == "holds"
    card = json.loads((gemini / "runs" / "reports" / "claims-gemini-quick.json").read_text())
    everything = {claim["id"]: claim for claim in card["claims"]}
    assert (card["quick"], len(everything)) == (True, 92)
    assert everything["gem-072"]["verdict"] == "holds", "judged from the runs of Fig. 13 that are there"
    assert everything["gem-043"]["verdict"] == "holds", "arithmetic"
    assert everything["gem-038"]["reason"] == "not run yet: narrows reproduce gemini/fig05 --quick"
    page = (gemini / "runs" / "reports" / "claims-gemini-quick.html").read_text()
    assert all(f'id="{name}"' in page for name in everything)
    table = (gemini / "runs" / "reports" / "claims-gemini-quick.md").read_text()
    assert all(f"| {name} (" in table for name in everything)
    strict = narrows("reproduce", "gemini/fig04", "gemini/fig13", "--quick", "--strict", "--json")
    failing = [event["id"] for event in lines(strict.stdout) if event.get("verdict") == "fails"]
    assert strict.returncode == (1 if failing else 0)
    assert failing, "of runs so short"


def test_reproduce_names_what_there_is(gemini, monkeypatch):
    monkeypatch.chdir(gemini)
    done = narrows("reproduce", "gemini/fig013")
    assert done.returncode == 2
    assert done.stderr.startswith(
        "error: no paper, figure or claim is called 'gemini/fig013'\n  help: the nearest: gemini/fig13,"
    )
    assert narrows("reproduce", "gemini/").stderr.startswith(
        "error: 'gemini/' names no figure\n  help: such as gemini/"
    )
    done = narrows("reproduce", "gem-99", "--quick")
    assert (done.returncode, "gem-09" in done.stderr) == (2, True)
    assert narrows("reproduce", "nonsense").stderr == (
        "error: no paper, figure or claim is called 'nonsense'\n"
        "  help: there are annulus, cee, dcib, dctcp, gemini, beyond; `narrows reproduce` lists all\n"
    )


def test_reproduce_without_arguments_lists_what_there_is_and_runs_nothing(gemini, monkeypatch):
    monkeypatch.chdir(gemini)
    events = lines(narrows("reproduce", "--json").stdout)
    figures = {event["figure"]: event for event in events if event["event"] == "figure"}
    assert figures["gemini/fig13"]["run"] == ["quick"]
    assert "gem-072" in figures["gemini/fig13"]["claims"]
    claims = [event for event in events if event["event"] == "claim"]
    assert sum(not event["ours"] for event in claims) == 139 + 14 + 18 + 28
    assert {event["paper"] for event in claims if event["ours"]} == {"beyond"}
    assert "gemini/fig13" in narrows("reproduce").stdout
    assert "beyond  Beyond the papers: 26 statements of our own" in narrows("reproduce").stdout
    about = [event["claims"] for event in events if event["event"] == "figure"]
    counted = [name for claims in about for name in claims]
    several = sum(counted.count(name) > 1 for name in set(counted))
    judged = [name for name in set(counted) if name.startswith(("gem-", "dct-", "dci-", "cee-"))]
    said = f"{several} claims about several figures counted with each; {139 + 18 + 28 - len(judged)} claims computed"
    assert said in narrows("reproduce").stdout
    assert "not measured yet" not in narrows("reproduce").stdout
    assert "`narrows show measure`" in narrows("reproduce", "--all").stdout


def test_a_gallery_has_every_picture_and_what_was_run(gemini, monkeypatch, tmp_path):
    monkeypatch.chdir(gemini)
    done = narrows("reproduce", "gemini/fig13", "--quick", "--gallery", str(tmp_path / "gallery"))
    assert (done.stderr, done.returncode) == ("", 0)
    assert "next:" not in done.stdout, "it has written the report itself"
    page = (tmp_path / "gallery" / "README.md").read_text()
    said = "![Realistic traffic between two datacenters at 1 Gbit/s. 48 hosts, 6 switches, 106 one-way links; "
    assert (
        said
        + f"7 plans, 3 seeds; simulated: 4 s. gemini/fig13, quick run, Narrows {native.version()}.](gemini-fig13.png)"
        in page
    )
    assert "Traffic: pattern-1/1-2, pattern-1/2-1: web-search sizes, " in page
    picture = (gemini / "runs" / "figures" / "gemini-fig13-quick.svg").read_text()
    shown = " ".join(re.sub("<[^>]*>", " ", picture).split())
    assert "48 hosts, 6 switches, 106 one-way links; 7 plans, 3 seeds; simulated: 4 s. gemini/fig13, quick" in shown
    assert (tmp_path / "gallery" / "gemini-fig13.png").read_bytes().startswith(b"\x89PNG")


def test_a_claim_is_reproduced_by_its_name(gemini, monkeypatch):
    monkeypatch.chdir(gemini)
    events = lines(narrows("reproduce", "gem-072", "--quick", "--json").stdout)
    assert [event["id"] for event in events if event["event"] == "claim"] == ["gem-072"]
    printed = narrows("reproduce", "gem-072", "gemini/fig13", "--quick").stdout
    assert "\ngemini/fig13, gem-072 (quick), 12 claims:\n  " in printed, "what was counted, and not the paper"


def test_every_verb_explains_itself():
    for verb in ("check", "run", "import", "compare", "report", "reproduce", "cc", "bench", "doctor"):
        done = CliRunner().invoke(app, [verb, "--help"])
        assert done.exit_code == 0
        assert "Usage" in done.output


def test_one_arm_alone_is_compared_with_nothing(two_arms):
    text = two_arms.read_text()
    alone = two_arms.with_name("alone.toml")
    alone.write_text(
        text[: text.index('[[arm]]\nname = "gemini"')].replace('"two"', '"alone"') + text[text.index("[run]") :]
    )
    made = narrows("run", "alone.toml", "--seeds", "1")
    assert made.stdout.startswith("alone-seeds-1-1: 1 new, 0 reused"), made.stderr
    done = narrows("compare", "alone")
    assert done.returncode == 2
    assert done.stderr.startswith("error: only one scheme: nothing to compare it with; give a second result\n")


def test_a_comparison_says_which_result_a_name_stands_for(two_arms):
    assert narrows("run", "two.toml", "--seeds", "1..1").returncode == 0
    assert "note: 'two' stands for two-seeds-1-1, its only result\n" in narrows("compare", "two").stdout
    assert "stands for" not in narrows("compare", "two-seeds-1-1").stdout


def test_a_folder_is_searched_one_level_deep(folder, two_arms):
    deep, near = folder / "set" / "one" / "two", folder / "set" / "near"
    for path in (deep, near):
        path.mkdir(parents=True)
        (path / "experiment.toml").write_text(two_arms.read_text())
    done = narrows("run", "set", "--seeds", "1..1")
    assert done.stdout.splitlines()[0] == "found set/near/experiment.toml"
    assert narrows("run", "set/one/two", "--seeds", "1..1").stdout.startswith("found set/one/two/experiment.toml")


def test_a_cluster_without_ray_is_what_the_environment_lacks(two_arms, folder, monkeypatch):
    (folder / "without").mkdir()
    (folder / "without" / "ray.py").write_text("raise ImportError('it is hidden')")
    monkeypatch.syspath_prepend(folder / "without")
    monkeypatch.delitem(sys.modules, "ray", raising=False)
    for verb in ("run", "reproduce"):
        options = narrows(verb, "--help").stdout
        assert "--on" in options
        assert "--ray-address" in options
    done = narrows("run", "two.toml", "--on", "ray")
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr == (
        "error: Ray is not installed (it is hidden)\n"
        "  help: pip install 'narrows[ray]'; in a checkout, pip install '.[ray]'\n"
    )
