"""Panels and axes follow what was measured."""

import json

import polars as pl
import pytest
from conftest import Driven, reported
from report_pages import charts

from narrows.figures import style

ALIKE = """
name = "alike"
title = "Flows of one size"
[topology.dumbbell]
pairs = 2
fabric = { rate = "100Mbps", delay = "1ms", limit = "100pkt" }
[[traffic]]
name = "web"
from = "left-*"
to = "right-*"
arrivals = { poisson = { load = 0.5, of = "fabric" } }
size = { fixed = "150KB" }
[[arm]]
name = "cubic"
cc = "cubic"
[[arm]]
name = "vegas"
cc = "vegas"
[run]
end = "10s"
seeds = "1..=3"
"""


@pytest.fixture(scope="module")
def alike(tmp_path_factory):
    """Results of flows that have one size, of medium class, and their page."""
    yield from reported(tmp_path_factory.mktemp("alike"), ALIKE)


def test_slowdown_of_flows_of_one_size_is_a_bar_for_each_scheme_with_its_interval(alike):
    results, path = alike
    spec = charts(path)["slowdown"]
    panel = spec["hconcat"][0]
    assert panel["title"]["text"] == ["Slowdown of flows of 150 KB, p50"]
    name = panel.get("data", panel["layer"][0].get("data"))["name"]
    data = spec["datasets"][name]
    assert [row["case"] for row in data] == ["cubic", "vegas"]
    by_seed = results.frames.flows.group_by("case", "seed").agg(pl.col("slowdown").drop_nulls().sort())
    for row in data:
        own = [values[-(-len(values) // 2) - 1] for case, _, values in by_seed.iter_rows() if case == row["case"]]
        assert row["mean"] == pytest.approx(sum(own) / 3, rel=1e-4)
        assert (row["low"], row["high"]) == pytest.approx((min(own), max(own)), rel=1e-4)


def test_panels_without_data_are_left_out(alike):
    drawn = charts(alike[1])
    titles = json.dumps(drawn["completion"]) + json.dumps(drawn["distribution"])
    assert "Medium flows, mean" in titles
    assert "All flows" in titles
    for absent in ("Small flows", "Large flows", "All flows, mean"):
        assert absent not in titles


@pytest.mark.parametrize("values", [[2.1, 4.8], [8.51, 9.73], [3.0, 3.0], [0.0409, 0.0411], [17.0, 17.6], [0.3, 9e4]])
def test_a_logarithmic_axis_has_at_least_three_labels_between_its_ends(values):
    column = pl.Series(values)
    low, high = style.log_domain(column).domain
    assert low <= min(values) <= max(values) <= high
    ticks = [tick for tick in style.log_axis(column)["values"] if low <= tick <= high]
    assert 3 <= len(ticks) <= 12
    assert ticks == sorted(set(ticks))


def test_axes_of_times_are_labelled_and_say_their_unit(browser, alike):
    driven = Driven(browser, alike[1])
    axes = driven.page.evaluate(
        """Array.from(document.querySelectorAll("#chart-distribution svg .role-axis")).map((axis) => [
            axis.querySelector(".role-axis-title")?.textContent ?? "",
            Array.from(axis.querySelectorAll(".role-axis-label text")).filter(
                (label) => label.textContent && label.getAttribute("opacity") !== "0").length])"""
    )
    labels = [count for title, count in axes if title == "completion time, ms"]
    assert len(labels) == 2
    assert min(labels) >= 2
    driven.page.close()
