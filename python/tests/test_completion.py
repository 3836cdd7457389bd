"""What a shell offers behind a verb, as bash asks for it, and how long it waits."""

import os
import resource
import shutil
import subprocess
import sys

import pytest
from conftest import CHECKOUT, NARROWS, narrows
from typer.testing import CliRunner

from narrows import native
from narrows.cli import app
from narrows.measures import names
from narrows.measures.named import MEASURES

SLOW = ("polars", "altair", "vl_convert", "pandas", "jinja2")


def offered(*words, cwd=None):
    """What bash inserts for the last of these words, in a process of its own."""
    environment = {**os.environ, "_NARROWS_COMPLETE": "complete_bash", "COMP_WORDS": "\n".join(["narrows", *words])}
    done = subprocess.run(
        [NARROWS], env={**environment, "COMP_CWORD": str(len(words))}, capture_output=True, text=True, cwd=cwd
    )
    assert (done.returncode, done.stderr) == (0, "")
    return [line for line in done.stdout.splitlines() if line]


@pytest.fixture
def swept(two_arms, folder):
    """Results of a sweep, and of an earlier content of its file."""
    text = two_arms.read_text()
    for sweep in ("", '[sweep]\n"traffic.web.arrivals.poisson.load" = [0.3, 0.6]\n'):
        two_arms.write_text(text.replace('end = "3s"', 'end = "100ms"') + sweep)
        assert narrows("run", "two.toml", "--seeds", "1..1").returncode == 0
    return folder


@pytest.mark.simulator
def test_names_of_results_and_of_schemes_are_offered(swept):
    assert offered("compare", "tw") == ["two-seeds-1-1"]
    assert offered("report", "two-seeds-1-1", "t") == ["two-seeds-1-1"], "a second one"
    assert offered("compare", "two-seeds-1-1~") == ["two-seeds-1-1~1"]
    assert offered("show", "two-s") == offered("rm", "two") == offered("export", "two") == ["two-seeds-1-1"]
    assert offered("compare", "--out", "elsewhere", "") == []
    schemes = [f"{arm} · load={load}" for arm in ("cubic", "gemini") for load in (0.3, 0.6)]
    escaped = [name.replace(" ", r"\ ") for name in schemes]
    assert offered("explain", "two-seeds-1-1", "--scheme", "") == escaped
    assert offered("explain", "--scheme", r"gemini\ ·\ l") == [], "of no result: which is meant is not known yet"
    assert offered("trace", "two-seeds-1-1", "--scheme", r"gemini\ ·\ l") == escaped[2:]
    assert offered("trace", "two-seeds-1-1", "--scheme", '"gemini · l') == schemes[2:], "it has its quote"
    (swept / "runs" / "index.json").write_text("{")
    assert offered("compare", "") == [], "what cannot be read offers nothing, and says nothing"


@pytest.mark.simulator
@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
def test_bash_completes_a_name_with_spaces_so_that_it_is_one_word(swept):
    script = CliRunner().invoke(app, env={"_NARROWS_COMPLETE": "source_bash"}, prog_name="narrows").stdout
    asked = """
    COMP_WORDS=(narrows explain two-seeds-1-1 --scheme gemini); COMP_CWORD=4
    _narrows_completion narrows
    eval "set -- ${COMPREPLY[0]}"
    printf '%s|%s' "$#" "$1"
    """
    path = os.pathsep.join([str(NARROWS.parent), os.environ["PATH"]])
    done = subprocess.run(
        ["bash", "--norc", "-c", script + asked], env={**os.environ, "PATH": path}, capture_output=True, text=True
    )
    assert done.stdout == "1|gemini · load=0.3", done.stderr


def test_names_of_figures_claims_components_and_measures_are_offered():
    assert {"gemini/fig13", "gemini/fig04"} <= set(offered("reproduce", "gemini/", cwd=CHECKOUT))
    assert "gem-072" in offered("reproduce", "gemini/fig13", "gem-07", cwd=CHECKOUT)
    components = native.components()
    assert offered("show", "aqm", "") == [item["name"] for item in components if item["kind"] == "aqm"]
    assert {"aqm", "topology", "measure"} <= set(offered("show", ""))
    assert "fct_small_mean" in offered("show", "measure", "fct_")
    assert offered("cc", "show", "gem") == ["gemini"]
    assert offered("examples", "compare") == ["compare.ipynb"]
    assert {"--quiet", "--quick"} <= set(offered("run", "--qui"))


def test_measures_are_named_without_being_imported():
    assert sorted(names.names()) == sorted(MEASURES)


@pytest.mark.parametrize("words", [("compare", ""), ("reproduce", "gem"), ("show", "measure", "")])
def test_a_shell_does_not_wait(words):
    """Nothing heavy is loaded: half a second that a person would wait for at each key."""
    look = (
        "import atexit, sys; atexit.register(lambda: print(*sys.modules, file=sys.stderr)); from narrows.cli import app"
    )
    environment = {**os.environ, "_NARROWS_COMPLETE": "complete_bash", "COMP_WORDS": "\n".join(["narrows", *words])}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [sys.executable, "-c", f"{look}; app()"],
        env={**environment, "COMP_CWORD": str(len(words))},
        capture_output=True,
        text=True,
        cwd=CHECKOUT,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    loaded = {module.partition(".")[0] for module in done.stderr.split()}
    assert "narrows" in loaded
    assert not loaded & set(SLOW)
    assert after.ru_utime - before.ru_utime < 1, "0.15 s on an idle machine"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_of_each_shell_asks_the_command(shell):
    script = CliRunner().invoke(app, env={"_NARROWS_COMPLETE": f"source_{shell}"}, prog_name="narrows").stdout
    assert f"_NARROWS_COMPLETE=complete_{shell}" in script
