"""What bridges do: measures on runs of a few rows."""

from dataclasses import replace

import polars as pl
import pytest
from conftest import flows, frames, labelled, ports, samples

from narrows import columns
from narrows.measures.named import NotEvaluable, value_by_seed


def ends(*rows):
    """Ends of bridges, each with its packets with data and its marked ones."""
    schema = columns.tables()["bridges"].schema
    zeros = [0 if dtype == pl.UInt64 else "x" for dtype in schema.values()]
    table = labelled(pl.DataFrame([zeros] * len(rows), schema=schema, orient="row"))
    data, marked = zip(*rows, strict=True)
    return table.with_columns(data_packets=pl.Series(data), marked_packets=pl.Series(marked))


def run(*, bridges=((900, 90), (100, 5)), windows=(), lost=0):
    port = ports(("b", "wan", 1_000, 0, 0.5), ("c", "wan", 400, 0, 0.1)).with_columns(
        lost_on_wire_packets=pl.Series([lost, 3], dtype=pl.UInt64), sent_bytes=pl.Series([9, 1], dtype=pl.UInt64)
    )
    taken = [("flow-0", at, "window_packets", window) for at, window in enumerate(windows)]
    taken += [("flow-1", at, "window_packets", 7.0) for at in range(5)]
    table = frames([flows((10, 1))], [port], samples(*(taken if windows else [])))
    return replace(table, bridges=ends(*bridges)) if bridges else table


def value(name, **what):
    return value_by_seed(run(**what), name, ("a",))[1]


def test_the_marked_share_is_of_all_data_that_came_to_bridges():
    assert value("marked_share") == pytest.approx(95 / 1000)
    with pytest.raises(NotEvaluable, match="no edge pair"):
        value("marked_share", bridges=())
    with pytest.raises(NotEvaluable, match="no edge pair"):
        value("marked_share", bridges=((0, 0),))


def test_what_the_wire_lost_is_of_the_busiest_port():
    assert value("lost_on_wire", lost=50) == pytest.approx(0.05)


def test_a_window_that_falls_by_more_than_a_tenth_was_cut():
    # By a tenth it may breathe; flow-1 begins lower than flow-0 ends, which is no cut.
    assert value("window_cuts", windows=(10.0, 20.0, 18.0, 12.0, 13.0, 6.0)) == 2
    assert value("cuts_per_loss", windows=(20.0, 10.0), lost=97) == pytest.approx(1 / 100)
    with pytest.raises(NotEvaluable, match="not sampled"):
        value("window_cuts")


def test_the_largest_reduction_is_of_one_size_for_all_seeds():
    def of_case(case, small, large):
        return flows((50_000, small), (20_000_000, large), case=case)

    both = [ports(("b", "wan", 1, 0, 0.5), case=case) for case in ("slow", "fast")]
    made = frames([of_case("slow", 100, 1_000), of_case("fast", 50, 100)], both)
    assert value_by_seed(made, "completion_reduced_most", ("slow", "fast")) == {1: pytest.approx(0.9)}
