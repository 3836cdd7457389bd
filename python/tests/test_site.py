"""The documentation as a site: which pages it has, and that it works as files. MkDocs itself checks every link."""

import posixpath
import re
import tomllib
from pathlib import Path

import pytest
from conftest import CHECKOUT

from docs_site import pages

SITE = CHECKOUT / "target" / "site"
CHROMIUM = Path("/usr/bin/chromium")


def leaves(entry):
    """Pages of a part of the navigation."""
    if isinstance(entry, str):
        return [entry]
    return [leaf for part in (entry.values() if isinstance(entry, dict) else entry) for leaf in leaves(part)]


def test_every_page_is_in_the_navigation_once_and_has_an_address_of_its_own():
    found = leaves(pages.navigation())
    assert len(found) == len(set(found))
    assert set(pages.pages()) - set(found) == {"bench/ns3/README.md"}, "which the page on speed links to"
    everything = [*pages.pages(), *pages.pictures(), *pages.generated()]
    assert set(found) <= set(everything)
    assert len({pages.address(page) for page in everything}) == len(everything)
    names = [name for part in pages.navigation() for name in part]
    assert names == ["Home", "Tutorial", "How-to guides", "Reference", "Explanation", "Papers", "Project"]


def test_every_link_leads_to_a_page_or_a_picture_of_the_site():
    there = {*pages.pages(), *pages.pictures(), *pages.generated()}
    for page in pages.pages():
        text = pages.rewritten((CHECKOUT / page).read_text(), page)
        broken = [target for target in pages.targets(text, page) if target not in there]
        assert not broken, page


@pytest.mark.parametrize(
    ("link", "becomes"),
    [
        ("../glossary.md#flow", "../glossary.md#flow"),
        ("../../LICENSE", "../../LICENSE.md"),
        ("../reference/algorithms", "../reference/algorithms/README.md"),
        ("../../experiments/gemini/claims.toml", "../../experiments/gemini/claims.md"),
        ("../references.toml", "../references.toml.md"),
        ("https://example.org/a.toml", "https://example.org/a.toml"),
        ("#own", "#own"),
    ],
)
def test_links_to_what_is_no_page_lead_to_the_page_that_shows_it(link, becomes):
    listing = f"```toml\n[text]({link})\n```\n"
    found = pages.rewritten(f"[text]({link})\n{listing}", "docs/how-to/a.md")
    assert found == f"[text]({becomes})\n{listing}"


def test_a_page_of_claims_has_what_the_paper_states_until_there_are_runs(tmp_path):
    folder = tmp_path / "experiments" / "gemini"
    folder.mkdir(parents=True)
    path = "experiments/gemini/claims.toml"
    (tmp_path / path).write_text((CHECKOUT / path).read_text())
    stated = pages.claims(tmp_path, path)
    claims = tomllib.loads((CHECKOUT / path).read_text())["claim"]
    assert re.findall(r"^\| (gem-\d+) \|", stated, re.MULTILINE) == [claim["id"] for claim in claims]
    cards = tmp_path / "runs" / "reports"
    cards.mkdir(parents=True)
    (cards / "claims-gemini-quick.md").write_text("# quick")
    assert pages.claims(tmp_path, path) == "# quick"
    (cards / "claims-gemini.md").write_text("# full")
    assert pages.claims(tmp_path, path) == "# full"


def test_a_listing_shows_a_file_that_has_fences_of_its_own(tmp_path):
    (tmp_path / "a.toml").write_text('text = """\n```\n~~~\n"""\n')
    text = pages._listing(tmp_path, "a.toml")
    assert text.count("~~~~~~") == 2
    assert "```\n~~~\n" in text


@pytest.fixture(scope="module")
def browser():
    if not CHROMIUM.exists() or not SITE.is_dir():
        pytest.skip("chromium is not installed, or `make docs` was not run: the site is not walked through")
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with sync_api.sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=str(CHROMIUM), args=["--no-sandbox"])
        yield started
        started.close()


@pytest.mark.parametrize("width", [400, 1366])
def test_the_site_is_walked_and_searched_as_files_and_fetches_nothing(browser, width):
    page = browser.new_page(viewport={"width": width, "height": 900})
    complaints, fetched = [], []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("request", lambda request: fetched.append(request.url))
    page.goto((SITE / "index.html").as_uri())
    assert page.inner_text("h1").startswith("Narrows")
    # From the page of all pages to each kind.
    page.goto((SITE / "documentation.html").as_uri())
    for name, heading in (
        ("The Python library", "The Python library"),
        ("Gallery", "Gallery"),
        ("Algorithms", "Algorithms"),
    ):
        page.click(f"article a:text-is('{name}')")
        page.wait_for_selector(f"h1:has-text('{heading}')")
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), f"{name} is cut at {width}"
        pictures = page.evaluate(
            "[...document.querySelectorAll('article img')].filter(it => it.complete && !it.naturalWidth).length"
        )
        assert pictures == 0
        page.go_back()
    page.click("label[for=__search]" if width == 400 else "input.md-search__input")
    page.keyboard.type("headroom", delay=20)
    page.wait_for_selector(".md-search-result__item h1:has-text('Build a lossless fabric')")
    page.click(".md-search-result__item a:has-text('Build a lossless fabric')")
    page.wait_for_selector("article h1:has-text('Build a lossless fabric')")
    assert not complaints
    assert all(url.startswith(("file:", "data:", "about:")) for url in fetched)
    page.close()


def test_addresses_of_pages_are_relative_to_the_site():
    assert pages.address("README.md") == "index.html"
    assert pages.address("docs/how-to/live.md") == "how-to/live.html"
    assert posixpath.dirname(pages.address("docs/gallery/README.md")) == "gallery"
