"""Flows that come and go: the steps between changes, and what is measured of them."""

import itertools
import math
from dataclasses import replace

import polars as pl
import pytest
from conftest import flows, frames, labelled, ports, samples

from narrows.figures import shares, style
from narrows.measures import intervals
from narrows.measures.named import NotEvaluable, value_by_seed

BIN_NS = 50_000_000


def goodputs(flow, rates, *, begin=0, quantity="goodput_bps"):
    """A sample of a flow every 50 ms, Mbit/s."""
    ends = itertools.count(BIN_NS * (begin + 1), BIN_NS)
    return samples(*((f"flow-{flow}", end, quantity, 1e6 * rate) for end, rate in zip(ends, rates, strict=False)))


def made(*series):
    data = frames([flows((10, 1))], [ports(("b", "edge", 1, 0, 0.1))], pl.concat(series))
    long = pl.DataFrame({"flow": [0, 1], "workload": ["x", "y"], "source": ["h2", "h3"], "start_ns": [0, 0]})
    return replace(data, long=labelled(long))


def windows(*series):
    data = made(*series)
    return replace(data, long=data.long.with_columns(pl.lit(2 * BIN_NS).alias("base_rtt_ns")))


# One flow alone for 3 s, then two for 4 s: the second comes to half of the line after 1 s.
FIRST = goodputs(0, [100] * 60 + [90] * 20 + [50] * 60)
SECOND = goodputs(1, [10] * 20 + [50] * 60, begin=60)


def test_steps_lie_between_two_changes_and_have_at_least_two_flows():
    (step,) = intervals.steps(made(FIRST, SECOND), "a")
    assert (step.flows, step.length_ns, step.bin_ns) == (2, 4_000_000_000, BIN_NS)
    assert step.fair == pytest.approx(50e6)


def test_flows_have_converged_when_every_rate_of_a_second_is_near_the_fair_share():
    data = made(FIRST, SECOND)
    # A rate of 100 ms that begins with the second's first good bin is good.
    assert value_by_seed(data, "convergence", ("a",)) == {1: pytest.approx(1000.0)}
    assert value_by_seed(data, "steps_converged", ("a",)) == {1: 1.0}


def test_shares_that_are_left_again_within_a_second_do_not_count():
    second = [10] * 20 + [50] * 15 + [10] * 5 + [50] * 40
    data = made(FIRST, goodputs(1, second, begin=60))
    assert value_by_seed(data, "convergence", ("a",)) == {1: pytest.approx(2000.0)}


def test_a_step_that_never_converges_takes_for_ever():
    data = made(goodputs(0, [90] * 80), goodputs(1, [10] * 80))
    assert value_by_seed(data, "convergence", ("a",)) == {1: math.inf}
    assert value_by_seed(data, "steps_converged", ("a",)) == {1: 0.0}


def test_flows_that_begin_converged_need_no_time():
    data = made(goodputs(0, [50] * 80), goodputs(1, [50] * 80))
    assert value_by_seed(data, "convergence", ("a",)) == {1: 0.0}


def test_fairness_and_deviation_are_those_of_the_steady_part():
    # The last two thirds of 80 bins are 53: the first third may be anything.
    one = [0] * 27 + [40, 40, 60, 60] * 13 + [40]
    two = [100] * 27 + [150] * 53
    data = made(goodputs(0, one), goodputs(1, two))
    mean = (13 * 200 + 40) / 53
    assert value_by_seed(data, "jain_steps", ("a",)) == {1: pytest.approx((mean + 150) ** 2 / (2 * (mean**2 + 150**2)))}
    # Of the first flow 27 rates of 100 ms, 40 and 60 in turn; of the second all are equal.
    turns = [40, 60] * 13 + [40]
    centre = sum(turns) / 27
    deviation = (sum((rate - centre) ** 2 for rate in turns) / 26) ** 0.5
    assert value_by_seed(data, "goodput_std", ("a",)) == {1: pytest.approx(deviation / 2)}


def test_without_two_flows_nothing_is_shared():
    with pytest.raises(NotEvaluable, match="no goodput was sampled"):
        value_by_seed(made(FIRST), "convergence", ("a",))


def test_the_first_cut_is_the_fall_until_the_window_stays_for_a_base_rtt():
    # A sample every 50 ms; the base RTT is two of them.
    slow = goodputs(0, [8, 8, 8, 7, 6, 5, 5, 4, 4, 3], quantity="window_packets")
    fast = goodputs(1, [4, 2, 2, 1, 1], quantity="window_packets")
    assert value_by_seed(windows(slow), "first_cut", ("a",)) == {1: pytest.approx(3 / 8)}
    to_the_end = goodputs(0, [8, 8, 4, 4, 4], quantity="window_packets")
    assert value_by_seed(windows(to_the_end), "first_cut", ("a",)) == {1: pytest.approx(1 / 2)}
    both = windows(slow, fast)
    assert value_by_seed(both, "first_cut", ("a",)) == {1: pytest.approx((3 / 8 + 1 / 2) / 2)}
    only = replace(both, flows=both.flows.with_columns(pl.lit("y").alias("workload")))
    assert value_by_seed(only, "first_cut", ("a / y",)) == {1: pytest.approx(1 / 2)}


@pytest.mark.parametrize(("window", "cut"), [([8, 4, 5, 6, 8, 8, 8, 9], 1 / 2), ([8, 6, 7, 9, 9, 9, 10], 1 / 4)])
def test_the_first_cut_is_over_before_the_window_rises(window, cut):
    series = goodputs(0, window, quantity="window_packets")
    assert value_by_seed(windows(series), "first_cut", ("a",)) == {1: pytest.approx(cut)}


def test_a_window_that_does_not_fall_or_falls_to_the_end_has_no_first_cut():
    rising = goodputs(0, [1, 2, 2, 3], quantity="window_packets")
    falling = goodputs(0, [8, 7, 6, 5], quantity="window_packets")
    for series in (FIRST, rising, falling):
        with pytest.raises(NotEvaluable, match="no window was sampled"):
            value_by_seed(windows(series), "first_cut", ("a",))


def test_the_figure_has_a_line_for_each_sender_and_means_over_a_second():
    found = style.finished(shares.over_time(made(FIRST, SECOND)))
    sets = found.get("datasets") or {}
    rows = next(iter(sets.values())) if sets else found["vconcat"][0]["data"]["values"]
    assert {row["sender"] for row in rows} == {"h2", "h3"}
    assert sum(row["sender"] == "h2" for row in rows) in (7, 8)
