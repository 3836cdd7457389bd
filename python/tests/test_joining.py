"""Who yields when flows inside a datacenter join one that crosses: measures on a run of a few bins."""

from dataclasses import replace

import polars as pl
import pytest
from conftest import flows, frames, labelled, ports, samples

from narrows.measures.named import NotEvaluable, value_by_seed

MS = 1_000_000
LINE = 1e9 * 1448 / 1538
"""Payload of the line of `ports`, bit/s."""


def run(*, crosses=True, inside=True, sampled=True):
    """A flow that crosses in 4 ms, and two that join it at 10 and at 30 ms; a port whose queue is sampled."""
    rows = []
    if crosses:
        rows.append((0, "inter", 0, 7_999_000))
    if inside:
        rows += [(flow, "intra", at * MS, 20_000) for flow, at in ((1, 10), (2, 10), (3, 30), (4, 30))]
    schema = {"flow": pl.UInt32, "class": pl.String, "due_ns": pl.UInt64, "base_rtt_ns": pl.UInt64}
    long = labelled(pl.DataFrame(rows, schema=schema, orient="row"))
    taken = [("flow-0", end, "goodput_bps", 1.0) for end in range(1, 40)]
    # What crosses is seen 4 ms later: it gives up a fifth after the first time, nothing after the second.
    taken = [(who, end, what, 0.8 if end == 15 else share) for who, end, what, share in taken]
    taken += [
        ("flow-1", 11, "goodput_bps", 0.1),
        ("flow-2", 11, "goodput_bps", 0.1),
        ("flow-2", 12, "goodput_bps", 1.0),
    ]
    taken += [("flow-3", 31, "goodput_bps", 0.2), ("flow-4", 31, "goodput_bps", 0.4)]
    series = [(who, end * MS, what, share * LINE) for who, end, what, share in taken]
    queue = [(5, 900.0), (12, 3_000.0), (29, 60_000.0), (31, 6_000.0), (34, 9_000.0)]
    series += [("b->x", at * MS, "queue_bytes", size) for at, size in queue if sampled]
    port = ports(("b", "fabric", 1, 0, 0.5), ("c", "wan", 1, 0, 0.5)).with_columns(
        measured_ns=pl.lit(40 * MS, pl.UInt64)
    )
    return replace(frames([flows((10, 1))], [port], samples(*series)), long=long)


def value(name, **what):
    return value_by_seed(run(**what), name, ("a",))[1]


def test_who_joins_lacks_what_the_line_would_give_alone():
    assert value("cut_inside") == pytest.approx((0.8 + 0.4) / 2)


def test_who_crosses_loses_half_a_round_trip_later():
    assert value("cut_across") == pytest.approx((0.2 + 0.0) / 2)


def test_the_peak_is_of_the_samples_soon_after():
    assert value("peak_queue") == pytest.approx((60.0 + 9.0) / 2)


@pytest.mark.parametrize(
    ("name", "what", "said"),
    [
        ("cut_inside", {"inside": False}, "no flow of a stays inside"),
        ("cut_inside", {"sampled": False}, "no queue was sampled"),
        ("cut_across", {"crosses": False}, "no flow of a crosses"),
        ("peak_queue", {"inside": False}, "no flow of a stays inside"),
    ],
)
def test_what_is_not_there_is_not_measured(name, what, said):
    with pytest.raises(NotEvaluable, match=said):
        value(name, **what)
