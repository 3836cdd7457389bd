"""Which results claims are judged from: those of this version, of the file as it is now, and whole."""

import json
import os
import re
import shutil
import time
from importlib import import_module
from unittest.mock import patch

import pytest
from conftest import TWO_ARMS, narrows

from narrows import api, native
from narrows.claims import folders, scorecard
from narrows.report import gallery
from narrows.runs.freshness import standings
from narrows.runs.store import Store

VERSION = native.version()
CLAIM = """[[claim]]
id = "office-{number}"
item = "hunch"
scenario = "E-F{number}"
metric = "small-flow avg FCT"
schemes = ["cubic", "gemini"]
kind = "ordering"
expect = ""
order = ["fct_small_avg(gemini) < fct_small_avg(cubic)"]
confidence = "L"
needs_simulation = true
"""
BINDINGS = """from narrows.claims import Binding

SCENARIOS = ("E-F{number}",)
BINDINGS = {{"office-{number}": Binding()}}
"""
FIGURE = """from narrows.figures.completion import four_panels


def draw(results):
    return four_panels(results.frames, "Office")
"""


@pytest.fixture
def office(folder, without_charts):
    """A paper with two figures, each with a claim; nothing is run."""
    paper = folder / "experiments" / "office"
    for number in (1, 2):
        figure = paper / f"fig{number}"
        figure.mkdir(parents=True)
        (figure / "experiment.toml").write_text(TWO_ARMS.replace('"two"', f'"office-fig{number}"'))
        (figure / "figure.py").write_text(FIGURE)
        (figure / "bindings.py").write_text(BINDINGS.format(number=number))
    (paper / "claims.toml").write_text(CLAIM.format(number=1) + CLAIM.format(number=2))
    return folder


FIG1 = "experiments/office/fig1/experiment.toml"


def first(store="runs"):
    """The verdict on the first figure's claim."""
    (paper,) = folders.papers()
    return folders.verdicts(paper, Store(api.Path(store)), quick=False)[0]


def changed(path, old, new):
    path.write_text(path.read_text().replace(old, new))
    later = time.time_ns() + 10**9  # clocks of file systems are coarse
    os.utime(path, ns=(later, later))


def reproduced(name):
    return narrows("reproduce", name).returncode == 0


def another_version():
    """What is made within it another version has made."""
    return patch.dict(os.environ, TEST_VERSION="0.0.1+dead")


AGAIN = "`narrows reproduce office/fig1` runs it again"


def test_what_was_never_run_says_so_and_what_was_run_is_judged(office):
    assert (first().reason, first().absent) == ("not run yet: narrows reproduce office/fig1", True)
    api.run(FIG1).join()
    assert (first().word, first().absent) == ("holds", False)
    assert "run: full" in narrows("reproduce").stdout


def test_results_of_another_version_are_not_judged(office):
    with another_version():
        api.run(FIG1).join()
    said = f"run by version 0.0.1+dead, this is {VERSION}"
    assert (first().word, first().reason) == ("not-run", f"{said}: {AGAIN}")
    assert f"not run; full: {said}" in " ".join(narrows("reproduce").stdout.split())
    api.run(FIG1).join()
    assert first().word == "holds"


def test_runs_that_another_version_made_again_are_not_judged(office):
    results = api.run(FIG1).join()
    index = (office / "runs" / "index.json").read_bytes()
    with another_version():
        api.run(FIG1, seeds="2..=2").join()
    (office / "runs" / "index.json").write_bytes(index)
    assert first().reason == f"2 of 4 runs are absent or of another version: {AGAIN}"
    shutil.rmtree(office / "runs" / results.entry.members[0].hash)
    assert first().reason == f"3 of 4 runs are absent or of another version: {AGAIN}"


def test_a_run_with_other_seeds_is_not_judged_and_does_not_replace_the_full_one(office):
    api.run(FIG1, seeds="1..=1").join()
    assert first().reason == f"run with other seeds: 1..1 instead of 1..2: {AGAIN}"
    api.run(FIG1).join()
    api.run(FIG1, seeds="1..=1").join()
    assert (first().word, first().parts[0].estimate.seeds) == ("holds", 2)
    page = narrows("report", "office-fig1-seeds-1-1").stdout.strip()
    assert 'id="claims"' not in (office / page).read_text(), "the claims are judged from other runs"


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('end = "3s"', 'end = "4s"', "run from another experiment file than there is now"),
        ('name = "cubic"', 'name = "tcp"', "run from another experiment file than there is now"),
        ('"1..=2"', '"1..=3"', "run with other seeds: 1..2 instead of 1..3"),
        (
            "[run]",
            "[runs]",
            "its experiment file has a mistake, which `narrows check experiments/office/fig1/experiment.toml` shows",
        ),
    ],
    ids=["plan", "label", "seeds", "mistake"],
)
def test_results_of_another_state_of_the_file_are_not_judged(office, old, new, said):
    api.run(FIG1).join()
    changed(office / FIG1, old, new)
    assert first().word == "not-run"
    assert first().reason.startswith(said)


def test_overridden_settings_are_no_results_of_the_figure(office):
    api.run(FIG1, settings={"run.end": "2s"}).join()
    assert first().reason.startswith("not run yet")


@pytest.mark.parametrize("place", [".", "experiments/office", "experiments/office/fig1"])
def test_results_count_wherever_they_were_made_and_are_judged(office, monkeypatch, place):
    monkeypatch.chdir(office / place)
    api.run(os.path.relpath(office / FIG1), out=office / "runs").join()
    monkeypatch.chdir(office / "experiments" / "office" / "fig2")
    assert first(office / "runs").word == "holds"
    monkeypatch.chdir(office)
    (office / "runs" / "figures").mkdir()
    (office / "runs" / "figures" / "office-fig1.svg").write_text('<svg xmlns="http://www.w3.org/2000/svg"/>')
    monkeypatch.chdir(office / "experiments")
    page = gallery.write(office / "gallery", Store(office / "runs"), quick=False)
    assert "office-fig1.png" in page.read_text()


def test_the_gallery_keeps_what_was_run_elsewhere(office):
    picture = '<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"/>'
    api.run(FIG1).join()
    figures = office / "runs" / "figures"
    figures.mkdir()
    (figures / "office-fig1.svg").write_text(picture)
    first = gallery.write(office / "gallery", Store(office / "runs"), quick=False).read_text()
    again = gallery.write(office / "gallery", Store(office / "others"), quick=False).read_text()
    assert "### office/fig1: " in again
    assert again == first
    (office / "gallery" / "office-fig1.png").unlink()
    assert "fig1" not in gallery.write(office / "gallery", Store(office / "others"), quick=False).read_text()


def test_the_gallery_says_what_does_not_count(office):
    with another_version():
        assert reproduced("office/fig1")
    text = gallery.write(office / "gallery", Store(api.RUNS), quick=False).read_text()
    assert f"*Does not count: run by version 0.0.1+dead, this is {VERSION}.*" in text


def test_the_scorecard_shows_no_picture_of_what_does_not_count(office):
    with another_version():
        assert reproduced("office/fig1")
    assert reproduced("office/fig2")
    page = (office / "runs" / "reports" / "claims-office.html").read_text()
    assert page.count("<img") == 1
    assert f"Run by version 0.0.1+dead, this is {VERSION}." in page


SEEDS = "1..=2"


def cards(office):
    """The scorecard's three files, by their endings; pictures number their parts on and on within a process."""
    files = (office / "runs" / "reports").glob("claims-office.*")
    return {path.suffix: re.sub('base64,[^"]+', "", path.read_text()) for path in files}


def test_the_scorecard_says_what_was_run(office):
    other = office / "experiments" / "office" / "fig3"
    shutil.copytree(office / "experiments" / "office" / "fig2", other)
    (other / "bindings.py").unlink()
    for figure, seeds in (("fig2", "1..=3"), ("fig3", SEEDS)):
        path = office / "experiments" / "office" / figure / "experiment.toml"
        path.write_text(path.read_text().replace(SEEDS, seeds).replace("office-fig2", f"office-{figure}"))
    assert reproduced("office/fig1")
    first_cards = cards(office)
    for text in (first_cards[".md"], first_cards[".html"]):
        assert f"Judged from full runs of version {VERSION}: 1 of 3 figures, with 2 seeds each." in text
        assert "fct_small_avg" in text[text.index("Measures") :]
        assert "Mean completion time of flows under 100 KB." in text
        assert "time_to_share" not in text, "no claim of this paper is made of it"
    assert "| office/fig1 | 2 plans, 2 seeds; simulated: 3 s |\n| office/fig2 | not run yet |" in first_cards[".md"]
    card = json.loads(first_cards[".json"])
    assert card["command"] == "narrows reproduce office"
    assert card["measures"]["fct_small_avg"]["unit"] == "ms"
    ran, never, _ = card["figures"]
    assert (ran["version"], ran["seeds"], ran["simulated_s"]) == (VERSION, [1, 2], [3.0])
    assert (never["counts"], never["reason"]) == (False, "not run yet")
    assert reproduced("office")
    full_cards = cards(office)
    assert "3 of 3 figures, with 2 seeds each, but office/fig2 with 3." in full_cards[".md"]
    shutil.rmtree(office / "runs" / "reports")
    assert reproduced("office")
    assert cards(office) == full_cards, "the same runs give the same bytes"


def test_a_scorecard_without_runs_says_so(office):
    there = standings(folders.figures(folders.papers()[0]), Store(api.RUNS), quick=True)
    assert scorecard.origin(there, quick=True) == "Judged without runs: of 2 figures none has quick runs that count."


def test_claims_are_judged_once_for_a_paper(office, monkeypatch):
    judging = import_module("narrows.claims.judge")
    judged = []
    judge = judging.judge
    monkeypatch.setattr(
        judging, "judge", lambda paper, *rest, **more: judged.append(paper.name) or judge(paper, *rest, **more)
    )
    assert reproduced("office")
    assert judged == ["office"]
    reports = [office / "runs" / "reports" / f"report-office-fig{number}.html" for number in (1, 2)]
    assert ["office-1" in path.read_text() for path in reports] == [True, False]


def test_a_file_is_expanded_once_while_it_does_not_change(office, monkeypatch):
    api.run(FIG1).join()
    expanded = []
    expand = native.expand
    monkeypatch.setattr(native, "expand", lambda path, **more: expanded.append(path) or expand(path, **more))
    (paper,) = folders.papers()
    for _ in range(3):
        found = standings(folders.figures(paper), Store(api.RUNS), quick=False)
    assert [standing.counts for standing in found.values()] == [True, False]
    assert len(expanded) == 1


def included(*wanted):
    selection = folders.select(wanted)
    return {
        claim.identifier for paper in selection.papers for claim in paper.claims if selection.includes(paper, claim)
    }


def test_a_claim_and_a_figure_are_both_meant(office):
    assert included("office/fig1") == included("office-1") == {"office-1"}
    assert included("office/fig2", "office-1") == included("office-1", "office/fig2/") == {"office-1", "office-2"}
    assert included("office", "office-1") == included("office/fig1", "office/fig2") == {"office-1", "office-2"}
    assert {figure.name for figure in folders.select(["office/fig2", "office-1"]).figures} == {"fig1", "fig2"}


def test_a_claim_is_meant_beside_another_papers_figure(gemini, monkeypatch):
    monkeypatch.chdir(gemini)
    found = included("dctcp/fig12", "gem-013")
    assert "gem-013" in found
    assert any(name.startswith("dct-") for name in found)
    assert sum(name.startswith("gem-") for name in found) == 1
