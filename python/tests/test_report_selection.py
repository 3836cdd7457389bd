"""Which configurations a page charts where there are many, and how they are told apart."""

import html
import itertools
import json
import re

import pytest
from conftest import TWO_ARMS, Driven, reported
from report_pages import SWEEP, charts

from narrows import api
from narrows.cli import output
from narrows.errors import BadInput
from narrows.experiment.whose import whose
from narrows.figures import palette
from narrows.report import contrast, page, selection
from narrows.runs.index import Member
from narrows.runs.store import Store

MANY = "".join(
    f'[[arm]]\nname = "arm-{number}"\ncc = "cubic"\nset = {{ "wan.limit" = "{300 + number}pkt" }}\n'
    for number in range(8)
)


@pytest.fixture
def many(folder, monkeypatch):
    """Results of eight arms, of which a page charts six."""
    monkeypatch.setattr(selection, "MAX_SCHEMES", 6)
    network, run = TWO_ARMS.partition("[[arm]]")[0], TWO_ARMS[TWO_ARMS.index("[run]") :]
    (folder / "many.toml").write_text(f"{network}{MANY}{run}".replace('"two"', '"many"').replace("1..=2", "1..=1"))
    return api.run("many.toml").join()


def charted(text):
    """Cases that the charts, and the table of drops, speak of."""
    charts = "".join(re.findall(r'<script type="application/json".*?</script>', text, re.DOTALL))
    drops = re.search(r'<section id="losses">.*?</section>', text, re.DOTALL).group()
    found = [set(re.findall(r"arm-\d", part)) for part in (charts, drops)]
    assert found[0] == found[1]
    return sorted(found[0])


def test_a_page_of_too_many_schemes_charts_the_first_and_says_how_others_are_seen(many):
    text = page.build(many, Store(api.RUNS)).read_text()
    assert charted(text) == [f"arm-{number}" for number in range(6)]
    assert "are of 6 of 8 configurations: the first 6 of 8 schemes." in text
    assert 'narrows report many --configurations "arm-7"' in text
    headline = re.search(r'<section id="headline">.*?</section>', text, re.DOTALL).group()
    assert set(re.findall(r"arm-\d", headline)) == {f"arm-{number}" for number in range(8)}


def test_a_page_of_some_cases_has_a_name_of_its_own(many):
    whole = page.build(many, Store(api.RUNS))
    some = page.build(many, Store(api.RUNS), cases="arm-[67]")
    assert some.parent == whole.parent
    assert some.name.startswith("report-many-arm-67+")
    text = some.read_text()
    assert charted(text) == ["arm-6", "arm-7"]
    assert "configurations:" not in text
    assert "arm-0" not in re.sub(r'<details class="source".*?</details>', "", text, flags=re.DOTALL)
    with pytest.raises(BadInput, match="no configuration of 'many' matches 'arm-9'"):
        page.build(many, Store(api.RUNS), cases="arm-9")


def members(schemes, *axes, missing=()):
    """Of a sweep, in the order of its file: schemes, then each axis in turn."""
    made = []
    for arm in schemes:
        own = [axis for axis in axes if (arm, axis[0]) not in missing]
        for values in itertools.product(*(values for _, values in own)):
            labels = tuple(zip((key for key, _ in own), values, strict=True))
            made.append(Member("0" * 32, arm, labels, (), (), 0, 0))
    return made


SCHEMES = tuple(f"s{number}" for number in range(8))


BUFFERING = ("fabric.buffering", ("input", "output"))


CONTROLLERS = ("cc", ("newreno", "cubic", "vegas"))


def test_of_a_sweep_every_scheme_is_charted_with_the_first_values():
    chosen = selection.of(members(SCHEMES, BUFFERING, CONTROLLERS))
    assert chosen.names == {f"{arm} · buffering=input · cc=newreno": arm for arm in SCHEMES}
    assert chosen.words == "all 8 schemes, with buffering=input and cc=newreno"
    assert chosen.left_out == ("buffering=output", "cc=cubic or vegas")
    assert chosen.example == "* · buffering=output · cc=vegas"


def test_axes_are_taken_whole_while_there_is_room_and_evenly_where_it_ends():
    chosen = selection.of(members(SCHEMES[:2], BUFFERING, ("load", tuple("123456789")), ("wan.delay", ("1ms", "2ms"))))
    assert list(chosen.names.values()) == [
        f"{arm} · buffering={where} · load={load}"
        for arm in SCHEMES[:2] for where in ("input", "output") for load in "159"
    ]  # fmt: skip
    assert chosen.shared == ("delay=1ms",)
    assert chosen.left_out == ("load=2, 3, 4, 6, 7 or 8", "delay=2ms")


def test_few_cases_are_all_charted_without_what_they_share():
    chosen = selection.of(members(SCHEMES[:2], BUFFERING, ("cc", ("bbr",))))
    assert list(chosen.names.values()) == [f"{arm} · buffering={at}" for arm in SCHEMES[:2] for at in BUFFERING[1]]
    assert chosen.example == ""


def test_a_scheme_that_lacks_an_axis_is_charted():
    chosen = selection.of(members(SCHEMES, BUFFERING, CONTROLLERS, missing={("s3", "cc")}))
    assert {name.partition(" ")[0] for name in chosen.names.values()} == set(SCHEMES)


def test_values_are_told_by_as_few_axes_as_decide():
    own = members(SCHEMES[:3], BUFFERING, CONTROLLERS)
    labels = contrast.labels(own)
    by_scheme = {member.case: "marks" if member.arm == "s1" else "–" for member in own}
    assert whose(by_scheme, labels) == (("marks", "s1"),)
    by_axis = {member.case: dict(member.axes)["cc"] for member in own}
    assert whose(by_axis, labels) == tuple((cc, f"cc={cc}") for cc in CONTROLLERS[1])
    by_both = {
        member.case: "200KB" if member.arm == "s2" and ("fabric.buffering", "input") in member.axes else "1MB"
        for member in own
    }
    assert whose(by_both, labels) == (
        ("1MB", "buffering=input: s0, s1; buffering=output: all"), ("200KB", "buffering=input: s2"),
    )  # fmt: skip
    loads = {f"{web} {db}": {"": "x", "web.load": web, "db.load": db} for web in "12" for db in "12"}
    assert whose({case: case[-1] for case in loads}, loads) == (("1", "db.load=1"), ("2", "db.load=2"))


@pytest.fixture(scope="module")
def sweep(tmp_path_factory):
    """Results of 36 configurations of six schemes with long names, and their page."""
    yield from reported(tmp_path_factory.mktemp("sweep"), SWEEP)


def test_charts_of_a_sweep_have_every_scheme_and_tables_every_configuration(sweep):
    results, path = sweep
    text = path.read_text()
    for chart in charts(path).values():
        numbers = set(re.findall(r"many words, number (\d)", json.dumps(chart)))
        assert numbers == set("123456")
    assert "of 12 of 36 configurations: all 6 schemes, with warmup=0s. Left out: limit=200pkt; warmup=10ms." in text
    for case in results.frames.cases:
        assert html.escape(case) in text
    assert "No port marked a packet, in the configurations that are charted." in text
    schemes = re.search(r"<h3>Schemes</h3>.*?</table>", text, re.DOTALL).group()
    assert schemes.count("<tr>") == 1 + 6
    assert "run.warmup" in schemes


def test_the_table_of_differences_is_by_value_and_as_narrow_as_the_page(browser, sweep):
    driven = Driven(browser, sweep[1])
    rows = driven.page.locator("table.differences tbody tr").all_inner_texts()
    assert [row.split("\t")[:3] for row in rows if "300pkt" in row or "200pkt" in row] == [
        ["wan.limit", "300pkt", "limit=300pkt"], ["200pkt", "limit=200pkt"],
    ]  # fmt: skip
    assert driven.page.evaluate("document.documentElement.scrollWidth") <= 1366
    table, main = (driven.page.locator(name).bounding_box() for name in ("table.differences", "main"))
    assert table["x"] + table["width"] <= main["x"] + main["width"]
    driven.page.close()


OVERPRINTED = """(kind) => Array.from(document.querySelectorAll("figure.chart svg")).flatMap((svg) => {
    const boxes = Array.from(svg.querySelectorAll(kind), (text) => [text.textContent, text.getBoundingClientRect()]);
    return boxes.flatMap(([one, a], place) => boxes.slice(place + 1)
        .filter(([, b]) => a.left < b.right && b.left < a.right && a.top + 2 < b.bottom && b.top + 2 < a.bottom)
        .map(([other]) => svg.closest("figure").id + ": " + one + " / " + other));
})"""


def test_titles_of_panels_stand_clear_of_each_other(browser, sweep):
    driven = Driven(browser, sweep[1])
    titles = ":is(.role-column-header, .role-row-header, .role-header, .role-title) text"
    assert driven.page.locator(f"#chart-queue-time svg {titles}").count() > 6
    assert driven.page.evaluate(OVERPRINTED, titles) == []
    assert driven.page.evaluate(
        """Array.from(document.querySelectorAll("figure.chart")).filter(
            (figure) => figure.scrollWidth > figure.clientWidth).map((figure) => figure.id)"""
    ) == []  # fmt: skip
    driven.page.close()


def test_the_legend_scrolls_within_a_fifth_of_the_window(browser, sweep, tmp_path):
    chip = '<button type="button" class="chip" data-case="x" aria-pressed="false">a scheme with a name</button>'
    path = tmp_path / "many.html"
    path.write_text(
        sweep[1].read_text().replace('<button type="button" class="reset"', 40 * chip + "<button class=reset")
    )
    driven = Driven(browser, path)
    height, whole = driven.page.evaluate(
        "['offsetHeight', 'scrollHeight'].map((name) => document.querySelector('.legend')[name])"
    )
    assert height <= 768 / 5 + 1 < whole
    driven.page.close()


@pytest.mark.parametrize("count", [3, 15, 16, 30])
def test_no_two_cases_of_a_chart_look_alike(count):
    cases = [f"scheme {number}" for number in range(count)]
    colours, dashes = palette.colours(cases), palette.dashes(cases)
    assert len({(colours[case], dashes[case]) for case in cases}) == count
    assert any(dashes.values()) == (len(set(colours.values())) < count)


def test_a_page_that_is_too_large_is_kept_and_said(many, monkeypatch, capsys):
    monkeypatch.setattr(page, "MAX_BYTES", 1000)
    path = page.build(many, Store(api.RUNS))
    output.begin()  # an earlier test may have asked for quiet
    output.tell_page(path, json=False)
    assert "more than 1.00 KB" in " ".join(capsys.readouterr().err.split())
    assert path.exists()
