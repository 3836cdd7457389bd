"""The lab as a library: an experiment from a file, a text or a dict, and results that show themselves as tables."""

import json
import re
import shlex
import tomllib

import numpy as np
import pytest
from conftest import TWO_ARMS
from conftest import narrows as command

import narrows
from narrows import native, wording
from narrows.comparison import Comparison
from narrows.errors import EnvironmentLacks


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


UNNAMED = TWO_ARMS.replace('name = "two"\ntitle = "Two arms"\n', "").replace('end = "3s"', 'end = "20ms"')
NAMES_A_FILE = UNNAMED.replace('cdf = "web-search"', 'file = "sizes/two.cdf"')
SIZES = "1000 0\n2000 0.5\n9000 1\n"


@pytest.mark.parametrize("text", [UNNAMED, NAMES_A_FILE])
def test_a_text_without_a_name_has_the_same_one_every_time(folder, text):
    (folder / "sizes").mkdir()
    (folder / "sizes" / "two.cdf").write_text(SIZES)
    one, again, as_dict = (narrows.Experiment(source) for source in (text, text, tomllib.loads(text)))
    assert one.name.startswith("experiment-")
    for other in (again, as_dict):
        assert (other.name, other.identifier, other.file.name) == (one.name, one.name, f"{one.name}.toml")
        assert [plan.body for plan in other.plans] == [plan.body for plan in one.plans]
    assert {plan.body["experiment"] for plan in one.plans} == {one.name}
    assert narrows.Experiment(text.replace("20ms", "30ms")).name != one.name
    assert sorted(path.name for path in folder.iterdir()) == ["sizes"]


@pytest.mark.simulator
@pytest.mark.parametrize("settings", [{}, {"traffic.web.size": '{ file = "sizes/two.cdf" }'}])
def test_a_text_that_names_a_file_is_kept_with_it(folder, monkeypatch, settings):
    (folder / "sizes").mkdir()
    (folder / "sizes" / "two.cdf").write_text(SIZES)
    text = UNNAMED if settings else NAMES_A_FILE
    results = narrows.Experiment(text, settings=settings, seeds=1).run(out="my runs").join()
    assert results.notices == ()
    (folder / "elsewhere").mkdir()
    monkeypatch.chdir(folder / "elsewhere")
    (folder / "sizes" / "two.cdf").unlink()
    loaded = narrows.load(results.entry.identifier, out="../my runs")
    assert loaded.notices == ()
    done = command(*shlex.split(loaded.entry.command)[1:])
    assert (done.returncode, ": 0 new" in done.stdout) == (0, True)


@pytest.mark.parametrize(("name", "message"), [
    ("absent.cdf", r"^experiment:10:17: cannot read `absent.cdf`"), ("../out.cdf", "outside the experiment's folder"),
    ("/etc/hostname", "outside the experiment's folder"), ("link.cdf", "names link.cdf, which it cannot read"),
    ("sizes", "names sizes, which it cannot read"), ("sizes/absent/two", "absent/two"),
])  # fmt: skip
def test_a_file_that_a_text_may_not_name_is_refused(folder, name, message):
    (folder / "sizes").mkdir()
    (folder / "link.cdf").symlink_to("/etc/hostname")
    with pytest.raises(narrows.BadInput, match=message):
        narrows.Experiment(NAMES_A_FILE.replace("sizes/two.cdf", name))


def test_files_are_named_by_sets_and_sweeps_too(folder):
    for name in ("a.cdf", "b.cdf", "c.cdf"):
        (folder / name).write_text(SIZES)
    swept = UNNAMED.replace('cdf = "web-search"', 'file = "c.cdf"')
    swept += '[sweep]\n"traffic.web.size.file" = ["a.cdf", "b.cdf"]\n'
    experiment = narrows.Experiment(swept)
    assert len(experiment.plans) == 4
    assert sorted(experiment.given.files) == ["a.cdf", "b.cdf", "c.cdf"]
    narrows.Experiment(NAMES_A_FILE, settings={"traffic.web.size.file": "a.cdf"})


def test_a_file_that_changes_while_it_is_read_is_refused(folder, monkeypatch):
    """What is kept beside results is what was run."""
    path = folder / "two.toml"
    path.write_text(TWO_ARMS)
    expand = native.expand

    def expand_and_save(*arguments, **options):
        found = expand(*arguments, **options)
        path.write_text(TWO_ARMS.replace("0.6", "0.5"))
        return found

    monkeypatch.setattr(native, "expand", expand_and_save)
    with pytest.raises(narrows.BadInput, match=r"changed while it was read\n  help: "):
        narrows.Experiment("two.toml")
    assert narrows.Experiment("two.toml").content.text == path.read_text()


@pytest.mark.simulator
def test_a_text_needs_no_working_directory(folder, monkeypatch):
    (folder / "gone").mkdir()
    monkeypatch.chdir(folder / "gone")
    (folder / "gone").rmdir()
    experiment = narrows.Experiment(UNNAMED, seeds=1)
    assert experiment.place == ""
    with pytest.raises(narrows.BadInput, match="cannot write to the output folder runs"):
        experiment.run()
    results = experiment.run(out=folder / "runs").join()
    assert results.notices == ()
    assert narrows.load(experiment.identifier, out=folder / "runs").entry == results.entry


def test_a_text_needs_no_right_to_write_in_the_working_directory(monkeypatch):
    monkeypatch.chdir("/proc")  # where nobody may, not even root
    assert len(narrows.Experiment(UNNAMED).plans) == 2


def test_without_a_temporary_folder_the_environment_lacks_something(monkeypatch):
    import tempfile

    def lacking(*how, **more):
        raise FileNotFoundError(2, "No usable temporary directory")

    monkeypatch.setattr(tempfile, "mkdtemp", lacking)
    with pytest.raises(EnvironmentLacks, match="No usable temporary directory\n  help: name one in TMPDIR"):
        narrows.Experiment(UNNAMED)


@pytest.mark.parametrize("arguments", [
    *({"settings": value} for value in (5, "abc", ["ab"], [("a",)], [("a", "b", "c")], {"a": None}, {"\ud800": "1"})),
    *({"source": value} for value in ({"name": "\ud800"}, "name = '\ud800'\n", "\udc80.toml", {1: 2}, {"a": {2: 3}})),
    *({"backend": value} for value in ([], None, {})), {"quick": None},
])  # fmt: skip
def test_arguments_of_a_wrong_kind_are_refused(folder, arguments):
    with pytest.raises(narrows.BadInput, match=r"\n *help: "):
        narrows.Experiment(**{"source": TWO_ARMS, **arguments})


def test_a_mistake_in_the_settings_is_told_in_terms_of_the_argument(folder):
    with pytest.raises(narrows.BadInput, match=r"^settings: unknown key `ned`") as caught:
        narrows.Experiment(TWO_ARMS, settings={"run.ned": "1s"})
    assert "--set" not in str(caught.value)
    with pytest.raises(narrows.BadInput) as caught:
        narrows.Experiment(TWO_ARMS, settings={"run.end": "1s\n"})
    assert "--set" not in str(caught.value)


def test_a_dict_that_holds_itself_is_refused(folder):
    endless = {}
    endless["name"] = endless
    with pytest.raises(narrows.BadInput, match="the dict is no experiment"):
        narrows.Experiment(endless)


@pytest.mark.parametrize("arguments", [
    {"out": None}, {"out": 5}, {"out": "a\0b"}, {"out": "\ud800"}, {"ray_address": 5}, {"ray_address": 5, "on": "ray"},
])  # fmt: skip
def test_arguments_of_a_run_of_a_wrong_kind_are_refused(folder, arguments):
    experiment = narrows.Experiment(UNNAMED)
    with pytest.raises(narrows.BadInput, match=r"cannot be .*\n  help: "):
        experiment.run(**arguments)
    with pytest.raises(narrows.BadInput, match="out cannot be"):
        narrows.load("two", out=5)


@pytest.mark.parametrize("ask", [
    lambda made: narrows.load(5), lambda made: narrows.load(None), lambda made: narrows.load(["two"]),
    lambda made: made.measure(5), lambda made: made.measure("goodput", 5), lambda made: made.compare("two"),
])  # fmt: skip
def test_names_and_results_of_a_wrong_kind_are_refused(folder, made, ask):
    with pytest.raises(narrows.BadInput, match=r"\n  help: give "):
        ask(made)


def test_seeds_may_be_numpys_whole_numbers(folder):
    seeds = [narrows.Experiment(TWO_ARMS, seeds=given).seeds for given in (np.int64(4), np.arange(3, dtype=np.uint8))]
    assert [tuple(it) for it in seeds] == [(4,), (0, 1, 2)]
    for strange in (np.float64(4), np.array([1.5]), np.bool_(True), np.zeros((2, 2), dtype=int)):
        with pytest.raises(narrows.BadInput, match="seeds"):
            narrows.Experiment(TWO_ARMS, seeds=strange)


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
    with pytest.raises(narrows.BadInput, match=r"no measure called fct_smal\n  help: the nearest: .*fct_small_avg"):
        made.measure("fct_smal")
    with pytest.raises(narrows.BadInput, match="request_mean of cubic"):
        made.measure("request_mean", "cubic")
    with pytest.raises(narrows.BadInput, match=r"no scheme is called gemni\n  help: there are: cubic, gemini"):
        made.measure("fct_small_mean", "gemni")
    with pytest.warns(UserWarning, match="request_mean has no value: cubic: .*; gemini: "):
        assert made.measure("request_mean").is_empty()


def test_every_measure_that_a_comparison_shows_can_be_asked_for(made):
    shown = made.compare().table
    assert "rtt_mean" in shown["measure"].to_list()
    for name, mean in shown.select("measure", "other_mean").iter_rows():
        assert made.measure(name, "gemini")["value"].mean() == pytest.approx(mean)
    with pytest.raises(narrows.BadInput, match=r"no scheme is called gemni\n  help: there are: cubic, gemini"):
        made.measure("rtt_mean", "gemni")


def test_a_comparison_pairs_seeds(made):
    compared = made.compare()
    row = compared.table.row(0, named=True)
    assert (row["measure"], row["base"], row["other"], row["seeds"]) == ("fct_small_mean", "cubic", "gemini", 2)
    base, other = (made.measure("fct_small_mean", case)["value"] for case in ("cubic", "gemini"))
    assert row["ratio"] == pytest.approx((other / base).product() ** 0.5)
    assert made.compare(made).table["ratio"].drop_nulls().unique().to_list() == [1.0]
    with pytest.raises(narrows.BadInput, match="only one scheme"):
        Comparison([made.matching("cubic")])


def test_a_report_is_a_page_with_the_means_and_charts_of_each_case(made):
    page = made.report().read_text()
    assert page.startswith("<!DOCTYPE html>")
    assert "<title>Two arms · Narrows</title>" in page
    headline = page[page.index('<section id="headline">') :].partition("</section>")[0]
    rows = headline[headline.index("<tbody>") :].split("</tr>")
    for case, row in zip(("cubic", "gemini"), rows, strict=False):
        assert case in row
        for measure in ("fct_small_mean", "fct_mean"):
            assert f">{wording.number(made.measure(measure, case)['value'].mean())}<" in row
    charts = re.findall(r'<script type="application/json" id="spec-[^"]+">(.+?)</script>', page)
    assert len(charts) > 3
    for text in charts:
        assert any(json.loads(text)["datasets"].values()), "it has what it draws"


@pytest.mark.simulator
def test_a_comparison_says_where_controllers_had_nothing_to_respond_to(folder, made):
    light = {"traffic.web.arrivals.poisson.load": "0.01", "traffic.web.size": '{ fixed = "1KB" }'}
    calm = narrows.Experiment(UNNAMED, settings=light, seeds=1).run(out="calm").join()
    said = "no packet was marked or lost in any of these runs"
    assert any(text.startswith(said) for text in calm.compare().notices)
    assert not any(text.startswith(said) for text in made.compare().notices)
    # A loss of the warm-up, which ports do not count, and reordering that senders take for loss.
    star = {"hosts": 3, "host": {"profile": "linux-4.9", "receive-buffer": "1MB"}}
    small = star | {"fabric": {"rate": "1Gbps", "delay": "5ms", "limit": "100pkt"}}
    late = {"late": {"share": 0.01, "delay": "2ms"}}
    unordered = star | {"fabric": {"rate": "1Gbps", "delay": "100us", "limit": "4000pkt", "reorder": late}}
    for name, topology in (("small", small), ("late", unordered)):
        text = {
            "topology": {"star": topology},
            "traffic": [{"name": "bulk", "long": {"flows": 2}, "from": "h*", "to": "h1"}],
            "arm": [{"name": "newreno", "cc": "newreno"}, {"name": "cubic", "cc": "cubic"}],
            "run": {"end": "1200ms", "warmup": "1s", "drain": "0s", "seeds": "1"},
        }
        ran = narrows.Experiment(text).run(out=name).join()
        assert ran.ports["dropped_packets"].sum() == 0
        assert not any(text.startswith(said) for text in ran.compare().notices), name
