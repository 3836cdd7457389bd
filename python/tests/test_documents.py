import inspect
import re
import tomllib

import pytest
from conftest import CHECKOUT
from hypothesis import given
from hypothesis import strategies as st

from narrows import columns, native, reference, wording
from narrows.experiment import identifier
from narrows.figures.palette import KNOWN, colours
from narrows.measures import named


def test_the_columns_document_is_the_schema():
    text = (CHECKOUT / "docs" / "reference" / "results.md").read_text()
    assert columns.document() in text, "regenerate it: python -m narrows.columns"


def test_the_measures_document_is_what_is_registered():
    text = (CHECKOUT / "docs" / "reference" / "measures.md").read_text()
    assert text == named.document(), "regenerate it: python -m narrows.measures"
    assert "| `queue_spread` | packets | 95th minus 5th percentile" in text


def pages():
    """Every Markdown page, without what stands in its listings."""
    places = ("*.md", "docs/**/*.md", "bench/**/*.md", "experiments/**/*.md", "examples/**/*.md")
    for path in sorted({path for place in places for path in CHECKOUT.glob(place)}):
        yield path, re.sub(r"^```.*?^```", "", path.read_text(), flags=re.DOTALL | re.MULTILINE)


def anchors(text):
    """The anchors that GitHub makes of a page's headings."""
    headings = re.findall(r"^#+ (.*)", text, flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading).strip().lower().replace(" ", "-") for heading in headings}


def broken_links(pages):
    """Each link of a page to no file, or to no heading of one: (page, link)."""
    known = {path.resolve(): anchors(text) for path, text in pages}
    for path, text in pages:
        for link in re.findall(r"\]\((?!https?:)([^)\s]+)\)", text):
            file, _, anchor = link.partition("#")
            target = (path.parent / file).resolve() if file else path.resolve()
            if not target.exists() or (anchor and anchor not in known[target]):
                yield path, link


def test_links_of_documents_lead_somewhere():
    found = list(pages())
    assert len(found) > 80
    assert not list(broken_links(found))


@pytest.mark.parametrize(
    ("link", "is_broken"),
    [("b.md", False), ("b.md#a-word-b", False), ("#own", False), ("c.md", True), ("b.md#no", True), ("#no", True)],
)
def test_a_broken_link_is_found(tmp_path, link, is_broken):
    texts = {"a.md": f"# Own\n[text]({link})", "b.md": "# B\n## A word: `b`\n"}
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    assert bool(list(broken_links([(tmp_path / name, text) for name, text in texts.items()]))) == is_broken


def test_each_page_is_of_one_kind_and_the_index_lists_it():
    docs = CHECKOUT / "docs"
    kinds = {"tutorial", "how-to", "reference", "explanation"}
    index = (docs / "README.md").read_text()
    for path in docs.glob("**/*.md"):
        place = path.relative_to(docs)
        if place.name == "README.md" or place.is_relative_to("reference/algorithms"):
            continue
        assert place.parts[0] in kinds or place.name == "glossary.md", place
        assert f"]({place.as_posix()})" in index, place


def test_the_glossary_is_sorted_and_its_sources_resolve():
    text = (CHECKOUT / "docs" / "glossary.md").read_text()
    keys = tomllib.loads((CHECKOUT / "docs" / "references.toml").read_text()).keys()
    rows = re.findall(r"^\| (?!term|-)([^|]+) \| [^|]+\. \| ([^|]+) \|$", text, flags=re.MULTILINE)
    terms = [term.lower() for term, _ in rows]
    assert terms == sorted(terms)
    assert len(terms) > 30
    for term, source in rows:
        cited = re.findall(r"[\[;] ?([^\];]+)", source)
        assert all(any(part.startswith(key) for key in keys) for part in cited), (term, source)
        assert cited or source == "–" or (CHECKOUT / source).is_file(), (term, source)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0123, "0.0123"),
        (45.67, "45.7"),
        (0, "0"),
        (12345, "12\u202f300"),
        (999.7, "1\u202f000"),
        (0.9996, "1.00"),
        (None, "–"),
    ],
)
def test_numbers_have_three_digits(value, text):
    assert wording.number(value) == text


def test_quantities_have_their_unit():
    assert wording.milliseconds(1240) == "1.24 s"
    assert wording.size(675_000) == "675 KB"
    assert wording.duration(200) == "3 min 20 s"
    assert wording.duration(0.8) == "0.8 s"
    assert [wording.duration(seconds) for seconds in (9.5, 16.5, 16.4, 35)] == ["9.5 s", "16.5 s", "16 s", "35 s"]


def test_a_controller_has_one_colour_everywhere():
    assert colours(["gemini", "mine"])["gemini"] == colours(["bbr", "gemini"])["gemini"] == KNOWN["gemini"]
    many = [f"arm {number}" for number in range(9)]
    assert len(set(colours(many).values())) == 9


def test_cases_of_one_scheme_have_shades_of_its_colour():
    names = ["tcp-linux-6", "dctcp · flows=2", "TCP", "dctcp · flows=20", "cubic-ecn-0ms"]
    chosen = colours(names)
    assert list(chosen) == names
    assert chosen["TCP"] == KNOWN["newreno"], "the bare name has the colour, wherever it stands"
    assert chosen["dctcp · flows=2"] == KNOWN["dctcp"]
    assert chosen["cubic-ecn-0ms"] == KNOWN["cubic-ecn"], "and not that of cubic"
    assert len(set(chosen.values())) == len(names)
    assert len(set(colours([f"dctcp · K={packets}" for packets in range(12)]).values())) == 12


def test_what_is_no_scheme_has_no_scheme_s_colour():
    assert not set(colours(["intra", "inter", "dctcping", "h1", "h2"]).values()) & set(KNOWN.values())


@given(st.text(max_size=40), st.booleans(), st.lists(st.tuples(st.text(max_size=5), st.text(max_size=5)), max_size=3))
def test_an_identifier_is_a_plain_file_name(name, quick, sets):
    made = identifier(name, quick=quick, sets=sets)
    assert re.fullmatch(r"[0-9A-Za-z_][0-9A-Za-z._+-]*", made)


def test_the_librarys_reference_is_its_docstrings():
    assert (CHECKOUT / reference.PAGE).read_text() == reference.document(), "regenerate it: python -m narrows.reference"


def test_the_librarys_reference_has_no_docstring_that_is_pythons_own():
    assert inspect.getdoc(object.__init__) not in reference.document()


@pytest.mark.parametrize(
    ("kind", "heading"), [("controller", "Controllers"), ("aqm", "AQMs"), ("scheduler", "schedulers")]
)
def test_the_readme_lists_every_component(kind, heading):
    text = " ".join((CHECKOUT / "README.md").read_text().split())
    (listed,) = re.findall(rf"\*\*{heading}\*\*: (.+?);", text)
    names = [item.removesuffix(" rate control").removesuffix("'s") for item in listed.split(", ")]
    listed_here = [item.get("title", item["name"]) for item in native.components() if item["kind"] == kind]

    def plain(name: str) -> str:
        return re.sub(r"[ -]", "", name).lower()

    assert [*map(plain, names)] == [*map(plain, listed_here)]
