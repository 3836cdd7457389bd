"""What ports send over time, on a run of a few bins."""

import polars as pl
import pytest
from conftest import flows, frames, ports, samples

from narrows.measures.named import NotEvaluable, value_by_seed

MS = 1_000_000


def run(*bins):
    """Bins of 1 ms of a port of the WAN and of one that is none, of which the last four count."""
    rows = [(entity, (at + 1) * MS, "sent_bps", value) for entity in ("b->x", "t->x") for at, value in enumerate(bins)]
    port = ports(("b", "wan", 1, 0, 0.5), ("t", "fabric", 1, 0, 0.5))
    return frames([flows((10, 1))], [port.with_columns(measured_ns=pl.lit(4 * MS, pl.UInt64))], samples(*rows))


def test_burstiness_is_of_the_bins_after_the_warmup():
    assert value_by_seed(run(900.0, 1.0, 3.0, 1.0, 3.0), "burstiness_wan", ("a",)) == {1: pytest.approx(0.5)}


def test_a_steady_port_has_none():
    assert value_by_seed(run(9.0, 2.0, 2.0, 2.0, 2.0), "burstiness_wan", ("a",)) == {1: 0.0}


def test_without_bins_it_is_not_measured():
    with pytest.raises(NotEvaluable, match="nothing that the WAN sent"):
        value_by_seed(run(), "burstiness_wan", ("a",))
    with pytest.raises(NotEvaluable, match="nothing that the WAN sent"):
        value_by_seed(run(0.0, 0.0, 0.0, 0.0, 0.0), "burstiness_wan", ("a",))
