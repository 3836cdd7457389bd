"""How flows without a size share, over round trips, changes of who is there, and losses."""

import math
from dataclasses import replace

import polars as pl
import pytest
from conftest import flows, frames, labelled, ports, samples

from narrows.figures import longlived as over_time
from narrows.measures import sharing
from narrows.measures.named import NotEvaluable, value_by_seed

SECOND = 1_000_000_000
SHARE = 1448 / 1538
"""Payload of full packets of 1500 bytes on the wire."""
LINE = 1e6 * SHARE
"""Payload of a line of 1 Mbit/s, bit/s."""


def long(rows, case="a", seed=1):
    """Flows without a size: (workload, class, goodput, base round trip, due in s, stop in s or nothing)."""
    columns = ("workload", "class", "goodput_mbps", "base_rtt_ns", "due_ns", "stop_ns")
    table = pl.DataFrame(
        [(w, c, float(g), r, d * SECOND, None if s is None else s * SECOND) for w, c, g, r, d, s in rows],
        schema=dict(zip(columns, (pl.String, pl.String, pl.Float64, pl.UInt64, pl.UInt64, pl.UInt64), strict=True)),
        orient="row",
    )
    return labelled(table.with_row_index("flow"), case, seed).with_columns(arm=pl.lit(case[0]))


def sample(tables, series=None):
    cases = [(table["case"][0], table["seed"][0]) for table in tables]
    wan = [
        ports(("b", "wan", 100, 0, 0.1), case=case, seed=seed).with_columns(
            pl.lit(case[0]).alias("arm"), pl.lit(1_000_000).alias("rate_bps")
        )
        for case, seed in cases
    ]
    return replace(frames([flows((10, 1)).clear()], wan, series), long=pl.concat(tables))


def bins(*rows, case="a", seed=1):
    """Goodput: (end of the bin in s, flow, its share of the line)."""
    taken = [(f"flow-{flow}", at * SECOND, "goodput_bps", share * LINE) for at, flow, share in rows]
    return samples(*taken, case=case, seed=seed)


def pair(ratio, share, case):
    return long([("x", "inter", share, 100 * ratio, 0, None), ("y", "intra", 1, 100, 0, None)], case)


def test_flows_that_cross_are_compared_with_those_that_do_not():
    made = sample([pair(4, 3, "a")])
    assert value_by_seed(made, "inter_over_intra", ("a",)) == {1: 3.0}
    assert value_by_seed(made, "round_trip_ratio", ("a",)) == {1: 4.0}
    with pytest.raises(NotEvaluable):
        value_by_seed(frames([flows((10, 1))], [ports(("b", "wan", 1, 0, 0.1))]), "inter_over_intra", ("a",))


def test_sharing_is_equal_up_to_the_first_ratio_at_which_it_is_not():
    made = sample([pair(64, 1, "a64"), pair(4, 0.6, "a4"), pair(8, 2.2, "a8"), pair(16, 2.4, "a16"), pair(4, 9, "b4")])
    assert value_by_seed(made, "shared_equally_up_to", ("a64",)) == {1: 8.0}
    assert value_by_seed(made, "shared_equally_up_to", ("b4",)) == {1: 1.0}


COMING = [("first", "inter", 1, 1, 0, 3), ("second", "inter", 1, 1, 1, None)]


def test_jain_is_over_the_time_in_which_all_are_there():
    series = bins((1, 0, 1.0), (2, 0, 0.5), (2, 1, 0.5), (3, 0, 0.5), (3, 1, 0.0), (4, 0, 0.1), (4, 1, 0.9))
    assert value_by_seed(sample([long(COMING)], series), "jain_all", ("a",)) == {1: 0.75}
    forever = [(*row[:5], None) for row in COMING]
    assert value_by_seed(sample([long(forever)], series), "jain_all", ("a",))[1] == pytest.approx(
        (1 + 0.5 + 1 / 1.64) / 3
    )


def test_every_flow_comes_near_its_share_after_every_change():
    calm = bins((1, 0, 0.9), (2, 0, 0.9), (2, 1, 0.1), (3, 0, 0.55), (3, 1, 0.45), (4, 1, 0.3), (5, 1, 1.0))
    made = sample([long(COMING)], calm)
    assert sharing.convergence(made, "a").select("change", "seconds").rows() == [(0, 1), (1, 2), (3, 2)]
    assert value_by_seed(made, "time_to_share", ("a",)) == {1: 2.0}
    starved = bins((1, 0, 0.9), (2, 0, 0.9), (2, 1, 0.1), (3, 0, 0.9), (3, 1, 0.1), (4, 1, 1.0))
    assert value_by_seed(sample([long(COMING)], starved), "time_to_share", ("a",)) == {1: math.inf}
    with pytest.raises(NotEvaluable, match="not sampled"):
        value_by_seed(sample([long(COMING)], calm.clear()), "time_to_share", ("a",))


def test_the_first_flow_of_each_traffic_has_a_line():
    made = sample([long([*COMING, COMING[1]])], bins((1, 0, 1.0), (1, 1, 1.0), (1, 2, 1.0)))
    drawn = over_time.one_of_each(made).to_dict()
    (data,) = drawn["datasets"].values() if "datasets" in drawn else (drawn["data"]["values"],)
    assert [row["workload"] for row in data] == ["first", "second"]


@pytest.mark.parametrize(("goodputs", "expected"), [((0.9, 0.6, 0.1), {1: 0.3}), ((0.9, 0.8, 0.7), {1: math.inf})])
def test_the_least_loss_that_slows_a_sender_is_that_of_the_sweep(goodputs, expected):
    losses = (0.1, 0.2, 0.3)
    tables, wan = [], []
    for lost, goodput in zip(losses, goodputs, strict=True):
        case = f"a{lost}"
        rate = goodput * (1 - lost) * SHARE
        tables.append(long([("x", "inter", rate, 1, 0, None)], case))
        port = ports(("b", "wan", 100, 0, 0.1), ("c", "wan", 0, 0, 0), case=case)
        lost_packets, line = pl.lit(int(100 * lost)), pl.lit(1_000_000)
        wan.append(
            port.with_columns(
                pl.lit("a").alias("arm"), lost_packets.alias("lost_on_wire_packets"), line.alias("rate_bps")
            )
        )
    made = replace(frames([flows((10, 1)).clear()], wan), long=pl.concat(tables))
    assert value_by_seed(made, "loss_that_slows", ("a0.1",)) == pytest.approx(expected)
    with pytest.raises(NotEvaluable):
        value_by_seed(frames([flows((10, 1))], wan), "loss_that_slows", ("a0.1",))
