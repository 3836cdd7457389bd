"""The page in windows of several widths, on paper, in the dark, by keyboard, and the files it saves."""

import csv
import io
import itertools
import re
import shutil
import subprocess
import xml.etree.ElementTree as ET

import polars as pl
import pytest
from conftest import Driven, reported, until
from report_pages import MIXED, PROGRAMS, SWEEP

from narrows.figures import palette, style
from narrows.report import description, page, theme

WIDTHS = (400, 1366, 1920)
A4 = (210, 297)
"""Millimetres."""


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """Pages of a sweep with long names, of datagrams and an outage, and of programs with flow control."""
    texts = {"sweep": SWEEP, "mixed": MIXED, "lossless": PROGRAMS}
    made = {}
    for name, text in texts.items():
        (made[name],) = reported(tmp_path_factory.mktemp(name), text)
    return made


@pytest.fixture(params=["sweep", "mixed", "lossless"])
def named(request, pages):
    return pages[request.param][1]


BOXES = """() => Array.from(document.querySelectorAll("figure.chart")).flatMap((figure) => {
    const room = figure.getBoundingClientRect();
    const charts = Array.from(figure.querySelectorAll("svg"));
    return charts.length === 0 ? [figure.id + " is not drawn"] : charts
        .map((svg) => svg.getBoundingClientRect())
        .filter((box) => box.left < room.left - 1 || box.right > room.right + 1 || box.width < 100)
        .map((box) => figure.id + ": " + box.left + " to " + box.right + " in " + room.left + " to " + room.right);
})"""

LABELS = """() => Array.from(document.querySelectorAll("figure.chart svg .role-axis-label"), (group) => [
    group.closest("figure").id + ", " + group.closest(".role-axis").getAttribute("aria-label"),
    Array.from(group.querySelectorAll("text"))
        .filter((label) => label.textContent.trim() && label.getAttribute("opacity") !== "0").length,
])"""


@pytest.mark.parametrize("width", WIDTHS)
def test_nothing_is_wider_than_the_window_and_every_axis_has_three_labels(browser, named, width):
    driven = Driven(browser, named, width)
    assert driven.page.evaluate("document.scrollingElement.scrollWidth") <= width
    assert driven.page.evaluate(BOXES) == []
    axes = [axis for axis in driven.page.evaluate(LABELS) if "discrete" not in axis[0]]
    assert len(axes) > 10
    assert [axis for axis in axes if axis[1] < 3] == []
    assert driven.asked == [named.as_uri()]
    assert driven.complaints == []
    driven.page.close()


def test_a_chart_is_laid_out_anew_where_the_window_becomes_narrow(browser, pages):
    driven = Driven(browser, pages["mixed"][1])
    wide = driven.page.locator("#chart-completion svg").bounding_box()
    driven.page.set_viewport_size({"width": 400, "height": 768})
    narrow = "document.querySelector('#chart-completion svg').viewBox.baseVal.width < 420"
    until(lambda: driven.page.evaluate(narrow))
    narrow = driven.page.locator("#chart-completion svg").bounding_box()
    assert narrow["height"] > 1.5 * wide["height"], "panels are below each other"
    smallest = """Math.min(...Array.from(document.querySelectorAll("#chart-completion svg text"),
        (text) => parseFloat(text.getAttribute("font-size"))))"""
    scale = narrow["width"] / driven.page.evaluate(
        "document.querySelector('#chart-completion svg').viewBox.baseVal.width"
    )
    assert scale * driven.page.evaluate(smallest) >= 8, "pixels of the smallest letters"
    driven.page.close()


@pytest.mark.parametrize("width", [400, 1366])
def test_on_paper_every_chart_is_whole_and_nothing_is_folded(browser, named, tmp_path, width):
    driven = Driven(browser, named, width, color_scheme="dark")
    driven.page.pdf(path=tmp_path / "page.pdf", format="A4", prefer_css_page_size=True)
    written = (tmp_path / "page.pdf").read_bytes()
    boxes = {tuple(map(float, box)) for box in re.findall(rb"/MediaBox \[0 0 ([\d.]+) ([\d.]+)\]", written)}
    assert {tuple(round(25.4 * each / 72) for each in box) for box in boxes} == {A4}
    driven.page.emulate_media(media="print")
    # What is printed is 188 mm wide: A4 without its margins, of 96 pixels per inch.
    driven.page.evaluate(f"document.body.style.width = '{188 / 25.4 * 96}px'")
    assert driven.page.evaluate(BOXES) == []
    parts = driven.page.evaluate(
        """Array.from(document.querySelectorAll("figure.chart .part"),
            (part) => [getComputedStyle(part).breakInside, part.getBoundingClientRect().height])"""
    )
    assert {part[0] for part in parts} == {"avoid"}
    assert max(part[1] for part in parts) < 273 / 25.4 * 96
    assert driven.page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    for hidden in (".contents", ".tools", "details.data", ".skip"):
        assert not driven.page.locator(hidden).first.is_visible()
    titles = driven.page.locator("figure.chart svg .role-title-text").all_text_contents()
    titles += driven.page.locator("figure.chart figcaption").all_inner_texts()
    driven.page.close()
    if shutil.which("pdftotext") is None:
        pytest.skip("pdftotext is not installed: the text of the PDF is not read")
    done = subprocess.run(["pdftotext", tmp_path / "page.pdf", "-"], capture_output=True, text=True, check=True)
    told = plain(done.stdout)
    assert len(titles) > 8
    assert [title for title in titles if plain(title) not in told] == []
    assert plain("[topology.two-datacenters]") in told, "the experiment's text"


def plain(text):
    """Without spaces, and hyphens, which a line may end with."""
    return re.sub(r"[\s-]+", "", text)


def as_hex(rgb):
    return "#" + "".join(f"{int(part):02x}" for part in re.findall(r"\d+", rgb)[:3])


def test_in_dark_mode_what_is_drawn_and_written_is_seen(browser, named):
    driven = Driven(browser, named, color_scheme="dark")
    paper = as_hex(driven.page.evaluate("getComputedStyle(document.body).backgroundColor"))
    assert paper == palette.DARK_PAPER
    drawn = driven.page.evaluate(
        """() => {
            const all = Array.from(document.querySelectorAll(
                "figure.chart svg :is(.mark-line, .mark-rect, .mark-symbol, .mark-area) path, figure.chart svg text"))
                .filter((mark) => mark.closest("figure").querySelector(".role-legend-gradient") === null);
            return Array.from(new Set(all.flatMap((mark) => {
                const style = getComputedStyle(mark);
                return [mark.tagName + " " + style.fill, mark.tagName + " " + style.stroke];
            })));
        }"""
    )
    seen = [each.split(" ", 1) for each in drawn if "rgb(" in each]
    # What covers a bar to make it hollow has the colour of the paper.
    seen = [(kind, as_hex(colour)) for kind, colour in seen if as_hex(colour) != paper]
    assert len(seen) > 4
    for kind, colour in seen:
        assert palette.contrast(colour, paper) >= (4.5 if kind == "text" else 3), (kind, colour)
    swatch = driven.page.locator(".chip .swatch").first.evaluate("(swatch) => getComputedStyle(swatch).backgroundColor")
    assert ("path", as_hex(swatch)) in seen
    assert driven.complaints == []
    driven.page.close()


def test_numbers_on_the_cells_of_a_map_are_seen_in_both_modes(browser, pages):
    for mode in ("light", "dark"):
        driven = Driven(browser, pages["sweep"][1], color_scheme=mode)
        cells = driven.page.evaluate(
            """Array.from(document.querySelectorAll("figure.chart"))
                .filter((figure) => figure.querySelector(".role-legend-gradient"))
                .flatMap((figure) => Array.from(figure.querySelectorAll("svg .mark-text.role-mark text"), (text) => {
                    const box = text.getBoundingClientRect();
                    const cell = Array.from(text.closest("svg").querySelectorAll(".mark-rect.role-mark path"))
                        .find((path) => {
                            const own = path.getBoundingClientRect();
                            return own.left <= box.left && box.right <= own.right && own.top <= box.top + 3
                                && box.bottom <= own.bottom + 3;
                        });
                    return [text.textContent, getComputedStyle(text).fill, cell && getComputedStyle(cell).fill];
                }))"""
        )
        assert len(cells) > 50
        on_cells = [(as_hex(ink), as_hex(cell)) for _, ink, cell in cells if cell]
        assert len(on_cells) > 50
        assert min(palette.contrast(*pair) for pair in on_cells) >= 3
        driven.page.close()


FOCUSED = """() => {
    const own = document.activeElement;
    const style = getComputedStyle(own);
    const box = own.getBoundingClientRect();
    window.places = window.places ?? new Map();
    if (!window.places.has(own)) window.places.set(own, window.places.size);
    return [window.places.get(own), own.tagName, style.outlineStyle !== "none" && parseFloat(style.outlineWidth) > 0,
        box.width > 0 && box.left >= 0];
}"""


def test_every_control_is_reached_and_worked_by_keyboard(browser, pages):
    driven = Driven(browser, pages["lossless"][1])
    whole = driven.page.locator("a[href], button, summary, [tabindex='0']")
    wanted = sum(whole.nth(place).is_visible() for place in range(whole.count()))
    met = {}
    for _ in range(2 * wanted + 10):
        driven.page.keyboard.press("Tab")
        place, tag, outlined, seen = driven.page.evaluate(FOCUSED)
        if tag == "BODY" or place in met:
            break
        met[place] = (tag, outlined, seen)
    assert len(met) >= wanted > 30
    assert [each for each in met.values() if not (each[1] and each[2])] == []
    assert met[0][0] == "A", "the skip link comes first"
    driven.page.locator(".skip").focus()
    driven.page.keyboard.press("Enter")
    assert driven.page.evaluate("document.activeElement.tagName") == "MAIN"
    driven.page.locator(".chip").first.focus()
    driven.page.keyboard.press("Enter")
    assert driven.page.locator(".chip").first.get_attribute("aria-pressed") == "true"
    driven.page.locator(".reset").focus()
    driven.page.keyboard.press("Enter")
    assert driven.page.locator(".chip[aria-pressed=true]").count() == 0
    assert driven.page.evaluate("document.activeElement.className") == "chip", "the focus is not lost"
    driven.page.locator("#chart-completion details.data summary").focus()
    driven.page.keyboard.press("Enter")
    driven.page.wait_for_selector("#chart-completion table")
    driven.page.locator("details.cells summary").first.focus()
    driven.page.keyboard.press("Enter")
    driven.page.wait_for_selector("details.cells table")
    with driven.page.expect_download() as download:
        driven.page.locator("#chart-completion [data-kind=csv]").focus()
        driven.page.keyboard.press("Enter")
    assert download.value.suggested_filename == "experiment-completion.csv"
    assert driven.complaints == []
    driven.page.close()


def test_a_table_that_scrolls_in_its_box_is_reached_by_keyboard_and_has_a_name(browser, pages):
    driven = Driven(browser, pages["sweep"][1], 400)
    boxes = driven.page.locator(".wide").evaluate_all(
        "(all) => all.filter((box) => box.offsetParent).map((box) => [box.scrollWidth > box.clientWidth, "
        "box.tabIndex, box.getAttribute('role'), box.getAttribute('aria-label')])"
    )
    assert {tuple(box[1:3]) for box in boxes if box[0]} == {(0, "region")}
    assert {box[1] for box in boxes if not box[0]} == {-1}
    assert all(box[3] for box in boxes if box[0])
    driven.page.close()


def test_headings_are_in_order_and_charts_have_a_name_and_a_description(browser, named):
    driven = Driven(browser, named)
    levels = driven.page.locator("h1, h2, h3, h4").evaluate_all("(all) => all.map((one) => Number(one.tagName[1]))")
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in itertools.pairwise(levels))
    told = driven.page.locator("figure.chart").evaluate_all(
        """(all) => all.map((figure) => {
            const canvas = figure.querySelector(".canvas");
            return [canvas.getAttribute("role"), canvas.getAttribute("aria-label"),
                document.getElementById(canvas.getAttribute("aria-describedby")).textContent,
                document.getElementById(figure.getAttribute("aria-labelledby")).textContent];
        })"""
    )
    for role, label, about, caption in told:
        assert role == "img"
        assert caption.startswith(label)
        assert len(about) > 30
    driven.page.close()


def saved(driven, chart, kind, tmp_path):
    with driven.page.expect_download() as download:
        driven.page.locator(f"#chart-{chart} [data-kind={kind}]").click()
    path = tmp_path / download.value.suggested_filename
    download.value.save_as(path)
    return path


@pytest.mark.parametrize("width", [400, 1366])
def test_charts_are_saved_as_they_were_made_in_the_dark_and_in_a_narrow_window_too(browser, pages, tmp_path, width):
    driven = Driven(browser, pages["mixed"][1], width, color_scheme="dark")
    drawing = saved(driven, "completion", "svg", tmp_path)
    assert drawing.name == "mixed-completion.svg"
    tree = ET.parse(drawing).getroot()
    assert float(tree.get("width")) > 700
    text = drawing.read_text()
    assert "All flows, mean" in text
    assert f'fill="{style.INK}"' in text
    assert palette.on_dark(style.INK) not in text
    picture = saved(driven, "completion", "png", tmp_path).read_bytes()
    assert picture[:8] == b"\x89PNG\r\n\x1a\n"
    wide, high = (int.from_bytes(picture[place : place + 4]) for place in (16, 20))
    assert (wide, high) == pytest.approx((2 * float(tree.get("width")), 2 * float(tree.get("height"))), abs=2)
    assert driven.asked == [pages["mixed"][1].as_uri()]
    assert driven.complaints == []
    driven.page.close()


def rows_of(path):
    return list(csv.DictReader(io.StringIO(path.read_bytes().decode(), newline="")))


def test_the_file_of_values_has_every_value_and_the_table_every_few(browser, pages, tmp_path):
    results, path = pages["mixed"]
    driven = Driven(browser, path)
    rows = rows_of(saved(driven, "completion", "csv", tmp_path))
    mean = {row["case"]: row for row in rows if row["panel"] == "All flows, mean"}
    # Those of the frames: long-lived flows stand apart.
    flows = results.frames.flows.filter("finished")
    by_seed = flows.group_by("case", "seed").agg((pl.col("fct_ns").mean() / 1e6).alias("mean"))
    for case in ("cubic", "dctcp"):
        own = by_seed.filter(pl.col("case") == case)["mean"]
        assert float(mean[case]["mean"]) == pytest.approx(own.mean(), rel=1e-4)
        assert mean[case]["x_axis"] == "ms"
        assert {"label", "shown", "range"}.isdisjoint(mean[case])
    backlog = rows_of(saved(driven, "queue-time", "csv", tmp_path))
    assert {row["panel"] for row in backlog} >= {"border-a → border-b", "tor-a1 → border-a"}
    assert len(backlog) > 600
    driven.page.locator("#chart-queue-time details.data summary").click()
    driven.page.wait_for_selector("#chart-queue-time table")
    shown = driven.page.locator("#chart-queue-time tbody tr").count()
    assert 50 < shown <= 240
    captions = driven.page.locator("#chart-queue-time caption").all_text_contents()
    assert all(re.search(r"\d+ of [\d\u202f]+ rows, evenly", caption) for caption in captions)
    cases = driven.page.locator("#chart-queue-time tbody td:first-child").all_text_contents()
    assert {"cubic", "dctcp"} <= set(cases), "every few rows are of all schemes"
    driven.page.locator("#chart-completion details.data summary").click()
    table = driven.page.locator(
        "#chart-completion table", has=driven.page.locator("caption", has_text=re.compile("^All flows, mean$"))
    )
    assert table.locator("thead th").all_text_contents() == ["scheme", "All flows, mean", "interval", "which is"]
    assert table.locator("tbody td").nth(1).inner_text().startswith(f"{float(mean['cubic']['mean']):.4g}"[:3])
    driven.page.close()


def test_the_page_holds_each_chart_s_values_once_and_opens_soon(browser, pages):
    for name, (_, path) in pages.items():
        text = path.read_text()
        names = re.findall(r'"(data-[0-9a-f]{32})":\[', text)
        # All flows of the sweep are small: two of its measures have the same values.
        assert name == "sweep" or len(names) == len(set(names))
        assert re.findall(r'<details class="data".*?</details>', text, re.DOTALL)
        assert not [
            each for each in re.findall(r'<details class="data".*?</details>', text, re.DOTALL) if "<td" in each
        ]
        assert len(text) < page.MAX_BYTES / 3
        driven = Driven(browser, path)
        # In processor time of the page's thread: other programs on this machine do not count.
        measured = driven.page.context.new_cdp_session(driven.page)
        measured.send("Performance.enable", {"timeDomain": "threadTicks"})
        driven.page.reload(wait_until="domcontentloaded")
        metrics = {each["name"]: each["value"] for each in measured.send("Performance.getMetrics")["metrics"]}
        assert 0 < metrics["TaskDuration"] < 1.5, "seconds until it answers"
        driven.page.close()


def test_the_experiment_s_text_is_on_the_page_and_can_be_copied_and_saved(browser, pages, tmp_path):
    results, path = pages["mixed"]
    driven = Driven(browser, path)
    driven.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    box = driven.page.locator("details.source")
    box.locator("summary").click()
    assert box.locator("pre").text_content() == MIXED == results.entry.location.read_text()
    box.locator(".copy").click()
    until(lambda: box.locator(".said").text_content() == "copied")
    assert driven.page.evaluate("navigator.clipboard.readText()") == MIXED
    with driven.page.expect_download() as download:
        box.locator(".save").click()
    assert download.value.suggested_filename == "experiment.toml"
    assert download.value.path().read_text() == MIXED
    assert driven.complaints == []
    driven.page.close()


def test_a_description_names_panels_axes_and_schemes():
    def panel(title):
        return {
            "title": {"text": [title, "mean"]},
            "layer": [
                {
                    "mark": {"type": "line"},
                    "encoding": {
                        "x": {"field": "a", "type": "quantitative", "title": "time, s", "scale": {"type": "log"}},
                        "y": {"field": "b", "type": "quantitative", "axis": {"title": "share"}},
                        "color": {"field": "case", "type": "nominal", "scale": {"domain": ["one", "two"]}},
                    },
                },
                {"mark": "point", "encoding": {}},
            ],
        }

    assert description.of({"hconcat": [panel("Small"), panel("Large")]}) == (
        "2 panels of lines: Small mean; Large mean. Horizontal axis: time, s, logarithmic. Vertical axis: share. "
        "Of one, two."
    )
    faceted = {"facet": {"field": "case"}, "spec": panel("Small"), "title": "Backlog"}
    assert description.of(faceted).endswith("Of one, two, each in a panel of its own.")


def test_colours_of_charts_are_variables_of_the_page():
    made = str(theme.rules(['"#0072b2" "#1f2933"'], ["#332288"]))
    assert '.chart svg [fill="#0072b2"]{fill:var(--c0072b2)}' in made
    assert f'.chart svg [stroke="{style.INK}"]{{stroke:var(--ink)}}' in made
    light, dark = re.findall(r"--c332288:(#[0-9a-f]{6});", made)
    assert (light, dark) == ("#332288", palette.on_dark("#332288"))
