"""`runs/index.json`: what an entry belongs to, what it is called, and what becomes of it in other folders."""

import json
import shlex
import shutil

import pytest
from conftest import TWO_ARMS, narrows

from narrows import api
from narrows.errors import BadInput
from narrows.experiment import is_plain
from narrows.runs import index
from narrows.runs.index import Index

SHORT = TWO_ARMS.replace('end = "3s"', 'end = "20ms"').replace("1..=2", "1..=1")


def written(path, text=SHORT):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def entry(path, **more):
    return api.run(path, **more).join().entry


def files(root="runs"):
    """What each name belongs to."""
    return {key: entry.location for key, entry in Index(api.Path(root)).entries().items()}


@pytest.mark.simulator
@pytest.mark.parametrize("folders", [1, 8])
def test_a_long_path_leaves_the_index_readable(folder, folders):
    deep = folder.joinpath(*["f" * 200] * folders)
    first, second, third = (written(path / "two.toml") for path in (folder, deep, deep / "g"))
    names = [entry(path).identifier for path in (first, second, third)]
    assert names[0] == "two"
    assert len(set(names)) == 3
    assert all(map(is_plain, names)), "each names a file"
    assert files() == dict(zip(names, (first, second, third), strict=True))


def test_an_index_may_be_read_by_several_threads(folder, monkeypatch):
    class Cleared(dict):
        """What another thread clears as soon as it is set."""

        def __setitem__(self, key, value):
            super().__setitem__(key, value)
            self.clear()

    monkeypatch.setattr(index, "_READ", Cleared())
    (folder / "runs").mkdir()
    (folder / "runs" / "index.json").write_text(json.dumps({"format": index.FORMAT, "experiments": {}}))
    assert Index(folder / "runs").entries() == {}


@pytest.mark.simulator
def test_files_of_one_relative_path_are_two(folder, monkeypatch):
    named = []
    for place in ("p1", "p2", "p1"):
        path = written(folder / place / "experiment.toml")
        monkeypatch.chdir(path.parent)
        results = api.run("experiment.toml", out=folder / "r").join()
        assert results.notices == ()
        named.append((results.entry.identifier, results.entry.location))
    assert named == [
        ("two", folder / "p1" / "experiment.toml"),
        ("two-p2-experiment", folder / "p2" / "experiment.toml"),
        ("two", folder / "p1" / "experiment.toml"),
    ]
    assert api.load("experiment.toml", out=folder / "r").entry.identifier == "two"
    monkeypatch.chdir(folder / "p2")
    assert api.load("experiment.toml", out=folder / "r").entry.identifier == "two-p2-experiment"
    assert api.load("../p1", out=folder / "r").entry.identifier == "two"


@pytest.mark.simulator
def test_a_file_is_found_from_any_folder_and_so_is_what_changed(folder, monkeypatch):
    monkeypatch.chdir(written(folder / "p1" / "two.toml").parent)
    entry("two.toml", out="../r")
    elsewhere = folder / "else where"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    assert entry(written(elsewhere / "two.toml"), out="../r").identifier != "two", "the file of that name is there"
    assert api.load("two", out="../r").notices == ()
    written(folder / "p1" / "two.toml", SHORT.replace("1..=1", "1..=2"))
    (notice,) = api.load("two", out="../r").notices
    assert notice == (
        "../p1/two.toml has changed since these runs: seeds 1..1 → 1..2; "
        "`narrows run ../p1/two.toml --out ../r` runs it as it is now"
    )
    shutil.move(folder / "p1", folder / "p3")
    shutil.move(folder / "r", folder / "p3" / "r")
    assert api.load("two", out="../p3/r").notices == (), "a file that is gone says nothing"


@pytest.mark.simulator
def test_a_store_may_be_older_than_the_paths_of_its_files(folder, monkeypatch):
    made = entry(written(folder / "two.toml"))
    path = folder / "runs" / "index.json"
    raw = json.loads(path.read_text())
    del raw["experiments"]["two"]["path"]
    path.write_text(json.dumps(raw))
    assert api.load("two").entry == made
    monkeypatch.chdir(written(folder / "lab" / "two.toml").parent)
    assert api.load("two", out="../runs").entry.location == made.location
    assert entry("two.toml", out="../runs").identifier == "two-lab-two"


@pytest.mark.simulator
def test_a_name_that_became_free_is_not_taken_by_what_has_one(folder):
    first, other = written(folder / "two.toml"), written(folder / "lab" / "two.toml")
    entry(first, seeds=1)
    entry(other)
    entry(first)
    written(first, SHORT.replace("1..=1", "1..=2"))
    entry(first)
    before = files()
    first.unlink()
    assert entry(other).identifier == "two-lab-two"
    assert files() == before
    assert api.load("two~1").entry.seeds == (1,), "its history is kept"


@pytest.mark.simulator
def test_what_a_moved_file_displaces_becomes_its_history(folder):
    entry(written(folder / "two.toml", SHORT.replace("1..=1", "1..=2")))
    (folder / "two.toml").unlink()
    assert entry(written(folder / "moved.toml")).identifier == "two"
    assert api.load("two~1").entry.seeds == (1, 2)


@pytest.mark.simulator
def test_a_file_that_is_renamed_within_takes_no_other_results_with_it(folder):
    """The quick results of `x`, and then the full ones of the same file, which now names itself `x-quick`."""
    path = written(folder / "two.toml", SHORT.replace('"two"', '"x"') + 'quick = { end = "10ms" }\n')
    assert entry(path, quick=True).identifier == "x-quick"
    written(path, path.read_text().replace('"x"', '"x-quick"'))
    assert entry(path).identifier == "x-quick-two"
    assert api.load("x-quick").entry.quick


def with_wrong(raw, *place, value):
    *outer, last = place
    for key in outer:
        raw = raw[key]
    raw[last] = value


@pytest.mark.simulator
def test_an_index_that_is_wrong_anywhere_is_the_users_error(folder):
    """Whatever stands wherever: it is read or refused."""
    entry(written(folder / "two.toml"), seeds=1)
    entry(folder / "two.toml")
    path = folder / "runs" / "index.json"
    whole, refused = path.read_text(), set()
    keys = [("experiments",), ("history",), ("experiments", "two")]
    keys += [("experiments", "two", key) for key in json.loads(whole)["experiments"]["two"]]
    keys += [("experiments", "two", "members", 0, key) for key in json.loads(whole)["experiments"]["two"]["members"][0]]
    for key in keys:
        for value in (None, 5, "abc", [], [5], ["abc"], {}, {"a": 5}, {"a": [5]}):
            raw = json.loads(whole)
            with_wrong(raw, *key, value=value)
            path.write_text(json.dumps(raw))
            for reads in (Index(path.parent).entries, lambda: Index(path.parent).find("two~1")):
                try:
                    reads()
                except BadInput:
                    refused.add(key[-1])
    assert {"experiments", "history", "backend", "members", "seeds", "hash", "path"} <= refused
    path.write_text(whole.replace('"backend": "sim"', '"backend": "simulator"', 1))
    with pytest.raises(BadInput, match=r"cannot read runs/index\.json: in two.*simulator.*\n  help: rename it"):
        api.load("two")


@pytest.mark.simulator
def test_printed_commands_can_be_given_to_a_shell(folder):
    name = "my lab; (new)/two's.toml"
    written(folder / name)
    out = "runs of today"
    said = narrows("run", name, "--set", 'run.end="30ms"', "--out", out)
    (line,) = [line for line in said.stdout.splitlines() if line.startswith("next: ")]
    again = shlex.split(line.removeprefix("next: "))
    assert again[:2] == ["narrows", "report"]
    assert again[3:] == ["--out", out]
    made = api.load(again[2], out=out).entry
    assert shlex.split(made.command) == ["narrows", "run", name, "--set", 'run.end="30ms"', "--out", out]
    assert ", 0 reused" in said.stdout
    assert ": 0 new" in narrows(*shlex.split(made.command)[1:]).stdout
    written(folder / name, "name = ")
    (notice,) = api.load(again[2], out=out).notices
    assert narrows(*shlex.split(notice.split("`")[1])[1:]).returncode == 2
    assert shlex.split(notice.split("`")[1]) == ["narrows", "check", name]


@pytest.mark.simulator
def test_a_link_is_an_experiment_of_its_own(folder):
    """Two links to a file that states no name are called after themselves."""
    target = written(folder / "target.toml", SHORT.replace('name = "two"\n', "", 1))
    for link in ("a.toml", "b.toml"):
        (folder / link).symlink_to(target)
        entry(link)
    assert {name: path.name for name, path in files().items()} == {"a": "a.toml", "b": "b.toml"}
