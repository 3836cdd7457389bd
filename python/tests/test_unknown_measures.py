"""A claim that is bound to a measure which does not exist is refused, with file and line, before anything is run."""

import pytest
from conftest import SMALL, narrows

CLAIM = """
[[claim]]
id = "{name}"
item = "Fig. 1"
scenario = "E-F1"
metric = "completion"
schemes = ["cubic", "gemini"]
kind = "{kind}"
expect = "less"
{more}
confidence = "L"
needs_simulation = true
"""
ORDER = "order = [\n    'fct_mean(cubic) < fct_mean(gemini)',\n    '{}',\n]"


@pytest.fixture
def paper(folder):
    """A paper with one figure; called with its claims and the bindings of the figure, and of the paper."""

    def write(claims, figures, papers=""):
        figure = folder / "experiments" / "office" / "fig1"
        figure.mkdir(parents=True)
        (figure / "experiment.toml").write_text(SMALL)
        (figure.parent / "claims.toml").write_text(claims)
        head = "from narrows.claims import Binding, Instead\n\n"
        (figure / "bindings.py").write_text(f'{head}SCENARIOS = ("E-F1",)\nBINDINGS = {{\n{figures}\n}}\n')
        if papers:
            (figure.parent / "bindings.py").write_text(f"{head}BINDINGS = {{\n{papers}\n}}\n")
        return folder

    return write


def refused(folder):
    """What is said; nothing has been run."""
    done = narrows("reproduce", "office/fig1")
    assert (done.returncode, done.stdout) == (2, "")
    assert not (folder / "runs").exists()
    return done.stderr


@pytest.mark.parametrize("written", [
    '("fct_smal_mean(gemini)",)', '("fct_mean(gemini)",), also=("1 - fct_smal_mean(gemini) / fct_mean(cubic)",)',
    '("max(fct_smal_mean(gemini), 3)",)', '("rank(fct_smal_mean, gemini)",)',
    '(), instead=Instead("fct_smal_mean()", 0.1, (("fct_mean()", (0, 1)),))',
])  # fmt: skip
def test_a_binding_is_named_by_its_line(paper, written):
    claims = CLAIM.format(name="one", kind="ratio", more="accept = [0, 1]") + CLAIM.format(
        name="two", kind="ratio", more="accept = [0, 1]"
    )
    folder = paper(claims, f'    "one": Binding(("fct_mean()",)),\n    "two": Binding(\n        {written}\n    ),')
    assert refused(folder).startswith(
        "experiments/office/fig1/bindings.py:7: claim two: there is no measure called fct_smal_mean\n"
        "help: the nearest: fct_small_mean, "
    )


def test_an_order_is_named_by_its_line_in_the_claims(paper):
    claims = CLAIM.format(name="one", kind="ordering", more=ORDER.format("los(gemini) is minimum"))
    folder = paper(claims, "", '    "one": Binding(),')
    first = refused(folder).splitlines()[0]
    assert first == "experiments/office/claims.toml:12: claim one: there is no measure called los"


def test_a_name_that_a_binding_gives_a_meaning_is_no_measure(paper):
    order = ORDER.format("fct_small(gemini) < fct_small(cubic)")
    claims = CLAIM.format(name="one", kind="ordering", more=order)
    folder = paper(claims, '    "one": Binding(names={"fct_small": ("fct_small_mean", "fct_small_p98")}),')
    assert refused(folder).startswith(
        "experiments/office/fig1/bindings.py:5: claim one: there is no measure called fct_small_p98\n"
    )


def test_what_is_not_judged_may_say_anything(paper):
    claims = CLAIM.format(name="one", kind="ordering", more=ORDER.format("speed(gemini) < speed(cubic)"))
    paper(claims, "")
    assert "office/fig1" in narrows("reproduce").stdout
