"""Whether the unfinished work of runs had settled: against closed forms, and processes whose drift is known."""

import math
import random
from dataclasses import replace

import polars as pl
import pytest
from conftest import flows, frames, ports

from narrows import Experiment
from narrows.measures import settling, unfinished_work
from narrows.measures.named import NotEvaluable, value_by_seed

S = 1e9

COLUMNS = {"start_ns": pl.UInt64, "fct_ns": pl.UInt64, "size_bytes": pl.UInt64, "received_bytes": pl.UInt64}


def table(*rows):
    """Flows of (start in s, completion time in s or `None`, size, received)."""
    made = [
        {
            "start_ns": int(start * S), "fct_ns": None if took is None else int(took * S), "size_bytes": size,
            "received_bytes": got, "finished": took is not None, "unfinished": None if took is not None else why,
        }
        for start, took, size, got, why in rows
    ]  # fmt: skip
    return pl.LazyFrame(made, schema=COLUMNS | {"finished": pl.Boolean, "unfinished": pl.String})


def means(rows, edges_s, stop_s=100.0):
    return unfinished_work.means(table(*rows), [edge * S for edge in edges_s], int(stop_s * S))


def test_a_flow_is_delivered_at_a_constant_rate():
    # 100 B from 1 s to 3 s: 75 B on average in its first second, 25 in its second.
    assert means([(1, 2.0, 100, 100, None)], [0, 1, 2, 3, 4]) == pytest.approx([0.0, 75.0, 25.0, 0.0])
    assert means([(1, 2.0, 100, 100, None)], [0, 4]) == pytest.approx([25.0])


def test_what_never_ends_keeps_what_it_has_not_received():
    # Of 100 B it receives 40 from 0 s to 10 s, when the run stops.
    assert means([(0, None, 100, 40, "still running")], [0, 10], stop_s=10) == pytest.approx([80.0])


def test_dropped_datagrams_are_no_work():
    assert means([(0, None, 100, 0, "dropped")], [0, 10], stop_s=10) == [0.0]


def test_the_mean_is_littles_law():
    """Of flows with rate 4/s, each 1 s long and 100 B: 4 under way, each with half of its bytes on average."""
    rows = [(0.25 * place, 1.0, 100, 100, None) for place in range(200)]
    assert means(rows, [10, 20, 30]) == pytest.approx([200.0, 200.0], rel=1e-3)


def drift(*batches, cases=1):
    return settling._drift("a", batches, cases)


def test_linear_growth_from_nothing_has_a_drift_of_two():
    line = [place + 0.5 for place in range(unfinished_work.BATCHES)]
    found = drift(line)
    assert (found.mean, found.word) == (pytest.approx(2.0), "grows")
    assert drift([*reversed(line)]).word == "falls"
    assert drift([7.0] * unfinished_work.BATCHES).word == "settled"


def batches(rng, correlation, slope=0.0, spread=0.3):
    """A stationary process of order one about 1, and a line."""
    value = rng.gauss(0, 1)
    made = []
    for place in range(unfinished_work.BATCHES):
        value = correlation * value + math.sqrt(1 - correlation**2) * rng.gauss(0, 1)
        time = (place + 0.5) / unfinished_work.BATCHES - 0.5
        made.append(max(0.01, 1 + slope * time + spread * value))
    return made


@pytest.mark.parametrize("correlation", [0.0, 0.5])
def test_stationary_work_seldom_grows_and_work_that_doubles_mostly_does(correlation):
    """At 5 % on both sides 2.5 % of stationary runs seem to grow; more than 6 of 100 have a probability below 1 %."""
    rng = random.Random(7)
    seeds, trials = 3, 200
    words = [drift(*(batches(rng, correlation) for _ in range(seeds))).word for _ in range(trials)]
    assert words.count("grows") <= 12
    growing = [drift(*(batches(rng, correlation, slope=1.2) for _ in range(seeds))).word for _ in range(trials)]
    assert growing.count("grows") >= 0.9 * trials
    assert growing.count("settled") == 0


def test_the_interval_holds_its_promise_of_correlated_batches():
    rng = random.Random(11)
    found = [drift(*(batches(rng, 0.6, slope=0.4, spread=0.2) for _ in range(5))) for _ in range(300)]
    covered = sum(one.low <= 0.4 <= one.high for one in found) / len(found)
    assert 0.90 <= covered <= 0.99


def test_a_word_of_many_cases_asks_for_more():
    rng = random.Random(3)
    own = [batches(rng, 0.3, slope=0.8, spread=0.25) for _ in range(2)]
    alone, among = drift(*own), drift(*own, cases=10_000)
    assert alone.word == "grows"
    assert among.word == "unknown"
    assert (alone.low, alone.high) == (among.low, among.high)


def worked(case, values, count=settling.MIN_FLOWS):
    """Frames with this unfinished work in the batches of one seed."""
    rows = [(1, place, value) for place, value in enumerate(values)]
    work = pl.DataFrame(rows, schema=unfinished_work.SCHEMA, orient="row")
    made = frames([flows(*((10, 1),) * count, case=case)], [ports(("s", "edge", 10, 0, 0.5), case=case)])
    return replace(made, work_of=lambda name: work if name == case else None)


def test_measures_are_of_each_seed_and_need_enough_flows_that_come_at_random():
    line = [1e6 * (place + 0.5) for place in range(unfinished_work.BATCHES)]
    found = worked("a", line)
    assert value_by_seed(found, "unfinished_work", ("a",)) == {1: pytest.approx(10.0)}
    assert value_by_seed(found, "unfinished_drift", ("a",)) == {1: pytest.approx(2.0)}
    assert "still grew when the arrivals ended, with a (drift +2.00" in settling.growing(found)
    with pytest.raises(NotEvaluable, match="fewer than 200 flows"):
        value_by_seed(worked("a", line, count=5), "unfinished_drift", ("a",))
    with pytest.raises(NotEvaluable, match="at random"):
        value_by_seed(frames([flows((10, 1))], [ports(("s", "edge", 10, 0, 0.5))]), "unfinished_drift", ("a",))
    assert settling.growing(frames([flows((10, 1))], [ports(("s", "edge", 10, 0, 0.5))])) == ""
    assert settling.sentences(worked("a", [5.0] * unfinished_work.BATCHES)) == [
        "It had settled with a (drift +0.00, +0.00 to +0.00)."
    ]


STAR = """
[topology.star]
hosts = 5
fabric = {{ rate = "100Mbps", delay = "10us" }}
[[traffic]]
name = "web"
arrivals = {{ poisson = {{ rate = "{rate}/s" }} }}
size = {{ fixed = "20KB" }}
from = ["h1", "h2", "h3", "h4"]
to = "h5"
[[arm]]
name = "cubic"
cc = "cubic"
[run]
end = "6s"
warmup = "500ms"
drain = "{drain}"
seeds = "1..=2"
"""


@pytest.mark.simulator
@pytest.mark.parametrize(("rate", "word"), [(300, "settled"), (800, "grows")])
def test_a_link_that_is_offered_too_much_grows_and_one_at_half_settles(tmp_path, rate, word):
    """588 flows of 20 KB a second fill 100 Mbit/s of Ethernet."""
    results = Experiment(STAR.format(rate=rate, drain="1s")).run(out=tmp_path).join()
    (found,) = settling.drifts(results.frames)
    assert found.word == word
    assert any("no steady state" in text for text in results.notices) == (word == "grows")
