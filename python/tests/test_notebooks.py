"""In a notebook: tables, a progress bar, pandas; and the example notebooks."""

import json
import os
import pty
import re
import subprocess
import sys
import termios

import nbclient
import nbformat
import polars as pl
import pytest
from conftest import CHECKOUT

from narrows.errors import EnvironmentLacks
from narrows.runs import bar
from narrows.runs.running import Progress
from narrows.tables import Tabular

EXAMPLES = sorted((CHECKOUT / "examples").glob("*.ipynb"))


class Table(Tabular):
    def __init__(self, table, heading="A table"):
        self._table, self._heading = table, heading

    @property
    def table(self):
        return self._table

    @property
    def heading(self):
        return self._heading


class Runs:
    """Ten runs, each of which has ended when it is asked for."""

    def __init__(self, runs=10):
        self.ended, self.runs = 0, runs

    def progress(self):
        return Progress(self.ended, 0, 0, self.runs, self.ended / self.runs, 0, 0, 0.1)

    def done(self):
        self.ended += 1
        return self.ended >= self.runs


def test_html_escapes_text_and_shows_numbers_as_reports_do():
    table = pl.DataFrame({"<b>": ["<script>", None], "ms": [1234.5678, None], "runs": [20_000, 3]})
    html = Table(table, "A & B\nnote <1>")._repr_html_()
    assert html.startswith("<p>A &amp; B</p><ul><li>note &lt;1&gt;</li></ul><table>")
    assert "<script>" not in html
    cells = re.findall(r'<t[dh] style="text-align:(\w+)">(.*?)</t[dh]>', html)
    assert cells == [
        ("left", "&lt;b&gt;"), ("right", "ms"), ("right", "runs"),
        ("left", "&lt;script&gt;"), ("right", "1\u202f230"), ("right", "20000"),
        ("left", "–"), ("right", "–"), ("right", "3"),
    ]  # fmt: skip


def test_html_of_a_long_table_says_how_much_is_left_out():
    html = Table(pl.DataFrame({"n": range(100)}))._repr_html_()
    assert html.count("<td") == 40
    assert html.endswith("<p>and 60 rows more</p>")


def test_a_table_becomes_one_of_pandas():
    table = pl.DataFrame({"case": ["a", "b"], "ms": [1.5, None]})
    made = Table(table).to_pandas()
    assert list(made.columns) == ["case", "ms"]
    assert made["case"].tolist() == ["a", "b"]
    assert made["ms"].isna().tolist() == [False, True]


@pytest.mark.parametrize("absent", ["pandas", "pyarrow"])
def test_without_pandas_it_is_said_what_to_install(absent):
    look = f"""
import sys
sys.modules[{absent!r}] = None
import narrows, polars
from narrows.tables import Tabular
Table = type("Table", (Tabular,), {{"heading": "", "table": polars.DataFrame({{"a": [1]}})}})
try:
    Table().to_pandas()
except narrows.EnvironmentLacks as error:
    print(error)
"""
    said = subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, check=True).stdout
    assert absent in said
    assert said.endswith("\n  help: pip install 'narrows[notebook]'\n")


def test_there_is_no_bar_in_a_pipe(capfd, monkeypatch):
    runs = Runs()
    bar.follow(runs, "mine", wanted=None)
    assert runs.ended == 0, "it does not wait either: `join` does"
    assert capfd.readouterr() == ("", "")


def test_without_tqdm_there_is_a_bar_only_where_one_is_asked_for(monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(bar, "find_spec", lambda _: None)
    bar.follow(Runs(), "mine", wanted=None)
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    with pytest.raises(EnvironmentLacks, match=r"tqdm is not installed\n  help: pip install 'narrows\[notebook\]'"):
        bar.follow(Runs(), "mine", wanted=True)


def test_a_terminal_has_a_bar_that_goes_away():
    code = "import test_notebooks as t; t.bar.DELAY_S = 0; t.bar.follow(t.Runs(), 'mine', wanted=None)"
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (24, 120))
    folder = str(CHECKOUT / "python" / "tests")
    started = subprocess.Popen([sys.executable, "-c", code], cwd=folder, stdout=theirs, stderr=theirs)
    os.close(theirs)
    said = b""
    try:
        while part := os.read(ours, 65536):
            said += part
    except OSError:  # its end
        pass
    os.close(ours)
    assert started.wait(60) == 0, said
    drawn = said.decode().split("\r")
    assert any(re.match(r"mine:  \d\d %\|█.*\d/10 runs", text) for text in drawn), drawn
    assert drawn[-2].strip() == ""


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_a_notebook_is_small_and_has_nothing_of_this_machine(path):
    assert path.stat().st_size < 150_000
    text = path.read_text()
    assert not re.search(r"/(home|root|work|tmp|Users)/", text)
    outputs = [output for cell in json.loads(text)["cells"] for output in cell.get("outputs", [])]
    assert {output["output_type"] for output in outputs} == {"execute_result"}


def kinds(cell):
    """In what forms a cell's result is shown; a progress bar is none."""
    results = [output for output in cell.get("outputs", []) if output["output_type"] == "execute_result"]
    return sorted(kind for output in results for kind in output["data"])


@pytest.mark.system
@pytest.mark.filterwarnings("ignore")  # of Jupyter's own
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_a_notebook_runs_and_shows_tables_and_charts(path, folder):
    read = nbformat.read(path, as_version=4)
    kept = [*map(kinds, read.cells)]
    made = nbclient.NotebookClient(read, timeout=120, resources={"metadata": {"path": str(folder)}}).execute()
    shown = [*map(kinds, made.cells)]
    assert shown == kept, "what is kept in the notebook is what it shows"
    everything = [kind for cell in shown for kind in cell]
    assert everything.count("text/html") >= 3
    assert "image/png" in everything
    assert not [
        output for cell in made.cells for output in cell.get("outputs", []) if output["output_type"] == "stream"
    ]


def test_there_are_three_examples():
    assert [path.stem for path in EXAMPLES] == ["compare", "learn", "slow-flows"]
