"""What comes with the package, and the wheel in an empty environment, far from any checkout."""

import os
import re
import resource
import shutil
import subprocess
import sys
import time
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest
from conftest import CHECKOUT, NIGHTLY, lines, narrows, said_by

from docs_site.examples import listings
from narrows import packaged
from narrows.cli.doctor import EXTRAS
from narrows.experiment import Experiment
from narrows.runs.index import entry_of

WHEEL = "NARROWS_WHEEL"
"""Names the wheel to test; without it one is packed from what `make` has compiled."""
FIGURE, CLAIMS = ("gemini/fig13", 12) if NIGHTLY else ("dctcp/fig13", 5)
"""The first figure of the README, or one that takes a tenth of it, and its claims."""
MAX_PROCESSOR_SECONDS = 120
"""For the README's figure, at most 60 s on two cores: measured at night, as it costs more while these are busy."""
VERSION = tomllib.loads((CHECKOUT / "Cargo.toml").read_text())["workspace"]["package"]["version"]
PROJECT = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["project"]


def test_the_examples_are_the_listings_of_the_documentation():
    found = list(listings())
    assert len(found) > 10
    there = {
        path.name: path.read_text() for path in packaged.examples().iterdir() if path.suffix in (".toml", ".py", ".c")
    }
    assert there == {name: text for _, name, text in found}, "write them anew: python -m docs_site.examples"
    assert len(there) == len(found), "two pages list different files of one name"


def test_examples_are_copied_and_never_over_a_file(folder):
    listed = {item["name"]: item for item in lines(narrows("examples", "--json").stdout)}
    assert listed["two-sites.toml"]["title"] == "Web search within and between two datacenters"
    assert listed["compare.ipynb"]["kind"] == "notebook"
    (folder / "mine.toml").write_text("my work")
    refused = narrows("examples", "two-sites.toml", "mine.toml")
    assert (refused.returncode, refused.stderr.splitlines()[0]) == (2, "error: mine.toml is here already")
    assert [path.name for path in folder.iterdir()] == ["mine.toml"], "nothing is copied if something is in the way"
    assert narrows("examples", "two-sites.toml").stdout == "two-sites.toml\n"
    assert Experiment("two-sites.toml").title == listed["two-sites.toml"]["title"]
    assert narrows("examples", "two-site").returncode == 2


def test_a_figures_name_stands_for_its_experiment(folder):
    by_name, by_path = (
        narrows("check", path, "--json").stdout
        for path in ("gemini/fig13", CHECKOUT / "experiments/gemini/fig13/experiment.toml")
    )
    assert by_name == by_path != ""
    (folder / "gemini").mkdir()
    (folder / "gemini" / "fig13").write_text("no experiment")
    assert narrows("check", "gemini/fig13").returncode == 2, "what is there by this name is meant"
    assert "no/figure" in narrows("check", "no/figure").stderr


@pytest.fixture
def installed_package(folder, monkeypatch):
    """As if the package stood in an environment: with a folder of data that is no checkout's."""
    data = folder / "site-packages" / "narrows" / "data"
    shutil.copytree(CHECKOUT / "experiments" / "gemini", data / "experiments" / "gemini")
    monkeypatch.setattr(packaged, "_DATA", data)
    return data


def test_results_of_an_installed_figure_name_no_path_of_the_machine(installed_package):
    entry = entry_of(Experiment(packaged.experiment("gemini/fig13"), quick=True), version="1", root=Path("runs"))
    assert entry.file == entry.here == "gemini/fig13"
    assert entry.command == "narrows run gemini/fig13 --quick"
    assert packaged.label(CHECKOUT / "experiments/gemini/fig13/experiment.toml") is None, "a checkout's has a path"


def test_the_citation_is_of_this_version():
    assert f"\nversion: {VERSION}\n" in (CHECKOUT / "CITATION.cff").read_text()


def test_every_extra_is_in_doctor():
    assert EXTRAS.keys() == PROJECT["optional-dependencies"].keys() - {"dev", "docs"}
    for extra, (_, packages) in EXTRAS.items():
        asked = {re.match(r"[\w-]+", item)[0] for item in PROJECT["optional-dependencies"][extra]}
        assert set(packages) <= asked


def test_doctor_tells_what_is_not_here_from_what_is_broken(folder, monkeypatch):
    (folder / "ray.py").write_text("raise OSError('libray.so: undefined symbol')")
    monkeypatch.syspath_prepend(folder)
    monkeypatch.delitem(sys.modules, "ray", raising=False)
    monkeypatch.setitem(EXTRAS, "perfetto", ("for traces", ("no_such_package",)))
    (folder / "valgrind").write_text("#!/bin/sh\nexit 1\n")
    (folder / "valgrind").chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.delenv("NARROWSD", raising=False)
    done = narrows("doctor", "--json")
    found = {item["subject"]: item for item in lines(done.stdout)}
    assert done.returncode == 3
    assert (found["extra ray"]["state"], found["extra perfetto"]["state"]) == ("broken", "not here")
    assert "libray.so: undefined symbol" in found["extra ray"]["found"]
    assert "pip install 'narrows[perfetto]'" in found["extra perfetto"]["found"]
    assert found["valgrind"]["state"] == "broken"
    assert "broken: extra ray, valgrind" in narrows("doctor").stdout


@pytest.fixture(scope="session")
def wheel(tmp_path_factory, real):
    """The wheel that is named, or one of the module that is compiled already."""
    if named := os.environ.get(WHEEL):
        return Path(named).resolve()
    out = tmp_path_factory.mktemp("wheel")
    command = [
        Path(sys.executable).with_name("maturin"),
        "build",
        "--quiet",
        "--release",
        "--interpreter",
        sys.executable,
    ]
    done = subprocess.run(
        [*command, "--out", out], cwd=CHECKOUT, env=real, capture_output=True, text=True, timeout=1500
    )
    assert done.returncode == 0, done.stderr
    (found,) = out.glob("*.whl")
    return found


@pytest.mark.system
def test_the_wheel_holds_the_experiments_and_nothing_that_was_made(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    tracked = subprocess.run(
        ["git", "ls-files", "experiments", "examples"], cwd=CHECKOUT, capture_output=True, text=True
    )
    data = {name.removeprefix("narrows/data/") for name in names if name.startswith("narrows/data/")}
    assert data == set(tracked.stdout.split())
    assert "narrows/py.typed" in names
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert "-abi3-manylinux_2_" in wheel.name, "it says which glibc it needs"


@pytest.mark.system
def test_the_wheel_works_in_an_empty_environment(wheel, real, folder, capsys):
    """One test: an environment takes a while to fill."""
    real = {name: value for name, value in real.items() if name != "NARROWSD"}
    venv.create(folder / "env", with_pip=True)
    begun = time.monotonic()
    pip = [folder / "env/bin/pip", "install", "--quiet", "--disable-pip-version-check", wheel]
    done = subprocess.run(pip, env=real, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    installing = time.monotonic() - begun
    command = folder / "env" / "bin" / "narrows"
    (site,) = folder.glob("env/lib/python*/site-packages")
    before = sorted(site.rglob("*"))
    (folder / "work").mkdir()
    os.chdir(folder / "work")

    def said(*arguments):
        return said_by(real, *arguments, program=command, timeout=600)

    assert said("--version").startswith(f"narrows {wheel.name.split('-')[1]}+")
    found = {item["subject"]: item for item in lines(said("doctor", "--json"))}
    assert str(site) in found["experiments"]["found"]
    assert {item["state"] for item in found.values() if item["required"]} == {"works"}
    assert {found[f"extra {extra}"]["state"] for extra in EXTRAS} == {"not here"}

    begun, spent = time.monotonic(), _processor_seconds()
    shown = said("reproduce", FIGURE, "--quick")
    figure, spent = time.monotonic() - begun, _processor_seconds() - spent
    with capsys.disabled():
        sys.stdout.write(
            f"\nwheel: installed in {installing:.0f} s, first figure in {figure:.0f} s, {spent:.0f} CPU s\n"
        )
    assert not NIGHTLY or spent < MAX_PROCESSOR_SECONDS
    assert f"{FIGURE} (quick), {CLAIMS} claim" in shown
    name = FIGURE.replace("/", "-") + "-quick"
    assert Path(f"runs/figures/{name}.png").read_bytes().startswith(b"\x89PNG")
    report = Path(f"runs/reports/report-{name}.html").read_text()
    assert f"narrows run {FIGURE} --quick" in report
    assert str(site) not in report
    assert "site-packages" not in report

    said("examples", "two-sites.toml")
    assert "3 plans × 5 seeds" in said("check", "two-sites.toml")
    said("run", "two-sites.toml", "--seeds", "1", "--set", "run.end=1s")
    assert "fct_small_mean" in said("compare", "two-sites")
    assert sorted(site.rglob("*")) == before, "nothing is written into the package"


def _processor_seconds():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
