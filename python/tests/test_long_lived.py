"""Flows without a size, requests, and what a report and a comparison say of them."""

import copy
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
from conftest import flows, frames, ports

from narrows.figures import longlived as over_time
from narrows.measures import longlived
from narrows.measures.named import NotEvaluable, value_by_seed
from narrows.report import headline

NARROWS = Path(sys.executable).with_name("narrows")
PLAN = {
    "network": {
        "nodes": [{"name": "h1"}, {"name": "h2"}, {"name": "s"}],
        "links": [
            {"from": one, "to": other, "delay": delay}
            for one, other, delay in ((0, 2, 5_000_000), (2, 0, 5_000_000), (1, 2, 10_000_000), (2, 1, 20_000_000))
        ],
    },
    "traffic": [
        {
            "name": "bulk",
            "pattern": {
                "list": [
                    {"at": 0, "source": 0, "destination": 1, "size": None},
                    {"at": 5_000_000, "source": 0, "destination": 1, "size": 1000},
                ]
            },
        },
        {"name": "web", "pattern": {"open": {}}},
    ],
}
TWO_LONG = """
[topology.dumbbell]
pairs = 2
[[traffic]]
name = "bulk"
from = "left-*"
to = "right-*"
cc = "bbr"
long = { flows = 1 }
[[traffic]]
name = "other"
from = "left-*"
to = "right-*"
cc = "cubic"
long = { flows = 1 }
[[arm]]
name = "one"
cc = "cubic"
[[arm]]
name = "two"
cc = "cubic"
set = { "fabric.limit" = "200pkt" }
[run]
end = "200ms"
warmup = "50ms"
drain = "1s"
seeds = "1..=1"
[sample]
goodput = "20ms"
windows = "20ms"
"""


def long(*goodputs, case="a", seed=1, controller="cubic", workload="bulk"):
    count = len(goodputs)
    return pl.DataFrame(
        {
            "case": [case] * count, "arm": [case] * count, "seed": [seed] * count, "flow": list(range(count)),
            "source": ["h1"] * count, "workload": [workload] * count, "controller": [controller] * count,
            "goodput_mbps": [float(value) for value in goodputs], "rtt_mean_ns": [2_000_000] * count,
            "size_bytes": [1000] * count, "retransmitted_bytes": [100] * count,
        },
        schema_overrides={"seed": pl.UInt64},
    )  # fmt: skip


def sample(*parts, **kwargs):
    made = frames([flows((10, 1)).clear()], [ports(("b", "fabric", 100, 1, 0.1), **kwargs)])
    return replace(made, long=pl.concat(parts))


def test_only_flows_without_a_size_are_long_lived_and_those_of_the_warm_up_count():
    rows = pl.DataFrame(
        {
            "workload": ["bulk", "bulk", "web"], "start_ns": [0, 5000, 0], "source": ["h1"] * 3,
            "destination": ["h2"] * 3, "delivered_after_warmup_bytes": [1_000_000] * 3, "flow": [0, 1, 2],
        },
        schema_overrides={"start_ns": pl.UInt64},
    )  # fmt: skip
    found = longlived.measured(rows.lazy(), PLAN, 1_000_000_000).collect()
    assert found.select("workload", "start_ns", "goodput_mbps").rows() == [("bulk", 0, 8.0)]
    assert found.select("due_ns", "stop_ns", "base_rtt_ns").rows() == [(0, None, 40_000)]


def test_a_flow_may_start_anywhere_within_its_spread():
    plan = copy.deepcopy(PLAN)
    (bulk,) = (traffic for traffic in plan["traffic"] if traffic["name"] == "bulk")
    for flow in bulk["pattern"]["list"]:
        flow["spread"] = 4_000_000
    starts = [0, 1234, 4000, 4001]
    rows = pl.DataFrame(
        {
            "workload": ["bulk"] * 4, "start_ns": starts, "source": ["h1"] * 4, "destination": ["h2"] * 4,
            "delivered_after_warmup_bytes": [1] * 4, "flow": [0, 1, 2, 3],
        },
        schema_overrides={"start_ns": pl.UInt64},
    )  # fmt: skip
    assert longlived.measured(rows.lazy(), plan, 1).collect()["start_ns"].to_list() == [0, 1234, 4000]


def test_jain_is_one_for_equals_and_half_for_one_of_two():
    assert value_by_seed(sample(long(5, 5)), "jain_long", ("a",)) == {1: 1.0}
    assert value_by_seed(sample(long(5, 0)), "jain_long", ("a",)) == {1: 0.5}
    assert value_by_seed(sample(long(5, 1)), "goodput_long", ("a",)) == {1: 3.0}
    assert value_by_seed(sample(long(5, 1)), "goodput_total", ("a",)) == {1: 6.0}
    assert value_by_seed(sample(long(5, 1)), "rtt_long", ("a",)) == {1: 2.0}
    with pytest.raises(NotEvaluable):
        value_by_seed(frames([flows((10, 1))], [ports(("b", "wan", 1, 0, 0.1))]), "goodput_long", ("a",))


def test_groups_are_by_controller():
    table = longlived.by_group(sample(long(6, 2), long(4, controller="bbr")))
    assert table.select("controller", "flows", "goodput_mbps", "rtt_ms", "retransmitted").rows() == [
        ("cubic", 2, 4.0, 2.0, 0.1),
        ("bbr", 1, 4.0, 2.0, 0.1),
    ]


def test_the_headline_has_only_what_there_is():
    made = sample(long(6, 2), long(4, controller="bbr"))
    assert [column.measure for column in headline.columns(made)] == ["goodput_long", "jain_long", "loss_dc"]
    assert [(row.part, row.cells[0].text) for row in headline.table(made)] == [
        ("", "4.00"), ("bulk, bbr", "4.00"), ("bulk, cubic", "4.00"),
    ]  # fmt: skip
    apart = sample(long(6, 2), long(4, controller="bbr", workload="burst"))
    assert [(row.part, row.cells[0].text) for row in headline.table(apart)] == [
        ("", "–"), ("bulk, cubic", "4.00"), ("burst, bbr", "4.00"),
    ]  # fmt: skip
    web = frames([flows((10, 1))], [ports(("b", "wan", 1, 0, 0.1))])
    assert {"loss_wan", "utilisation_wan_busiest", "fct_mean"} <= {column.measure for column in headline.columns(web)}


def test_a_chart_over_time_has_a_line_for_each_flow():
    series = pl.LazyFrame(
        {"case": ["a"] * 4, "seed": [1] * 4, "time_ns": [10, 20, 10, 20],
         "entity": ["flow-0", "flow-0", "flow-1", "flow-1"], "quantity": ["goodput_bps"] * 4,
         "value": [1e6, 2e6, 3e6, 4e6]},
        schema_overrides={"seed": pl.UInt64, "time_ns": pl.UInt64},
    )  # fmt: skip
    made = replace(sample(long(6, 2)), series=series)
    drawn = over_time.over_time(made, longlived.GOODPUT).to_dict()
    (data,) = drawn["datasets"].values() if "datasets" in drawn else (drawn["data"]["values"],)
    assert [(row["flow"], row["value"]) for row in data] == [(0, 1.0), (0, 2.0), (1, 3.0), (1, 4.0)]
    assert over_time.over_time(made, longlived.WINDOW) is None


def test_requests_have_times_and_timeouts():
    asked = pl.DataFrame(
        {"case": ["a"] * 3, "arm": ["a"] * 3, "seed": [1] * 3, "completion_ns": [1_000_000, 3_000_000, None],
         "responses": [2, 2, 1], "timeouts": [0, 0, 3]},
        schema_overrides={"seed": pl.UInt64},
    )  # fmt: skip
    made = replace(frames([flows((10, 1))], [ports(("b", "fabric", 1, 0, 0.1))]), requests=asked)
    with pytest.raises(NotEvaluable, match="1 of 3 requests did not finish"):
        value_by_seed(made, "request_mean", ("a",))
    done = replace(made, requests=asked.drop_nulls())
    assert value_by_seed(done, "request_mean", ("a",)) == {1: 2.0}
    assert value_by_seed(done, "request_timeouts", ("a",)) == {1: 0.0}
    assert {"request_mean", "request_p99", "request_timeouts"} <= {item.measure for item in headline.columns(made)}


def test_a_real_run_of_long_flows_has_a_report_and_a_comparison(real, folder):
    (folder / "long.toml").write_text(TWO_LONG)

    def done(*arguments):
        made = subprocess.run([NARROWS, *arguments], env=real, capture_output=True, text=True, timeout=120)
        assert made.returncode == 0, made.stderr
        return made.stdout

    done("run", "long.toml")
    compared = [json.loads(line) for line in done("compare", "long", "--json").splitlines()]
    assert {"goodput_long", "jain_long"} <= {item["measure"] for item in compared}
    text = (folder / done("report", "long").strip()).read_text()
    for shown in ("long", "queues", "losses"):
        assert f'href="#{shown}"' in text
        assert f'<section id="{shown}">' in text
    for hidden in ("completion", "distribution", "slowdown", "recovery", "claims"):
        assert f'href="#{hidden}"' not in text
        assert f'<section id="{hidden}">' not in text
    assert "Dropped in WAN" not in text
    assert 'id="chart-goodput"' in text
    assert 'id="chart-window"' in text
    assert "bulk, bbr" in text
