import math
from types import SimpleNamespace

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from narrows import comparison
from narrows.measures.stats import (
    estimate,
    estimate_of_all,
    geometric_mean,
    geometric_ratio,
    paired_difference,
    t_quantile,
)


@pytest.mark.parametrize(
    ("freedom", "expected"),
    [(1, 12.7062), (2, 4.3027), (3, 3.1824), (4, 2.7764), (9, 2.2622), (10, 2.2281), (29, 2.0452), (100, 1.9840)],
)
def test_the_quantile_is_the_tables(freedom, expected):
    assert t_quantile(freedom) == pytest.approx(expected, abs=5e-5)


def test_five_seeds_have_a_confidence_interval():
    found = estimate([1.0, 2.0, 3.0, 4.0, 5.0])
    half = 2.7764 * math.sqrt(2.5 / 5)
    assert (found.kind, found.mean) == ("t95", 3.0)
    assert found.high - found.mean == pytest.approx(half, rel=1e-4)


def test_fewer_seeds_have_a_range_and_say_so():
    found = estimate([1.0, 4.0, 2.5])
    assert (found.low, found.mean, found.high, found.kind) == (1.0, 2.5, 4.0, "range")
    assert "smallest and largest of 3" in found.kind_words


def test_one_seed_has_no_interval_and_none_has_no_estimate():
    assert estimate([2.0]).kind == "none"
    assert estimate([]) is None


def test_ratios_and_differences_are_within_seeds():
    one, other = {1: 2.0, 2: 9.0, 3: 1.0}, {1: 1.0, 2: 3.0, 4: 5.0}
    assert geometric_ratio(one, other).mean == pytest.approx((2 * 3) ** 0.5)
    assert paired_difference(one, other).mean == pytest.approx((1 + 6) / 2)


@given(st.lists(st.tuples(st.floats(1e-3, 1e3), st.floats(1e-3, 1e3)), min_size=1, max_size=8))
def test_a_ratio_turned_round_is_its_reciprocal_and_so_is_its_interval(pairs):
    one, other = (dict(enumerate(column)) for column in zip(*pairs, strict=True))
    found, turned = geometric_ratio(one, other), geometric_ratio(other, one)
    assert (found.mean, found.low, found.high) == pytest.approx((1 / turned.mean, 1 / turned.high, 1 / turned.low))


def test_the_interval_of_a_geometric_mean_is_that_of_the_logarithms():
    found = geometric_mean([math.exp(value) for value in (1.0, 2.0, 3.0, 4.0, 5.0)])
    half = 2.7764 * math.sqrt(2.5 / 5)
    assert (found.kind, found.seeds) == ("log-t95", 5)
    assert (found.mean, found.low, found.high) == pytest.approx(
        (math.exp(3), math.exp(3 - half), math.exp(3 + half)), rel=1e-4
    )
    few = geometric_mean([1.0, 4.0, 2.0])
    assert (few.low, few.mean, few.high, few.kind) == (1.0, pytest.approx(2.0), 4.0, "range")
    assert (geometric_mean([1e-300, 1e300] * 3).high, geometric_mean([]), geometric_mean([0.3]).kind) == (
        math.inf, None, "none",
    )  # fmt: skip


def test_seeds_in_which_one_side_is_zero_have_no_ratio():
    assert geometric_ratio({1: 2.0}, {1: 0.0}) is None
    assert geometric_ratio({1: 0.0}, {1: 2.0}) is None
    found = geometric_ratio({1: 0.0, 2: 6.0, 3: 5.0}, {1: 1.0, 2: 2.0, 3: 0.0})
    assert (found.mean, found.seeds) == (pytest.approx(3.0), 1)


def test_seeds_in_which_one_side_is_infinite_have_no_ratio():
    assert geometric_ratio({1: 2.0}, {1: math.inf}) is None
    assert geometric_ratio({1: math.inf}, {1: math.inf}) is None
    found = geometric_ratio({1: math.inf, 2: 6.0, 3: 5.0}, {1: 1.0, 2: 2.0, 3: math.inf})
    assert (found.mean, found.seeds) == (pytest.approx(3.0), 1)


def compared(monkeypatch, base, other):
    """A comparison in which two schemes lost so much, by seed."""
    losses = {"first": dict(enumerate(base, 1)), "second": dict(enumerate(other, 1))}
    monkeypatch.setattr(comparison, "MEASURES", ("loss_dc",))
    monkeypatch.setattr(comparison, "value_if_any", lambda frames, name, cases: losses[cases[0]])
    monkeypatch.setattr(comparison, "why_unfinished", lambda *_: "")
    monkeypatch.setattr(comparison, "of_same_queue", lambda *sides: {})
    entry = SimpleNamespace(identifier="two", seeds=(1, 2, 3), parts=())
    cases = ["first", "second"]
    ports = pl.DataFrame({"case": cases, "arm": cases})
    long = pl.DataFrame({"controller": []})
    frames = SimpleNamespace(cases=cases, axes=(), ports=ports, long=long, of=lambda _: frames)
    return comparison.Comparison([SimpleNamespace(frames=frames, entry=entry, repeated={}, manifests=[], notices=())])


def test_a_comparison_says_over_how_many_seeds_a_ratio_is_if_not_over_all(monkeypatch):
    found = compared(monkeypatch, base=(0.0, 2.0, 0.0), other=(1.0, 4.0, 5.0))
    assert found.notices == ("loss_dc: the ratio second over first is over 1 of 3 seeds, where neither is 0",)
    assert found.notices[0] in repr(found)
    assert compared(monkeypatch, base=(1.0, 2.0, 4.0), other=(0.0, 4.0, 5.0)).notices == (
        "loss_dc: the ratio second over first is over 2 of 3 seeds, where neither is 0",
    )
    assert compared(monkeypatch, base=(1.0, 2.0, math.inf), other=(1.0, 4.0, 5.0)).notices == (
        "loss_dc: the ratio second over first is over 2 of 3 seeds, where neither is 0 or infinite",
    )
    assert compared(monkeypatch, base=(1.0, 2.0, 3.0), other=(1.0, 4.0, 5.0)).notices == ()
    assert compared(monkeypatch, base=(0.0, 0.0, 0.0), other=(1.0, 4.0, 5.0)).notices == (), "it has no ratio"


def test_a_compared_ratio_is_the_geometric_mean_with_its_interval_on_the_log_scale(monkeypatch):
    found = compared(monkeypatch, base=(1.0,) * 6, other=(1.0, 1.0, 1.0, 1.0, 1.0, 64.0)).rows[0].ratio
    half = 2.5706 * math.log(64) / 6  # the standard error of six logarithms, of which one is not 0
    assert (found.kind, found.mean) == ("log-t95", pytest.approx(2.0))
    assert (found.low, found.high) == pytest.approx((2 / math.exp(half), 2 * math.exp(half)), rel=1e-4)


def test_infinities_keep_their_sign():
    found = estimate([-math.inf, 3.0])
    assert (found.low, found.mean, found.high) == (-math.inf, -math.inf, 3.0)
    found = estimate([-math.inf, -math.inf])
    assert (found.low, found.mean, found.high) == (-math.inf, -math.inf, -math.inf)
    assert math.isnan(estimate([-math.inf, math.inf]).mean)


def test_an_infinite_value_makes_an_infinite_mean():
    found = estimate([3.0, math.inf])
    assert (found.low, found.mean) == (3.0, math.inf)


@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=12))
def test_the_mean_lies_in_its_interval(values):
    found = estimate(values)
    assert found.low - 1e-6 <= found.mean <= found.high + 1e-6


def test_the_jackknife_of_a_mean_is_its_t_interval():
    values = [3.0, 1.0, 4.0, 1.0, 5.0, 9.0]
    without = [(sum(values) - one) / (len(values) - 1) for one in values]
    of_all, usual = estimate_of_all(sum(values) / len(values), without), estimate(values)
    assert of_all.kind == "jackknife"
    assert (of_all.mean, of_all.low, of_all.high) == pytest.approx((usual.mean, usual.low, usual.high))
    few = estimate_of_all(2.0, [1.0, 2.5, 2.0])
    assert (few.low, few.high, few.kind) == (1.0, 2.5, "without-one")
