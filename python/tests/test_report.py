"""The page itself, in a browser without a network."""

import html
import itertools
import json
import os
import re
from dataclasses import replace
from pathlib import Path

import altair
import polars as pl
import pytest
from altair.utils import schemapi
from conftest import TWO_ARMS, Driven, reported

import narrows
from narrows import api
from narrows.cli import output
from narrows.errors import BadInput
from narrows.experiment import Difference
from narrows.experiment.whose import whose
from narrows.figures import palette, queues, style
from narrows.report import bundle, contrast, page, selection
from narrows.results import Results
from narrows.runs.index import Member
from narrows.runs.store import Store

MISCHIEF = '</script><img src=x onerror="document.title=1">'


@pytest.fixture(scope="module")
def page_path(gemini):
    before = Path.cwd()
    os.chdir(gemini)
    try:
        return gemini / page.build(api.load("gemini-fig13-quick"), Store(api.RUNS))
    finally:
        os.chdir(before)


@pytest.fixture
def driven(browser, page_path):
    made = Driven(browser, page_path)
    yield made
    made.page.close()


def test_it_asks_for_nothing_and_complains_of_nothing(driven, page_path):
    assert driven.asked == [page_path.as_uri()]
    assert driven.complaints == []


def test_no_chart_is_wider_than_its_column(driven):
    driven.page.set_viewport_size({"width": 1280, "height": 768})
    widths = driven.page.evaluate(
        """Array.from(document.querySelectorAll("figure.chart")).map(
            (figure) => [figure.id, figure.scrollWidth - figure.clientWidth])"""
    )
    assert len(widths) == 7
    assert [name for name, over in widths if over > 0] == []


def test_distributions_have_a_legend_and_the_backlog_over_time_an_axis_with_a_title(driven):
    for name in ("distribution", "queue-share"):
        assert "gemini" in driven.page.locator(f"#chart-{name} svg .role-legend").first.inner_html()
    titles = driven.page.locator("#chart-queue-time svg .role-axis-title").all_text_contents()
    assert "backlog" in titles


def test_every_chart_is_drawn_and_none_is_wider_than_a_small_laptop(driven):
    charts = driven.page.evaluate(
        """Array.from(document.querySelectorAll("figure.chart")).map((figure) => {
            const box = figure.querySelector("svg")?.getBoundingClientRect();
            return [figure.id, box?.width ?? 0, box?.height ?? 0, figure.querySelectorAll("svg path").length];
        })"""
    )
    assert [chart[0] for chart in charts] == [
        "chart-completion", "chart-distribution", "chart-slowdown", "chart-queue-time", "chart-queue-share",
        "chart-utilisation", "chart-recovery",
    ]  # fmt: skip
    for name, width, height, paths in charts:
        assert 300 < width <= 1066, name
        assert height > 150, name
        assert paths > 10, name
    assert driven.page.evaluate("document.documentElement.scrollWidth") <= 1366


def _opacities(driven, chart):
    return driven.page.evaluate(
        f"""Array.from(document.querySelectorAll("#chart-{chart} svg :is(.mark-line, .mark-rect) path"))
            .map((path) => Number(path.getAttribute("opacity") ?? 1))"""
    )


@pytest.mark.parametrize("chart", ["distribution", "completion", "queue-share"])
def test_a_click_in_the_legend_isolates_an_arm_everywhere(driven, chart):
    assert min(_opacities(driven, chart)) > 0.5
    chip = driven.page.locator('.chip[data-case="gemini"]')
    chip.click()
    driven.page.wait_for_timeout(200)
    faint = [opacity for opacity in _opacities(driven, chart) if opacity < 0.2]
    assert 0 < len(faint) < len(_opacities(driven, chart))
    assert chip.get_attribute("aria-pressed") == "true"
    driven.page.locator(".reset").click()
    driven.page.wait_for_timeout(200)
    assert min(_opacities(driven, chart)) > 0.5


def test_the_pointer_shows_numbers(driven):
    driven.page.locator("#completion").scroll_into_view_if_needed()
    driven.page.locator("#chart-completion svg .mark-rect path").nth(3).hover()
    driven.page.wait_for_selector("#vg-tooltip-element.visible")
    assert "ms" in driven.page.locator("#vg-tooltip-element").inner_text()


def test_the_contents_follow_the_reader(driven):
    driven.page.get_by_role("link", name="Drops and marks").click()
    driven.page.wait_for_selector('.contents a.here:has-text("Drops and marks")')
    bar = driven.page.locator(".contents").bounding_box()
    assert bar["y"] == 0


def test_every_string_is_escaped(browser, folder):
    path = folder / "mischief.toml"
    hostile = MISCHIEF.replace('"', '\\"')
    text = TWO_ARMS.replace('title = "Two arms"', f'title = "{hostile}"').replace(
        'name = "cubic"', f'name = "{hostile}"'
    )
    path.write_text(text)
    results = api.run(path).join()
    setting = Difference("x", tuple((case, MISCHIEF) for case in results.frames.cases), declared=True)
    results.entry = replace(results.entry, differences=(*results.entry.differences, setting))
    written = page.build(results, Store(api.RUNS)).resolve()
    assert MISCHIEF not in written.read_text()
    driven = Driven(browser, written)
    assert driven.complaints == []
    assert driven.page.locator("img").count() == 0
    assert driven.page.title().startswith("</script>")
    assert MISCHIEF in driven.page.locator("h1").inner_text()
    driven.page.close()


def test_it_names_no_address_and_is_small(page_path):
    text = page_path.read_text()
    ours = text.replace(str(bundle.library()), "")
    assert "http:" not in ours
    assert "https:" not in ours
    assert not re.search(r"<(link|iframe|object|img)\b|<script[^>]*\bsrc=|@import|url\(", ours)
    assert len(text) < 4_000_000


def test_it_says_what_was_compared_and_how_it_was_made(page_path):
    text = page_path.read_text()
    for words in (
        "narrows run experiments/gemini/fig13/experiment.toml --quick",
        "smallest and largest of 3 seeds",
        "quick run",
        narrows.version(),
        "gem-072",
        "99th percentile of the completion time of flows under 100 KB.",
        "relative to this machine's event-heap benchmark",
        "<dt>simulated</dt><dd>4 s</dd>",
        "%, busiest port",
        "In the simulator the same version, plan and seed give the same results to the byte.",
        "A scheme is one of the alternatives compared",
        "tor-a1 → border-a",
        ">Utilisation by kind of port. Realistic traffic between two datacenters at 1 Gbit/s. 48 hosts, ",
    ):
        assert words in text, words
    assert '<tr class="undeclared">' not in text


def test_a_difference_that_no_arm_declares_stands_out(two_arms):
    results = api.run(two_arms).join()
    pacing = Difference("host.pacing", (("cubic", "off"), ("gemini", "on")), declared=False)
    results.entry = replace(results.entry, differences=(*results.entry.differences, pacing))
    text = page.render(results, [])
    assert "1 difference is not declared" in text
    assert len(re.findall(r'<tr class="undeclared">', text)) == 1


def charts(path):
    """The specifications of a page's charts, by name."""
    found = re.findall(r'id="spec-([\w-]+)">(.*?)</script>', path.read_text(), re.DOTALL)
    return {name: json.loads(text) for name, text in found}


def test_every_chart_is_one_by_the_schema_of_vega_lite(page_path, lossless):
    """The page's code leaves that out while it draws: it takes half of the time."""
    specifications = [spec for path in (page_path, lossless[1]) for spec in charts(path).values()]
    assert len(specifications) >= 7 + 2
    for specification in specifications:
        schemapi.validate_jsonschema(specification, altair.load_schema())


def test_charts_that_share_their_parts_are_those_that_copy_them(gemini, monkeypatch):
    monkeypatch.chdir(gemini)
    frames = api.load("gemini-fig13-quick").frames
    with style.assembling():
        shared = [chart.specification for chart in page._charts(frames)]
    assert shared == [chart.specification for chart in page._charts(frames)]
    chart = altair.Chart().mark_bar(color="red")
    with style.assembling():
        assert (chart.copy().mark is chart.mark, chart.copy(deep=True).mark is chart.mark) == (True, False)
    assert chart.copy().mark is not chart.mark


def test_an_experiment_without_series_or_marks_has_a_page(folder, two_arms, monkeypatch):
    results = api.run(two_arms, seeds="1..=1").join()
    scan = Results.scan
    monkeypatch.setattr(Results, "scan", lambda self, table: scan(self, table).filter(pl.lit(table != "series")))
    text = page.build(results, Store(api.RUNS)).read_text()
    assert "No queues were sampled" in text
    assert "One seed only" in text
    assert 'href="#claims"' not in text
    assert 'id="claims"' not in text
    assert 'href="#completion"' in text


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


SWEEP = """
name = "sweep"
title = "Six schemes, a sweep over two axes"
[topology.two-datacenters]
servers = 2
fabric = { rate = "100Mbps" }
wan = { rate = "100Mbps", delay = "2ms", limit = "300pkt" }
[[traffic]]
name = "bulk"
from = "a1-1"
to = "b1-1"
long = { flows = 2 }
[[traffic]]
name = "web"
between = "datacenters"
arrivals = { poisson = { load = 0.3, of = "wan" } }
size = { fixed = "20KB" }
[sample]
queues = "10ms"
goodput = "10ms"
[sweep]
"wan.limit" = ["300pkt", "200pkt", "100pkt"]
"run.warmup" = ["0s", "10ms"]
[run]
end = "300ms"
seeds = "1..=1"
""" + "".join(
    f'[[arm]]\nname = "a scheme with a name of many words, number {number}"\ncc = "{cc}"\n'
    f'set = {{ "wan.delay" = "{number}ms" }}\n'
    for number, cc in enumerate(("cubic", "bbr", "vegas", "dctcp", "newreno", "gemini"), 1)
)


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


def test_a_page_that_is_too_large_is_kept_and_said(many, monkeypatch, capsys):
    monkeypatch.setattr(page, "MAX_BYTES", 1000)
    path = page.build(many, Store(api.RUNS))
    output.begin()  # an earlier test may have asked for quiet
    output.tell_page(path, json=False)
    assert "more than 1.00 KB" in " ".join(capsys.readouterr().err.split())
    assert path.exists()


@pytest.mark.parametrize("damage", [
    lambda kept: kept[: len(kept) // 2], lambda kept: b"", lambda kept: kept.replace(b"embed", b"embad"),
    lambda kept: b"\xff\xfe", lambda kept: kept.partition(b"\n")[2],
], ids=["cut", "empty", "changed", "no text", "no digest"])  # fmt: skip
def test_a_damaged_cache_of_scripts_is_made_anew(tmp_path, monkeypatch, damage):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    made = []
    monkeypatch.setattr("vl_convert.javascript_bundle", lambda *_, **__: made.append(1) or "// embed\nembed();")
    whole = bundle.library.__wrapped__()
    (kept,) = (tmp_path / "narrows").iterdir()
    assert bundle.library.__wrapped__() == whole
    assert len(made) == 1, "the second time it is read"
    before = kept.read_bytes()
    kept.write_bytes(damage(before))
    assert bundle.library.__wrapped__() == whole
    assert (len(made), kept.read_bytes()) == (2, before)


def test_a_cache_that_cannot_be_written_is_done_without(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    monkeypatch.setattr("vl_convert.javascript_bundle", lambda *_, **__: "embed();")
    assert bundle.library.__wrapped__() == "embed();"


PROGRAMS = """
title = "A program beside a queue"
[topology.two-datacenters]
servers = 4
fabric = { rate = "1Gbps", delay = "1us", limit = "60KB", buffering = "input" }
wan = { rate = "1Gbps", delay = "1ms", limit = "2000pkt" }
[[traffic]]
name = "ring"
program.generate.ring-all-reduce = { bytes = "320KB", ranks = 16, repeats = 3, compute = "9ms" }
program.sigma = 0.1
[[traffic]]
name = "into-one"
long = { flows = 6, stop = "100ms" }
from = "a2-*"
to = "a1-1"
[[arm]]
name = "plain"
cc = "cubic"
[[arm]]
name = "pauses"
cc = "cubic"
set = { "fabric.flow-control" = { pfc = { xoff = "40KB", xon = "30KB" } } }
[[arm]]
name = "output"
cc = "cubic"

[arm.set]
"fabric.buffering" = "output"
"fabric.limit" = "60KB"
"wan.limit" = "5pkt"
"wan.rate" = "300Mbps"
"fabric.flow-control" = { pfc = { xoff = "59KB", xon = "30KB", may-lose = true } }

[[arm]]
name = "quiet"
cc = "cubic"
set = { "fabric.limit" = "99MB", "fabric.flow-control" = { pfc = { xoff = "90MB", xon = "80MB" } } }
[[arm]]
name = "loses"
cc = "cubic"
set = { "fabric.flow-control" = { pfc = { xoff = "59KB", xon = "30KB", may-lose = true } } }
[run]
end = "1s"
warmup = "10ms"
seeds = "1..=2"
"""
PAUSED = ("pauses", "output", "loses")
"""Its schemes in which ports are paused."""


@pytest.fixture(scope="module")
def lossless(tmp_path_factory):
    """Results of a program with and without flow control, and their page."""
    base = tmp_path_factory.mktemp("lossless")
    (base / "lossless.toml").write_text(PROGRAMS)
    results = api.run(base / "lossless.toml", out=base / "runs").join()
    return results, page.build(results, Store(base / "runs"))


def cells(path, section):
    """Rows of the tables in a section of the page, each cell as its text and the small text below it."""
    part = re.search(rf'<section id="{section}">.*?</section>', path.read_text(), re.DOTALL).group()
    made = []
    for row in re.findall(r"<tr[^>]*>(.*?)</tr>", part, re.DOTALL):
        parts = [re.split("<small>|<br>", cell) for cell in re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row, re.DOTALL)]
        made.append(
            [
                tuple(html.unescape(re.sub("<[^>]*>", "", text.replace("<div>", " "))).strip() for text in cell)
                for cell in parts
            ]
        )
    return made


def three_digits(text):
    """A number of the page, and how far it may be from what it rounds."""
    value = float(text.replace("\u202f", ""))
    return pytest.approx(value, rel=0.006)


def test_pauses_are_told_by_kind_of_port_as_the_table_of_ports_has_them(lossless):
    results, path = lossless
    rows = {(row[0][0], row[1][0]): row[2:] for row in cells(path, "pauses") if len(row) == 7}
    assert rows.pop(("scheme", "ports")) == [
        ("With flow control", "ever paused"), ("Paused", "% of the time"), ("Most paused port", "% of the time"),
        ("Longest pause", "µs"), ("Pause frames", "per run"),
    ]  # fmt: skip
    # Where a port pauses whatever fills it, the WAN may be paused, too.
    assert set(rows) == {(case, kind) for case in PAUSED for kind in ("hosts", "fabric")} | {("output", "WAN")}
    for (case, kind), (count, share, most, longest, sent) in rows.items():
        role, other = {"hosts": ("host", "edge"), "fabric": ("fabric", "fabric"), "WAN": ("wan", "wan")}[kind]
        ports = results.ports.filter((pl.col("case") == case) & (pl.col("role") == role)).to_dicts()
        own = {name: [port for port in ports if port["name"] == name] for name in {port["name"] for port in ports}}
        paused = {name: sum(port["paused_ns"] for port in seeds) for name, seeds in own.items()}
        measured = ports[0]["measured_ns"]
        assert count == (str(len(own)), str(sum(time > 0 for time in paused.values())))
        assert 100 * sum(paused.values()) / (measured * len(ports)) == three_digits(share[0])
        assert 100 * max(paused.values()) / (2 * measured) == three_digits(most[0])
        if max(paused.values()) == 0:
            # Counted at the output only full switches pause, and what they pause is hosts.
            assert (case, kind) in {("output", "fabric"), ("output", "WAN")}
            assert (share[0], most, longest, sent[0]) == ("0", ("0", ""), ("0", ""), "0")
            continue
        assert paused[most[1].replace(" → ", "->")] == max(paused.values())
        assert max(port["longest_pause_ns"] for port in ports) / 1000 == three_digits(longest[0])
        assert longest[1].replace(" → ", "->") in own
        frames = results.ports.filter((pl.col("case") == case) & (pl.col("role") == other))["pause_frames"].sum()
        assert frames / 2 == three_digits(sent[0])
        assert frames > 0


def test_the_most_paused_ports_have_names_and_shares(lossless):
    results, path = lossless
    heat = [row for row in cells(path, "pauses") if len(row) == 2 + len(PAUSED)]
    assert heat[0] == [("port",), ("kind",), *((case,) for case in PAUSED)]
    times = results.ports.filter(pl.col("case").is_in(PAUSED))
    order = times.group_by("name").agg(pl.col("paused_ns").sum()).filter(pl.col("paused_ns") > 0)
    named = order.sort(["paused_ns", "name"], descending=[True, False])["name"].to_list()
    assert [row[0][0].replace(" → ", "->") for row in heat[1:]] == named[:12]
    for (name,), _, *shares in heat[1:]:
        for case, (text,) in zip(PAUSED, shares, strict=True):
            if "border-a → border-b" in name or "border-b → border-a" in name:
                assert (text == "–") == (case != "output")
                continue
            own = times.filter((pl.col("case") == case) & (pl.col("name") == name.replace(" → ", "->")))
            assert 100 * own["paused_ns"].sum() / own["measured_ns"].sum() == three_digits(text)
    assert len(named) <= 12 or f"of {len(named)} that were paused" in path.read_text()


def test_who_was_never_paused_is_told_in_a_line_and_drops_of_switches_that_pause_by_port(lossless):
    results, path = lossless
    rows = cells(path, "pauses")
    quiet = results.ports.filter((pl.col("case") == "quiet") & pl.col("role").is_in(["host", "fabric"]))
    assert [row for row in rows if len(row) == 2] == [[("quiet",), (f"none of {len(quiet) // 2} ports was paused",)]]
    # The WAN's ports drop of themselves: they have a limit, and pause nobody.
    assert results.ports.filter((pl.col("case") == "output") & (pl.col("role") == "wan"))["dropped_packets"].sum() > 0
    drops = [row for row in rows if len(row) == 3 and row[0][0] != "scheme"]
    assert [row[0] for row in drops] == [("output",), ("loses",)]
    for (case,), dropped, where in drops:
        inside = results.ports.filter((pl.col("case") == case) & pl.col("role").is_in(["edge", "fabric"]))
        assert dropped == (str(inside["dropped_packets"].sum()),)
        by_port = inside.group_by("name").agg(pl.col("dropped_packets").sum())
        first, packets = by_port.sort(["dropped_packets", "name"], descending=[True, False]).row(0)
        assert where[0].startswith(f"{first.replace('->', ' → ')} (port's limit {packets})")
        assert packets > 0


def test_a_page_without_pauses_says_so_and_one_without_flow_control_says_nothing(lossless, without_charts):
    results, _ = lossless
    text = page.render(results.matching("quiet"), [])
    assert "<b>No port was paused</b>, with any of 1 scheme with flow control." in text
    assert '<p class="note">Nothing. Ports that' in text
    assert "ever paused" not in text
    text = page.render(results.matching("plain"), [])
    assert 'id="pauses"' not in text
    assert 'href="#pauses"' not in text


def test_the_table_of_programs_has_what_the_table_of_ranks_has(lossless):
    results, path = lossless
    rows = cells(path, "programs")
    assert [cell[0] for cell in rows[0]] == [
        "scheme", "program", "controller", "Ranks", "Execution time", "First rank ended after", "Computing", "Waiting",
        "Waiting",
    ]  # fmt: skip
    assert [row[0][0] for row in rows[1:]] == ["plain", "pauses", "output", "quiet", "loses"]
    for (case,), program, controller, count, *numbers in rows[1:]:
        assert (program, controller, count) == (("ring",), ("cubic",), ("16",))
        seeds = [results.ranks.filter((pl.col("case") == case) & (pl.col("seed") == seed)) for seed in (1, 2)]
        times = [
            [(rank["end_ns"] - rank["start_ns"], rank["compute_ns"], rank["wait_ns"]) for rank in seed.to_dicts()]
            for seed in seeds
        ]
        measured = [
            [max(lasted for lasted, _, _ in ranks) / 1e6 for ranks in times],
            [min(lasted for lasted, _, _ in ranks) / 1e6 for ranks in times],
            [sum(computed for _, computed, _ in ranks) / 16e6 for ranks in times],
            [sum(waited for _, _, waited in ranks) / 16e6 for ranks in times],
            [100 * sum(rank[2] for rank in ranks) / sum(rank[0] for rank in ranks) for ranks in times],
        ]
        for (text, interval), values in zip(numbers, measured, strict=True):
            assert sum(values) / 2 == three_digits(text)
            low, high = interval.split(" – ")
            assert (min(values), max(values)) == (three_digits(low), three_digits(high))


def test_programs_are_drawn_rank_by_rank(browser, lossless):
    results, path = lossless
    driven = Driven(browser, path)
    assert not [text for text in driven.complaints if "WARN" not in text]
    titles = driven.page.locator("#chart-programs svg .role-title-text").all_text_contents()
    assert titles == ["Execution time of ring", "Computing, mean of ranks", "Waiting, mean of ranks"]
    marks = driven.page.locator("#chart-ranks svg .mark-rect path")
    assert marks.count() == 2 * 16 * len(results.frames.cases)
    heights = [box["height"] for box in (marks.nth(place).bounding_box() for place in range(32))]
    computed, waited = heights[:16], heights[16:]
    ranks = results.ranks.filter(pl.col("case") == "plain").group_by("rank").agg(pl.col("compute_ns", "wait_ns").mean())
    ranks = ranks.sort("rank")
    scale = sum(computed + waited) / (ranks["compute_ns"].sum() + ranks["wait_ns"].sum())
    for column, drawn in (("compute_ns", computed), ("wait_ns", waited)):
        assert drawn == pytest.approx([scale * value for value in ranks[column]], abs=1.0)
    driven.page.close()


ALIKE = """
name = "alike"
title = "Flows of one size"
[topology.dumbbell]
pairs = 2
fabric = { rate = "100Mbps", delay = "1ms", limit = "100pkt" }
[[traffic]]
name = "web"
from = "left-*"
to = "right-*"
arrivals = { poisson = { load = 0.5, of = "fabric" } }
size = { fixed = "150KB" }
[[arm]]
name = "cubic"
cc = "cubic"
[[arm]]
name = "vegas"
cc = "vegas"
[run]
end = "10s"
seeds = "1..=3"
"""


@pytest.fixture(scope="module")
def alike(tmp_path_factory):
    """Results of flows that have one size, of medium class, and their page."""
    yield from reported(tmp_path_factory.mktemp("alike"), ALIKE)


def test_slowdown_of_flows_of_one_size_is_a_bar_for_each_scheme_with_its_interval(alike):
    results, path = alike
    spec = charts(path)["slowdown"]
    panel = spec["hconcat"][0]
    assert panel["title"]["text"] == ["Slowdown of flows of 150 KB, p50"]
    name = panel.get("data", panel["layer"][0].get("data"))["name"]
    data = spec["datasets"][name]
    assert [row["case"] for row in data] == ["cubic", "vegas"]
    by_seed = results.frames.flows.group_by("case", "seed").agg(pl.col("slowdown").drop_nulls().sort())
    for row in data:
        own = [values[-(-len(values) // 2) - 1] for case, _, values in by_seed.iter_rows() if case == row["case"]]
        assert row["mean"] == pytest.approx(sum(own) / 3, rel=1e-4)
        assert (row["low"], row["high"]) == pytest.approx((min(own), max(own)), rel=1e-4)


def test_panels_without_data_are_left_out(alike):
    drawn = charts(alike[1])
    titles = json.dumps(drawn["completion"]) + json.dumps(drawn["distribution"])
    assert "Medium flows, mean" in titles
    assert "All flows" in titles
    for absent in ("Small flows", "Large flows", "All flows, mean"):
        assert absent not in titles


@pytest.mark.parametrize("values", [[2.1, 4.8], [8.51, 9.73], [3.0, 3.0], [0.0409, 0.0411], [17.0, 17.6], [0.3, 9e4]])
def test_a_logarithmic_axis_has_at_least_three_labels_between_its_ends(values):
    column = pl.Series(values)
    low, high = style.log_domain(column).domain
    assert low <= min(values) <= max(values) <= high
    ticks = [tick for tick in style.log_axis(column)["values"] if low <= tick <= high]
    assert 3 <= len(ticks) <= 12
    assert ticks == sorted(set(ticks))


def test_axes_of_times_are_labelled_and_say_their_unit(browser, alike):
    driven = Driven(browser, alike[1])
    axes = driven.page.evaluate(
        """Array.from(document.querySelectorAll("#chart-distribution svg .role-axis")).map((axis) => [
            axis.querySelector(".role-axis-title")?.textContent ?? "",
            Array.from(axis.querySelectorAll(".role-axis-label text")).filter(
                (label) => label.textContent && label.getAttribute("opacity") !== "0").length])"""
    )
    labels = [count for title, count in axes if title == "completion time, ms"]
    assert len(labels) == 2
    assert min(labels) >= 2
    driven.page.close()


MIXED = """
name = "mixed"
title = "Datagrams beside TCP, an outage, and a wire that loses"
[topology.two-datacenters]
servers = 2
fabric = { rate = "100Mbps" }
wan = { rate = "100Mbps", delay = "2ms", limit = "30pkt", loss = { bernoulli = { loss = 0.001 } } }
[[traffic]]
name = "web"
between = "datacenters"
arrivals = { poisson = { load = 0.4, of = "wan" } }
size = { fixed = "60KB" }
[[traffic]]
name = "bulk"
from = "a1-1"
to = "b1-1"
long = { flows = 1 }
[[traffic]]
name = "voice"
from = "a1-2"
to = "b1-2"
transport = { datagram = { rate = "70Mbps" } }
long = { flows = 1, start = "200ms", stop = "1500ms" }
[[traffic]]
name = "blocks"
from = "b2-1"
to = "a2-1"
transport = { datagram = { rate = "50Mbps" } }
arrivals = { poisson = { rate = "40/s" } }
size = { fixed = "30KB" }
[[event]]
name = "cut"
at = "1s"
link = "wan"
outage = "50ms"
[[arm]]
name = "cubic"
cc = "cubic"
[[arm]]
name = "dctcp"
cc = "dctcp"
set = { "wan.aqm" = { threshold = { mark-at = "20pkt" } } }
[run]
end = "2s"
seeds = "1..=2"
[sample]
goodput = "20ms"
queues = "10ms"
watch = ["border-a->border-b", "tor-a1->border-a", "tor-a2->border-a", "border-b->tor-b1"]
"""


@pytest.fixture(scope="module")
def mixed(tmp_path_factory):
    """Results with datagrams and an outage, and their page."""
    yield from reported(tmp_path_factory.mktemp("mixed"), MIXED)


def number(text):
    return float(text.replace("\u202f", ""))


def test_flows_that_met_an_outage_are_told_from_the_others(mixed):
    results, path = mixed
    rows = [row for row in cells(path, "changes")[1:] if len(row) == 6]
    flows = results.counted_flows.filter(pl.col("workload").str.starts_with("web") | (pl.col("workload") == "blocks"))
    flows = flows.with_columns(pl.col("events_met").is_not_null().alias("met")).collect()
    assert [row[1][0] for row in rows] == 2 * ["met a change", "met none"]
    for place, (case, met) in enumerate(itertools.product(("cubic", "dctcp"), (True, False))):
        own = flows.filter((pl.col("case") == case) & (pl.col("met") == met))
        assert number(rows[place][2][0]) == len(own) > 0
        assert number(rows[place][3][0]) == (~own["finished"]).sum()
        by_seed = own.group_by("seed").agg(pl.col("fct_ns").mean() / 1e6)["fct_ns"].drop_nulls()
        assert number(rows[place][4][0]) == pytest.approx(by_seed.mean(), rel=5e-3)
    assert number(rows[0][4][0]) > number(rows[1][4][0])


def test_packets_lost_in_an_outage_are_told_from_those_lost_on_the_wire(mixed):
    results, path = mixed
    rows = [row for row in cells(path, "changes") if len(row) == 4][1:]
    for row, case in zip(rows, ("cubic", "dctcp"), strict=True):
        ports = results.ports.filter(pl.col("case") == case)
        sums = ports.group_by("seed").agg(pl.col("^(dropped|lost)_.*packets$").sum().cast(pl.Float64)).mean()
        lost, outage = sums["lost_on_wire_packets"][0], sums["lost_in_outage_packets"][0]
        expected = [sums["dropped_outage_packets"][0], outage, lost - outage]
        assert min(expected) > 0
        assert [number(cell[0]) for cell in row[1:]] == pytest.approx(expected, rel=6e-3)


def test_no_backtick_is_left_on_a_page(mixed):
    text = re.sub(r"<(script|style).*?</\1>", "", mixed[1].read_text(), flags=re.DOTALL)
    assert "`" not in text
    assert "<code>border-a-&gt;border-b</code>" in text


def test_the_network_is_told_from_the_plan_and_by_scheme_where_it_differs(mixed):
    rows = {row[0][0]: [" ".join(cell) for cell in row[1:]] for row in cells(mixed[1], "network")}
    heads = rows["one-way"]
    wan = dict(zip(heads, rows["WAN links"], strict=True))
    assert (wan["links"], wan["rate"], wan["delay"], wan["buffer"]) == ("2", "100Mbps", "2ms", "30pkt")
    assert wan["AQM and congestion points"] == "no cubic threshold: mark-at 20pkt dctcp"
    assert "flow control" not in heads
    assert rows["nodes"] == ["8 hosts in 4 racks of 2 datacenters; switches: 4 tor, 2 border"]
    assert rows["hosts"] == ["TCP of linux-4.9, MTU 1500 B"]
    (rtt,) = rows["base RTT"]
    assert re.search(r"4\.\d+ ms in different datacenters", rtt)


def test_flow_control_is_told_with_its_thresholds_and_whose_it_is(lossless):
    rows = {row[0][0]: [" ".join(cell) for cell in row[1:]] for row in cells(lossless[1], "network")}
    fabric = dict(zip(rows["one-way"], rows["links of the fabric"], strict=True))
    assert "pfc, xoff 40KB, xon 30KB, of each input pauses" in fabric["flow control"]
    assert "pfc, xoff 59KB, xon 30KB, may lose, of each output output" in fabric["flow control"]
    assert "60KB for each link at the switch that it leads to" in fabric["buffer"]


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


def test_datagrams_are_told_by_what_was_lost_of_them(mixed):
    results, path = mixed
    rows = {(row[0][0], row[1][0]): row for row in cells(path, "datagrams")[1:]}
    assert set(rows) == set(itertools.product(("cubic", "dctcp"), ("blocks", "voice")))
    flows = results.flows.filter(pl.col("transport") == "datagram")
    for (case, traffic), row in rows.items():
        own = flows.filter((pl.col("case") == case) & (pl.col("workload") == traffic))
        assert number(row[2][0]) == len(own)
        lost = []
        for seed in (1, 2):
            part = own.filter(pl.col("seed") == seed)
            sent = (
                part["size_bytes"].sum()
                if traffic == "blocks"
                else (part["received_bytes"] + part["dropped_bytes"]).sum()
            )
            lost.append(100 * (1 - part["received_bytes"].sum() / sent))
        assert number(row[5][0]) == pytest.approx(sum(lost) / 2, rel=6e-3)
        assert row[5][0] != "0"
        whole = own["finished"].sum()
        assert row[3][0].partition(" ")[0] == ("–" if traffic == "voice" else str(whole))


def test_a_curve_of_completion_times_ends_at_the_share_that_finished(mixed):
    results, path = mixed
    spec = charts(path)["distribution"]
    drawn = [row for rows in spec["datasets"].values() for row in rows if "share" in row]
    flows = results.counted_flows.filter(pl.col("workload") != "bulk", pl.col("workload") != "voice").collect()
    for case in ("cubic", "dctcp"):
        own = flows.filter(pl.col("case") == case)
        share = own["finished"].mean()
        assert share < 0.99
        assert max(row["share"] for row in drawn if row["case"] == case) == pytest.approx(share, rel=1e-4)


def test_datagrams_have_no_controller_and_no_retransmissions(mixed):
    results, path = mixed
    text = path.read_text()
    rows = {(row[0][0], row[1][0]): row for row in cells(path, "long")}
    for case in ("cubic", "dctcp"):
        assert [cell[0] for cell in rows[case, "voice"]][2] == "datagrams"
        assert [cell[0] for cell in rows[case, "voice"]][-2:] == ["–", "–"]
        assert number(rows[case, "bulk"][-1][0]) >= 0
    for section in ("compared", "headline", "long"):
        assert not [
            row for row in cells(path, section) if any(re.search(r"\bnone\b", part) for cell in row for part in cell)
        ]
    assert '"controller": "none"' not in json.dumps(charts(path))
    tcp = results.frames.flows.filter(pl.col("controller").cast(pl.String) != "none", pl.col("case") == "cubic")
    by_seed = tcp.group_by("seed").agg((1000 * pl.col("timeouts").sum() / pl.len()).alias("timeouts"))
    drawn = [
        row for rows in charts(path)["recovery"]["datasets"].values() for row in rows if row.get("case") == "cubic"
    ]
    assert by_seed["timeouts"].mean() in [pytest.approx(row["mean"], rel=1e-4) for row in drawn]
    assert "Datagrams" in text


def test_every_port_that_was_chosen_to_be_watched_is_drawn(mixed, monkeypatch):
    monkeypatch.setattr(queues, "FEW", 1)
    assert len(queues.ports_that_matter(mixed[0].frames)) == 4
    drawn = charts(mixed[1])
    for chart in ("queue-time", "queue-share"):
        for port in ("border-a → border-b", "tor-a1 → border-a", "tor-a2 → border-a", "border-b → tor-b1"):
            assert json.dumps(port) in json.dumps(drawn[chart]), (chart, port)
    assert "Backlog at all 4 watched ports." in mixed[1].read_text()


def test_of_the_ports_that_are_watched_by_default_the_hottest_are_drawn(page_path):
    assert "Backlog at 4 of 10 watched ports" in page_path.read_text()
