"""A run ends with its results, and `show` prints them again."""

import io
import json
import re

import polars as pl
import pytest
from conftest import SMALL, lines, narrows
from rich.console import Console

from narrows import api, wording
from narrows.cli import results as headlines
from narrows.report import brief, headline

pytestmark = pytest.mark.simulator


@pytest.fixture
def small(folder):
    """An experiment file in the working directory, and what its run printed."""
    (folder / "small.toml").write_text(SMALL)
    done = narrows("run", "small.toml")
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_run_ends_with_a_row_for_each_scheme_and_what_is_next(small):
    assert [line.split()[0] for line in small.splitlines() if re.match(r"(cubic|gemini) ", line)] == ["cubic", "gemini"]
    assert "All flows, mean" in small
    assert small.splitlines()[-3:] == [
        "next: narrows report small", "      narrows compare small", "      narrows explain small",
    ]  # fmt: skip


def test_its_numbers_are_means_over_seeds_of_the_flows(small):
    means = (
        api.load("small")
        .flows.filter("finished")
        .group_by("case", "seed")
        .agg(pl.col("fct_ns").mean() / 1e6)
        .group_by("case")
        .agg(mean=pl.col("fct_ns").mean(), low=pl.col("fct_ns").min(), high=pl.col("fct_ns").max(), seeds=pl.len())
    )
    told = [one for one in lines(narrows("show", "small", "--json").stdout) if one["event"] == "measure"]
    shown = {one["case"]: one for one in told if one["measure"] == "fct_mean"}
    assert len(shown) == 2
    for row in means.iter_rows(named=True):
        for key in ("mean", "low", "high"):
            assert shown[row["case"]][key] == pytest.approx(row[key])
        assert (shown[row["case"]]["seeds"], shown[row["case"]]["interval"]) == (row["seeds"], "range")


def test_results_are_shown_by_name_with_where_they_come_from(small, folder):
    told = lines(narrows("show", "small", "--json").stdout)[0]
    shown = [told[key] for key in ("seeds", "runs", "state", "command")]
    assert shown == ["1..2", 4, "current", "narrows run small.toml"]
    done = narrows("show", "small")
    assert "narrows run small.toml" in done.stdout
    assert told["date"].replace("T", " ").replace("Z", " UTC") in done.stdout
    assert narrows("show", "small.toml").stdout == done.stdout


def test_a_component_is_meant_before_results_of_its_name(folder):
    (folder / "cubic.toml").write_text(SMALL)
    assert narrows("run", "cubic.toml", "--seeds", "1..1").returncode == 0
    assert narrows("show", "cubic").stdout.startswith("CUBIC")
    unknown = narrows("show", "quartic")
    assert (unknown.returncode, unknown.stdout) == (2, "")
    assert unknown.stderr.startswith("error: no component, measure or result is called 'quartic'\n")


def test_seeds_that_change_nothing_are_no_one_seed(folder):
    same = """
    topology.dumbbell.pairs = 1
    traffic = [{ name = "bulk", from = "left-*", to = "right-*", long = {} }]
    arm = [{ name = "cubic", cc = "cubic" }]
    run = { end = "100ms", seeds = "1..=2" }
    """
    (folder / "same.toml").write_text(same)
    assert "\nall seeds give the same results: no intervals\n" in narrows("run", "same.toml").stdout


def test_ranges_are_told_of_only_where_there_may_be_some(folder):
    five = SMALL.replace("1..=2", "1..=5").replace('end = "100ms"', 'end = "20ms"')
    long = re.sub(
        r"(?s)arrivals.*?web-search\" }\n", 'long = { flows = 2, spread = "10ms" }\n', five.replace("20ms", "200ms")
    )
    (folder / "five.toml").write_text(long)
    assert "\nmeans over 5 seeds, with 95 % confidence intervals\n" in narrows("run", "five.toml").stdout
    # With some seeds no large flow is finished after so short a time.
    (folder / "few.toml").write_text(five)
    few = "confidence intervals; if fewer than 5 seeds have a value, with the smallest and the largest\n"
    assert few in narrows("run", "few.toml").stdout


def test_what_wires_lose_is_said_where_only_what_ports_drop_is_shown(small, folder):
    (folder / "lossy.toml").write_text(SMALL.replace("servers = 2", "servers = 2\nwan = { loss = 0.05 }"))
    narrows("run", "lossy.toml")
    frames = api.load("lossy").frames
    lost = frames.ports["lost_on_wire_packets"].sum()
    assert lost > 10
    said = f"; dropped are those that ports drop: wires lost {wording.plural(lost, 'packet')} more"
    assert brief.on_wires(frames, [headline.LOSS]) == said
    assert brief.on_wires(frames, [headline.LOSS, headline.WIRE]) == "", "it has a column"
    assert brief.on_wires(frames, [headline.WIRE]) == ""
    assert brief.on_wires(api.load("small").frames, [headline.LOSS]) == ""


def test_a_sweep_shows_as_many_configurations_as_a_report_charts(folder):
    sweep = SMALL + '[sweep]\n"wan.delay" = [' + ", ".join(f'"{delay}ms"' for delay in range(1, 9)) + "]\n"
    (folder / "sweep.toml").write_text(sweep.replace('end = "100ms"', 'end = "20ms"').replace("1..=2", "1..=1"))
    done = narrows("run", "sweep.toml")
    assert (
        "12 of 16 configurations (without delay=3ms or 6ms; all: `narrows report`); one seed: no intervals"
        in done.stdout
    )
    assert len(re.findall(r"^(?:cubic|gemini) · ", done.stdout, re.MULTILINE)) == 12
    assert "narrows explain sweep --scheme 'cubic · delay=1ms'" in done.stdout


def test_a_damaged_table_is_named_with_its_run_and_the_run_command_goes_on(small, folder):
    table = sorted((folder / "runs").glob("*/2/flows.parquet"))[0]
    content = bytearray(table.read_bytes())
    content[len(content) // 2] ^= 1
    table.write_bytes(content)
    again = narrows("run", "small.toml")
    plan = table.parent.parent.name
    (case,) = [member.case for member in api.load("small").entry.members if member.hash == plan]
    damaged = f"runs/{plan}/2/flows.parquet ({case}, seed 2) is damaged"
    assert (again.returncode, f"warning: {damaged}" in again.stderr) == (0, True)
    assert again.stdout.splitlines()[1] == "next: narrows report small", "no half of a table"
    for verb in ("show", "compare", "report"):
        done = narrows(verb, "small")
        assert (done.returncode, f"error: {damaged}" in done.stderr) == (2, True), verb


def test_a_run_for_programs_prints_lines_only(folder):
    (folder / "small.toml").write_text(SMALL)
    done = narrows("run", "small.toml", "--json", "--seeds", "1..1")
    assert [json.loads(line)["event"] for line in done.stdout.splitlines()] == ["run", "run", "finished"]


@pytest.mark.parametrize("width", [60, 80])
def test_a_narrow_terminal_breaks_no_number(small, monkeypatch, width):
    out = Console(width=width, file=io.StringIO(), force_terminal=True, color_system=None)
    monkeypatch.setattr(headlines, "OUT", out)
    found = headlines.tell_headline(api.load("small"))
    shown = out.file.getvalue()
    numbers = {cell.text for row in found.rows for cell in row.cells if cell.text[0].isdigit()}
    assert numbers
    assert all(re.search(rf"(?<![\d.]){re.escape(wording.plain(number))}(?![\d.])", shown) for number in numbers), shown


def test_flows_that_did_not_finish_are_why_there_is_no_completion_time(folder):
    text = SMALL.replace('{ cdf = "web-search" }', '{ fixed = "100MB" }')
    text = text.replace('load = 0.5, of = "wan"', 'rate = "50/s"')
    (folder / "never.toml").write_text(text.replace('drain = "1s"', 'drain = "1ms"'))
    done = narrows("run", "never.toml")
    assert "All flows" not in done.stdout
    note = r"^note: \d+ of \d+ flows did not finish \(cubic.*gemini\): their times are given where at most 0.1 % do not"
    assert re.search(note, done.stdout, re.MULTILINE), done.stdout
    assert "flows did not finish (cubic" in narrows("show", "never").stdout
    (told,) = [event for event in lines(narrows("show", "never", "--json").stdout) if event["event"] == "result"]
    assert any("flows did not finish (cubic" in notice for notice in told["notices"])


def test_nothing_is_said_of_unfinished_flows_where_all_times_are_given(small):
    assert "did not finish" not in small


def test_times_of_one_size_do_not_hide_that_others_are_missing(folder):
    text = SMALL.replace('{ cdf = "web-search" }', '{ file = "two.cdf" }')
    (folder / "two.cdf").write_text("1000 0.5\n1000 0.9\n90000000 0.9\n90000000 1\n")
    (folder / "some.toml").write_text(text.replace('drain = "1s"', 'drain = "1ms"'))
    done = narrows("run", "some.toml")
    assert "Small flows" in done.stdout, done.stderr
    assert re.search(r"^note: \d+ of \d+ flows did not finish \(", done.stdout, re.MULTILINE), done.stdout


def test_requests_that_finished_are_not_called_unfinished_flows(folder):
    text = SMALL[: SMALL.index('between = "datacenters"')] + SMALL[SMALL.index("[[arm]]") :]
    arrivals = 'arrivals = { poisson = { rate = "99/s" } }'
    incast = f'incast = {{ clients = "a1-1", servers = "a1-*", response = "2KB", {arrivals} }}\n'
    (folder / "asked.toml").write_text(text.replace("[[arm]]", incast + "[[arm]]", 1))
    done = narrows("run", "asked.toml")
    assert "Requests" in done.stdout, done.stderr
    assert "did not finish" not in done.stdout


def test_run_says_which_runs_took_one_thread(folder):
    little = SMALL.replace('end = "100ms"', 'end = "20ms"').replace(
        "servers = 2", 'servers = 2\nwan = { delay = "1us" }'
    )
    (folder / "little.toml").write_text(little)
    done = narrows("run", "little.toml", "--threads", "2")
    assert "4 of 4 new runs made by one thread" in done.stdout, done.stdout
    assert "by one thread" not in narrows("run", "little.toml", "--threads", "2").stdout, "none is new"
