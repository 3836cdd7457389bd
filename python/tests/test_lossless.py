"""Networks with and without pauses: how long work takes, who loses, how long queues are; panels of the matrix.

And every file and command of `docs/how-to/lossless.md`.
"""

import json
import re
import shlex
import sys
import tomllib
from dataclasses import replace

import polars as pl
import pytest
from conftest import CHECKOUT, flows, frames, installed, labelled, ports, said_by, samples, shorter

from narrows.figures import lossless
from narrows.frames import when_read
from narrows.measures.named import NotEvaluable, value_by_seed

MS = 1_000_000


def asked(case, *times_ms):
    """Requests that took so long."""
    made = pl.DataFrame({"completion_ns": [int(time * MS) for time in times_ms]}, schema={"completion_ns": pl.UInt64})
    return labelled(made.with_columns(responses=pl.lit(2), timeouts=pl.lit(0)), case)


def ran(case, end_ms):
    """A program of one rank."""
    row = {"workload": "p", "rank": 0, "start_ns": 0, "end_ns": end_ms * MS, "finished": True}
    return labelled(pl.DataFrame([row]), case)


def answers(case, waited_ms, dropped, *handshakes_us):
    """Flows that answer requests, summed."""
    row = {
        "source": "h1", "workload": "request/1", "flows": 2, "unfinished": 0, "timeouts": 3, "size_bytes": 1,
        "retransmitted_bytes": 0, "dropped_bytes": dropped, "handshake_ns": 1000 * sum(handshakes_us),
        "handshakes": len(handshakes_us), "rto_wait_ns": waited_ms * MS,
    }  # fmt: skip
    return labelled(pl.DataFrame([row]), case)


def long(*rows, case="a"):
    """Flows without a size, from (goodput in Mbit/s, dropped MB)."""
    made = [{"workload": "long", "goodput_mbps": float(rate), "dropped_bytes": int(lost * 1e6)} for rate, lost in rows]
    return labelled(pl.DataFrame(made), case)


def made(*cases, series=None):
    """Each with flows of 40 KB that lost 2 KB: one waited 20 ms, 10 of them for its SYN, one opened in 110 us."""
    opened = pl.DataFrame(
        {"handshake_ns": [10_070_000, 110_000], "syn_retransmits": [1, 0], "rto_wait_ns": [20 * MS, 0]},
        schema={"handshake_ns": pl.UInt64, "syn_retransmits": pl.UInt32, "rto_wait_ns": pl.UInt64},
    )
    rows = [flows((40_000, 1), (40_000, 1), case=case).hstack(opened) for case in cases]
    return frames(rows, [port(case) for case in cases], series)


def port(case, name="s", longest=150_000, p99=30_000):
    row = ports((name, "edge", 10, 0, 0.5), case=case)
    return row.with_columns(queue_max_bytes=pl.lit(longest), queue_p99_bytes=pl.lit(p99), measured_ns=pl.lit(1000 * MS))


def test_work_is_requests_in_the_mean_or_a_program_and_ratios_of_its_means_are_means_of_ratios():
    runs = replace(
        made("a · n=1", "a · n=2", "b · n=1", "b · n=2"),
        requests=pl.concat([asked("a · n=1", 1, 3), asked("b · n=1", 4)]),
        ranks=pl.concat([ran("a · n=2", 8), ran("b · n=2", 4)]),
    )
    assert value_by_seed(runs, "completion", ("a",)) == {1: pytest.approx(4.0)}  # √(2 · 8)
    ratio = value_by_seed(runs, "completion", ("b",))[1] / value_by_seed(runs, "completion", ("a",))[1]
    assert ratio == pytest.approx((4 / 2 * 4 / 8) ** 0.5)


def test_flows_that_nothing_asks_for_are_not_read():
    read = []

    def table():
        read.append(True)
        return flows((10, 1))

    runs = replace(made("a"), flows=when_read(table), ranks=ran("a", 8))
    assert value_by_seed(runs.of(["a"]), "completion", ("a",)) == {1: pytest.approx(8.0)}
    assert not read
    assert len(runs.flows) == len(runs.flows) == 1
    assert len(read) == 1


def test_waits_losses_and_handshakes_are_of_answers_too_and_handshakes_of_those_that_lost_no_syn():
    runs = replace(made("a"), answers=answers("a", 5, 5_000_000, 70, 90))
    assert value_by_seed(runs, "timeout_wait", ("a",)) == {1: pytest.approx(25.0)}
    assert value_by_seed(runs, "dropped", ("a",)) == {1: pytest.approx(5.004)}
    assert value_by_seed(runs, "handshake_mean", ("a",)) == {1: pytest.approx(90.0)}
    assert value_by_seed(runs, "flow_count", ("a",)) == {1: 2.0}
    # A traffic is named without its direction.
    assert value_by_seed(runs, "dropped", ("a / request",)) == {1: pytest.approx(5.0)}
    assert value_by_seed(runs, "handshake_mean", ("a / request",)) == {1: pytest.approx(80.0)}
    with pytest.raises(NotEvaluable, match="no flow belongs to a traffic called req"):
        value_by_seed(runs, "dropped", ("a / req",))


def test_the_longest_queue_counts_framing_and_no_hosts():
    runs = frames(
        [flows((1, 1))], [port("a"), port("a", "t", 75_000), port("a", "h", 900_000).with_columns(role=pl.lit("host"))]
    )
    # 100 packets of 1538 bytes at 1 Gbit/s.
    assert value_by_seed(runs, "queueing_delay_largest", ("a",)) == {1: pytest.approx(1.2304)}
    assert value_by_seed(runs, "queue_p99_watched", ("a",)) == {1: pytest.approx(30.0)}


def test_the_largest_rtt_is_that_of_a_flow():
    slow, fast = (flows((10, 1)).with_columns(rtt_mean_ns=pl.lit(each * MS)) for each in (3, 1))
    assert value_by_seed(frames([slow, fast], [port("a")]), "rtt_largest", ("a",)) == {1: pytest.approx(3.0)}


def test_near_a_pause_is_from_80_to_102_4_kilobytes_of_the_samples_that_find_a_queue():
    backlogs = [0, 79_999, 80_000, 102_400, 102_401, 0, 90_000]
    taken = samples(*(("s->x", (place + 1) * MS, "queue_bytes", float(each)) for place, each in enumerate(backlogs)))
    assert value_by_seed(made("a", series=taken), "queue_near_pause", ("a",)) == {1: pytest.approx(3 / 5)}


def test_congestion_is_counted_by_port_and_episode_and_of_a_program_until_it_ends():
    rows = {"s->x": [0, 30_000, 30_000, 0, 30_000, 30_000], "t->x": [0, 0, 30_000, 0, 0, 30_000]}
    taken = samples(
        *(
            (entity, (place + 1) * MS, "queue_bytes", float(each))
            for entity, backlogs in rows.items()
            for place, each in enumerate(backlogs)
        )
    )
    plain = replace(made("a", series=taken), requests=asked("a", 1))
    assert value_by_seed(plain, "congested_share", ("a",)) == {1: pytest.approx(6 / 12)}
    # Four episodes of 2, 2, 1 and 1 samples, a millisecond apart.
    assert value_by_seed(plain, "congested_time", ("a",)) == {1: pytest.approx(1500)}
    program = replace(made("a", series=taken), ranks=ran("a", 4))
    assert value_by_seed(program, "congested_share", ("a",)) == {1: pytest.approx(3 / 8)}
    assert value_by_seed(program, "congested_time", ("a",)) == {1: pytest.approx(1500)}


def test_the_largest_flow_and_the_others():
    runs = replace(made("a"), long=long((100, 2), (300, 1), (200, 4)))
    # Of a line of 1 Gbit/s, less framing and headers.
    assert value_by_seed(runs, "largest_share", ("a",)) == {1: pytest.approx(0.3 * 1538 / 1448)}
    assert value_by_seed(runs, "dropped_of_largest", ("a",)) == {1: pytest.approx(1.0)}
    assert value_by_seed(runs, "dropped_of_others", ("a",)) == {1: pytest.approx(6.0)}
    with pytest.raises(NotEvaluable):
        value_by_seed(made("a"), "largest_share", ("a",))


def test_the_panels_have_a_row_for_each_reading_that_has_values():
    values = {
        lossless.case("red+pfc", "cubic", reading="output"): {1: 4.0, 2: 6.0},
        lossless.case("none", "cubic", reading="output"): {1: 2.5},
    }
    drawn = lossless.panels(lambda case: values.get(case, {}), "Time", "times the best", best=True).to_dict()
    (row,) = drawn["vconcat"]
    assert row["title"] == "Time; memory by output port"
    (panel,) = row["hconcat"]
    assert panel["title"]["text"] == "CUBIC"
    (data,) = drawn["datasets"].values()
    assert [(each["managed"], each["fabric"], each["mean"]) for each in data] == [
        ("unmanaged", "drop", 1.0), ("RED", "pause (PFC)", 2.0),
    ]  # fmt: skip
    # Points, on an axis that ends just outside of the intervals.
    points = panel["layer"][0]
    assert points["mark"]["type"] == "point"
    low, high = points["encoding"]["y"]["scale"]["domain"]
    assert 0.8 < low < 1 < 2.4 < high


def test_a_queue_without_pauses_stands_over_the_same_with_them_on_one_scale():
    cases = [lossless.case(f"qcn-66{pauses}", "newreno", reading="output") for pauses in ("", "+pfc")]
    rows = [("s->x", time * MS, "queue_bytes", high) for time, high in ((1, 9e5), (5, 7e4), (6, 8e4), (9, 9e5))]
    series = pl.concat([labelled(samples(*rows), case) for case in cases])
    drawn = lossless.queue_over_time(made(*cases, series=series), "s->x", "newreno", (5, 8)).to_dict()
    assert [row["title"]["text"] for row in drawn["vconcat"]] == [
        f"s → x, NewReno, first seed: switches {words}; memory by output port" for words in ("drop", "pause")
    ]
    above, below = (row["hconcat"][lossless.MANAGED.index("qcn-66")]["layer"] for row in drawn["vconcat"])
    assert above[0]["encoding"] == below[0]["encoding"] | {"x": above[0]["encoding"]["x"]}
    assert below[0]["encoding"]["x"]["axis"]["title"] == "time, ms"
    assert [each["time"] for each in drawn["datasets"][above[0]["data"]["name"]]] == [5, 6]
    named = [[each["label"] for each in drawn["datasets"][layers[1]["data"]["name"]]] for layers in (above, below)]
    assert named == [["memory", "set point"], ["pause", "resume", "set point"]]


@pytest.mark.parametrize("name", ["commercial", "commercial-udp", "congestion", "hotspot", "scientific", "shares"])
def test_the_lines_of_figures_are_what_the_experiments_state(name):
    stated = tomllib.loads((CHECKOUT / "experiments" / "cee" / name / "experiment.toml").read_text())
    assert stated["topology"]["leaf-spine"]["fabric"]["limit"] == f"{lossless.MEMORY_KB * 1000:.0f}B"
    told = json.dumps([arm.get("set", {}) for arm in stated["arm"]])
    pauses = {"xoff": f"{lossless.PAUSE_KB:g}KB", "xon": f"{lossless.RESUME_KB:g}KB"}
    assert told.count(json.dumps({"pfc": pauses})) == told.count("pfc") > 0
    for scheme in ("qcn-20", "qcn-66") if "red" in told else ():
        assert f'"set-point": "{lossless.ASKED_KB[scheme]["set point"]:g}KB"' in told
    low, high = lossless.ASKED_KB["red"].values()
    assert told.count(f'"min": "{low:g}KB", "max": "{high:g}KB"') == told.count('"red"')


@pytest.mark.simulator
@pytest.mark.page
def test_the_how_to_works_as_it_stands(real, folder):
    page = (CHECKOUT / "docs" / "how-to" / "lossless.md").read_text()
    text = shorter(page, ('seeds = "1..3"', 'seeds = "1..1"'))
    found = re.findall(r"(?:`([\w.]+)`:\n\n)?```(\w+)\n(.*?)```", text, re.DOTALL)
    assert len(found) == text.count("\n```") // 2
    refusals = []
    for name, language, block in found:
        if language == "text":
            assert block.strip() in refusals.pop()
        elif language == "sh":
            for line in block.splitlines():
                program, *arguments = shlex.split(line, comments=True)
                if line.endswith("# refused"):
                    done = installed(real, *arguments)
                    assert done.returncode == 2
                    refusals.append(done.stderr)
                else:
                    python = {"program": sys.executable} if program == ".venv/bin/python" else {}
                    said_by(real, *arguments, **python)
        else:
            (folder / name).write_text(block)
    assert not refusals
    printed = said_by(real, "paused.py", program=sys.executable)
    assert "CUBIC+PFC ┆ host" in printed
    assert "DCTCP+PFC ┆ host" not in printed
    less = refused(real, "slower.toml", "fabric.limit=100KB")
    assert "`l1-1->leaf-1` has 20KB, and 21KB may come" in less
    output = refused(real, "lossless.toml", "fabric.buffering=output")
    assert "and 72KB may come" in output


def refused(real, file, setting):
    done = installed(real, "check", file, "--set", setting)
    assert done.returncode == 2
    return done.stderr
