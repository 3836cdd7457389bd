from dataclasses import replace
from types import SimpleNamespace

import polars as pl
import pytest
from conftest import flows, frames, ports, samples
from polars.testing import assert_frame_equal

from narrows import api
from narrows.frames import COUNTED, kept
from narrows.measures import completion
from narrows.measures import tables as metrics
from narrows.measures.named import value_by_seed, value_if_any
from narrows.report import headline
from narrows.results import Results
from narrows.runs.index import Entry, Member


def of(*rows, **kwargs):
    return frames([flows(*rows, **kwargs)], [ports(("h1", "host", 1, 0, 0.1), **kwargs)])


def test_classes_end_at_100_kb_and_10_mb():
    data = of((99_999, 1), (100_000, 2), (10_000_000, 4), (10_000_001, 8))
    sizes = {name: metrics.fct_ms(data, name)["mean"].item() for name in ("small", "medium", "large", "all")}
    assert sizes == {"small": 1.0, "medium": 3.0, "large": 8.0, "all": 3.75}


def test_unfinished_flows_are_counted_and_have_no_time():
    row = metrics.fct_ms(of((10, 3), (10, None)), "small").row(0, named=True)
    assert (row["mean"], row["flows"], row["unfinished"]) == (3.0, 2, 1)


def test_a_flow_without_a_size_is_not_unfinished():
    data = of((10, 3), (20_000_000, 5), (30_000_000, None))
    data = replace(data, flows=data.flows.with_columns(sized=pl.col("size_bytes") < 30_000_000))
    assert metrics.fct_ms(data, "large").select("mean", "flows", "unfinished").row(0) == (5.0, 1, 0)
    assert metrics.fct_by_bin(data)["flows"].sum() == 2
    assert value_by_seed(data, "fct_mean", ("a",)) == {1: 4.0}
    (row,) = headline.table(data)
    assert (row.flows, row.unfinished) == ("3", "0")


def test_flows_of_parts_are_measured_as_the_flows_of_one_traffic_are():
    own = [flows((10, 1), (20, None)), flows((10, 2), (20_000_000, 4)), flows((50, 8), seed=2)]
    named = [table.with_columns(workload=pl.lit(name)) for table, name in zip(own, ("one", "two", "two"), strict=True)]
    data = frames(named, [ports(("h1", "host", 1, 0, 0.1), seed=seed) for seed in (1, 2)])
    for name in completion.FCT:
        found = completion.fct_of_parts(data, "a", name)
        wanted = {part: value_if_any(data, name, (f"a / {part}",)) for part in ("one", "two")}
        assert {part: found.get((part, "cubic"), {}) for part in wanted} == wanted
    assert completion.fct_of_parts(data, "a", "fct_mean") == {("two", "cubic"): {1: 3.0, 2: 8.0}}, "one is unfinished"


def test_what_is_computed_of_frames_is_computed_once_and_not_of_others():
    data = frames(
        [flows((10, 1)), flows((10, 3), case="b")], [ports(("h1", "host", 1, 0, 0.1), case=it) for it in "ab"]
    )
    asked = []

    @kept
    def largest(frames, column):
        asked.append(frames.cases)
        return frames.flows[column].max()

    assert [largest(data.of([case]), "size_bytes") for case in "abab"] == [10, 10, 10, 10]
    assert asked == [("a",), ("b",)]
    other = replace(data, flows=data.flows.with_columns(size_bytes=pl.lit(7)))
    assert [largest(one, "size_bytes") for one in (data, other, data, other)] == [10, 7, 10, 7]
    assert data.of(["a"]).of(["a"]) is data.of(["a"]), "a case has one memory"
    assert data.of(["a", "b"]) is data


def test_a_p99_needs_a_thousand_samples():
    assert metrics.fct_ms(of(*[(10, n) for n in range(1, 1000)]), "small")["p99"].item() is None
    assert metrics.fct_ms(of(*[(10, n) for n in range(1, 1001)]), "small")["p99"].item() == 990.0


@pytest.mark.parametrize(("percent", "expected"), [(50, 500.0), (95, 950.0), (99, 990.0)])
def test_percentiles_are_nearest_rank(percent, expected):
    frame = pl.DataFrame({"x": [float(n) for n in range(1000, 0, -1)]})
    assert frame.select(metrics.nearest_rank(pl.col("x"), percent)).item() == expected


def test_an_empty_column_has_no_percentile():
    frame = pl.DataFrame({"x": []}, schema={"x": pl.Float64})
    assert frame.select(metrics.nearest_rank(pl.col("x"), 99)).item() is None


def test_loss_is_what_a_segment_dropped_over_what_hosts_sent():
    data = frames(
        [flows((10, 1))],
        [
            ports(
                ("t", "fabric", 990, 10, 0.4),
                ("t", "edge", 1000, 0, 0.1),
                ("b", "wan", 99_999, 1, 0.9),
                ("h1", "host", 1000, 0, 0.1),
            )
        ],
    )
    rates = dict(metrics.loss_by_segment(data).select("segment", "loss").iter_rows())
    assert rates == pytest.approx({"dcn": 10 / 1000 / 1e-5, "wan": 1 / 1000 / 1e-5})
    assert metrics.loss_overall(data)["loss"].item() == pytest.approx(11 / 1000 / 1e-5)


def test_idle_hosts_do_not_count_as_senders():
    data = frames(
        [flows((10, 1))], [ports(("h1", "host", 9, 0, 0.2), ("h2", "host", 0, 0, 0.0), ("b", "wan", 9, 0, 0.9))]
    )
    assert metrics.utilisation(data, "host")["utilisation"].item() == 0.2
    assert metrics.utilisation(data, "wan")["utilisation"].item() == 0.9


def test_recovery_is_per_bytes_asked_and_per_thousand_flows():
    row = metrics.recovery(of((1000, 1), (1000, 1), (1_000_000, None))).row(0, named=True)
    assert (row["retransmitted"], row["timeouts"]) == (10.0, 1000.0)


def test_jain_is_one_for_equals_and_one_over_n_for_a_hog():
    taken = (("f", 1, 5.0), ("g", 1, 5.0), ("f", 2, 8.0), ("g", 2, 0.0))
    series = samples(*((flow, at, "goodput_bps", rate) for flow, at, rate in taken))
    data = frames([flows((10, 1))], [ports(("b", "wan", 1, 0, 0.1))], series)
    assert metrics.jain(data)["jain"].item() == pytest.approx((1 + 0.5) / 2)
    assert metrics.jain(data, to_ns=1)["jain"].item() == 1.0


def test_size_bins_are_shared_by_all_cases():
    rows = [(size, 2.0) for size in range(1, 401)]
    data = frames([flows(*rows), flows(*rows, case="b")], [ports(("b", "wan", 1, 0, 0.1))])
    table = metrics.slowdown_by_size(data, bins=4)
    assert table["flows"].to_list() == [100] * 8
    assert table["p50"].to_list() == [2.0] * 8
    assert table["p99"].null_count() == 8


def test_flows_of_the_warm_up_are_not_read(gemini, monkeypatch):
    monkeypatch.chdir(gemini)
    assert api.load("gemini-fig13-quick").flows["start_ns"].min() >= 400_000_000


def test_answers_count_with_their_requests_alone():
    member = Member("c", "cubic", (), (), (), 100, 1_000)
    entry = Entry("e", "e", "", "e.toml", False, (), (1, 2), "v", "narrows run", (member,), (), ())
    tables = {
        "flows": pl.LazyFrame({
            "request": [None, 0, 0, 0, None], "source": ["h1", "h2", "h3", "h3", "h9"], "workload": "w",
            "class": "intra", "destination": "x", "flow": [0, 1, 2, 3, 4], "start_ns": [100, 100, 200, 200, 99],
            "size_bytes": [1000, 500, 500, 700, 1], "retransmitted_bytes": [100, 0, 50, 700, 1],
            "timeouts": [1, 0, 2, 3, 9], "finished": [True, True, True, False, True],
            "delivered_after_warmup_bytes": 0, "controller": "cubic", "fct_ns": 1, "slowdown": 1.0, "rtt_mean_ns": 1,
            "dropped_bytes": 0, "handshake_ns": [None, 70, 10_000_050, 30, 9],
            "syn_retransmits": [0, 0, 1, 0, 0], "rto_wait_ns": [0, 5, 10, 0, 9], "path_changes": 0,
        }),
        "requests": pl.LazyFrame({"start_ns": [99, 100]}),
        "ports": pl.LazyFrame({"node": ["h1", "h2", "h3", "h9"], "role": "host", "utilisation": [0.5, 0.1, 0.3, 0.9]}),
        "series": pl.LazyFrame({"value": [0.0]}),
        "bridges": pl.LazyFrame({"bridge": []}),
        "ranks": pl.LazyFrame({"rank": []}),
        "events": pl.LazyFrame({"event": []}),
    }  # fmt: skip
    plan = {"plan": {"traffic": [], "network": {"nodes": [], "links": []}}}
    results = Results(
        entry, SimpleNamespace(manifest=lambda *_: plan, scan=lambda plan, seed, table, case=None: tables[table])
    )
    own = results.frames
    assert own.flows.select("source", "seed").rows() == [("h1", 1), ("h1", 2)]
    assert results.frames.requests["start_ns"].to_list() == [100, 100]
    columns = ("source", "flows", "unfinished", "timeouts", "handshake_ns", "handshakes")
    assert own.answers.filter(seed=2).select(columns).rows() == [("h2", 1, 0, 0, 70, 1), ("h3", 2, 1, 5, 30, 1)]
    assert (results.counted, len(results.flows)) == (8, 8), "the flows of the warm-up are not counted"
    assert metrics.utilisation(own, "host")["utilisation"].to_list() == pytest.approx([0.3, 0.3]), "h9 is idle"
    assert metrics.recovery(own).select("retransmitted", "timeouts").row(0) == pytest.approx((7.5, 1500.0))


def test_flows_in_memory_are_compact_and_give_what_flows_with_text_give():
    data = frames(
        [flows((10, 1), (20, None), case="b"), flows((2_000_000, 4), case="a · x=1"), flows((10, 2), case="c")],
        [ports(("h1", "host", 1, 0, 0.5), case=case) for case in ("b", "a · x=1", "c")],
    )
    cases = ["a · x=1", "b", "c"]
    small = [
        pl.col("case", "arm").cast(pl.Enum(cases)),
        pl.col("source", "workload", "controller", "class").cast(pl.Categorical),
    ]
    compact = replace(data, flows=data.flows.with_columns(*small))
    for made in (
        lambda own: metrics.fct_ms(own, "all"), metrics.fct_by_bin, metrics.recovery,
        lambda own: metrics.slowdown_by_size(own, bins=2), lambda own: metrics.utilisation(own, "host"),
    ):  # fmt: skip
        # Types as well: a table that a figure joins with others has text.
        assert_frame_equal(made(compact), made(data))
    for chosen in (["c"], ["b", "c"], ["a · x=1", "c"], ["b", "c", "a · x=1"], ["nobody"], []):
        found = compact.of(chosen).flows.with_columns(pl.col("case").cast(pl.String))
        assert_frame_equal(found.select("case", "size_bytes"), data.of(chosen).flows.select("case", "size_bytes"))
        assert set(found["case"]) == set(chosen) - {"nobody"}


def test_what_measures_are_tested_with_is_there_in_earnest(gemini, monkeypatch):
    monkeypatch.chdir(gemini)
    results = api.load("gemini-fig13-quick")
    own = results.frames.flows
    assert set(flows((1, 1)).columns) <= set(own.columns) == {*results.frames.keys, *COUNTED, "sized"}
    assert own["case"].dtype == pl.Enum(sorted(results.frames.cases)), "sorts as text does"
    assert all(dtype not in (pl.Enum, pl.Categorical) for dtype in results.flows.dtypes), "users get text"
    own = own.drop("sized")
    assert results.flows.select(own.columns).equals(metrics.in_words(own.lazy()).collect())


def test_an_arm_may_lack_an_axis_into_another_controller():
    members = (
        Member("c", "cubic", (), (), (), 0, 1),
        Member("g", "gemini", (("cc.gemini.t", "1ms"),), (), (), 0, 1),
    )
    entry = Entry("e", "e", "", "e.toml", False, (), (1,), "v", "narrows run", members, (), ())
    store = SimpleNamespace(manifest=lambda *_: {}, scan=lambda *_, case=None: pl.LazyFrame({"role": ["wan"]}))
    found = Results(entry, store).scan("ports").collect()
    assert found.select("case", "cc.gemini.t").rows() == [("cubic", None), ("gemini · t=1ms", "1ms")]
    row = {"request": None, "start_ns": 1, "finished": True, **dict.fromkeys(COUNTED, 1)}
    row |= {"source": "h1", "class": "intra", "workload": "w", "controller": "c"}
    store.scan = lambda plan, seed, table, case=None: pl.LazyFrame([row])
    compact = Results(entry, store)._compact_flows()
    assert compact.select("case", "cc.gemini.t").rows() == [("cubic", None), ("gemini · t=1ms", "1ms")]
