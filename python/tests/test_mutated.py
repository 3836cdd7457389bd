"""Files with faults at random: each is read, or refused with a sentence and help, and nothing else happens.

`NARROWS_FUZZ_EXAMPLES=2000 pytest python/tests/test_mutated.py` searches longer; `make nightly` does so.
"""

import json
import re
import shutil
import tomllib
from pathlib import Path

import pytest
from conftest import CHECKOUT, SMALL
from hypothesis import given
from hypothesis import strategies as st
from mutations import as_toml, faulty, other_values, searched, searched_slowly
from test_archive import contents, rewrite, signed
from test_imports import BUNDLED, CLIENT, FLOWS, HKUST_CDF, HPCC, HPCC_CDF, LEAF_SPINE, MATRIX

from narrows import api, archive
from narrows.claims import catalogue, causes
from narrows.errors import BadInput
from narrows.experiment import Experiment
from narrows.fidelity import catalogue as fidelity
from narrows.imports import Options, write_experiment
from narrows.runs.index import Index
from narrows.runs.listing import Listing
from narrows.runs.store import Store

CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
HPCC_NODES = "3\n0 6 99\n\nFirst line: tracing node #\n"
UP = "".join(f"{ms}\n" for ms in (*range(1, 60), *range(80, 140, 2)))
TRIALS = [
    ({"leaf.topo": LEAF_SPINE, "perm.cm": MATRIX}, Options(start_unit="ps")),
    ({"clos.topo": BUNDLED}, Options()),
    ({"topology.txt": HPCC, "flow.txt": FLOWS, "trace.txt": HPCC_NODES}, Options()),
    ({"sizes.cdf": HKUST_CDF, "topology.txt": HPCC}, Options(load="0.3")),
    ({"sizes.cdf": HPCC_CDF}, Options(load="0.3", size_unit="1B")),
    ({"client.txt": CLIENT, "conf/DCTCP_CDF.txt": HKUST_CDF}, Options()),
    ({"up.trace": UP, "down.trace": "1\n"}, Options(end="600ms")),
]


def is_clean(error):
    """A sentence and a way out, on lines of their own; nothing that a terminal takes for a command."""
    text = str(error)
    assert text.startswith("error: ") or ": " in text.splitlines()[0], text
    assert "help: " in text, text
    assert not CONTROL.search(text), text
    return text


def is_named(error, names):
    """One of these files stands in it."""
    text = is_clean(error)
    assert any(name in text for name in names), text


@pytest.mark.parametrize(("files", "options"), TRIALS, ids=["+".join(files) for files, _ in TRIALS])
@searched
@given(data=st.data())
def test_imports(tmp_path_factory, files, options, data):
    folder = tmp_path_factory.mktemp("import")
    chosen = data.draw(st.sampled_from(sorted(files)))
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(data.draw(faulty(text)) if name == chosen else text.encode())
    given_files = [folder / name for name in files if "/" not in name]
    try:
        written = write_experiment(given_files, folder / "experiment.toml", options)
    except BadInput as error:
        is_named(error, [*files, "experiment"])
        assert not (folder / "experiment.toml").exists()
    else:
        assert written[0].is_file()
    finally:
        shutil.rmtree(folder)


@searched
@given(faulty(SMALL))
def test_experiments(tmp_path_factory, content):
    folder = tmp_path_factory.mktemp("experiment")
    path = folder / "small.toml"
    path.write_bytes(content)
    try:
        experiment = Experiment(path)
        assert experiment.plans
    except BadInput as error:
        is_named(error, ["small.toml"])
    finally:
        shutil.rmtree(folder)


PAPERS = {
    "causes.toml": (CHECKOUT / "experiments" / "cee" / "causes.toml").read_text(),
    "claims.toml": (CHECKOUT / "experiments" / "cee" / "claims.toml").read_text()[:4000].rpartition("\n\n[[claim]]")[0],
    "fidelity.toml": (CHECKOUT / "experiments" / "linux" / "fidelity.toml").read_text(),
}
READERS = {"causes.toml": causes.read, "claims.toml": catalogue.load, "fidelity.toml": fidelity.load}


@pytest.mark.parametrize("name", PAPERS)
@searched
@given(data=st.data())
def test_what_papers_state(tmp_path_factory, name, data):
    folder = tmp_path_factory.mktemp("paper")
    if data.draw(st.booleans()):
        content = data.draw(faulty(PAPERS[name]))
    else:
        content = as_toml(data.draw(other_values(tomllib.loads(PAPERS[name])))).encode("utf-8", "replace")
    (folder / name).write_bytes(content)
    try:
        READERS[name](folder)
    except BadInput as error:
        is_named(error, [name])
    finally:
        shutil.rmtree(folder)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder with results, which nobody changes, and their archive."""
    from narrows.report import page

    base = tmp_path_factory.mktemp("made")
    (base / "small.toml").write_text(SMALL)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(base)
        patch.setattr(page, "_charts", lambda frames: [])
        api.run("small.toml").join()
        store = Store(base / "runs")
        archive.export(Index(store.root).find("small"), store, base / "small.zip")
    return base


def read_all():
    """What `show`, `compare`, `report` and `ls` ask of results."""
    results = api.load("small")
    text = f"{results}\n{results.notices}\n{results.compare()}\n"
    assert results.flows.height > 0
    assert results.ports.height > 0
    from narrows.report import page

    return text + page.text(results, Store(Path("runs")))


def read_clean(names):
    """Either these are results, or they are refused."""
    for read in (read_all, lambda: Listing(Store(Path("runs"))).results(earlier=True)):
        try:
            read()
        except BadInput as error:
            is_named(error, names)


def replaced(base, path, content):
    """The results in the working directory with another content of one file; what was made of them before is gone."""
    target = Path("runs")
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(base / "runs", target)
    (target / path).write_bytes(content)


@pytest.mark.simulator
@pytest.mark.parametrize("name", ["manifest.json", "index.json"])
@searched_slowly
@given(data=st.data())
def test_results_whose_json_says_something_else(made, folder, without_charts, name, data):
    path = next(path for path in sorted((made / "runs").rglob(name)))
    text = path.read_text()
    in_bytes = data.draw(st.booleans())
    content = data.draw(faulty(text) if in_bytes else other_values(json.loads(text)))
    content = content if in_bytes else json.dumps(content).encode()
    replaced(made, path.relative_to(made / "runs"), content)
    read_clean(["runs", "small"])


@pytest.mark.simulator
@searched_slowly
@given(data=st.data())
def test_results_whose_tables_are_damaged(made, folder, without_charts, data):
    tables = sorted((made / "runs").rglob("*.parquet"))
    path = tables[data.draw(st.integers(0, len(tables) - 1))]
    content = data.draw(faulty(path.read_bytes()))
    replaced(made, path.relative_to(made / "runs"), content)
    # Without its digest, as runs of earlier versions have none.
    if data.draw(st.booleans()):
        manifest = Path("runs") / path.relative_to(made / "runs").with_name("manifest.json")
        told = json.loads(manifest.read_text())
        manifest.write_text(json.dumps({key: value for key, value in told.items() if key != "tables"}))
    read_clean(["runs", "small"])


@pytest.mark.simulator
@searched_slowly
@given(data=st.data())
def test_archives_that_are_signed_again(made, folder, data):
    files = contents(made / "small.zip")
    name = data.draw(st.sampled_from(sorted(name for name in files if name.endswith((".json", ".toml")))))
    in_bytes = data.draw(st.booleans()) or not name.endswith(".json")
    content = data.draw(faulty(files[name]) if in_bytes else other_values(json.loads(files[name])))
    content = content if in_bytes else json.dumps(content).encode()
    files[name] = content
    try:
        files = files if name == "archive.json" else signed(files)
    except UnicodeDecodeError:  # no text: its digest cannot be made
        return
    rewrite(Path("small.zip"), files)
    try:
        archive.bring_in(Path("small.zip"), Path("runs"))
    except BadInput as error:
        is_named(error, ["small.zip", "runs"])
    else:
        read_clean(["runs", "small"])
    finally:
        shutil.rmtree("runs", ignore_errors=True)


@pytest.mark.simulator
@searched
@given(data=st.data())
def test_archives_with_wrong_bytes(made, folder, data):
    Path("small.zip").write_bytes(data.draw(faulty((made / "small.zip").read_bytes())))
    try:
        archive.bring_in(Path("small.zip"), Path("runs"))
    except BadInput as error:
        is_named(error, ["small.zip", "runs"])
    finally:
        shutil.rmtree("runs", ignore_errors=True)
