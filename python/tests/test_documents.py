import re
import tomllib

import pytest
from conftest import CHECKOUT
from hypothesis import given
from hypothesis import strategies as st

from narrows import columns, reference, wording
from narrows.experiment import identifier
from narrows.experiment.parameters import value_text
from narrows.figures.palette import KNOWN, colours
from narrows.measures import named


def test_the_columns_document_is_the_schema():
    text = (CHECKOUT / "docs" / "results.md").read_text()
    assert columns.document() in text, "regenerate it: python -m narrows.columns"


def test_the_measures_document_is_what_is_registered():
    text = (CHECKOUT / "docs" / "measures.md").read_text()
    assert text == named.document(), "regenerate it: python -m narrows.measures"
    assert "| `queue_spread` | packets | 95th minus 5th percentile" in text


def test_links_of_documents_lead_somewhere():
    for path in [
        *CHECKOUT.glob("*.md"),
        *CHECKOUT.glob("docs/*.md"),
        *CHECKOUT.glob("bench/**/*.md"),
        *CHECKOUT.glob("experiments/**/*.md"),
    ]:
        # What stands in a listing is a file of its own, elsewhere.
        text = re.sub(r"^```.*?^```", "", path.read_text(), flags=re.DOTALL | re.MULTILINE)
        for target in re.findall(r"\]\((?!https:)([^)#]+)[^)]*\)", text):
            assert (path.parent / target).exists(), (path, target)


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


@pytest.mark.parametrize(
    ("value", "kind", "text"),
    [
        ("auto", "rate", "auto"),
        ({"packets": 50}, "packets", "50pkt"),
        ({"span": 5_000_000_000}, "span", "5ms"),
        ({"rate": 1_000_000_000}, "rate", "1Gbps"),
        ({"real": 209_715}, {"real": {"bits": 20}}, "0.2"),
        ({"switch": True}, "switch", "true"),
        ({"choice": 1}, {"choice": ["round", "timer"]}, "timer"),
        ({"count": 4}, "count", "4"),
        ({"bytes": 10_000_000}, "bytes", "10MB"),
    ],
)
def test_parameters_read_as_they_are_written(value, kind, text):
    assert value_text(value, kind) == text


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


def test_a_real_parameter_prints_as_it_was_written():
    assert value_text({"real": 129}, {"real": {"bits": 30}}) == "1.2e-7"
    assert value_text({"real": 102}, {"real": {"bits": 10}}) == "0.1"
    assert value_text({"real": 717}, {"real": {"bits": 10}}) == "0.7"


def test_the_librarys_reference_is_its_docstrings():
    assert (CHECKOUT / reference.PAGE).read_text() == reference.document(), "regenerate it: python -m narrows.reference"
