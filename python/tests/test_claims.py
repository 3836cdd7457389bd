import contextlib
import dataclasses
import io
import math
import re
from pathlib import Path

import polars as pl
import pytest
from conftest import CHECKOUT, TESTS, flows, frames, ports
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from narrows import api
from narrows.claims import Binding, Claim, Instead, Paper, catalogue, causes, relations, scorecard
from narrows.claims.judge import judge
from narrows.claims.relations import NotUnderstood, Term, evaluate, parse_expression, parse_order, show
from narrows.errors import BadInput
from narrows.measures.named import ALIASES, MEASURES, NotEvaluable, measure_called, value_by_seed

GEMINI, DCTCP, BEYOND = (catalogue.load(CHECKOUT / "experiments" / name) for name in ("gemini", "dctcp", "beyond"))


def value(text, **terms):
    return evaluate(parse_expression(text), lambda term: terms[term.name])


def test_a_chain_is_as_many_relations_as_it_has_signs():
    found = parse_order("a(x) <= b(x) < 2 * c(x)")
    assert [(show(it.left), it.comparison, show(it.right)) for it in found] == [
        ("a(x)", "<=", "b(x)"),
        ("b(x)", "<", "2 * c(x)"),
    ]


def test_arguments_need_no_quotes():
    term = parse_expression("plr_dcn(vegas-10)")
    assert term == Term("plr_dcn", ("vegas-10",))
    assert parse_expression("thr(K=20)") == Term("thr", ("K=20",))
    assert parse_expression("utilisation_wan()") == Term("utilisation_wan", ())


def test_arithmetic_binds_as_usual():
    assert value("1 - a() / b()", a=1.0, b=4.0) == 0.75
    assert value("abs(a()/b()-1)", a=1.0, b=2.0) == 0.5
    assert value("(a() + b()) * 2", a=1.0, b=2.0) == 6.0
    assert value("-a() - 1", a=1.0) == -2.0


def test_the_least_and_the_greatest_of_several():
    assert value("min(a(), b() + 1)", a=1.0, b=4.0) == 1.0
    assert value("max(a() / 2, b()) - 1", a=1.0, b=4.0) == 3.0


def test_a_star_stands_for_the_same_text_in_all_terms():
    cases = ("cubic", "new · k=1pkt", "new · k=2pkt", "old · k=1pkt", "old · k=2pkt")
    found = relations.over_cases(parse_expression("max(a(new · k=*) / a(old · k=*)) + 1"), cases)
    assert show(found) == "max(a(new · k=1pkt) / a(old · k=1pkt), a(new · k=2pkt) / a(old · k=2pkt)) + 1"
    absent = parse_expression("min(a(other · *))")
    assert relations.over_cases(absent, cases) == absent


def test_division_by_zero_is_infinite_or_nothing():
    assert value("a() / b()", a=1.0, b=0.0) == math.inf
    assert math.isnan(value("a() / b()", a=0.0, b=0.0))
    assert value("-a() / b()", a=1.0, b=0.0) == -math.inf
    assert value("1 - a() / b()", a=1.0, b=0.0) == -math.inf


@pytest.mark.parametrize(
    ("left", "sign", "right", "expected"),
    [
        (1.0, "<", 1.0, False),
        (1.05, "<=", 1.0, True),
        (1.06, "<=", 1.0, False),
        (0.95, ">=", 1.0, True),
        (0.94, ">=", 1.0, False),
        (1.0, ">", 0.99, True),
        (-math.inf, "<=", -math.inf, True),
        (-math.inf, ">=", 0.9, False),
        (math.inf, ">=", math.inf, True),
    ],
)
def test_strict_signs_are_strict_and_others_have_five_percent(left, sign, right, expected):
    assert relations.holds(left, sign, right) is expected


@pytest.mark.parametrize(
    "text", ["", "a(x)", "a(x) <", "a(x) < b(", "thr non-decreasing in T", "inter/intra(64x) > 1", "1 < 2 )"]
)
def test_what_is_not_understood_is_said(text):
    with pytest.raises(NotUnderstood):
        parse_order(text)


_EXPRESSIONS = st.recursive(
    st.builds(relations.Number, st.integers(0, 99).map(float))
    | st.builds(Term, st.sampled_from(["fct_all", "plr"]), st.tuples(st.sampled_from(["gemini", "vegas-10", "K=20"]))),
    lambda inner: (
        st.builds(relations.Absolute, inner)
        | st.builds(relations.Binary, st.sampled_from("+*"), inner, inner)
        | st.builds(relations.Among, st.sampled_from(["min", "max"]), st.tuples(inner, inner))
    ),
)


@given(_EXPRESSIONS)
def test_what_is_shown_reads_back_to_the_same_value(expression):
    def of(_term):
        return 2.0

    assert evaluate(parse_expression(show(expression)), of) == pytest.approx(evaluate(expression, of))


@given(st.text(max_size=60))
def test_any_text_is_understood_or_refused(text):
    with contextlib.suppress(NotUnderstood):
        parse_order(text)


def sample():
    """Two arms, two seeds: `slow` takes twice as long as `fast`, seed 2 twice as long as seed 1."""
    flow_frames, port_frames = [], []
    for seed in (1, 2):
        for case, factor, dropped in (("fast", 1, 0), ("slow", 2, 4)):
            rows = [(50_000, 10 * factor * seed), (50_000, 30 * factor * seed), (20_000_000, 1000 * factor * seed)]
            flow_frames.append(flows(*rows, case=case, seed=seed))
            port_frames.append(
                ports(
                    ("h1", "host", 1000, 0, 0.1),
                    ("t", "fabric", 1000 - dropped, dropped, 0.4),
                    ("b", "wan", 999, 1, 0.9),
                    case=case,
                    seed=seed,
                )
            )
    return frames(flow_frames, port_frames)


@pytest.mark.parametrize(
    ("name", "arm", "expected"),
    [
        ("fct_small_avg", "slow", {1: 40.0, 2: 80.0}),
        ("fct_large", "fast", {1: 1000.0, 2: 2000.0}),
        ("fct_all", "fast", {1: 1040 / 3, 2: 2080 / 3}),
        ("goodput_large", "fast", {1: 160.0, 2: 80.0}),
        ("plr", "slow", {1: 500.0, 2: 500.0}),
        ("plr_dcn", "slow", {1: 400.0, 2: 400.0}),
        ("plr_wan", "fast", {1: 100.0, 2: 100.0}),
        # One of 20 bytes dropped, one of 10 sent again, of the one flow across.
        ("dropped_across", "slow", {1: 1e5 / 22, 2: 1e5 / 22}),
        ("dcn_share_of_losses", "slow", {1: 0.8, 2: 0.8}),
        ("utilisation_wan", "fast", {1: 0.9, 2: 0.9}),
        ("utilisation_fabric", "fast", {1: 0.4, 2: 0.4}),
        ("utilisation_hosts", "fast", {1: 0.1, 2: 0.1}),
        ("share_of_small_flows", "fast", {1: 2 / 3, 2: 2 / 3}),
        # 1 ms of IP bytes, and 38 bytes of framing for every 1500.
        ("queueing_delay", "fast", {1: 1538 / 1500, 2: 1538 / 1500}),
        ("utilisation_bottleneck", "slow", {1: 0.9, 2: 0.9}),
    ],
)
def test_measures(name, arm, expected):
    assert value_by_seed(sample(), name, (arm,)) == pytest.approx(expected)


def test_drops_across_need_flows_across_that_are_done_and_drops_that_are_known():
    port = [ports(("b", "wan", 1, 0, 0.1))]
    unknown = flows((2_000_000, 1)).with_columns(dropped_bytes=pl.lit(None, pl.UInt64))
    for rows, why in (
        (flows((10, 1)), "no flow crosses"),
        (flows((2_000_000, 1), (2_000_000, None)), "1 of 2 flows between datacenters"),
        (unknown, "not known"),
    ):
        with pytest.raises(NotEvaluable, match=why):
            value_by_seed(frames([rows], port), "dropped_across", ("a",))


def test_the_busiest_direction_of_a_wan_is_not_the_mean_of_both():
    data = frames([flows((10, 1))], [ports(("b", "wan", 9, 0, 0.03), ("c", "wan", 9, 0, 0.99))])
    assert value_by_seed(data, "utilisation_wan_busiest", ("a",)) == {1: 0.99}
    assert value_by_seed(data, "utilisation_wan", ("a",)) == {1: pytest.approx(0.51)}


def test_payload_is_the_size_of_all_flows():
    data = frames([flows((1_500_000, 1), (500_000, None))], [ports(("b", "wan", 1, 0, 0.1))])
    assert value_by_seed(data, "payload", ("a",)) == {1: 2.0}


def test_the_largest_tenth_of_flows_has_its_share_of_bytes():
    data = frames([flows(*[(10, 1)] * 9, (90, 1))], [ports(("b", "wan", 1, 0, 0.1))])
    assert value_by_seed(data, "share_of_bytes_in_largest_tenth", ("a",)) == {1: 0.5}


def test_a_port_is_used_to_a_hundred_percent_at_most():
    data = frames([flows((10, 1))], [ports(("b", "wan", 1, 0, 1.000001), ("h", "host", 1, 0, 1.0))])
    assert value_by_seed(data, "utilisation_bottleneck", ("a",)) == {1: 1.0}


def test_the_use_of_watched_ports_is_their_mean_inside_the_datacenters():
    rows = ports(
        ("t", "fabric", 9, 0, 0.4), ("u", "fabric", 9, 0, 0.8), ("v", "fabric", 9, 0, 0.1), ("b", "wan", 9, 0, 0.9)
    )  # fmt: skip
    watched = rows.with_columns(queue_p50_bytes=pl.when(pl.col("node") != "v").then(0))
    assert value_by_seed(frames([flows((10, 1))], [watched]), "utilisation_watched", ("a",)) == {1: pytest.approx(0.6)}
    nowhere_inside = frames([flows((10, 1))], [watched.filter(pl.col("node").is_in(["v", "b"]))])
    with pytest.raises(NotEvaluable, match="no port inside the datacenters was watched with a"):
        value_by_seed(nowhere_inside, "utilisation_watched", ("a",))


def test_a_tail_of_few_flows_is_not_evaluable():
    with pytest.raises(NotEvaluable, match="2 small flows per seed"):
        value_by_seed(sample(), "fct_small_p99", ("slow",))


def test_every_measure_is_named_by_a_test():
    tests = "".join(path.read_text() for path in TESTS.glob("test_*.py"))
    called = {name: [name, *(alias for alias, own in ALIASES.items() if own == name)] for name in MEASURES}
    assert [name for name, names in called.items() if not any(f'"{one}"' in tests for one in names)] == []


def claim(order=(), accept=None, scenario="S", kind="ordering", schemes=("fast", "slow")):
    scenarios = (scenario,) if isinstance(scenario, str) else scenario
    return Claim("c", "Fig.", scenarios, "m", schemes, kind, "", "", accept, order, True, "H", "")


def verdict(made, binding, *, figures=None, quick=False):
    paper = Paper("p", Path("/nowhere"), (made,), {"c": binding}, {"S": "fig", "T": "other"})
    return judge(paper, {"fig": sample()} if figures is None else figures, quick=quick)[0]


def test_an_ordering_holds_partly_holds_or_fails():
    good, bad = "fct_all(fast) < fct_all(slow)", "fct_large(fast) > fct_large(slow)"
    assert verdict(claim((good,)), Binding()).word == "holds"
    assert verdict(claim((good, bad)), Binding()).word == "partly"
    failed = verdict(claim((bad,)), Binding())
    assert failed.word == "fails"
    assert "1\u202f500 against 3\u202f000 ms" in failed.reason
    assert failed.estimate.mean == 0.5


def test_a_factor_is_worked_out():
    found = verdict(claim(("fct_large(fast) < 0.8 * fct_large(slow)",)), Binding())
    assert "1\u202f500 against 0.8 × 3\u202f000 = 2\u202f400 ms" in found.parts[0].detail


def test_an_accepted_interval_is_written_with_its_decimals():
    made = claim(("fct_all(fast) < fct_all(slow)",))
    bounds = ((0.6, 0.85), (2, float("inf")), (float("-inf"), 5), (10, 20), (0.123, 1))
    assert [scorecard.accepted(dataclasses.replace(made, accept=pair)) for pair in bounds] == [
        "0.60–0.85", "at least 2", "at most 5", "10–20", "0.123–1.000",
    ]  # fmt: skip
    small = ((-1e-6, 1e-6), (0, 2e-5), (-5, 5), (-math.inf, math.inf))
    assert [scorecard.accepted(dataclasses.replace(made, accept=pair)) for pair in small] == [
        "-1e-06 to 1e-06", "0 to 2e-05", "-5 to 5", "any value",
    ]  # fmt: skip


def test_intervals_of_several_values_are_all_written():
    each = dataclasses.replace(claim(accept=(0, 99), kind="number"), accept_each=((19, 21), (60.5, math.inf)))
    assert scorecard.accepted(each) == "19–21, at least 60.5"
    found = verdict(each, Binding(computed=lambda: (20, 65)), figures={})
    assert scorecard.record(found)["accept_each"] == [[19, 21], [60.5, None]]
    assert scorecard.record(verdict(claim(accept=(0, 99), kind="number"), Binding(), figures={}))["accept_each"] == []


def test_a_name_may_stand_for_several_measures():
    found = verdict(claim(("fct(fast) < fct(slow)",)), Binding(names={"fct": ("fct_all", "plr_dcn")}))
    assert [part.text for part in found.parts] == ["fct_all(fast) < fct_all(slow)", "plr_dcn(fast) < plr_dcn(slow)"]


def test_the_minimum_has_slack_and_ranks_have_it_on_request():
    assert verdict(claim(("fct_all(fast) is minimum",)), Binding()).word == "holds"
    assert verdict(claim(("fct_all(slow) is minimum",)), Binding()).word == "fails"
    assert verdict(claim(("rank(fct_all, slow) <= 1",)), Binding()).word == "fails"
    assert verdict(claim(("rank(fct_all, slow) <= 1",)), Binding(rank_slack=1.01)).word == "holds"


def test_slack_lifts_a_rank_by_one_and_no_more():
    times = dict(zip("abcde", (50, 96, 97, 98, 100), strict=True))
    lossless = [ports(("h1", "host", 100, 0, 0.1), case=case) for case in times]
    data = {"fig": frames([flows((10, time), case=case) for case, time in times.items()], lossless)}

    def judged(order):
        return verdict(
            dataclasses.replace(claim((order,)), schemes=tuple(times)), Binding(rank_slack=0.05), figures=data
        )

    assert judged("rank(fct_all, e) <= 2").word == "fails"
    assert judged("rank(fct_all, e) <= 4").word == "holds"


LOST = "plr_dcn(slow) / plr_dcn(fast)"


def lossy(sent=100, **losses):
    """By case how many packets the fabric drops in each seed, of so many that a host sends."""
    runs = [(case, seed, lost) for case, of in losses.items() for seed, lost in enumerate(of, 1)]
    rows = [(("h1", "host", sent, 0, 0.1), ("t", "fabric", 100, lost, 0.1)) for _, _, lost in runs]
    made = [flows((10, 1), case=case, seed=seed) for case, seed, _ in runs]
    return {"fig": frames(made, [ports(*own, case=run[0], seed=run[1]) for run, own in zip(runs, rows, strict=True)])}


@pytest.mark.parametrize(
    ("fast", "slow", "word"),
    [((0, 0), (5, 5), "holds"), ((0, 0), (1, 1), "partly"), ((2, 2), (30, 30), "holds"), ((2, 2), (10, 10), "fails")],
    ids=["nearly nothing, and much", "nearly nothing, and little", "a ratio", "a smaller ratio"],
)
def test_a_denominator_near_zero_is_judged_as_the_claim_says(fast, slow, word):
    parts = (("plr_dcn(fast)", (0.0, 1000.0)), ("plr_dcn(slow)", (3000.0, math.inf)))
    bound = Binding((LOST,), instead=Instead("plr_dcn(fast)", 1000.0, parts))
    found = verdict(claim(accept=(10, math.inf), kind="ratio"), bound, figures=lossy(fast=fast, slow=slow))
    assert found.word == word


def test_the_largest_is_that_of_the_means():
    times = {"fast": (1, 3), "slow": (3, 1)}
    runs = [flows((10, time), case=case, seed=seed) for case, of in times.items() for seed, time in enumerate(of, 1)]
    idle = [ports(("h1", "host", 1, 0, 0.1), case=case, seed=seed) for case in times for seed in (1, 2)]
    data = {"fig": frames(runs, idle)}
    found = verdict(claim(accept=(2, 2), kind="number"), Binding(("max(fct_all(*))",)), figures=data)
    assert (found.word, found.estimate.mean) == ("holds", 2.0)


def test_where_some_seeds_have_no_value_a_claim_does_not_hold():
    data = lossy(fast=(1, 0), slow=(30, 0))
    found = verdict(claim(accept=(10, math.inf), kind="ratio"), Binding((LOST,)), figures=data)
    assert found.word == "partly"
    assert "in 1 of 2 seeds" in found.reason


def test_a_ratio_of_what_is_rare_is_that_of_the_means():
    data = lossy(1000, fast=(10, 10, 10, 10, 1), slow=(20, 20, 20, 20, 100))
    each = verdict(claim(accept=(10, math.inf), kind="ratio"), Binding((LOST,)), figures=data)
    assert (each.word, each.estimate.mean) == ("holds", pytest.approx((4 * 2 + 100) / 5))
    together = verdict(claim(accept=(10, math.inf), kind="ratio"), Binding((LOST,), of_means=True), figures=data)
    assert together.estimate.mean == pytest.approx(180 / 41)
    assert together.estimate.kind == "jackknife"
    assert together.estimate.low < 180 / 41 < together.estimate.high


def test_what_did_not_finish_is_not_left_out():
    done = frames([flows((10, 1), (10, None), case="fast")], [ports(("h1", "host", 100, 0, 0.1), case="fast")])
    found = verdict(claim(accept=(0, 9), kind="number"), Binding(("fct_all(fast)",)), figures={"fig": done})
    assert (found.word, found.reason) == ("not-run", "not evaluable: 1 of 2 flows did not finish")


def test_a_reduction_from_nothing_fails():
    reduced = Binding(("1 - plr_dcn(fast) / plr_dcn(slow)",))
    found = verdict(claim(accept=(0.3, 1), kind="ratio"), reduced, figures=lossy(fast=(1,), slow=(0,)))
    assert (found.word, found.estimate.mean) == ("fails", -math.inf)


def test_measures_see_the_samples_and_requests_of_their_arm_only():
    series = pl.LazyFrame(
        {"case": ["a", "b"], "quantity": ["goodput_bps"] * 2, "entity": ["x", "y"], "value": [1.0, 2.0]}
    )
    runs = frames([flows((10, 1), case=case) for case in "ab"], [ports(("h1", "host", 1, 0, 0.1))], series)
    runs = dataclasses.replace(runs, requests=pl.DataFrame({"case": ["a", "b"], "request": [0, 0]}))
    only = runs.of(["b"])
    assert [only.series.collect()["entity"].to_list(), only.requests["case"].to_list()] == [["y"], ["b"]]


@pytest.mark.parametrize(("accept", "word"), [((50, 70), "holds"), ((70, 90), "partly"), ((81, 90), "fails")])
def test_a_number_is_judged_by_its_mean_and_overlaps_by_its_interval(accept, word):
    found = verdict(claim(accept=accept, kind="number"), Binding(("fct_small_avg(slow)",)))
    assert (found.word, found.estimate.kind) == (word, "range")


def test_all_expressions_must_be_accepted():
    both = Binding(("fct_small_avg(slow)", "fct_small_avg(fast)"))
    assert verdict(claim(accept=(50, 70), kind="number"), both).word == "partly"


def test_without_losses_their_ratio_is_not_evaluable():
    found = verdict(claim(accept=(1, 2), kind="ratio"), Binding(("plr_dcn(fast) / (plr_dcn(fast) * 1)",)))
    assert found.word == "not-run"
    assert "nothing to divide by" in found.reason


def test_a_claim_over_several_scenarios_is_never_better_than_partly_without_them():
    wide = claim(accept=(50, 70), kind="number", scenario=("S", "T"))
    assert verdict(wide, Binding(("fct_small_avg(slow)",))).word == "partly"
    largest = Binding(("fct_small_avg(slow)",), over="max")
    assert verdict(claim(accept=(70, 90), kind="number", scenario=("S", "T")), largest).word == "not-run"
    assert verdict(claim(accept=(1, 2), kind="number", scenario=("S", "T")), largest).word == "fails"


def test_what_is_said_beside_a_verdict_is_said_of_every_scenario():
    bound = Binding(("fct_small_avg(slow)",), also=("fct_small_avg(fast)",))
    alone = verdict(claim(accept=(50, 70), kind="number"), bound)
    assert [part.detail for part in alone.also] == ["fct_small_avg(fast) = 30 ms"]
    both = {"fig": sample(), "other": sample()}
    found = verdict(claim(accept=(50, 70), kind="number", scenario=("S", "T")), bound, figures=both)
    assert [part.detail for part in found.also] == [f"{item}: fct_small_avg(fast) = 30 ms" for item in ("S", "T")]


def test_an_order_over_several_scenarios_says_of_which_each_part_is():
    order = claim(("fct_all(fast) < fct_all(slow)",), scenario=("S", "T"))
    assert verdict(order, Binding()).parts[0].text == "fct_all(fast) < fct_all(slow)"
    both = verdict(order, Binding(), figures={"fig": sample(), "other": sample()})
    assert [part.text for part in both.parts] == [f"{item}: fct_all(fast) < fct_all(slow)" for item in ("S", "T")]
    assert both.parts[1].detail.startswith("T: fct_all(fast) < fct_all(slow): ")


def test_what_was_not_run_says_why():
    unknown_arm = verdict(claim(("fct_all(nobody) < fct_all(slow)",)), Binding())
    assert (unknown_arm.word, unknown_arm.reason) == ("not-run", "no scheme is called nobody")
    absent = verdict(claim(("fct_all(fast) < fct_all(slow)",)), Binding(), figures={})
    assert absent.reason == "belongs to another figure (fig)"
    setup = verdict(claim(accept=(0, 1), kind="number"), Binding(("utilisation_wan()",), full_only=True), quick=True)
    assert setup.word == "not-run"
    strange = verdict(claim(("thr increasing in T",)), Binding())
    assert "not understood" in strange.reason


def test_an_order_over_axes_is_restated_in_terms_of_cases():
    stated = claim(("rtt(K=20) < rtt(K=40)",))
    assert verdict(stated, Binding()).word == "not-run"
    assert verdict(stated, Binding(orders=("fct_all(fast) < fct_all(slow)",))).word == "holds"
    assert verdict(stated, Binding(orders=("fct_all(fast) > fct_all(slow)",))).word == "fails"


def test_what_is_compared_in_each_of_several_scenarios_says_which_and_in_what_unit():
    both = {"fig": sample(), "other": sample()}
    product = "fct_all(fast) * fct_large(fast) < fct_all(slow) * fct_large(slow)"
    found = verdict(claim((product,), scenario=("S", "T")), Binding(), figures=both)
    assert [part.detail.partition(":")[0] for part in found.parts] == ["S", "T"]
    assert all(part.detail.endswith(" ms²") for part in found.parts)
    mean = verdict(claim(("(fct_all(fast) + fct_large(fast)) / 2 < fct_all(slow)",)), Binding())
    assert mean.parts[0].detail.endswith(" ms")
    ratio = verdict(claim(("fct_all(fast) / fct_all(slow) < 2",)), Binding())
    assert ratio.parts[0].detail.endswith(": 0.500")


def printed(found, **options):
    console = Console(width=200, file=io.StringIO())
    console.print(scorecard.table([found], **options))
    return console.file.getvalue()


def test_a_terminal_lists_few_of_many_and_what_was_stated_in_other_words():
    text = "fct_all(fast) < fct_all(slow)"
    stated = dataclasses.replace(claim(("rtt(K=20) < rtt(K=40)",)), expect="rtt(K=20) < rtt(K=40)")
    found = verdict(stated, Binding(orders=(*[text] * 5, "fct_all(fast) > fct_all(slow)")))
    short = printed(found)
    assert "rtt(K=20) < rtt(K=40)" in short
    assert (short.count("✓ fct_all"), short.count("✗ fct_all")) == (3, 1)
    assert "✓ and 2 more" in short
    assert printed(found, everything=True).count("✓ fct_all") == 5
    plain = dataclasses.replace(claim((text,)), expect=text)
    assert printed(verdict(plain, Binding())).count(text) == 1, "what is judged as it is stated is told once"


def test_an_extreme_over_cases_is_judged_as_one_value():
    found = verdict(claim(accept=(2, 2), kind="ratio"), Binding(("max(fct_all(*) / fct_all(fast))",)))
    assert (found.word, found.estimate.mean, found.parts[0].text) == ("holds", 2.0, "max(fct_all(*) / fct_all(fast))")
    absent = verdict(claim(accept=(2, 2), kind="ratio"), Binding(("max(fct_all(none · *))",)))
    assert (absent.word, absent.reason) == ("not-run", "no scheme is called none · *")
    ordered = verdict(claim(("min(fct_all(*)) < fct_all(slow)",)), Binding())
    assert ordered.word == "holds"


def test_what_needs_no_run_is_computed_and_each_value_has_its_interval():
    bound = Binding(computed=lambda: 0.5)
    assert verdict(claim(accept=(0.4, 0.6), kind="number"), bound, figures={}).word == "holds"
    assert verdict(claim(accept=(0.6, 0.7), kind="number"), bound, figures={}).word == "fails"
    each = dataclasses.replace(claim(accept=(0, 99), kind="number"), accept_each=((19, 21), (60, 70)))
    assert verdict(each, Binding(computed=lambda: (20, 65)), figures={}).word == "holds"
    assert verdict(each, Binding(computed=lambda: (20, 80)), figures={}).word == "partly"


CLAIM = """[[claim]]
id = "c"
item = "Fig. 1"
scenario = "S"
metric = "m"
schemes = ["one"]
kind = "number"
expect = "1"
needs_simulation = true
confidence = "H"
"""


def test_a_claim_that_lacks_something_is_refused(tmp_path):
    (tmp_path / "claims.toml").write_text(CLAIM.replace('item = "Fig. 1"', ""))
    with pytest.raises(BadInput, match=r"claim c of .* has no 'item'"):
        catalogue.load(tmp_path)


def test_a_paper_may_state_nothing(tmp_path):
    (tmp_path / "claims.toml").write_text("# figures only\n")
    assert catalogue.load(tmp_path).claims == ()


def test_a_claim_is_bound_once(tmp_path):
    (tmp_path / "claims.toml").write_text(CLAIM)
    for figure in ("one", "two"):
        (tmp_path / figure).mkdir()
        (tmp_path / figure / "bindings.py").write_text("SCENARIOS = ('S',)\nBINDINGS = {'c': None}")
    with pytest.raises(BadInput, match="binds c a second time"):
        catalogue.load(tmp_path)


def test_statements_of_our_own_say_whose_they_are_and_no_papers_do():
    assert BEYOND.title == "Beyond the papers"
    assert all(item.ours for item in BEYOND.claims)
    for paper in (GEMINI, DCTCP):
        assert paper.title == ""
        assert not any(item.ours for item in paper.claims)
    assert scorecard.heading(BEYOND) == "Beyond the papers: our own statements"
    assert scorecard.heading(GEMINI) == "Claims of gemini"
    ours = [verdict for verdict in judge(BEYOND, {}, quick=True) if verdict.word == "not-run"]
    assert (scorecard.stated_by(ours), scorecard.things(ours)) == ("we state", "26 statements of our own")
    page = scorecard.markdown(BEYOND, ours, {}, quick=True)
    assert page.startswith("# Beyond the papers: our own statements (quick runs)")
    assert all(found["ours"] for found in scorecard.card(BEYOND, ours, {}, quick=True)["claims"])


@pytest.mark.parametrize(
    ("paper", "claims"), [(GEMINI, 92), (DCTCP, 47), (BEYOND, 26)], ids=["gemini", "dctcp", "beyond"]
)
def test_bindings_are_of_the_papers_claims_and_read_their_language(paper, claims):
    identifiers = {item.identifier for item in paper.claims}
    assert len(identifiers) == claims
    assert set(paper.bindings) <= identifiers
    for item in paper.claims:
        if item.identifier not in paper.bindings:
            continue
        binding = paper.bindings[item.identifier]
        if binding.computed is not None:
            assert not item.needs_simulation
            continue
        assert bool(binding.expressions) == (item.kind != "ordering")
        used = [
            term for text in (*binding.expressions, *binding.also) for term in relations.terms(parse_expression(text))
        ]
        for text in binding.orders or item.order:
            parsed = parse_order(text)
            sides = (
                [parsed.term]
                if isinstance(parsed, relations.Extreme)
                else [s for it in parsed for s in (it.left, it.right)]
            )
            used += [term for side in sides for term in relations.terms(side)]
        for term in used:
            name = term.arguments[0] if term.name == "rank" else term.name
            for measure in binding.names.get(name, (name,)):
                assert measure_called(measure), (item.identifier, measure)


def open_above(stated, *texts, low=0.5):
    made = dataclasses.replace(claim(accept=(low, math.inf), kind="ratio"), value=stated)
    return verdict(made, Binding(texts))


def test_how_far_a_claim_without_an_upper_bound_is_exceeded_is_said():
    ratio = "fct_all(slow) / fct_all(fast)"  # 2
    far = open_above((0.1,), ratio)
    assert far.word == "holds"
    assert scorecard.measured(far)[0].endswith("; 20 times the stated value")
    assert "holds; 20 times the stated value" in printed(far)
    page = scorecard.markdown(Paper("p", Path("/nowhere"), (far.claim,), {}, {}), [far], {}, quick=False)
    assert "| holds; 20 times the stated value |" in page
    assert scorecard.record(far)["parts"][0]["times_stated"] == pytest.approx(20)
    assert scorecard.exceeding(*open_above((1.0,), ratio).parts) == "", "twice is not more than twice"
    assert scorecard.exceeding(*open_above((), ratio).parts) == ""
    closed = dataclasses.replace(claim(accept=(0.05, 4.0), kind="ratio"), value=(0.1,))
    assert scorecard.exceeding(*verdict(closed, Binding((ratio,))).parts) == "", "an upper bound judges it"


def test_of_several_stated_values_each_is_one_measures_or_all_are_a_range():
    ratio, inverse = "fct_all(slow) / fct_all(fast)", "fct_all(fast) / fct_all(slow)"  # 2 and 0.5
    each = open_above((0.5, 0.1), ratio, inverse).parts
    assert [part.stated for part in each] == [0.5, 0.1]
    assert scorecard.exceeding(*each) == "; up to 5.0 times the stated value"
    assert {part.stated for part in open_above((0.1, 0.4), ratio, ratio, inverse).parts} == {0.4}


def test_the_values_of_the_papers_claims_are_read():
    stated = {item.identifier: item.value for item in (*GEMINI.claims, *DCTCP.claims)}
    assert (stated["gem-010"], stated["dct-002"], stated["dct-003"]) == ((4.0, 20.0), (10.0,), ())


def test_what_checks_the_setup_is_no_claim_that_a_run_can_refute():
    papers = [catalogue.load(path.parent) for path in sorted((CHECKOUT / "experiments").glob("*/claims.toml"))]
    claims = [item for paper in papers for item in paper.claims]
    noted = {item.identifier for item in claims if "setup check" in item.note}
    # Of dct-004 the switch's alpha was derived; its note does not say so.
    assert {item.identifier for item in claims if item.setup} == noted | {"dct-004"}
    assert not any(item.refutable for item in claims if item.setup or not item.needs_simulation)


def test_claims_that_a_run_can_refute_are_counted_apart_from_the_others():
    good, bad = (verdict(claim((f"fct_all(fast) {sign} fct_all(slow)",)), Binding()) for sign in "<>")
    low = dataclasses.replace(good, claim=dataclasses.replace(good.claim, confidence="L"))
    setup = dataclasses.replace(good, claim=dataclasses.replace(good.claim, setup=True))
    sums = dataclasses.replace(bad, claim=dataclasses.replace(bad.claim, needs_simulation=False))
    rows = scorecard.tally([good, bad, low, setup, sums])
    assert [(kind, grade, found["holds"], found["fails"]) for kind, grade, found in rows] == [
        ("that a run can refute", "H", 1, 1),
        ("that a run can refute", "L", 1, 0),
        ("that a run can refute", "all", 2, 1),
        ("arithmetic or set-up", "all", 1, 1),
    ]
    assert scorecard.told([good, bad, low, setup, sums]) == [
        "3 that a run can refute: 2 holds, 0 partly, 1 fails, 0 not-run",
        "2 arithmetic or set-up: 1 holds, 0 partly, 1 fails, 0 not-run",
    ]
    assert [kind for kind, _ in scorecard.by_kind([good])] == ["that a run can refute"]


def test_a_choice_among_measures_is_evaluated_on_their_means():
    text = "max(fct_large(fast), fct_large(slow)) / min(fct_large(fast), 2 * fct_large(slow)) <= 2"
    assert relations.show(parse_expression("max(a(x), abs(b(y, z))) / min(2, c(x))")).startswith("max(a(x), abs(")
    assert [str(term) for term in relations.terms(parse_expression("max(a(x), b(y, z))"))] == ["a(x)", "b(y, z)"]
    assert verdict(claim(order=(text,)), Binding()).word == "holds"
    assert verdict(claim(order=(text.replace("<= 2", "< 2"),)), Binding()).word == "fails"


def test_a_measure_may_be_of_one_traffic():
    data = frames(
        [flows((1000, 2), (1000, 4)).with_columns(pl.Series("workload", ["web", "other"]))],
        [ports(("b", "wan", 1, 0, 0.1))],
    )
    assert value_by_seed(data, "fct_all", ("a / other",)) == {1: 4.0}
    assert value_by_seed(data, "fct_all", ("a",)) == {1: 3.0}
    with pytest.raises(NotEvaluable, match="no flow belongs to a traffic called none"):
        value_by_seed(data, "fct_all", ("a / none",))
    with pytest.raises(NotEvaluable, match="no scheme is called b"):
        value_by_seed(data, "fct_all", ("b / web",))


def test_the_papers_setup_is_judged_from_ports_and_flows(gemini, monkeypatch):
    monkeypatch.chdir(gemini)
    data = api.load("gemini-fig13-quick").frames
    verdicts = {item.claim.identifier: item for item in judge(GEMINI, {"fig13": data, "fig04": data}, quick=False)}
    # Of runs so short ports are less busy than the paper's.
    assert re.fullmatch(r"utilisation_wan\(\) = 0\.[78]\d\d", verdicts["gem-019"].reason)
    assert re.fullmatch(r"utilisation_fabric\(\) = 0\.[34]\d\d", verdicts["gem-020"].reason)
    assert verdicts["gem-088"].word == "holds"
    assert verdicts["gem-005"].reason == "not run yet: narrows reproduce gemini/fig09"
    assert isinstance(data.flows, pl.DataFrame)


def test_one_seed_without_a_denominator_does_not_decide_for_the_others():
    host = ("h1", "host", 1000, 0, 0.9)
    lossy = ports(host, ("t", "fabric", 990, 10, 0.4), ("b", "wan", 995, 5, 0.9), case="slow", seed=1)
    clean = ports(host, ("t", "fabric", 990, 10, 0.4), ("b", "wan", 1000, 0, 0.9), case="slow", seed=2)
    data = {"fig": frames([flows((10, 1), case="slow")], [lossy, clean])}
    binding = Binding(("plr_dcn(slow) / plr_wan(slow)",))
    assert verdict(claim(accept=(4, math.inf), kind="ratio"), binding, figures=data).word == "partly"
    assert verdict(claim(accept=(1, math.inf), kind="ratio"), binding, figures=data).word == "holds"


STATED = """\
[[claim]]
id = "a-1"
item = "Fig. 1"
scenario = "one"
metric = "goodput"
schemes = ["cubic"]
kind = "ratio"
expect = "cubic"
accept = [1, 2]
needs_simulation = true
confidence = "H"
"""
REASON = '[[cause]]\nclaims = ["a-1"]\nclass = "follows"\nabout = "So it is."\n'


@pytest.mark.parametrize(("name", "text", "sentence"), [
    ("claims.toml", STATED.encode() + b"\xff", "cannot read"),
    ("claims.toml", b"a = " + b"[" * 5000, "cannot read"),
    ("claims.toml", b"claim = 7\n", "`claim` of"),
    ("claims.toml", b"claim = [7]\n", "`claim` of"),
    ("claims.toml", b"title = 7\n", "the title of"),
    ("claims.toml", STATED.replace('"a-1"', "7").encode(), "'id' of claim 7"),
    ("claims.toml", STATED.replace('["cubic"]', "[7]").encode(), "'schemes' of claim a-1"),
    ("claims.toml", STATED.replace('"ratio"', '"ratios"').encode(), "'kind' of claim a-1"),
    ("claims.toml", STATED.replace("[1, 2]", "[2, 1]").encode(), "'accept' of claim a-1"),
    ("claims.toml", STATED.replace("[1, 2]", "[nan, 1]").encode(), "'accept' of claim a-1"),
    ("claims.toml", STATED.replace("[1, 2]", "7").encode(), "'accept' of claim a-1"),
    ("claims.toml", (STATED + "accept_each = 7\n").encode(), "'accept_each' of claim a-1"),
    ("claims.toml", (STATED + 'value = "7"\n').encode(), "'value' of claim a-1"),
    ("causes.toml", REASON.encode() + b"\xff", "cannot read"),
    ("causes.toml", b"cause = 7\n", "`cause` of"),
    ("causes.toml", REASON.replace('["a-1"]', "7").encode(), "is incomplete, or of no known class"),
    ("causes.toml", REASON.replace('"follows"', "[]").encode(), "is incomplete, or of no known class"),
])  # fmt: skip
def test_what_a_paper_states_otherwise_than_it_can_be_read_is_refused(tmp_path, name, text, sentence):
    (tmp_path / name).write_bytes(text)
    with pytest.raises(BadInput) as raised:
        (catalogue.load if name == "claims.toml" else causes.read)(tmp_path)
    assert sentence in str(raised.value)
    assert str(tmp_path / name) in str(raised.value)
    assert "\n  help: " in str(raised.value)
