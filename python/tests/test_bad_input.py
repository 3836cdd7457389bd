"""What users get wrong, with the real simulator and the installed command."""

import hashlib
import json
import re

import pytest
from conftest import SMALL, installed

from narrows import native

SIZES = 'size = { cdf = "web-search" }'
FROM_FILE = 'size = { file = "sizes.cdf" }'
ALLOWED = -(-native.memory_limit_bytes() // 1_000_000)  # rounded up

# What is replaced, by what, where the error is said to be, the sentence, the help.
MISTAKES = [
    ("between", "betwen", "5:1", "unknown key `betwen`", "did you mean `between`?"),
    (
        'end = "100ms"', "end = 100", "15:7",
        "`100` has no unit, and a time since the start of the run is meant",
        'add a unit, for instance "100s"; units: ps, ns, us, ms, s, min',
    ),
    ("load = 0.5", "load = 1.7", "6:33", "the load is 1.7, outside 0 to 1", "choose a value from 0 to 1"),
    (
        'between = "datacenters"', 'from = "a9-*"', "5:8", "no host matches `a9-*`",
        "hosts: a1-1, a1-2, a2-1, a2-2, b1-1, b1-2, b2-1, b2-2",
    ),
    (
        "servers = 2", 'servers = 2\nwan = { limit = "1000B" }', "3:17",
        "a buffer of 1000 B holds not one packet of 1500 B", "make it larger; a useful one holds many packets",
    ),
    (
        "servers = 2", 'servers = 2\nwan = { rate = "0Gbps" }', "3:16", "the rate of a link is zero",
        "choose a value above zero",
    ),
    ('cc = "gemini"', 'cc = "gemni"', "13:6", "unknown controller `gemni`", "did you mean `gemini`?"),
    (
        'seeds = "1..=2"', 'seeds = "1..=2"\n[sample]\nqueues = "1ns"', "8:1",
        ("a run of scheme `cubic` would need about 160017 MB of memory, 160000 MB of it for 1000000000 samples; "
        f"{ALLOWED} MB are allowed"),
        "sample less often, watch fewer ports, or lower the run's end",
    ),
    (
        SIZES, 'size = { file = "../sizes.cdf" }', "7:17", "`../sizes.cdf` is outside the experiment's folder",
        "put the file beside the experiment and name it relatively",
    ),
    (
        SIZES, 'size = { file = "/etc/hostname" }', "7:17", "`/etc/hostname` is outside the experiment's folder",
        "put the file beside the experiment and name it relatively",
    ),
    (
        'cc = "cubic"', 'cc = "cu\\u001b[31mbic"', "10:6", "a text holds a control character",
        "take it out, escapes such as \\u001b too",
    ),
]  # fmt: skip

CDFS = [
    (b"100 0\n1000 0.5\n10000 0.9\n", "sizes.cdf:3: the last cumulative probability must be 1 (or 100)"),
    (b"100 0\n1000 0.5\n2000 0.4\n9000 1\n", "sizes.cdf:3: cumulative probabilities must not go down"),
    (b"100 0\n\xff\x00\x1b[31m", "`sizes.cdf` is not UTF-8 text"),
    (b"\x00\x00\x1b[31m\n", "sizes.cdf:1: a line is a size in bytes and a cumulative probability"),
]

FILES = [
    (b"this is not TOML {{{\n", r"bad\.toml:1:\d+: .+", "write TOML"),
    (bytes(range(128, 256)) * 40, r"bad\.toml: `bad\.toml` is not UTF-8 text", "save it as UTF-8"),
    (b'name = "a\x00b"\n', r"bad\.toml:1:10: .+", "write TOML"),
    (SMALL.encode() + b"\0\0\0", r"bad\.toml:18:4: .+", "write TOML"),
    (b"", r"bad\.toml: `topology` is missing", "add `topology`"),
]


def refused(done, folder):
    """Exit code 2, a sentence and one line of help, no traceback, nothing that could steer a terminal, no run."""
    assert done.returncode == 2, done.stderr
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f]", done.stderr)
    assert len(re.findall(r"^ *help: \S", done.stderr, re.MULTILINE)) == 1, done.stderr
    assert not (folder / "runs").exists()
    return done.stderr


@pytest.mark.parametrize(("instead_of", "written", "place", "sentence", "help_line"), MISTAKES)
def test_a_mistake_has_its_place_its_sentence_and_a_way_out(
    real, folder, instead_of, written, place, sentence, help_line
):
    assert instead_of in SMALL
    (folder / "bad.toml").write_text(SMALL.replace(instead_of, written, 1))
    for verb in (("run", "bad.toml"), ("check", "bad.toml")):
        text = refused(installed(real, *verb), folder)
        assert text.splitlines()[0] == f"bad.toml:{place}: {sentence}"
        assert text.splitlines()[-1] == f"help: {help_line}"
        line = int(place.split(":")[0])
        assert f"{line} | {SMALL.replace(instead_of, written, 1).splitlines()[line - 1]}" in text


@pytest.mark.parametrize(("content", "sentence"), CDFS)
def test_a_bad_distribution_names_its_own_line(real, folder, content, sentence):
    (folder / "sizes.cdf").write_bytes(content)
    (folder / "bad.toml").write_text(SMALL.replace(SIZES, FROM_FILE))
    assert refused(installed(real, "run", "bad.toml"), folder).startswith(f"bad.toml:7:17: {sentence}\n")


@pytest.mark.parametrize(("content", "sentence", "help_line"), FILES)
def test_what_is_not_an_experiment_is_refused(real, folder, content, sentence, help_line):
    (folder / "bad.toml").write_bytes(content)
    text = refused(installed(real, "run", "bad.toml"), folder)
    assert re.match(sentence + "\n", text), text
    assert f"help: {help_line}" in text


def test_a_mistake_leaves_finished_runs_as_they_are(real, folder):
    (folder / "good.toml").write_text(SMALL)
    assert installed(real, "run", "good.toml", "--seeds", "1..1").returncode == 0
    before = hashes(folder / "runs")
    (folder / "good.toml").write_text(SMALL.replace("load = 0.5", "load = 1.7"))
    assert installed(real, "run", "good.toml").returncode == 2
    assert hashes(folder / "runs") == before


def hashes(root):
    """Every file of a folder by its hash; of manifests, all but what clocks say."""
    found = {}
    for path in sorted(root.rglob("*")):
        if not path.is_file() or path.name.startswith("."):
            continue
        content = path.read_bytes()
        if path.name == "manifest.json":
            manifest = json.loads(content)
            clocks = ("cpu_ns", "wall_ns", "hold_ns", "ns_per_packet_hop", "holds_per_packet_hop")
            assert all(manifest.pop(clock) >= 0 for clock in clocks)
            assert manifest["origin"].pop("date")
            content = json.dumps(manifest).encode()
        found[path.relative_to(root).as_posix()] = hashlib.sha256(content).hexdigest()
    return found


def test_the_same_plan_and_seed_are_the_same_bytes(real, folder):
    (folder / "good.toml").write_text(SMALL)
    for out, jobs in (("one", "1"), ("other", "2")):
        assert installed(real, "run", "good.toml", "--out", out, "--jobs", jobs).returncode == 0
    one, other = hashes(folder / "one"), hashes(folder / "other")
    assert len(one) == 4 * 8 + 2, "four runs of eight files, the index, and the experiment"
    assert one == other


def test_the_number_of_threads_changes_no_table(real, folder):
    (folder / "good.toml").write_text(SMALL.replace('end = "100ms"', 'end = "400ms"'))
    for threads in ("1", "2"):
        made = installed(real, "run", "good.toml", "--seeds", "1..1", "--out", threads, "--threads", threads)
        assert made.returncode == 0, made.stderr
    one, two = hashes(folder / "1"), hashes(folder / "2")
    assert [name for name in one if one[name] != two[name]] == [name for name in one if name.endswith("manifest.json")]
    manifests = [sorted((folder / out).glob("*/*/manifest.json")) for out in ("1", "2")]
    one, two = ([json.loads(path.read_text()) for path in paths] for paths in manifests)
    assert [manifest["threads"] for manifest in one] == [1] * len(one)
    assert [manifest["threads"] for manifest in two] == [2] * len(two)
    assert [manifest["events"] for manifest in one] == [manifest["events"] for manifest in two]


def test_a_run_says_what_it_cost_where_it_is_asked(real, folder):
    (folder / "good.toml").write_text(SMALL)
    assert "packet-hops" not in installed(real, "run", "good.toml").stdout
    done = installed(real, "run", "good.toml", "--verbose")
    assert re.search(
        r"packet-hops, \S+ ns of processor time each \(\S+ relative to this machine's event-heap benchmark\)",
        done.stdout,
    )
