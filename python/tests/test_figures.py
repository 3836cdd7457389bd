import polars as pl
import pytest

from narrows.figures import style, sweep

AXIS = "fabric.aqm.threshold.mark-at"


def runs(*rows):
    return pl.DataFrame(
        rows, schema={"arm": pl.String, AXIS: pl.String, "seed": pl.UInt64, "x": pl.Float64}, orient="row"
    )


def drawn(*panels, **options):
    return style.finished(sweep.draw(panels, AXIS, ("a", "b"), title="K, packets", **options))


def values(chart, panel=0):
    own = chart["hconcat"][panel]
    data = own["layer"][0].get("data") or own.get("data") or chart["data"]
    return data.get("values") or chart["datasets"][data["name"]]


def test_a_number_stands_before_its_unit():
    assert [sweep.number_of(text) for text in ("20pkt", "0.2ms", "1e-3", "7")] == [20, 0.2, 1e-3, 7]
    with pytest.raises(ValueError, match="does not begin"):
        sweep.number_of("pkt")


def test_seeds_become_a_mean_with_its_interval_and_points_stand_in_the_axis_order():
    table = runs(("a", "40pkt", 1, 1.0), ("a", "40pkt", 2, 3.0), ("a", "20pkt", 1, 5.0))
    chart = drawn(sweep.Panel("X", "ms", table, "x"))
    assert [(row["x"], row["mean"], row["low"], row["high"]) for row in values(chart)] == [(20, 5, 5, 5), (40, 2, 1, 3)]


def test_a_logarithmic_panel_leaves_out_what_it_cannot_show():
    table = runs(("a", "20pkt", 1, 0.0), ("a", "40pkt", 1, 2.0), ("a", "80pkt", 1, float("inf")))
    assert [row["mean"] for row in values(drawn(sweep.Panel("X", "", table, "x", log=True)))] == [2]


def test_means_over_seeds_become_references():
    table = runs(("a", "20pkt", 1, 1.0), ("a", "20pkt", 2, 3.0), ("a", "40pkt", 1, 5.0))
    found = sweep.means(table, AXIS, ["x"])
    assert found.select("column", "arm", AXIS, "value").rows() == [("x", "a", "20pkt", 2.0), ("x", "a", "40pkt", 5.0)]


def test_references_are_drawn_in_their_panel():
    table = runs(("a", "20pkt", 1, 1.0))
    references = pl.DataFrame({"column": ["x"], "arm": ["a"], AXIS: ["20pkt"], "value": [7.0]})
    chart = drawn(
        sweep.Panel("X", "", table, "x"), sweep.Panel("Y", "", table.rename({"x": "y"}), "y"), references=references
    )
    assert [len(panel["layer"]) for panel in chart["hconcat"]] == [4, 3]


def test_a_single_arm_needs_no_legend():
    panel = sweep.Panel("X", "", runs(("a", "20pkt", 1, 1.0)), "x")
    one, two = (style.finished(sweep.draw([panel], AXIS, arms, title="K")) for arms in (("a",), ("a", "b")))
    legends = [chart["hconcat"][0]["layer"][0]["encoding"]["color"]["legend"] for chart in (one, two)]
    assert legends == [None, {"orient": "top"}]
