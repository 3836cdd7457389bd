"""Measures and figures of the bottleneck's queue."""

from dataclasses import replace

import polars as pl
import pytest
from conftest import flows, frames, ports, samples

from narrows.figures import occupancy, style
from narrows.measures.bottleneck import bottlenecks
from narrows.measures.named import NotEvaluable, value_by_seed


def port(name, mean, case="a", seed=1, role="edge"):
    """A port that was measured for 100 ns, with this mean backlog in bytes."""
    row = ports((name, role, 1, 0, 0.7), case=case, seed=seed)
    return row.with_columns(
        pl.lit(float(mean)).alias("queue_mean_bytes"),
        pl.lit(2.0 * mean).alias("queue_max_bytes"),
        pl.lit(100, dtype=pl.UInt64).alias("measured_ns"),
    )


def queue(entity, *packets, case="a"):
    """A sample every 10 ns; a packet is 1500 bytes."""
    taken = enumerate(packets, 1)
    return samples(*((entity, 10 * place, "queue_bytes", 1500.0 * count) for place, count in taken), case=case)


def data(*ports_of, series):
    return frames([flows((10, 1))], list(ports_of), pl.concat(series))


# The warm-up of 100 ns has ten samples of 99 packets, then come 0 to 9.
ONE = data(
    port("long", 6000),
    port("short", 3000),
    port("host", 9000, role="host"),
    series=[queue("long->x", *[99] * 10, *range(10)), queue("short->x", *[50] * 20)],
)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("queue_median", 4.5),
        ("queue_spread", 9.0),
        ("queue_std", 3.0277),
        ("queue_range", 9.0),
        ("queue_mean", 4.0),
        ("queue_max", 8.0),
        ("utilisation_line", 0.7),
    ],
)
def test_the_longest_sampled_queue_is_measured_after_the_warm_up(name, expected):
    assert value_by_seed(ONE, name, ("a",)) == {1: pytest.approx(expected, abs=1e-3)}


def test_without_samples_the_longest_queue_of_a_switch_is_meant():
    bare = replace(ONE, series=ONE.series.filter(pl.lit(value=False)))
    assert bottlenecks(bare)["name"].to_list() == ["long->x"]
    assert value_by_seed(bare, "queue_mean", ("a",)) == {1: 4.0}
    with pytest.raises(NotEvaluable, match="no queue was sampled"):
        value_by_seed(bare, "queue_median", ("a",))


def test_each_case_and_seed_has_its_own_bottleneck():
    made = data(
        *(port(name, mean, case, seed) for name, mean, case, seed in [
            ("p", 1500, "a", 1), ("q", 3000, "a", 1), ("p", 4500, "b", 1), ("q", 3000, "b", 1),
        ]),
        series=[queue(f"{name}->x", *[count] * 20, case=case) for name, case, count in [
            ("p", "a", 1), ("q", "a", 2), ("p", "b", 3), ("q", "b", 4),
        ]],
    )  # fmt: skip
    assert value_by_seed(made, "queue_median", ("a",)) == {1: 2.0}
    assert value_by_seed(made, "queue_median", ("b",)) == {1: 3.0}


def test_the_figure_has_a_distribution_and_a_course_with_references():
    made = style.finished(occupancy.both(ONE))
    assert made["vconcat"][0]["title"].startswith("How often")
    rows = pl.DataFrame({"case": ["a"], "value": [7.0]})
    found = occupancy.course(ONE.series.select("case", "seed", "time_ns", "value").collect(), ("a",), references=rows)
    assert len(style.finished(found)["vconcat"][0]["layer"]) == 3


def test_a_course_is_reduced_to_means_of_equal_buckets():
    many = queue("long->x", *range(2 * occupancy.MAX_POINTS)).select("case", "seed", "time_ns", "value").collect()
    found = style.finished(occupancy.course(many, ("a",)))
    sets = found.get("datasets") or {}
    points = next(iter(sets.values())) if sets else found["vconcat"][0]["data"]["values"]
    assert len(points) == occupancy.MAX_POINTS
    assert points[0]["value"] == 750.0
