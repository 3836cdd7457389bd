"""The table of a paper's claims in a page that people write, and the causes of what does not hold."""

from dataclasses import replace

import pytest
from conftest import CHECKOUT

from narrows.claims import Claim, Paper, Readings, catalogue, causes, folders, page
from narrows.claims.judge import Part, Verdict
from narrows.errors import BadInput
from narrows.measures.stats import estimate

CAUSES = """
[[cause]]
claims = ["x-002", "x-003"]
class = "follows"
about = "The queue is as long as the formula says."
"""


def claim(name, grade="H", **more):
    given = {"expect": "2 to 3", "accept": (2.0, 3.0), "needs_simulation": True, "kind": "number", "order": ()} | more
    return Claim(
        name,
        "Fig. 1",
        ("S",),
        "rate",
        schemes=("a",),
        unit="",
        confidence=grade,
        note="",
        **given,
    )


def judged(own, word, *values, **more):
    part = Part("rate(a)", "yes" if word == "holds" else "no", estimate(list(values)), "rate(a)", **more)
    return Verdict(own, word, "", (part,))


def not_run(own):
    return Verdict(own, "not-run", "fig1 has no runs")


def table(folder, verdicts, text="", causes_toml=CAUSES):
    there = folder / "page.md"
    there.write_text(text)
    (folder / "causes.toml").write_text(causes_toml)
    paper = Paper("x", folder, tuple(one.claim for one in verdicts), {}, {})
    return page.table(paper, verdicts, {}, there)


def columns(text):
    return {name: page.cells(row) for name, row in page.rows(text).items()}


def test_what_is_judged_has_value_interval_verdict_and_class(tmp_path):
    text = table(
        tmp_path,
        [
            judged(claim("x-001"), "holds", 2.4, 2.6),
            judged(claim("x-002"), "fails", 4.0, 4.0),
            judged(claim("x-004", "M"), "partly", 4.0, 1.0),
        ],
    )
    found = columns(text)
    assert [found[name][page.VERDICT] for name in found] == ["holds", "fails", "partly"]
    assert [found[name][6] for name in found] == ["", "follows", page.OPEN]
    assert found["x-001"][3].startswith("2.5")
    assert "- x-002: The queue is as long as the formula says." in text
    assert "x-003" not in text
    assert "| that a run can refute | H | 1 | 0 | 1 | 0 |" in text
    assert "| that a run can refute | M | 0 | 1 | 0 | 0 |" in text


def test_readings_are_told_with_the_one_that_the_text_favours(tmp_path):
    own = judged(claim("x-001"), "holds", 2.5)
    (tmp_path / "page.md").write_text("")
    several = Readings({"a": "as stated", "b": "the other way"}, why="it is stated", schemes={"a": {}, "b": {}})
    paper = Paper("x", tmp_path, (own.claim,), {}, {}, readings={"fig1": several, "fig2": several})
    text = page.table(paper, [own], {}, tmp_path / "page.md")
    assert "\n**Readings**: where the text allows several set-ups." in text
    favoured = "- fig1, fig2: a: as stated; b: the other way. The text favours a: it is stated."
    assert text.endswith(favoured)


def test_arithmetic_and_set_up_are_counted_apart(tmp_path):
    closed_form = claim("x-001", needs_simulation=False)
    text = table(tmp_path, [judged(closed_form, "holds", 2.5), judged(claim("x-002", setup=True), "holds", 2.5)])
    assert "| arithmetic or set-up | all | 2 | 0 | 0 | 0 |" in text
    assert "that a run can refute" not in text


def test_what_is_not_judged_keeps_its_row(tmp_path):
    first = table(tmp_path, [judged(claim("x-001"), "holds", 2.5), not_run(claim("x-002"))])
    second = table(tmp_path, [not_run(claim("x-001")), judged(claim("x-002"), "fails", 9.0)], text=first)
    assert page.rows(second)["x-001"] == page.rows(first)["x-001"]
    assert columns(first)["x-002"][page.VERDICT] == page.NOT_JUDGED
    assert columns(second)["x-002"][page.VERDICT] == "fails"
    assert "| that a run can refute | H | 1 | 0 | 1 | 0 |" in second


@pytest.mark.parametrize(
    "today",
    [
        {"accept": (1.0, 3.0), "expect": "1 to 3"},
        {"kind": "ordering", "order": ("rate(a) < rate(b)",), "expect": "rate(a) < rate(b)"},
    ],
)
def test_a_verdict_is_not_kept_where_a_claim_accepts_something_else_today(tmp_path, today):
    first = table(tmp_path, [judged(claim("x-001"), "holds", 2.5)])
    again = table(tmp_path, [not_run(claim("x-001"))], text=first)
    assert columns(again)["x-001"][page.VERDICT] == "holds"
    other = table(tmp_path, [not_run(claim("x-001", **today))], text=first)
    assert columns(other)["x-001"][page.VERDICT] == page.NOT_JUDGED


def test_of_an_order_the_relations_decide_whether_a_verdict_is_kept(tmp_path):
    relation = {"kind": "ordering", "order": ("rate(a) < rate(b)",), "expect": "rate(a) < rate(b)"}
    part = Part("rate(a) < rate(b)", "yes", detail="")
    first = table(tmp_path, [Verdict(claim("x-001", **relation), "holds", "", (part,))])
    assert columns(table(tmp_path, [not_run(claim("x-001", **relation))], text=first))["x-001"][page.VERDICT] == "holds"
    turned = relation | {"expect": "rate(b) < rate(a)"}
    again = table(tmp_path, [not_run(claim("x-001", **turned))], text=first)
    assert columns(again)["x-001"][page.VERDICT] == page.NOT_JUDGED


def test_a_claim_over_several_figures_is_not_judged_from_some_and_says_what_lacks(tmp_path):
    of_two = claim("x-001")
    first = table(tmp_path, [not_run(of_two)])
    part = replace(judged(of_two, "partly", 2.5), missing=("fig2",))
    row = columns(table(tmp_path, [part], text=first))["x-001"]
    assert (row[3], row[page.VERDICT], row[6]) == ("not run yet: fig2", page.NOT_JUDGED, "")
    whole = table(tmp_path, [judged(of_two, "holds", 2.5)])
    assert columns(table(tmp_path, [part], text=whole))["x-001"][page.VERDICT] == "holds", "keeps its row"


def test_gains_beyond_what_is_stated_are_told_and_change_no_count(tmp_path):
    open_above = claim("x-001", accept=(2.0, float("inf")))
    text = table(tmp_path, [judged(open_above, "holds", 50.0, stated=2.5)])
    assert "20 times the stated value" in columns(text)["x-001"][3]
    assert "| that a run can refute | H | 1 | 0 | 0 | 0 |" in text


def test_a_relation_that_does_not_hold_has_the_measures_own_names(tmp_path):
    relation = claim("x-001", kind="ordering", order=("plr_dcn(a) < plr_wan(a)",))
    short = Part("plr_dcn(a) < plr_wan(a)", "no", detail="plr_dcn(a) < plr_wan(a): 4 against 2 (plr is of both)")
    text = table(tmp_path, [Verdict(relation, "fails", "", (short,))])
    assert columns(text)["x-001"][3] == (
        "0 of 1 relations hold; not loss_dc(a) < loss_wan(a): 4 against 2 (plr is of both)"
    )
    ranked = Part("rank(fct_all, a) <= 2", "no", detail="rank(fct_all, a) <= 2: 3")
    text = table(tmp_path, [Verdict(relation, "fails", "", (ranked,))])
    assert columns(text)["x-001"][3] == "0 of 1 relations hold; not rank(fct_mean, a) <= 2: 3"
    unknown = Part("rank(fct_all, a) <= 2", "unknown", detail="not evaluable: 3 of 9 flows did not finish")
    text = table(tmp_path, [Verdict(relation, "fails", "", (unknown,))])
    assert columns(text)["x-001"][3] == "0 of 1 relations hold; not evaluable: 3 of 9 flows did not finish"


def test_a_bar_in_a_cell_does_not_end_it(tmp_path):
    text = table(tmp_path, [judged(claim("x-001", expect="a | b"), "holds", 2.5)])
    assert columns(text)["x-001"][1] == "rate: a | b"
    assert columns(text)["x-001"][page.VERDICT] == "holds"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[[cause]]\nclaims = ['x-1']\nclass = 'chance'\nabout = 'A.'\n", "no known class"),
        ("[[cause]]\nclass = 'follows'\nabout = 'A.'\n", "incomplete"),
        ("[[cause]]\nclaims = ['x-1']\nclass = 'follows'\n", "incomplete"),
        (CAUSES + CAUSES, "two causes of x-002"),
        ("[[cause", "cannot read"),
    ],
)
def test_causes_that_say_too_little_are_refused(tmp_path, text, said):
    (tmp_path / "causes.toml").write_text(text)
    with pytest.raises(BadInput, match=said):
        causes.read(tmp_path)


@pytest.mark.parametrize("path", sorted(CHECKOUT.glob("experiments/*/causes.toml")), ids=lambda path: path.parent.name)
def test_causes_are_of_claims_that_there_are(path):
    paper = catalogue.load(path.parent)
    assert causes.read(path.parent).keys() <= {one.identifier for one in paper.claims}


PAGES = CHECKOUT / "docs" / "explanation" / "claims"


@pytest.mark.parametrize("path", sorted(PAGES.glob("*.md")), ids=lambda path: path.stem)
def test_a_page_has_the_claims_the_classes_and_the_causes_of_its_paper(path):
    (paper,) = (one for one in folders.papers() if one.name == path.stem)
    why = causes.read(paper.folder)
    text = path.read_text()
    found = columns(text)
    assert {name: tuple(cells[:3]) for name, cells in found.items()} == {
        claim.identifier: tuple(page.cells(page.line(page.stated(claim)))) for claim in paper.claims
    }
    words = {name: cells[page.VERDICT] for name, cells in found.items()}
    short = {name: cells[page.CLASS] for name, cells in found.items() if cells[page.VERDICT] in page.SHORT}
    assert short == {name: why[name].kind if name in why else page.OPEN for name in short}
    told = text[text.rindex("\n| ") :].partition("<!-- /")[0].partition("\n\n")[2]
    assert told.split() == " ".join([*page.reasons(words, why), *page.readings(paper)]).split()
