"""The lab as a library: an experiment from a file, a text or a dict, and results that show themselves as tables."""

import tomllib

import nbclient
import nbformat
import pytest
from conftest import CHECKOUT, TWO_ARMS

import narrows
from narrows.comparison import Comparison


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Results of two arms, of which nothing is asserted that would change them."""
    out = tmp_path_factory.mktemp("library") / "runs"
    return narrows.Experiment(TWO_ARMS).run(out=out).join()


def test_an_experiment_is_a_file_a_text_or_a_dict(two_arms):
    given = [narrows.Experiment(source) for source in (two_arms, str(two_arms), TWO_ARMS, tomllib.loads(TWO_ARMS))]
    assert len({tuple(plan.hash for plan in one.plans) for one in given}) == 1
    assert {one.identifier for one in given} == {"two"}
    assert [path.name for path in two_arms.parent.iterdir()] == ["two.toml"], "what was given as a text leaves no file"


@pytest.mark.parametrize(("source", "message"), [
    ({"name": object()}, "the dict is no experiment"), (7, "7 is no experiment"),
    ("name = 1\narn = 2\n", r"^experiment:2:1: unknown key"),
])  # fmt: skip
def test_what_is_no_experiment_is_refused(folder, source, message):
    with pytest.raises(narrows.BadInput, match=message):
        narrows.Experiment(source)


def test_an_experiment_given_as_a_text_is_kept_beside_its_results(made):
    entry = made.entry
    assert entry.file.endswith("runs/experiments/two.toml")
    assert narrows.Experiment(entry.file).plans[0].hash == entry.members[0].hash
    assert made.notices == ()


def test_experiments_and_results_are_tables_when_printed(made):
    experiment = narrows.Experiment(TWO_ARMS)
    assert repr(experiment).startswith("Two arms: 2 plans × seeds 1..2\n")
    assert "fabric.aqm.threshold.mark-at" in repr(experiment)
    assert repr(made).startswith("Two arms: 2 plans, 2 seeds; means over seeds\n")
    assert made.table["case"].to_list() == ["cubic", "gemini"]
    for shown in (experiment, made, made.compare()):
        assert "<table" in shown._repr_html_()


def test_a_measure_is_a_row_for_each_case_and_seed(made):
    table = made.measure("fct_small_mean")
    assert table.select("case", "seed").rows() == [("cubic", 1), ("cubic", 2), ("gemini", 1), ("gemini", 2)]
    assert made.measure("fct_small_avg").equals(table), "the former name"
    assert made.measure("fct_small_mean", "gemini").equals(table[2:])
    with pytest.raises(narrows.BadInput, match=r"no measure called fct_smal\n  help: such as fct_small_"):
        made.measure("fct_smal")
    with pytest.raises(narrows.BadInput, match="request_mean of cubic"):
        made.measure("request_mean", "cubic")


def test_a_comparison_pairs_seeds(made):
    compared = made.compare()
    row = compared.table.row(0, named=True)
    assert (row["measure"], row["base"], row["other"], row["seeds"]) == ("fct_small_mean", "cubic", "gemini", 2)
    base, other = (made.measure("fct_small_mean", case)["value"] for case in ("cubic", "gemini"))
    assert row["ratio"] == pytest.approx((other / base).mean())
    assert made.compare(made).table["ratio"].drop_nulls().unique().to_list() == [1.0]
    with pytest.raises(narrows.BadInput, match="only one scheme"):
        Comparison([made.matching("cubic")])


def test_a_report_is_a_page(made):
    assert made.report().read_text().startswith("<!DOCTYPE html>")


@pytest.mark.filterwarnings("ignore")  # of Jupyter's own
def test_the_notebook_runs_and_plots(folder):
    read = nbformat.read(CHECKOUT / "examples" / "compare.ipynb", as_version=4)
    assert len(read.cells) == 5
    made = nbclient.NotebookClient(read, timeout=120, resources={"metadata": {"path": str(folder)}}).execute()
    shown = [kind for cell in made.cells for output in cell.outputs for kind in output.get("data", {})]
    assert shown.count("text/html") == 3, "the experiment, the results and the comparison are tables"
    assert "image/png" in shown
