"""Every file and command of pages of `docs/how-to`, with the real simulator."""

import re
import shlex
import sys
from pathlib import Path

import polars as pl
import pytest
from conftest import CHECKOUT, said_by, shorter


def blocks(page, *pairs):
    """(name of the file in the line before, or nothing; language; text), in the order of the page."""
    text = shorter((CHECKOUT / "docs" / "how-to" / page).read_text(), *pairs)
    found = re.findall(r"(?:`([\w./-]+)`[^\n`]*:\n\n)?```(\w+)\n(.*?)```", text, re.DOTALL)
    assert len(found) == text.count("\n```") // 2
    return found


@pytest.mark.page
def test_the_how_to_works_as_it_stands(real, folder):
    """One test: each section builds on those before it."""

    pairs = (
        ('end = "60s"\nwarmup = "5s"', 'end = "6s"\nwarmup = "1s"'),
        ('run.end="90s"', 'run.end="7s"'),
        ('end = "2s"\nseeds = "1..5"', 'end = "300ms"\nseeds = "1..2"'),
        ("bench W1 W2 --repeat 2", "bench W1 --repeat 1 --no-instructions"),
    )
    said = []
    for name, language, text in blocks("experiments.md", *pairs):
        if language == "sh":
            for line in text.splitlines():
                command, *arguments = shlex.split(line, comments=True)
                assert command == ".venv/bin/narrows"
                if arguments[0] == "reproduce":
                    (folder / "experiments/office/fig1/experiment.toml").write_text(Path("mine.toml").read_text())
                said.append(said_by(real, *arguments))
            continue
        if language == "console":
            continue  # of a cluster: test_cluster.py
        assert name.endswith({"toml": ".toml", "python": ".py"}[language])
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
        if name == "lab.py":
            said.append(said_by(real, name, program=sys.executable))
    everything = "\n".join(said)
    for words in ("10 new, 0 reused", "fct_small_mean", "mean_ms", "office-1"):
        assert words in everything
    written = ["reports/report-mine.html", "figures/office-fig1.svg", "figures/office-fig1.png"]
    assert all((folder / "runs" / path).is_file() for path in written)


@pytest.mark.page
def test_the_page_on_slow_flows_works_as_it_stands(real, folder):
    said = {}
    for name, language, text in blocks("slow-flows.md"):
        if language == "sh":
            for line in text.splitlines():
                _, *arguments = shlex.split(line, comments=True)
                said[arguments[0]] = said_by(real, *arguments)
            continue
        (folder / name).write_text(text)
        if language == "python":
            said[name] = said_by(real, name, program=sys.executable)
    assert "flow 13, by reason, place and port:" in said["explain"]
    assert "100.0%" in said["explain"]
    assert "border-a->border-b" in said["trace"]
    assert all(
        (folder / path).is_file() for path in ("trace/packets.pcapng", "trace/hops.parquet", "wan/packets.pcapng")
    )
    assert "waits_for" in said["slow.py"]


@pytest.mark.page
def test_the_page_on_equal_paths_works_as_it_stands(real, folder):
    shown = []
    for name, language, text in blocks("equal-paths.md", ('seeds = "1..5"', 'seeds = "1..2"')):
        if language == "sh":
            shown.append(said_by(real, *shlex.split(text)[1:]))
            continue
        file = folder / (name or "equal-paths.toml")
        file.write_text((file.read_text() if not name else "") + text)
        if language == "python":
            shown.append(said_by(real, name, program=sys.executable))
    said = "\n".join(shown)
    assert "8 new, 0 reused" in said
    # The others have no gap, so that their runs are the same, and so are those of the gap of 50 us.
    assert "8 new, 8 reused" in said
    assert "flowlets · gap=200us" in said
    assert "│ rehashing" in said


@pytest.mark.parametrize(
    ("page", "experiment", "file", "controller", "edit", "schemes"),
    [
        ("controllers-in-c.md", "cautious.toml", "cautious.bpf.c", "cautious", ("(tp->snd_cwnd + 7) / 8", "1"), 1),
        ("controllers-in-plain-c.md", "in-plain-c.toml", "cautious.c", "cautious", ("0.005", "0.004"), 2),
        ("controllers-in-python.md", "in-python.toml", "cautious.py", "Cautious", ("0.005", "0.002"), 1),
    ],
)
@pytest.mark.page
def test_a_page_on_controllers_in_files_works_as_it_stands(
    real, folder, page, experiment, file, controller, edit, schemes
):
    pairs = (('end = "20s"\nwarmup = "5s"', 'end = "4s"\nwarmup = "1s"'),)
    said = {}
    for name, language, text in blocks(page, *pairs):
        if language == "sh" and (folder / experiment).exists():
            for line in text.splitlines():
                _, *arguments = shlex.split(line, comments=True)
                said[arguments[0]] = said_by(real, *arguments)
        elif name:
            (folder / name).write_text(text)
    assert f"{1 + schemes} plans × 2 seeds" in said["check"]
    assert "cautious" in said["run"]
    assert "cautious" in said["compare"]
    flows = pl.read_parquet(folder / "runs" / "*" / "1" / "flows.parquet")
    assert set(flows["controller"].unique()) == {"newreno", controller}
    assert edit[0] in (folder / file).read_text()
    (folder / file).write_text((folder / file).read_text().replace(*edit))
    again = said_by(real, "run", experiment)
    assert f"{2 * schemes} new, 2 reused" in again, "an edited file makes its runs again"


def test_the_example_of_the_reference_is_an_experiment(real, folder):
    text = (CHECKOUT / "docs" / "reference" / "experiment-file.md").read_text()
    example = re.search(r"```toml\n(.*?)```", text, re.DOTALL).group(1)
    (folder / "example.toml").write_text(example)
    assert said_by(real, "check", "example.toml").startswith(
        "Web search across the WAN\n6 plans × 10 seeds = 60 runs of 2 min 45 s simulated"
    )


@pytest.mark.page
def test_the_readmes_experiment_and_commands_work(real, folder):
    text = (CHECKOUT / "README.md").read_text()
    name, experiment = re.search(r"`(\S+\.toml)`:\n\n```toml\n(.*?)```", text, re.DOTALL).groups()
    (folder / name).write_text(experiment)
    commands = re.search(r"```sh\n(.*?)```", text, re.DOTALL).group(1)
    shown = re.search(r"```text\n(.*?)```", text, re.DOTALL).group(1)
    for line in commands.splitlines():
        _, *arguments = shlex.split(line, comments=True)
        said = said_by(real, *arguments)
        if arguments[0] == "compare":
            assert said == shown, "put what it says now into the README"
