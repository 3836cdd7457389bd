import itertools
import json
from dataclasses import replace
from types import SimpleNamespace

import polars as pl
import pytest
from conftest import CHECKOUT, flows, frames, labelled, ports

from narrows import columns
from narrows.claims import catalogue
from narrows.figures import bars, occupancy, palette, queues, requests, style, sweep
from narrows.figures.distribution import curves
from narrows.frames import Frames
from narrows.measures.stats import estimate

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


def test_a_number_is_converted_to_the_axis_unit():
    converted = [("300us", "ms"), ("1.5ms", "ms"), ("2s", "ms"), ("2min", "s"), ("1Gbps", "Mbit/s"), ("1e3bps", "kbps")]
    assert [sweep.number_of(*pair) for pair in converted] == [0.3, 1.5, 2000, 120, 1000, 1]
    assert [sweep.number_of(*pair) for pair in (("64KiB", "KB"), ("1.5KB", "B"), ("7", "ms"))] == [65.536, 1500, 7]
    with pytest.raises(ValueError, match="'20pkt' cannot stand on an axis in ms"):
        sweep.number_of("20pkt", "ms")


@pytest.mark.parametrize(("title", "expected"), [("T, ms", [0.3, 1.5, 2.0]), ("threshold", [300, 1500, 2000])])
def test_values_of_an_axis_stand_in_one_unit(title, expected):
    table = runs(("a", "300us", 1, 1.0), ("a", "1.5ms", 1, 2.0), ("a", "2000us", 1, 3.0))
    references = pl.DataFrame({"column": ["x"], "arm": ["a"], AXIS: ["1500us"], "value": [7.0]})
    panel = sweep.Panel("X", "", table, "x")
    made = style.finished(sweep.draw([panel], AXIS, ("a",), title=title, references=references))
    assert [row["x"] for row in values(made)] == expected
    dashed = made["hconcat"][0]["layer"][-1]["data"]
    assert [row["x"] for row in made["datasets"][dashed["name"]]] == [expected[1]]


def test_measures_of_a_sweep_have_a_row_for_each_run_and_no_value_where_there_is_none():
    def run(arm, at, seed, *rows):
        label = {"case": f"{arm} · k={at}", "arm": arm, AXIS: at}
        labels = [pl.lit(value).alias(name) for name, value in label.items()]
        return [
            made.with_columns(labels) for made in (flows(*rows, seed=seed), ports(("t", "edge", 9, 0, 0.1), seed=seed))
        ]

    made = [
        run("b", "20pkt", 2, (10, 7)), run("b", "20pkt", 1, (10, 1), (10, 3)),
        run("a", "40pkt", 1, (10, 5)), run("a", "20pkt", 1, (10, None)),
    ]  # fmt: skip
    data = replace(frames([own for own, _ in made], [own for _, own in made]), axes=(AXIS,))
    columns = {"all": "fct_all", "web": "fct_all / web", "large": "fct_large", "nobody": "fct_all / nobody"}
    table = sweep.measured(data, AXIS, columns)
    # In the order of the cases, and of a case in that of its seeds; a run without any value has no row.
    assert table.rows() == [
        ("b", "20pkt", 1, 2.0, 2.0, None, None),
        ("b", "20pkt", 2, 7.0, 7.0, None, None),
        ("a", "40pkt", 1, 5.0, 5.0, None, None),
    ]
    assert table.columns == ["arm", AXIS, "seed", *columns]
    assert table.schema["large"] == pl.Float64, "a column without any value is one of numbers"
    assert sweep.by_seed(data, "a · k=20pkt", "fct_all") == {}, "most of its flows are not done"


def test_seeds_become_a_mean_with_its_interval_and_points_stand_in_the_axis_order():
    table = runs(("a", "40pkt", 1, 1.0), ("a", "40pkt", 2, 3.0), ("a", "20pkt", 1, 5.0))
    chart = drawn(sweep.Panel("X", "ms", table, "x"))
    assert [(row["x"], row["mean"], row["low"], row["high"]) for row in values(chart)] == [(20, 5, 5, 5), (40, 2, 1, 3)]


def test_a_logarithmic_panel_leaves_out_what_it_cannot_show():
    table = runs(("a", "20pkt", 1, 0.0), ("a", "40pkt", 1, 2.0), ("a", "80pkt", 1, float("inf")))
    assert [row["mean"] for row in values(drawn(sweep.Panel("X", "", table, "x", log=True)))] == [2]


def test_a_logarithmic_panel_keeps_a_mean_whose_interval_reaches_below_zero():
    spread = [("a", "20pkt", seed, value) for seed, value in enumerate((0.1, 0.1, 0.1, 0.1, 18.0))]
    table = runs(*spread, ("a", "40pkt", 1, 0.5))
    shown = values(drawn(sweep.Panel("X", "", table, "x", log=True)))
    assert [(row["x"], row["mean"], row["low"]) for row in shown] == [(20, 3.68, 0.5), (40, 0.5, 0.5)]
    assert "to" in shown[0]["range"]


def test_a_logarithmic_axis_begins_and_ends_at_labelled_ticks():
    table = runs(("a", "20pkt", 1, 8.7), ("a", "40pkt", 1, 305.0))
    encoded = drawn(sweep.Panel("X", "ms", table, "x", log=True))["hconcat"][0]["layer"][0]["encoding"]["y"]
    assert encoded["scale"]["domain"] == [5, 500]
    assert {5, 500} <= set(encoded["axis"]["values"])
    assert style.log_scale(pl.Series([], dtype=pl.Float64)).domain == [1, 10]


def test_a_later_arm_lies_on_an_earlier_one_and_may_be_broken():
    panel = sweep.Panel("X", "", runs(("a", "20pkt", 1, 1.0), ("b", "20pkt", 1, 1.0)), "x")
    made = style.finished(sweep.draw([panel], AXIS, ("b", "a"), title="K", broken=["a"]))
    assert [row["case"] for row in values(made)] == ["b", "a"]
    dashes = made["hconcat"][0]["layer"][0]["encoding"]["strokeDash"]
    assert dashes["condition"]["test"]["oneOf"] == ["a"]


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
    assert legends[0] is None
    assert legends[1]["orient"] == "top"


def test_a_legend_of_long_names_has_rows_no_wider_than_a_figure():
    legends = [style.legend_of(["x" * length] * 40).to_dict() for length in (4, 40, 400)]
    assert [legend["columns"] for legend in legends] == [15, 3, 1]
    assert all(legend["labelLimit"] < style.WIDTH for legend in legends)


@pytest.mark.parametrize(
    ("low", "high"),
    [(0, 9.6e6), (0.005, 0.298), (0, 1), (0.99, 1.01), (2.1, 4.8), (-0.5, 15.5), (7e5, 7.0001e5), (0, 3)],
)
def test_a_linear_axis_has_three_to_six_labels_between_its_ends(low, high):
    ticks = style.linear_ticks(low, high)
    assert 3 <= len(ticks) <= 6
    assert all(low - 1e-9 * high <= tick <= high * (1 + 1e-9) for tick in ticks)
    steps = {round((after - before) / (high - low), 6) for before, after in itertools.pairwise(ticks)}
    assert len(steps) == 1
    assert style.linear_ticks(high, low) == []


def test_colours_of_dark_mode_are_seen_on_its_paper_and_told_apart():
    every = [*dict.fromkeys(palette.colours([*palette.KNOWN, *(f"free {place}" for place in range(5))]).values())]
    dark = [palette.on_dark(colour) for colour in every]
    assert min(palette.contrast(colour, palette.DARK_PAPER) for colour in dark) >= 3
    assert len(set(dark)) == len(every)
    assert palette.contrast("#000000", "#ffffff") == pytest.approx(21)
    assert palette.contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01), "by the formula of WCAG"


def nothing():
    """Frames of a run in which no request finished, nothing was sampled and no flow is without a size."""
    long = {"due_ns": pl.UInt64, "stop_ns": pl.UInt64, "base_rtt_ns": pl.UInt64, "goodput_mbps": pl.Float64}
    made = frames([flows((10, None))], [ports(("b", "wan", 1, 0, 0.1))])
    return replace(
        made,
        ports=made.ports.with_columns(measured_ns=pl.lit(10**9, dtype=pl.UInt64)),
        requests=pl.DataFrame({"case": ["a"], "completion_ns": [None]}, schema_overrides={"completion_ns": pl.UInt64}),
        long=labelled(pl.DataFrame(schema=dict(columns.tables()["flows"].schema) | long)),
    )


@pytest.mark.parametrize("tail", [False, True])
def test_requests_of_which_none_finished_are_drawn_empty(tail):
    chart = style.finished(requests.distribution(nothing(), ("a",), "Requests", tail=tail))
    assert chart["title"] == "Requests"
    assert "NaN" not in str(chart)


def test_a_panel_without_a_percentile_says_how_many_requests_it_needs():
    few = labelled(pl.DataFrame({"completion_ns": [1], "timeouts": [0], "responses": [1]}))
    panel = requests.panel(replace(nothing(), requests=few), "p999", "p99.9")
    shown = json.dumps(style.finished(bars.draw([panel], ["a"], width=900)), ensure_ascii=False)
    assert "too few requests for a p99.9: 10\u202f000 in each seed are needed" in shown
    assert "not evaluable" not in shown


def test_a_value_of_the_paper_is_a_diamond_that_the_axis_reaches_and_the_title_tells_of():
    panel = bars.Panel("X", "ms", {"a": estimate([2.0]), "b": estimate([3.0])}, stated={"a": 50.0, "left out": 900.0})
    made = style.finished(bars.draw([panel], ["a", "b"]))
    (shown,) = made["hconcat"]
    (mark,) = (layer for layer in shown["layer"] if layer["mark"].get("shape") == "diamond")
    assert [row["stated"] for row in made["datasets"][mark["data"]["name"]]] == [50.0]
    assert shown["title"]["text"] == ["X; diamond: the paper's"]
    (bar,) = (layer for layer in shown["layer"] if layer["mark"]["type"] == "bar")
    assert bar["encoding"]["x"]["scale"]["domain"][1] == pytest.approx(1.22 * 50)


def test_bars_of_a_measure_have_each_case_and_nothing_where_it_has_none():
    sizes = ((99_999, 1.0), (100_000, 2.0), (10_000_000, 4.0), (10_000_001, 8.0))
    port = ("b", "wan", 1, 0, 0.1)
    made = frames(
        [flows(*sizes), flows((99_999, 1.0), case="small alone")], [ports(port), ports(port, case="small alone")]
    )
    found = bars.of_measure(made, "fct_medium_mean")
    assert found["a"].mean == pytest.approx(3.0), "from 100 KB to 10 MB, both included"
    assert found["small alone"] is None


def test_the_axis_of_bars_ends_at_the_longest_that_is_drawn():
    panel = bars.Panel("X", "ms", {"a": estimate([2.0]), "left out": estimate([100.0])})
    (shown,) = style.finished(bars.draw([panel], ["a"]))["hconcat"]
    assert shown["layer"][0]["encoding"]["x"]["scale"]["domain"] == [0, pytest.approx(2.0, rel=0.5)]


def test_a_picture_has_its_caption_below():
    panel = sweep.Panel("X", "", runs(("a", "20pkt", 1, 1.0)), "x")
    made = style.finished(style.captioned(sweep.draw([panel], AXIS, ("a",), title="K"), "word " * 100))
    below = made["vconcat"][1]["mark"]
    assert " ".join(below["text"]) == ("word " * 100).strip()
    assert len(below["text"]) == 4
    assert all(len(line) <= 125 for line in below["text"]), "so that it fits below a picture in a wide letter, too"


def test_the_scale_of_long_queues_ends_at_a_labelled_tick():
    samples = pl.DataFrame({"case": ["a", "a"], "value": [7.0, 466.0]})
    assert "'domain': [0, 500]" in str(style.finished(occupancy.distribution(samples, ("a",), log=True)))


def test_a_queue_that_was_not_sampled_is_drawn_empty():
    assert style.finished(occupancy.both(nothing(), seconds=1.0))["vconcat"]


def test_figure_11_without_long_lived_flows_is_drawn_empty():
    figure = catalogue.module_from(CHECKOUT / "experiments" / "gemini" / "fig11" / "figure.py")
    assert "not evaluable" in str(style.finished(figure.draw(SimpleNamespace(frames=nothing()))))


def test_a_curve_of_each_case_that_has_samples():
    samples = pl.DataFrame({"case": ["a"] * 100, "value": [float(value) for value in range(100)]})
    made = curves(samples, ("a", "b"), (0.0, 1.0))
    assert made.rows() == [(0.0, 0.0, "a"), (1.0, 99.0, "a")]
    beyond = curves(samples, ("a",), (0.0, 0.5, 0.8, 1.0), tail=True)
    assert [round(share, 3) for share in beyond["share"]] == [0.5, 0.2], "ten samples or more lie beyond"


def test_backlogs_of_many_cases_are_drawn_in_rows_that_fit_the_column():
    cases = [f"arm-{number} · {world}" for number in range(6) for world in ("sim", "guest")]
    rows = [(case, 1, "p", "queue_bytes", place * 10**7, 1000.0) for case in cases for place in range(5)]
    names = ["case", "seed", "entity", "quantity", "time_ns", "value"]
    series = pl.DataFrame(rows, schema=names, orient="row").lazy()
    ports = pl.DataFrame({"case": cases, "seed": [1] * 12, "name": ["p"] * 12})
    drawn = queues.over_time(Frames(pl.DataFrame(), ports, series, pl.DataFrame()), ["p"]).to_dict()
    panels = [part["facet"]["column"]["sort"] for part in drawn["vconcat"]]
    assert panels == [cases[:6], cases[6:]]
    for part, shown in zip(drawn["vconcat"], panels, strict=True):
        assert len(shown) * (part["spec"]["width"] + 12) < style.WIDTH
