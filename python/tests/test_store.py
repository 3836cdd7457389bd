import hashlib
import json
import os
import shutil
from pathlib import Path

import polars as pl
import pytest
import synthetic

from narrows.columns import TABLES, conform
from narrows.errors import BadInput
from narrows.store import State, Store

TABLES_OF_A_RUN = synthetic.tables("dctcp", 1, 2.0)


@pytest.fixture
def store(tmp_path):
    made = Store(tmp_path / "runs")
    made.prepare()
    return made


def write(store, version="1"):
    store.write("abcd", 3, TABLES_OF_A_RUN, {"version": version})


def test_a_run_is_whole_or_absent(store):
    assert store.state("abcd", 3, "1") is State.ABSENT
    write(store)
    assert store.state("abcd", 3, "1") is State.WHOLE
    assert sorted(path.name for path in store.folder("abcd", 3).iterdir()) == [
        "flows.parquet", "manifest.json", "ports.parquet", "requests.parquet", "series.parquet",
    ]  # fmt: skip
    assert [path.name for path in store.folder("abcd", 3).parent.iterdir()] == ["3"]


def test_a_failure_while_writing_leaves_nothing(store, monkeypatch):
    def fail(*_args, **_kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pl.DataFrame, "write_parquet", fail)
    with pytest.raises(BadInput, match="No space left"):
        write(store)
    assert list((store.root / "abcd").iterdir()) == []


def test_results_of_another_version_are_recognised_and_replaced(store):
    write(store, "1")
    assert store.state("abcd", 3, "2") is State.OTHER_VERSION
    write(store, "2")
    assert store.state("abcd", 3, "2") is State.WHOLE


def test_results_of_another_format_are_recognised(store):
    write(store)
    path = store.folder("abcd", 3) / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"format": 0}))
    assert store.state("abcd", 3, "1") is State.OTHER_VERSION


def test_a_broken_manifest_is_an_absent_run(store):
    write(store)
    (store.folder("abcd", 3) / "manifest.json").write_text("{")
    assert store.state("abcd", 3, "1") is State.ABSENT


def test_equal_tables_give_equal_bytes(tmp_path):
    digests = []
    for name in ("one", "other"):
        store = Store(tmp_path / name)
        store.prepare()
        write(store)
        files = sorted(store.folder("abcd", 3).glob("*.parquet"))
        digests.append([hashlib.sha256(path.read_bytes()).hexdigest() for path in files])
    assert digests[0] == digests[1]


def test_what_a_killed_process_left_is_removed_and_a_living_ones_is_not(store):
    write(store)
    dead = store.root / "abcd" / ".9.999999999.partial"
    alive = store.root / "abcd" / f".9.{os.getppid()}.partial"
    dead.mkdir()
    alive.mkdir()
    replaced = dead.with_suffix(".old")
    replaced.mkdir()
    store.prepare()
    assert (dead.exists(), alive.exists(), replaced.exists()) == (False, True, False)


def test_the_same_run_finished_by_another_process_meanwhile_is_kept(store, monkeypatch):
    rename = Path.rename

    def late(self, target):
        if self.suffix == ".partial":
            shutil.copytree(self, target)
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", late)
    write(store)
    assert store.state("abcd", 3, "1") is State.WHOLE
    assert [path.name for path in (store.root / "abcd").iterdir()] == ["3"]


def test_a_folder_that_cannot_be_written_is_the_users_error(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(BadInput, match="--out"):
        Store(tmp_path / "file" / "runs").prepare()


@pytest.mark.parametrize("change", [lambda frame: frame.drop("flow"), lambda frame: frame.with_columns(extra=1)])
def test_a_column_that_is_not_described_is_a_defect(change):
    with pytest.raises(AssertionError, match=r"columns\.py"):
        conform("flows", change(TABLES_OF_A_RUN["flows"]))


def test_only_a_nullable_column_may_hold_a_null():
    flows = TABLES_OF_A_RUN["flows"]
    conform("flows", flows.with_columns(fct_ns=pl.lit(None, dtype=pl.UInt64)))
    with pytest.raises(AssertionError, match="size_bytes"):
        conform("flows", flows.with_columns(size_bytes=pl.lit(None, dtype=pl.UInt64)))


def test_every_column_is_described():
    for table in TABLES.values():
        for column in table.columns:
            assert column.meaning
            assert column.unit
            for unit in ("ns", "bytes", "packets", "bps"):
                if column.name.endswith(f"_{unit}"):
                    assert column.unit == {"bps": "bit/s"}.get(unit, unit)


@pytest.mark.parametrize("where", ["key", "hash"])
def test_an_index_from_elsewhere_leads_nowhere_else(folder, two_arms, where):
    from narrows import api
    from narrows.index import Index

    api.run(two_arms).join()
    path = folder / "runs" / "index.json"
    raw = json.loads(path.read_text())
    if where == "key":
        raw["experiments"]["../../etc/two"] = raw["experiments"].pop("two")
    else:
        raw["experiments"]["two"]["members"][0]["hash"] = "../elsewhere"
    path.write_text(json.dumps(raw))
    with pytest.raises(BadInput, match="outside its folder"):
        Index(folder / "runs").find("two")


def test_code_beside_a_foreign_experiment_is_not_run(folder, two_arms):
    from narrows import api, experiments, report

    paper = folder / "downloaded" / "paper"
    (paper / "fig").mkdir(parents=True)
    (paper / "claims.toml").write_text("claim = []")
    (paper / "bindings.py").write_text("raise SystemExit('executed')")
    two_arms.rename(paper / "fig" / "experiment.toml")
    results = api.run("downloaded/paper/fig/experiment.toml").join()
    assert experiments.figure_of(results.entry.file) is None
    assert report.build(results, Store(api.RUNS)).exists()


def test_results_name_no_machines_paths(folder, two_arms):
    from narrows import api

    assert api.run(two_arms.resolve()).join().entry.file == "two.toml"
