"""`docs/tutorial/your-own-controller.md`: its controller is the file that `cargo test` tests, its experiments run.

The project does not know the guide's controller: GEMINI stands in for it here. The runs are shorter, except in
`make nightly`.
"""

import re
import shlex
import sys
from pathlib import Path

import pytest
from conftest import CHECKOUT, NARROWS, said_by, shorter

from narrows.experiment import identifier

TEXT = (CHECKOUT / "docs" / "tutorial" / "your-own-controller.md").read_text()
CORE = CHECKOUT / "crates" / "narrows-core" / "src" / "cc"
LISTING = "crates/narrows-core/src/cc/cautious.rs"
STAND_IN = {
    'cc = "cautious"': 'cc = "gemini"',
    'cautious = { delay = "1ms" }': 'gemini = { t = "1ms" }',
    "show cautious": "show gemini",
    identifier("against-gemini", quick=True, sets=[("cc.cautious.delay", "2ms")]): identifier(
        "against-gemini", quick=True, sets=[("cc.gemini.t", "2ms")]
    ),
    "cc.cautious.delay": "cc.gemini.t",
}
SHORTER = (
    ('end = "40s", warmup = "4s"', 'end = "2s", warmup = "1s"'),
    ('end = "20s"\nwarmup = "5s"', 'end = "5500ms"\nwarmup = "5s"'),
)


def blocks(text):
    """(name of the file that the line before ends with, or nothing; language; text), in the order of the page."""
    found = re.findall(r"(?:`([\w./-]+)`:\n\n)?```(\w+)\n(.*?)```", text, re.DOTALL)
    assert len(found) == text.count("\n```") // 2
    return found


def files():
    """The page's files by name."""
    return {name: text for name, _, text in blocks(TEXT) if name}


def test_the_listing_is_the_file_that_is_compiled_and_tested():
    assert files()[LISTING] == (CHECKOUT / "docs" / "tutorial" / "your-own-controller" / "cautious.rs").read_text()
    assert "docs/tutorial/your-own-controller/cautious.rs" in (CORE / "mod.rs").read_text()


def test_the_page_of_the_example_is_like_the_others():
    source, page = files()[LISTING], files()["docs/reference/algorithms/cautious.md"]
    title = re.search('title: "(.*)"', source).group(1)
    assert page.startswith(f"# {title}\n")
    parameters = re.findall(r'^ {8}name: "(.*)"', source, re.MULTILINE)
    assert re.findall(r"^\| `(.*?)`", page, re.MULTILINE) == parameters
    newreno = (CHECKOUT / "docs" / "reference" / "algorithms" / "newreno.md").read_text()
    assert re.findall(r"^## .*", page, re.MULTILINE) == re.findall(r"^## .*", newreno, re.MULTILINE)


@pytest.mark.page
def test_the_experiments_of_the_guide_work_as_they_stand(real, folder):
    """One test: each section builds on those before it."""
    text = shorter(TEXT, *SHORTER)
    for said, meant in STAND_IN.items():
        assert said in text
        text = text.replace(said, meant)
    said = []
    for name, language, listing in blocks(text):
        if name.startswith(("experiments/", "look")):
            Path(name).parent.mkdir(parents=True, exist_ok=True)
            Path(name).write_text(listing)
        for line in listing.splitlines() if language == "sh" else ():
            command, *arguments = shlex.split(line, comments=True)
            if command not in ("narrows", ".venv/bin/narrows", "python"):
                assert command in ("cp", "cargo", "make", ".", "mkdir", "cd"), line
                continue
            said.append(said_by(real, *arguments, program=sys.executable if command == "python" else NARROWS))
    everything = "\n".join(said)
    for words in ("9 new, 0 reused", "6 new, 3 reused", "fct_small_mean", "jain_long", "utilisation"):
        assert words in everything
    pictures = [folder / "runs" / "figures" / f"cautious-{name}.png" for name in ("against-gemini-quick", "windows")]
    assert all(path.is_file() for path in [*pictures, folder / "runs" / "reports" / "report-windows.html"])


@pytest.mark.parametrize("place", ["README.md", "docs/how-to/experiments.md", "crates/narrows-core/src/cc/mod.rs"])
def test_the_guide_is_found(place):
    assert "your-own-controller.md" in (CHECKOUT / place).read_text()
