"""Measured values in the pages that people write, between marks: `narrows reproduce --write`."""

import pytest
from conftest import TWO_ARMS, narrows

from narrows import api
from narrows.claims import folders
from narrows.cli import pages
from narrows.errors import BadInput
from narrows.report import written

PLACE = "before\n<!-- results of x/two: {} -->\nold\n<!-- /results -->\nafter\n"
SWEPT = TWO_ARMS.replace('name = "two"', 'name = "swept"', 1).replace(
    "[run]", '[sweep]\n"wan.limit" = ["100pkt", "300pkt"]\n[run]', 1
)


def filled(folder, results, asked, figure="x/two"):
    """The rows that a place for these measures gets, as cells."""
    page = folder / "page.md"
    page.write_text(PLACE.format(asked))
    written.write(page, figure, results)
    text = page.read_text()
    assert text.startswith(f"before\n<!-- results of x/two: {asked} -->\n")
    assert text.endswith("<!-- /results -->\nafter\n")
    return text, [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if "|" in line]


def test_several_measures_have_a_column_each(folder, two_arms):
    results = api.run(two_arms).join()
    text, (header, _, *rows) = filled(folder, results, "fct_mean loss")
    assert header == ["scheme", "fct_mean, ms", "loss, 1e-5"]
    assert [row[0] for row in rows] == ["cubic", "gemini"]
    mean = results.measure("fct_mean", "cubic")["value"].mean()
    assert float(rows[0][1].split(" (")[0].replace("\u202f", "").replace(" ", "")) == pytest.approx(mean, rel=5e-3)
    assert "old" not in text
    assert "Mean over 2 seeds (smallest and largest), full runs, version 0.1.0+" in text


@pytest.mark.simulator
def test_one_measure_of_a_sweep_has_a_column_for_each_value_of_the_last_axis(folder):
    (folder / "swept.toml").write_text(SWEPT)
    results = api.run("swept.toml", seeds="1").join()
    _, (header, _, *rows) = filled(folder, results, "fct_mean")
    assert header == ["fct_mean, ms by limit", "100pkt", "300pkt"]
    assert [row[0] for row in rows] == ["cubic", "gemini"]
    values = results.measure("fct_mean")
    assert values.height == 4
    shown = [float(cell.replace(" ", "").replace("\u202f", "")) for row in rows for cell in row[1:]]
    assert shown == pytest.approx(values["value"].to_list(), rel=5e-3)
    _, (_, _, *rows) = filled(folder, results, "fct_mean loss; only *limit=300pkt")
    assert [row[0] for row in rows] == ["cubic · limit=300pkt", "gemini · limit=300pkt"]
    with pytest.raises(BadInput, match="no scheme or configuration of x/two matches reno"):
        filled(folder, results, "fct_mean; only reno")


@pytest.mark.simulator
def test_a_measure_may_be_of_one_traffic(folder, two_arms):
    flow = '{ from = "a1-1", to = "b1-1", at = "1ms", size = "1MB" }'
    other = f'[[traffic]]\nname = "one"\nflows = {{ list = [{flow}] }}\n[sample]'
    two_arms.write_text(two_arms.read_text().replace("[sample]", other, 1))
    results = api.run(two_arms).join()
    _, (header, _, *rows) = filled(folder, results, "fct_mean fct_mean/one fct_mean/web")
    assert header == ["scheme", "fct_mean, ms", "fct_mean of one, ms", "fct_mean of web, ms"]
    for row, case in zip(rows, ("cubic", "gemini"), strict=True):
        mean = results.measure("fct_mean", f"{case} / one")["value"].mean()
        assert float(row[2].split(" (")[0].replace("\u202f", "").replace(" ", "")) == pytest.approx(mean, rel=5e-3)
        assert len({*row[1:]}) == 3


def test_an_interval_of_what_is_never_negative_begins_at_0():
    assert written._cell({1: 0.0, 2: 0.0, 3: 0.0, 4: 0.0, 5: 2.0}).startswith("0.400 (0 to ")
    assert " (-" in written._cell({1: -1.0, 2: 0.0, 3: 0.0, 4: 0.0, 5: 2.0}).replace("−", "-")


def test_places_of_other_figures_keep_what_they_have(folder, two_arms):
    page = folder / "page.md"
    page.write_text(PLACE.format("loss"))
    written.write(page, "x/one", api.run(two_arms).join())
    assert page.read_text() == PLACE.format("loss")


@pytest.fixture
def work(folder):
    """A paper without claims, whose figure has a page and its results one more."""
    figure = folder / "experiments" / "x" / "two"
    figure.mkdir(parents=True)
    (figure / "experiment.toml").write_text(TWO_ARMS)
    (figure.parent / "claims.toml").write_text('name = "x"\ntitle = "Ours"\n')
    (figure / "README.md").write_text(PLACE.format("loss"))
    (folder / "claims.md").write_text("<!-- claims of x -->\n<!-- /claims of x -->\n")
    return folder


def test_pages_of_a_folder_are_found_by_their_marks(work):
    selection = folders.select(["x"])
    found = pages.find([work / "experiments", work / "claims.md"], selection, scenarios=False, quick=False)
    assert found.results == {"x/two": [work / "experiments" / "x" / "two" / "README.md"]}
    assert found.claims == {"x": [work / "claims.md"]}
    assert found.scenarios == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("nothing", "page.md has no place for what was asked for\n  help: write <!-- claims of x -->"),
        ("<!-- claims of x -->\n", "page.md has no place for what was asked for"),
        (PLACE.format("fct_men"), "there is no measure called fct_men\n  help: the nearest: fct_mean"),
    ],
)
def test_a_page_that_cannot_be_filled_is_refused_before_anything_runs(work, text, said):
    (work / "page.md").write_text(text)
    done = narrows("reproduce", "x", "--write", "page.md")
    assert done.returncode == 2
    assert said in done.stderr
    assert not (work / "runs").exists()


def test_quick_runs_are_not_written(work):
    done = narrows("reproduce", "x", "--quick", "--write", "claims.md")
    assert done.returncode == 2
    assert "--write is for full runs" in done.stderr
