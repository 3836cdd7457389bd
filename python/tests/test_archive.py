"""Archives of results: what is exported is imported, and what is damaged or made to harm is refused as a whole."""

import hashlib
import io
import json
import random
import re
import shutil
import stat
import zipfile
from pathlib import Path
from types import SimpleNamespace

import pytest
from conftest import CHECKOUT, SMALL, lines, narrows

from narrows import api, archive
from narrows.archive import unpack
from narrows.errors import BadInput
from narrows.experiment import Content
from narrows.runs.experiments import experiment_text, read_copy, write_copy
from narrows.runs.index import Index
from narrows.runs.removal import collect
from narrows.runs.reservation import Reservation
from narrows.runs.store import Store

pytestmark = pytest.mark.simulator


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """A folder with an experiment, its results in `runs`, and `small.zip`, which nobody changes."""
    from narrows.report import page

    base = tmp_path_factory.mktemp("exported")
    (base / "sizes.cdf").write_text("1000 0\n200000 1\n")
    (base / "small.toml").write_text(SMALL.replace('cdf = "web-search"', 'file = "sizes.cdf"'))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(base)
        patch.setattr(page, "_charts", lambda frames: [])  # which take most of a page's time
        api.run("small.toml").join()
        assert narrows("export", "small").stdout == "small.zip\n"
    return base


@pytest.fixture
def zipped(exported, folder):
    """The archive alone, in an empty working directory: no experiment file is there."""
    shutil.copy(exported / "small.zip", folder)
    return folder / "small.zip"


def contents(path):
    """The files of an archive by name."""
    with zipfile.ZipFile(path) as read:
        return {name: read.read(name) for name in read.namelist()}


def rewrite(path, files):
    """An archive of these files, whole as a zip file."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as written:
        for name, content in files.items() if isinstance(files, dict) else files:
            written.writestr(name, content)


def signed(files):
    """The files with a list that has their true digests: what somebody would make on purpose."""
    told = json.loads(files["archive.json"])
    told["files"] = {
        name: {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
        for name, content in files.items()
        if name != "archive.json"
    }
    of_experiment = {
        name.removeprefix("experiment/"): content for name, content in files.items() if name.startswith("experiment/")
    }
    text = of_experiment.pop("small.toml").decode()
    told["entry"]["experiment"] = Content("small", text, of_experiment).digest
    return files | {"archive.json": json.dumps(told).encode()}


def refused(path, pattern=None):
    """It is refused with a sentence that names the file, and nothing is written."""
    with pytest.raises(BadInput, match=pattern) as error:
        archive.bring_in(path, Path("other"))
    assert str(path) in str(error.value)
    assert "\n  help: " in str(error.value)
    assert not Path("other").exists()


def test_the_same_results_give_the_same_archive(exported, monkeypatch, without_charts):
    monkeypatch.chdir(exported)
    again = exported / "again.zip"
    assert narrows("export", "small.toml", "--output", again).returncode == 0
    assert again.read_bytes() == (exported / "small.zip").read_bytes()
    assert str(exported) not in str(contents(again)["archive.json"]), "no folder of this machine"


def test_the_folder_that_it_is_exported_from_leaves_no_trace(folder, monkeypatch, without_charts):
    """The experiment was named by its whole path, and its file has changed since."""
    (folder / "small.toml").write_text(SMALL)
    api.run(folder / "small.toml", seeds=1).join()
    (folder / "small.toml").write_text(SMALL.replace("100ms", "90ms"))
    assert narrows("export", "small-seeds-1-1", "-o", "one.zip").returncode == 0
    (folder / "elsewhere").mkdir()
    monkeypatch.chdir(folder / "elsewhere")
    assert narrows("export", "small-seeds-1-1", "--out", "../runs", "-o", "../two.zip").returncode == 0
    assert (folder / "one.zip").read_bytes() == (folder / "two.zip").read_bytes()
    files = contents(folder / "one.zip")
    assert not [name for name, content in files.items() if str(folder).encode() in content]
    manifest = json.loads(next(content for name, content in files.items() if name.endswith("manifest.json")))
    assert manifest["origin"]["command"] == "narrows run small.toml --seeds 1..1"
    assert b"narrows run small.toml --seeds 1..1" in files["report.html"]
    assert archive.bring_in(folder / "one.zip", folder / "other").imported


def test_tracing_what_was_imported_does_not_run_its_controllers_in_c(folder, without_charts):
    page = (CHECKOUT / "docs" / "how-to" / "controllers-in-c.md").read_text()
    (folder / "mine.bpf.c").write_text(re.search(r"```c\n(.*?)```", page, re.DOTALL)[1].replace("\n", "\r\n"))
    (folder / "small.toml").write_text(SMALL.replace('cc = "cubic"', 'cc = { file = "mine.bpf.c" }'))
    results = api.run(folder / "small.toml", seeds=1).join()
    assert results.trace([0], scheme="cubic").plan["traffic"][0]["controller"]["program"]["file"] == "mine.bpf.c"
    assert narrows("export", "small-seeds-1-1", "-o", "one.zip").returncode == 0
    entry = archive.bring_in(folder / "one.zip", folder / "other")
    with pytest.raises(BadInput, match=r"was imported, and to trace it would run mine\.bpf\.c"):
        api.load(entry.identifier, out=folder / "other").trace([0], scheme="cubic")


def test_a_folder_is_no_file_to_export_to(exported, monkeypatch):
    monkeypatch.chdir(exported)
    for output in (".", "/", "runs"):
        done = narrows("export", "small", "-o", output)
        assert (done.returncode, done.stderr.splitlines()[0]) == (2, f"error: {output} is a folder")


def test_any_program_opens_it_and_finds_everything(exported):
    files = contents(exported / "small.zip")
    assert files["experiment/small.toml"] == (exported / "small.toml").read_bytes()
    assert files["experiment/sizes.cdf"] == (exported / "sizes.cdf").read_bytes()
    assert files["report.html"].startswith(b"<!DOCTYPE html>")
    for path in (exported / "runs").glob("*/[12]/*"):
        assert files[f"runs/{path.relative_to(exported / 'runs')}"] == path.read_bytes()
    assert len(files) == 4 + 4 * 8


def test_what_is_imported_is_as_it_was(exported, zipped, folder, monkeypatch, without_charts):
    assert narrows("import", "small.zip").stdout == "small: 4 runs; results in runs\n"
    entry = Index(folder / "runs").find("small")
    assert (entry.imported, experiment_text(entry)) == (True, (exported / "small.toml").read_text())
    for verb in ("report", "show", "compare"):
        done = narrows(verb, "small")
        assert (done.returncode, done.stderr) == (0, ""), verb
    assert "note: imported; Narrows 0." in done.stdout
    here = [one for one in lines(narrows("compare", "small", "--json").stdout) if one["event"] == "comparison"]
    (one,) = lines(narrows("runs", "--json").stdout)
    assert (one["state"], one["reasons"], one["imported"]) == ("current", ["imported"], True)
    rows = api.load("small").flows
    again = narrows(*one["command"].split()[1:])
    assert again.stdout.startswith("small: 0 new, 4 reused"), "its copy asks for the same runs"
    monkeypatch.chdir(exported)
    assert api.load("small").flows.equals(rows)
    assert [one for one in lines(narrows("compare", "small", "--json").stdout) if one["event"] == "comparison"] == here


def test_runs_that_are_there_stay_and_a_name_that_is_taken_too(exported, zipped, folder):
    for file in ("small.toml", "sizes.cdf"):
        shutil.copy(exported / file, folder)
    own = api.run("small.toml").join()
    before = {path: path.stat().st_mtime_ns for path in (folder / "runs").glob("*/*/*.parquet")}
    assert archive.bring_in(zipped, folder / "runs").identifier == "small-imported"
    assert archive.bring_in(zipped, folder / "runs").identifier == "small-imported"
    assert {path: path.stat().st_mtime_ns for path in (folder / "runs").glob("*/*/*.parquet")} == before
    assert api.load("small").entry.location == own.entry.location
    assert api.load("small.toml").entry.identifier == "small"


def test_other_results_of_the_same_run_are_not_replaced(exported, zipped, folder):
    for file in ("small.toml", "sizes.cdf"):
        shutil.copy(exported / file, folder)
    api.run("small.toml").join()
    manifest = next((folder / "runs").glob("*/1/manifest.json"))
    told = json.loads(manifest.read_text())
    told["tables"]["flows"] = "0" * 32
    manifest.write_text(json.dumps(told))
    with pytest.raises(BadInput, match="has other results of run"):
        archive.bring_in(zipped, folder / "runs")
    assert Index(folder / "runs").entries().keys() == {"small"}


def test_a_file_that_was_changed_is_named(zipped):
    files = contents(zipped)
    for name in ("report.html", "experiment/small.toml", *(name for name in files if "/1/" in name)):
        changed = bytearray(files[name])
        changed[len(changed) // 2] ^= 1
        rewrite(zipped, files | {name: bytes(changed)})
        refused(zipped, "small.zip (is damaged|holds)")
        if name.endswith((".parquet", ".html")):
            refused(zipped, f"is damaged: {name} is not what was exported")


def test_an_archive_that_was_cut_off_or_has_a_wrong_bit_is_refused_or_whole(zipped, folder):
    whole = zipped.read_bytes()
    random.seed(5)
    for length in [0, 1, 100, *random.sample(range(len(whole)), 10)]:
        zipped.write_bytes(whole[:length])
        refused(zipped)
    accepted = 0
    for place in random.sample(range(len(whole)), 60):
        damaged = bytearray(whole)
        damaged[place] ^= 1 << random.randrange(8)
        zipped.write_bytes(damaged)
        try:
            archive.bring_in(zipped, folder / "runs")
        except BadInput:
            assert not (folder / "runs").exists()
        else:  # a time or an attribute, of which nothing is taken
            accepted += 1
            shutil.rmtree(folder / "runs")
    assert accepted < 10


@pytest.mark.parametrize("name", [
    "../evil", "/etc/evil", "runs/../../evil", "experiment/../evil", "experiment/../../evil", "runs\\..\\evil",
    "C:/evil", "experiment//tmp/evil", "experiment/./evil", "runs/abc/1/manifest.json", "index.json", "experiment/",
    "runs/0123456789abcdef/1/other.bin", "experiment/a\nb",
])  # fmt: skip
def test_names_that_lead_elsewhere_or_mean_nothing_are_refused(zipped, folder, name):
    files = contents(zipped)
    rewrite(zipped, signed({name: b"evil", **files}))
    refused(zipped, "holds ")
    assert sorted(path.name for path in folder.iterdir()) == ["small.zip"]
    assert not list(folder.parent.glob("evil"))


def test_links_and_what_is_listed_twice_are_refused(zipped):
    files = contents(zipped)
    link = zipfile.ZipInfo("experiment/link.cdf")
    link.external_attr, link.create_system = (stat.S_IFLNK | 0o777) << 16, 3
    with zipfile.ZipFile(zipped, "w") as written:
        for name, content in signed(files | {"experiment/link.cdf": b"/etc/passwd"}).items():
            written.writestr(link if name == link.filename else name, content)
    refused(zipped, "which is no regular file")
    with pytest.warns(UserWarning, match="Duplicate"):
        rewrite(zipped, [*files.items(), ("report.html", b"other")])
    refused(zipped, "holds report.html twice")
    rewrite(zipped, {name: content for name, content in files.items() if not name.endswith("/2/flows.parquet")})
    refused(zipped, r"lacks runs/\w+/2/flows.parquet")
    rewrite(zipped, files | {"experiment/more.cdf": b""})
    refused(zipped, "holds experiment/more.cdf, which it does not list")


def test_what_would_fill_the_disk_is_refused_before_it_is_read(zipped):
    files = contents(zipped)
    with zipfile.ZipFile(zipped, "w", zipfile.ZIP_DEFLATED) as written:
        for name, content in files.items():
            if name == "report.html":
                with written.open(name, "w") as page:
                    for _ in range(100):
                        page.write(b"\0" * (1 << 20))
            else:
                written.writestr(name, content)
    refused(zipped, "more than 100 times its size")


def test_other_formats_are_named(zipped):
    files = contents(zipped)
    told = json.loads(files["archive.json"])
    rewrite(zipped, files | {"archive.json": json.dumps(told | {"format": 2}).encode()})
    refused(zipped, "has format 2, and this version reads 1")
    name = next(name for name in files if name.endswith("/1/manifest.json"))
    older = json.dumps(json.loads(files[name]) | {"format": 1}).encode()
    rewrite(zipped, signed(files | {name: older}))
    refused(zipped, "in another format")
    rewrite(zipped, {"readme.txt": b"hello"})
    refused(zipped, "no file of an archive of Narrows")
    zipped.write_bytes(b"PK hello")
    refused(zipped, "no archive")


def test_what_fits_no_manifest_is_refused_even_where_its_digests_are_true(zipped):
    files = contents(zipped)
    one, two = [name for name in files if name.endswith("/flows.parquet")][:2]
    rewrite(zipped, signed(files | {one: files[two]}))
    with pytest.raises(BadInput, match="has a table that is not what its manifest says"):
        archive.bring_in(zipped, Path("other"))
    assert not list(Path("other").glob("*/*/*.parquet"))
    assert not Index(Path("other")).entries()
    shutil.rmtree("other")
    manifest = one.replace("flows.parquet", "manifest.json")
    rewrite(zipped, signed(files | {manifest: files[two.replace("flows.parquet", "manifest.json")]}))
    refused(zipped, "is of another run")
    for change in ({"seeds": [1]}, {"seeds": "x"}, {"members": []}, {"members": None}):
        told = json.loads(files["archive.json"])
        told["entry"] |= change
        rewrite(zipped, files | {"archive.json": json.dumps(told).encode()})
        refused(zipped, "entry")
    told["name"] = "../evil"
    rewrite(zipped, files | {"archive.json": json.dumps(told).encode()})
    with pytest.raises(BadInput):
        archive.bring_in(zipped, Path("other"))


@pytest.mark.parametrize(("key", "value"), [
    ("origin", "x"), ("origin", None), ("origin", {"date": 1}), ("origin", {"machine": {}}), ("origin", {"git": [1]}),
    ("origin", {"command": "narrows \x1b[2J"}), ("plan", [1]), ("backend", None),
])  # fmt: skip
def test_manifests_that_narrows_does_not_write_are_refused(zipped, key, value):
    files = contents(zipped)
    name = next(name for name in files if name.endswith("/1/manifest.json"))
    rewrite(zipped, signed(files | {name: json.dumps(json.loads(files[name]) | {key: value}).encode()}))
    refused(zipped, f"is damaged: '?{key}'? of {name} is not as Narrows writes it")


@pytest.mark.parametrize(("key", "value"), [
    ("title", "\ud800"), ("title", "\x1b]0;evil\x07"), ("warnings", ["\x9b2J"]), ("seeds", [float("inf")]),
    ("differences", [{"path": "cc", "values": {"nobody": "1"}, "declared": True}]),
])  # fmt: skip
def test_entries_that_narrows_does_not_write_are_refused(zipped, key, value):
    files = contents(zipped)
    told = json.loads(files["archive.json"])
    told["entry"][key] = value
    rewrite(zipped, files | {"archive.json": json.dumps(told).encode()})
    refused(zipped, "entry is not as Narrows writes it")


def test_sizes_that_are_no_numbers_are_refused(zipped):
    files = contents(zipped)
    told = json.loads(files["archive.json"])
    told["files"]["report.html"]["bytes"] = float("inf")
    rewrite(zipped, files | {"archive.json": json.dumps(told).encode()})
    refused(zipped, "archive.json is not as Narrows writes it")


def test_an_import_that_ends_early_leaves_no_result_and_nothing_that_stays(zipped, folder, monkeypatch):
    def dies(index, entry):
        raise KeyboardInterrupt

    (folder / "tiny.toml").write_text(SMALL.replace("100ms", "20ms"))
    api.run("tiny.toml", seeds=1).join()
    with monkeypatch.context() as patch:
        patch.setattr(Index, "record", dies)
        with pytest.raises(KeyboardInterrupt):
            archive.bring_in(zipped, folder / "runs")
    assert Index(folder / "runs").entries().keys() == {"tiny-seeds-1-1"}
    assert len(collect(Store(folder / "runs")).runs) == 4
    assert not [*(folder / "runs").glob(".import.*"), *(folder / "runs").glob(".in-use.*")]
    assert archive.bring_in(zipped, folder / "runs").identifier == "small"


def test_runs_that_are_removed_just_before_the_import_are_imported(zipped, folder, monkeypatch):
    root = folder / "runs"
    archive.bring_in(zipped, root)

    def late(*arguments):
        assert narrows("rm", "small", "--yes").returncode == 0
        return Reservation(*arguments)

    monkeypatch.setattr(unpack, "Reservation", late)
    archive.bring_in(zipped, root)
    assert len(api.load("small").manifests) == 4


def test_files_whose_names_begin_with_a_dot_are_kept(folder):
    content = Content("small", "text", {".flows.txt": b"1", "a/.b/c": b"2"})
    path = write_copy(folder, content)
    (path.parent / ".small.toml.12.partial").write_text("left by a killed process")
    assert read_copy(SimpleNamespace(name="small", experiment=content.digest, root=folder)) == content


def test_a_damaged_table_or_experiment_is_not_exported(exported, folder):
    shutil.copytree(exported / "runs", folder / "runs")
    table = next((folder / "runs").glob("*/2/ports.parquet"))
    content = table.read_bytes()
    table.write_bytes(content[:-9] + b"x" + content[-8:])
    done = narrows("export", "small")
    assert (done.returncode, "ports.parquet" in done.stderr) == (2, True)
    table.write_bytes(content)
    next((folder / "runs").glob("experiments/*/small.toml")).write_text("")
    done = narrows("export", "small")
    assert (done.returncode, "experiments/sha256-" in done.stderr) == (2, True)
    assert not (folder / "small.zip").exists()


def test_only_archives_are_imported(folder):
    (folder / "x.txt").write_text("hello")
    assert narrows("import", "x.txt").returncode == 2
    done = narrows("import", "absent.zip")
    assert (done.returncode, done.stderr.splitlines()[0]) == (
        2,
        "error: cannot read absent.zip: No such file or directory",
    )


def test_a_small_archive_of_one_large_file_is_refused(zipped):
    one = io.BytesIO()
    with zipfile.ZipFile(one, "w", zipfile.ZIP_DEFLATED) as written:
        written.writestr("report.html", b"\0" * (60 << 20))
    zipped.write_bytes(one.getvalue())
    refused(zipped, "more than 100 times its size")
