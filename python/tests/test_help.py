"""A first experiment, how much is printed, and what reaches files and other programs."""

import json
import os
import pty
import re
import subprocess
import tomllib

import pytest
import typer
from conftest import CHECKOUT, NARROWS, narrows
from jsonschema import Draft202012Validator

from narrows import native, wording
from narrows.cli import app
from narrows.experiment import Experiment


def on_a_terminal(*arguments, cwd, **environment):
    """What a command writes to a terminal."""
    ours, theirs = pty.openpty()
    variables = {key: value for key, value in os.environ.items() if key not in ("NO_COLOR", "FORCE_COLOR", "TERM")}
    variables |= {"TERM": "xterm-256color", "COLUMNS": "120", **environment}
    started = subprocess.Popen([NARROWS, *arguments], stdout=theirs, stderr=theirs, cwd=cwd, env=variables)
    os.close(theirs)
    said = b""
    try:
        while part := os.read(ours, 65536):
            said += part
    except OSError:  # its end
        pass
    os.close(ours)
    assert started.wait(60) == 0, said
    return said.decode()


@pytest.mark.simulator
def test_the_first_experiment_is_one_and_runs(folder):
    done = narrows("init")
    assert done.stdout == "experiment.toml\nnarrows.schema.json\nnext: narrows check experiment.toml\n"
    experiment = Experiment("experiment.toml")
    assert len(experiment.plans) == 2
    assert not experiment.remarks
    assert narrows("run", "experiment.toml", "--seeds", "1").returncode == 0


def test_the_first_experiment_names_a_schema_beside_it_that_it_obeys(folder):
    assert narrows("init", "sub/mine.toml").returncode == 0
    text = (folder / "sub" / "mine.toml").read_text()
    (directive, path) = text.splitlines()[0].split()
    assert directive == "#:schema"
    assert path.startswith("./"), "relative to the file: an editor finds it offline"
    schema = json.loads((folder / "sub" / path).read_text())
    assert schema == json.loads(narrows("schema").stdout)
    content = tomllib.loads(text)
    Draft202012Validator(schema).validate(content)
    assert not Draft202012Validator(schema).is_valid({**content, "runn": {}}), "the schema refuses a misspelt key"


def test_every_experiment_of_the_project_obeys_the_schema():
    checks = Draft202012Validator(native.schema())
    paths = sorted(CHECKOUT.glob("experiments/*/*/experiment.toml"))
    assert len(paths) > 40
    assert not {
        path.parent.name: error.message
        for path in paths
        for error in checks.iter_errors(tomllib.loads(path.read_text()))
    }


@pytest.mark.parametrize(("name", "content"), [("mine.toml", "x = 1\n"), ("narrows.schema.json", '{"mine": 1}')])
def test_init_overwrites_nothing(folder, name, content):
    (folder / name).write_text(content)
    done = narrows("init", "mine.toml")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"error: {name} is there already")
    assert {path.name: path.read_text() for path in folder.iterdir()} == {name: content}


@pytest.mark.parametrize("name", [".", "..", "/", "n" * 300 + ".toml", "plain/x.toml"])
def test_init_refuses_what_no_file_can_be_called(folder, name):
    (folder / "plain").touch()
    done = narrows("init", name)
    assert (done.returncode, done.stdout) == (2, "")
    assert re.match(r"error: .*(is there already|cannot write .*)\n  help: .*\n$", done.stderr), done.stderr
    assert [path.name for path in folder.iterdir()] == ["plain"]


def test_init_renews_its_own_schema(folder):
    narrows("init", "one.toml")
    schema = folder / "narrows.schema.json"
    whole = schema.read_text()
    schema.write_text(whole.replace("One line for reports.", "Of an older version."))
    assert narrows("init", "two.toml").returncode == 0
    assert schema.read_text() == whole


@pytest.mark.simulator
def test_quiet_prints_results_only_and_verbose_costs_too(two_arms):
    plain = narrows("run", "two.toml").stdout
    assert "next: " in plain
    assert "packet-hops" not in plain
    for arguments in (("-q", "run", "two.toml"), ("run", "two.toml", "--quiet")):
        done = narrows(*arguments)
        assert (done.stderr, done.stdout.startswith("two: 0 new, 4 reused")) == ("", True)
        assert "next: " not in done.stdout
    for arguments in (("-v", "run", "two.toml"), ("run", "two.toml", "--verbose")):
        assert re.search(r"^\d+ packet-hops, [\d.]+ ns", narrows(*arguments).stdout, re.MULTILINE)
    assert narrows("run", "two.toml").stdout.count("\n") == plain.count("\n"), "the next command begins anew"


@pytest.mark.simulator
def test_quiet_keeps_errors_and_drops_warnings(folder):
    network = '[topology.dumbbell]\npairs = 1\n[[traffic]]\nfrom = "left-*"\nto = "right-*"\nlong = {}\n'
    (folder / "long.toml").write_text(
        f'{network}[[arm]]\nname = "a"\ncc = "cubic"\n[run]\nend = "50ms"\nseeds = "1..2"\n'
    )
    assert "all 2 seeds give the same results" in narrows("run", "long.toml").stderr
    assert narrows("run", "long.toml", "-q").stderr == ""
    done = narrows("-q", "run", "absent.toml")
    assert (done.returncode, "cannot read" in done.stderr) == (2, True)
    both = narrows("-q", "check", "-v", "absent.toml")
    assert (both.returncode, "not both" in both.stderr) == (2, True)


def verbs(command, name=""):
    """Every verb, in groups too, by its name."""
    for own, inner in getattr(command, "commands", {}).items():
        yield from verbs(inner, f"{name} {own}".strip())
    if not hasattr(command, "commands"):
        yield name, command


def test_every_verb_takes_both_options():
    found = dict(verbs(typer.main.get_command(app)))
    assert {"run", "init", "cc list"} <= found.keys()
    for name, verb in found.items():
        options = {option for parameter in verb.params for option in parameter.opts}
        assert {"-q", "--quiet", "-v", "--verbose"} <= options, name


def test_the_version_has_a_short_option():
    assert narrows("-V").stdout == narrows("--version").stdout


@pytest.mark.simulator
def test_digits_are_plain_in_a_pipe_and_grouped_on_a_terminal(two_arms, folder):
    assert narrows("run", "two.toml").returncode == 0
    piped = (
        narrows("-v", "run", "two.toml").stdout + narrows("compare", "two").stdout + narrows("check", "two.toml").stdout
    )
    assert re.search(r"^\d{7} packet-hops", piped, re.MULTILINE)
    assert not re.search("[\u202f\x1b\u2500-\u257f]", piped), "no separators, no styles, no boxes"
    shown = on_a_terminal("-v", "run", "two.toml", cwd=folder)
    assert re.search("\\d\u202f\\d{3}\u202f\\d{3} packet-hops", shown)


def test_no_color_leaves_colours_out(folder):
    colour = re.compile(r"\x1b\[[\d;]*3[0-7]m")
    assert colour.search(on_a_terminal("doctor", cwd=folder))
    assert not colour.search(on_a_terminal("doctor", cwd=folder, NO_COLOR="1"))


def test_a_page_keeps_its_separators():
    assert wording.whole(1234) == "1\u202f234"
    assert wording.plain(wording.whole(1234)) == "1234"


def test_measures_are_shown_by_name():
    (item,) = [json.loads(line) for line in narrows("show", "measure", "fct_small_avg", "--json").stdout.splitlines()]
    assert (item["name"], item["unit"]) == ("fct_small_mean", "ms")
    (item,) = [json.loads(line) for line in narrows("show", "measure", "queue_p50", "--json").stdout.splitlines()]
    assert (item["name"], item["unit"]) == ("queue_p50", "ms"), "one that only comparisons have"
    done = narrows("show", "measure", "fct_smal")
    assert done.returncode == 2
    assert re.fullmatch(
        r"error: there is no measure called fct_smal\n  help: the nearest: .*\bfct_small_avg\b.*; `narrows show .*\n",
        done.stderr,
    )
