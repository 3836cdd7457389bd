"""The page itself, in a browser without a network."""

import os
import re
from dataclasses import replace
from pathlib import Path

import altair
import polars as pl
import pytest
from conftest import TWO_ARMS, Driven
from report_pages import charts, valid

import narrows
from narrows import api
from narrows.experiment import Difference
from narrows.figures import style
from narrows.report import bundle, page
from narrows.results import Results
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


def test_every_chart_is_one_by_the_schema_of_vega_lite(page_path):
    """The page's code leaves that out while it draws: it takes half of the time."""
    assert valid(charts(page_path)) >= 7


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


def test_of_the_ports_that_are_watched_by_default_the_hottest_are_drawn(page_path):
    assert "Backlog at 4 of 10 watched ports" in page_path.read_text()
