"""Requests to many servers, and the flows beside them: tables, measures, figures."""

import dataclasses
import math

import polars as pl
import pytest
from conftest import flows, frames, ports

from narrows.figures import requests, size_bins, style
from narrows.measures import tables as metrics
from narrows.measures.named import NotEvaluable, value_by_seed

AXIS = "count"


def asked(case, servers, *rows, seed=1):
    """Rows of requests from (completion time in ms or nothing, timeouts)."""
    arm, *_ = case.split(" · ")
    schema = {"case": pl.String, "arm": pl.String, AXIS: pl.String, "seed": pl.UInt64, "completion_ns": pl.UInt64,
              "responses": pl.UInt32, "timeouts": pl.UInt32}  # fmt: skip
    made = [(case, arm, str(servers), seed, None if time is None else int(time * 1e6), servers if time else 0, timeouts)
            for time, timeouts in rows]  # fmt: skip
    return pl.DataFrame(made, schema=schema, orient="row")


def runs(*parts, extra=()):
    made = frames([flows((10, 1))], [ports(("h1", "host", 1, 0, 0.1), case=part["case"][0]) for part in parts])
    return dataclasses.replace(made, requests=pl.concat(parts), axes=(AXIS,))


def sweep():
    """Timeouts begin with 2 servers, where one request of 200 has one; with 3 one of 50, with 4 all."""
    return runs(
        asked("tcp · count=1", 1, *[(8, 0)] * 200),
        asked("tcp · count=2", 2, (20, 3), *[(9, 0)] * 199),
        asked("tcp · count=3", 3, (20, 1), *[(10, 0)] * 49),
        asked("tcp · count=4", 4, (20, 1), (20, 2), (None, 1)),
        asked("udp", 4, (7, 0)),
    )


@pytest.mark.parametrize(
    ("name", "arm", "expected"),
    [
        ("request_mean", "tcp · count=1", 8.0),
        ("request_timeouts", "tcp · count=2", 15.0),
        ("request_timeout_share", "tcp · count=2", 0.005),
        ("request_median", "tcp · count=2", 9.0),
        ("request_p95", "tcp · count=2", 9.0),
        ("request_mean_least", "tcp", 8.0),
        ("request_timeout_share_most", "tcp", 1.0),
        ("servers_with_timeouts", "tcp", 3.0),
        ("servers_with_any_timeout", "tcp", 2.0),
        ("servers_with_timeouts", "udp", math.inf),
        ("servers_with_any_timeout", "udp", math.inf),
    ],
)
def test_measures_of_requests(name, arm, expected):
    assert value_by_seed(sweep(), name, (arm,)) == pytest.approx({1: expected})


def test_a_p999_needs_ten_thousand_requests():
    few, enough = (runs(asked("a", 2, *[(float(n), 0) for n in range(1, count + 1)])) for count in (9_999, 10_000))
    with pytest.raises(NotEvaluable, match="9999 requests per seed, too few for a p999"):
        value_by_seed(few, "request_p999", ("a",))
    assert value_by_seed(enough, "request_p999", ("a",)) == {1: 9_990.0}


def test_only_measures_of_several_cases_take_what_a_sweep_begins_with():
    with pytest.raises(NotEvaluable, match="no scheme is called tcp"):
        value_by_seed(sweep(), "request_mean", ("tcp",))
    with pytest.raises(NotEvaluable, match=r"no scheme is called tc$"):
        value_by_seed(sweep(), "servers_with_timeouts", ("tc",))


def cluster():
    """The gain is 40 ms from 100 KB to 1 MB, 90 ms above, 1 ms below."""
    slow = flows((5_000, 3), (100_000, 50), (999_999, 70), (1_000_000, 100), case="slow")
    fast = flows((5_000, 2), (100_000, 10), (999_999, 30), (1_000_000, 10), case="fast")
    return frames([slow, fast], [ports(("h1", "host", 1, 0, 0.1), case=case) for case in ("slow", "fast")])


def test_background_flows_are_binned_by_size():
    table = metrics.fct_by_bin(cluster()).filter(pl.col("case") == "slow")
    assert dict(table.select("bin", "mean").iter_rows()) == {"under 10 KB": 3, "100 KB–1 MB": 60, "1–10 MB": 100}
    assert table["p95"].null_count() == 3


@pytest.mark.parametrize(
    ("name", "arms", "expected"),
    [
        ("message_mean", ("slow",), 60.0),
        ("background_timeouts", ("fast",), 4.0),
        ("gain_rank_of_messages", ("slow", "fast"), 2.0),
    ],
)
def test_measures_of_background_flows(name, arms, expected):
    assert value_by_seed(cluster(), name, arms) == {1: expected}


def test_a_p95_of_messages_needs_two_hundred():
    with pytest.raises(NotEvaluable, match="2 short messages per seed, too few for a p95"):
        value_by_seed(cluster(), "message_p95", ("slow",))
    many = frames(
        [flows(*[(200_000, n) for n in range(1, 201)], case="a")], [ports(("h1", "host", 1, 0, 0.1), case="a")]
    )
    assert value_by_seed(many, "message_p95", ("a",)) == {1: 190.0}


def test_a_sweep_over_servers_is_a_line_for_each_arm():
    table = requests.by_servers(sweep(), {"tcp": "TCP"}, AXIS)
    assert sorted(set(table["arm"])) == ["TCP", "udp"]
    assert table.filter(pl.col(AXIS) == "2")["percent"].to_list() == [0.5]


def values(chart):
    made = style.finished(chart)
    return made["data"].get("values") or made["datasets"][made["data"]["name"]]


def test_the_tail_ends_where_ten_requests_are_left():
    data = runs(asked("a", 2, *[(float(n), 0) for n in range(1, 1_001)]))
    whole, tail = (values(requests.distribution(data, ("a",), "t", tail=tail)) for tail in (False, True))
    assert (whole[0]["share"], whole[-1]["share"], whole[-1]["value"]) == (0, 1, 1_000)
    assert min(row["share"] for row in tail) == 0.01


def test_bins_show_each_case():
    rows = values(size_bins.panel(cluster(), ("slow", "fast"), "mean", "t"))
    assert {(row["case"], row["bin"], row["mean"]) for row in rows if row["bin"] == "1–10 MB"} == {
        ("slow", "1–10 MB", 100), ("fast", "1–10 MB", 10),
    }  # fmt: skip
