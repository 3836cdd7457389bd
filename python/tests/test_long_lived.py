"""Flows without a size, requests, and what a report and a comparison say of them."""

import json
import re
from dataclasses import replace

import polars as pl
import pytest
from conftest import flows, frames, labelled, lines, ports, said_by, samples

import narrows
from narrows import api, native
from narrows.figures import longlived as over_time
from narrows.measures import longlived
from narrows.measures.named import NotEvaluable, value_by_seed
from narrows.report import headline

STATED = {
    "workload": "bulk", "source": "h1", "destination": "h2", "from_ns": 0, "to_ns": 0, "stop_ns": None,
    "base_rtt_ns": 40_000,
}  # fmt: skip
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


def long(*goodputs, case="a", seed=1, controller="cubic", workload="bulk", transport="tcp"):
    table = pl.DataFrame({
        "goodput_mbps": [float(value) for value in goodputs], "flow": range(len(goodputs)), "source": "h1",
        "workload": workload, "controller": controller, "rtt_mean_ns": 2_000_000, "size_bytes": 1000,
        "retransmitted_bytes": 100, "transport": transport,
    })  # fmt: skip
    return labelled(table, case, seed)


def sample(*parts, **kwargs):
    made = frames([flows((10, 1)).clear()], [ports(("b", "fabric", 100, 1, 0.1), **kwargs)])
    return replace(made, long=pl.concat(parts))


def started(*starts_ns, workload="bulk"):
    """Flows from h1 to h2 that began then."""
    starts = pl.Series(starts_ns, dtype=pl.UInt64)
    ends = {"workload": workload, "source": "h1", "destination": "h2"}
    delivered = {"delivered_after_warmup_bytes": 1_000_000}
    return pl.LazyFrame({"start_ns": starts, "flow": range(len(starts))} | ends | delivered)


def test_only_flows_without_a_size_are_long_lived_and_those_of_the_warm_up_count():
    found = longlived.measured(started(0, 5000), [STATED], 1_000_000_000).collect()
    assert found.select("workload", "start_ns", "goodput_mbps").rows() == [("bulk", 0, 8.0)]
    assert found.select("due_ns", "stop_ns", "base_rtt_ns").rows() == [(0, None, 40_000)]
    assert longlived.measured(started(0, workload="web"), [STATED], 1).collect().is_empty()
    without = longlived.measured(started(0), [], 1).collect()
    assert (without.is_empty(), without.columns) == (True, found.columns)


def test_a_flow_may_start_anywhere_within_its_spread():
    found = longlived.measured(started(0, 1234, 4000, 4001), [STATED | {"to_ns": 4000}], 1)
    assert found.collect()["start_ns"].to_list() == [0, 1234, 4000]


def test_on_a_real_kernel_it_counts_though_it_began_late():
    at_a_second = STATED | {"from_ns": 10**9, "to_ns": 10**9}
    late = started(1_002_000_000)
    assert longlived.measured(late, [at_a_second], 10**9).collect().is_empty()
    live = longlived.measured(late, [at_a_second], 10**9, late_ns=longlived.LIVE_LATE_NS).collect()
    assert live["due_ns"].to_list() == [10**9]


def test_a_plan_says_which_flows_have_no_size_and_how_long_their_round_trips_are(folder):
    text = TWO_LONG.replace("long = { flows = 1 }", 'long = { flows = 1, spread = "1ms", stop = "150ms" }', 1)
    body = narrows.Experiment(text).plans[0].body
    first, *_, last = native.long_flows(body)
    assert first | {"base_rtt_ns": 0} == {
        "workload": "bulk", "source": "left-1", "destination": "right-1", "from_ns": 0, "to_ns": 1_000_000,
        "stop_ns": 150_000_000, "base_rtt_ns": 0,
    }  # fmt: skip
    assert (last["workload"], last["from_ns"], last["to_ns"], last["stop_ns"]) == ("other", 0, 0, None)
    # The dumbbell's hosts and its two switches: three links each way.
    links = {link["name"]: link["delay"] for link in body["network"]["links"]}
    path = ("left-1->switch-left", "switch-left->switch-right", "switch-right->right-1")
    assert first["base_rtt_ns"] == 2 * sum(links[name] for name in path) // 1000
    assert native.base_rtt_ns(body, "left-1", "right-1") == first["base_rtt_ns"]
    with pytest.raises(narrows.BadInput, match="the plan has no host switch-left"):
        native.base_rtt_ns(body, "left-1", "switch-left")


def test_datagrams_are_no_part_of_what_a_controller_achieves():
    voice = long(300, workload="voice", controller="none", transport="datagram")
    both = sample(long(100, 100), voice)
    assert value_by_seed(both, "goodput_long", ("a",)) == {1: 100.0}
    assert value_by_seed(both, "jain_long", ("a",)) == {1: 1.0}
    assert value_by_seed(both, "goodput_total", ("a",)) == {1: 500.0}
    assert value_by_seed(sample(voice), "goodput_long", ("a",)) == {1: 300.0}
    groups = longlived.by_group(both)
    assert dict(groups.select("workload", "retransmitted").iter_rows()) == {"bulk": 0.1, "voice": None}
    assert [row.part for row in headline.table(both)] == ["", "bulk, cubic", "voice, datagrams"]


@pytest.mark.simulator
def test_completion_times_beside_flows_without_a_size_are_compared(folder):
    web = """
[[traffic]]
name = "web"
from = "left-*"
to = "right-*"
arrivals = { poisson = { rate = "200/s" } }
size = { fixed = "20KB" }
"""
    results = narrows.run(TWO_LONG.replace("[[traffic]]", f"{web}[[traffic]]", 1)).join()
    assert len(results.long) == 4
    compared = results.compare()
    assert {"fct_small_mean", "fct_mean", "goodput_long"} <= {row.measure for row in compared.rows}
    assert [text.partition(":")[0] for text in compared.notices] == ["one and 1 other scheme"]


@pytest.mark.simulator
def test_a_comparison_says_what_it_lacks_because_flows_did_not_finish(folder):
    late = 'arrivals = { poisson = { rate = "500/s" } }\nsize = { fixed = "9MB" }'
    text = TWO_LONG.replace("long = { flows = 1 }", late).replace('drain = "1s"', 'drain = "100ms"')
    text = text.partition("[sample]")[0]
    compared = narrows.run(text).join().compare()
    assert "fct_mean" not in {row.measure for row in compared.rows}
    assert any(re.match(r"fct_mean without one: \d+ of \d+ flows did not finish", text) for text in compared.notices)


@pytest.mark.simulator
def test_a_plan_of_another_version_is_said_and_its_flows_are_not_guessed(folder):
    results = narrows.run(TWO_LONG).join()
    assert (len(results.long), results.notices) == (4, ())
    for path in folder.glob("runs/*/*/manifest.json"):
        manifest = json.loads(path.read_text())
        del manifest["plan"]["schedule"]
        path.write_text(json.dumps(manifest))
    results = api.load(results.entry.identifier)
    assert results.long.is_empty()
    assert results.notices == (
        "flows without a size are not shown of one, two, whose plans this version of Narrows cannot read",
    )


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
    starved = sample(long(0, 0), long(4, controller="bbr", workload="burst"))
    assert [(row.part, row.cells[0].text) for row in headline.table(starved)][1:] == [
        ("bulk, cubic", "0"), ("burst, bbr", "4.00"),
    ]  # fmt: skip
    web = frames([flows((10, 1))], [ports(("b", "wan", 1, 0, 0.1))])
    assert {"loss_wan", "utilisation_wan_busiest", "fct_mean"} <= {column.measure for column in headline.columns(web)}


def test_a_chart_over_time_has_a_line_for_each_flow():
    taken = (("flow-0", 10, 1e6), ("flow-0", 20, 2e6), ("flow-1", 10, 3e6), ("flow-1", 20, 4e6))
    series = samples(*((flow, at, "goodput_bps", rate) for flow, at, rate in taken))
    made = replace(sample(long(6, 2)), series=series)
    drawn = over_time.over_time(made, longlived.GOODPUT).to_dict()
    (data,) = drawn["datasets"].values() if "datasets" in drawn else (drawn["data"]["values"],)
    assert [(row["flow"], row["value"]) for row in data] == [(0, 1.0), (0, 2.0), (1, 3.0), (1, 4.0)]
    assert over_time.over_time(made, longlived.WINDOW) is None


def test_requests_have_times_and_timeouts():
    times = [1_000_000, 3_000_000, None]
    asked = labelled(pl.DataFrame({"completion_ns": times, "responses": [2, 2, 1], "timeouts": [0, 0, 3]}))
    made = replace(frames([flows((10, 1))], [ports(("b", "fabric", 1, 0, 0.1))]), requests=asked)
    with pytest.raises(NotEvaluable, match="1 of 3 requests did not finish"):
        value_by_seed(made, "request_mean", ("a",))
    done = replace(made, requests=asked.drop_nulls())
    assert value_by_seed(done, "request_mean", ("a",)) == {1: 2.0}
    assert value_by_seed(done, "request_timeouts", ("a",)) == {1: 0.0}
    assert {"request_mean", "request_p99", "request_timeouts"} <= {item.measure for item in headline.columns(made)}


def test_a_real_run_of_long_flows_has_a_report_and_a_comparison(real, folder):
    (folder / "long.toml").write_text(TWO_LONG)
    said = said_by(real, "run", "long.toml")
    compared = lines(said_by(real, "compare", "long", "--json"))
    assert {"goodput_long", "jain_long"} <= {item["measure"] for item in compared if item["event"] == "comparison"}
    # A scheme with flows of two controllers: a mean over both says nothing of either.
    mixed = [item["text"] for item in compared if "over flows of several controllers" in item.get("text", "")]
    assert len(mixed) == 1
    assert re.search(r"^  \w+, (CUBIC|cubic)  ", said, re.MULTILINE)
    text = (folder / said_by(real, "report", "long").strip()).read_text()
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
