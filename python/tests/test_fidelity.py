"""Simulator and kernel side by side: on numbers made by hand, and as a command with a narrowsd that carries nothing."""

import json
import re
import shutil
from dataclasses import replace

import polars as pl
import pytest
from conftest import CHECKOUT, TWO_ARMS, lines
from typer.testing import CliRunner

from narrows import marked, native
from narrows.claims.folders import Figure
from narrows.cli.app import app
from narrows.errors import BadInput
from narrows.fidelity import Comparison, Scenario, ScenarioVerdict, Tolerance, catalogue, judge, page, stored, table
from narrows.fidelity.judge import summary
from narrows.fidelity.observed import Runs, bottleneck, observe
from narrows.runs import daemon
from narrows.runs.store import Store

TOLERANCE = Tolerance(
    goodput=0.03, queue_delay=0.10, queue_delay_packets=2, fct_p99=0.15, drops=0.25, drops_packets=5,
    retransmissions=0.25, retransmissions_packets=10, marks=0.25, marks_packets=20, share=0.05,
)  # fmt: skip
BOTTLENECK = "a->b"


def ports(seed=1, *, backlog=15_000, used=0.9, name=BOTTLENECK, rate=100_000_000, **counted):
    row = {
        "seed": seed, "name": name, "utilisation": used, "queue_p50_bytes": backlog, "rate_bps": rate,
        "dropped_packets": 0, "lost_on_wire_packets": 0, "marked_packets": 0,
    }  # fmt: skip
    return pl.DataFrame(row | counted, schema_overrides={"seed": pl.UInt64, "queue_p50_bytes": pl.UInt64})


def flow(*, seed=1, kind="web", size=1000, fct_ms=None, delivered=0, finished=True, sized=True, counted=True, again=0):
    row = {
        "seed": seed, "workload": kind, "source": "h1", "destination": "h2", "size_bytes": size,
        "fct_ns": None if fct_ms is None else int(fct_ms * 1e6), "finished": finished, "sized": sized,
        "counted": counted, "delivered_after_warmup_bytes": delivered, "retransmitted_bytes": again,
    }  # fmt: skip
    return pl.DataFrame(row, schema_overrides={"seed": pl.UInt64, "fct_ns": pl.UInt64})


def requests(*times_ms, responses=8):
    columns = {
        "seed": [1] * len(times_ms),
        "completion_ns": [None if time is None else int(time * 1e6) for time in times_ms],
        "responses": [responses] * len(times_ms),
    }
    return pl.DataFrame(
        columns, schema={"seed": pl.UInt64, "completion_ns": pl.UInt64, "responses": pl.UInt32}, strict=False
    )


def runs(*flows, port_frames=None, asked=()):
    """One second of an arm in a world."""
    return Runs(pl.concat(flows), requests(*asked), pl.concat(port_frames or [ports()]), 1_000_000_000)


def long(delivered, **more):
    """A flow without a size that delivers so many bytes in the measured second."""
    return flow(delivered=delivered, size=delivered, sized=False, finished=False, counted=False, **more)


def quantity(verdict, key):
    return next(one for one in verdict.quantities if one.key == key)


@pytest.mark.parametrize(
    ("sim", "inside", "apart"),
    [
        (12_870_000, True, "+2.96 %"),
        (12_890_000, False, "+3.12 %"),
        (12_130_000, True, "−2.96 %"),
        (12_110_000, False, "−3.12 %"),
        (12_500_000, True, "0 %"),
    ],
)
def test_goodput_is_all_that_was_delivered_and_may_differ_by_three_hundredths(sim, inside, apart):
    half = sim // 2
    verdict = judge("cubic", runs(long(half), long(half)), runs(long(12_500_000)), TOLERANCE)
    found = quantity(verdict, "goodput")
    assert found.sim == pytest.approx(sim * 8 / 1e6)  # Mbit/s
    assert (found.kernel, found.inside, table.difference(found)) == (100.0, inside, apart)
    assert verdict.word == ("inside" if inside else "outside")


@pytest.mark.parametrize(
    ("sim_bytes", "kernel_bytes", "inside"),
    [
        (110_000, 100_000, True),  # 8.8 and 8 ms at 100 Mbit/s: a tenth
        (110_100, 100_000, False),
        (89_900, 100_000, False),
        (6_000, 3_000, True),  # twice the kernel's, but only two packets more
        (6_001, 3_000, False),
        (3_000, 0, True),
        (3_001, 0, False),
    ],
)
def test_the_queue_may_differ_by_a_tenth_or_two_packets(sim_bytes, kernel_bytes, inside):
    worlds = [runs(long(100), port_frames=[ports(backlog=backlog)]) for backlog in (sim_bytes, kernel_bytes)]
    verdict = judge("cubic", *worlds, TOLERANCE)
    found = quantity(verdict, "queue-delay")
    assert found.sim == pytest.approx(sim_bytes * 8 / 1e5)  # ms at 100 Mbit/s
    assert found.inside is inside
    assert verdict.sim.queue_packets == sim_bytes / 1500


def test_the_bottleneck_is_the_sampled_port_that_the_simulator_uses_most():
    unsampled = ports(name="h1->a", used=0.99).with_columns(pl.lit(None, dtype=pl.UInt64).alias("queue_p50_bytes"))
    ours = [unsampled, ports(name="b->c", used=0.6, backlog=0), ports(used=0.5), ports(seed=2, used=0.9)]
    sim = runs(long(100), long(100, seed=2), port_frames=[*ours, ports(seed=2, name="b->c", used=0.7, backlog=0)])
    kernel = runs(long(100), port_frames=[ports(name="b->c", used=0.99, backlog=0), ports(backlog=30_000)])
    assert bottleneck(sim) == BOTTLENECK, "0.7 of two seeds beats 0.65"
    only_first = judge("cubic", sim, kernel, TOLERANCE)
    assert (only_first.seeds, only_first.port) == ((1,), "b->c"), "0.6 beats 0.5 in the seed that both have"


@pytest.mark.parametrize(("slowest_ms", "inside"), [(22.9, True), (23.1, False), (17.1, True), (16.9, False)])
def test_the_tail_is_of_all_seeds_and_may_differ_by_fifteen_hundredths(slowest_ms, inside):
    def world(slowest):
        """100 flows of two seeds, the two slowest alike: the 99th smallest is one of them."""
        quick = [flow(seed=seed, fct_ms=1) for seed in (1, 2) for _ in range(49)]
        slow = [flow(seed=seed, fct_ms=slowest) for seed in (1, 2)]
        not_counted = [flow(fct_ms=900, counted=False), flow(fct_ms=None, finished=False)]
        return runs(*quick, *slow, *not_counted, port_frames=[ports(1), ports(2)])

    verdict = judge("cubic", world(slowest_ms), world(20), TOLERANCE)
    found = quantity(verdict, "fct-p99")
    assert (found.sim, found.kernel, found.inside) == (slowest_ms, 20.0, inside)
    assert verdict.kernel.completions == 100


def test_a_tail_needs_twenty_flows_and_is_none_of_flows_without_a_size():
    few = runs(*(flow(fct_ms=1) for _ in range(19)), long(100))
    assert quantity(judge("cubic", few, few, TOLERANCE), "fct-p99").inside is None
    enough = runs(*(flow(fct_ms=time) for time in range(1, 21)), long(100))
    assert observe(enough, port=BOTTLENECK, of_requests=False).fct_p99_ms == 20.0
    only_one = quantity(judge("cubic", enough, few, TOLERANCE), "fct-p99")
    assert (only_one.kernel, only_one.inside, only_one.said) == (None, False, "only the simulator has it")
    alone = judge("cubic", runs(long(100)), runs(long(100)), TOLERANCE)
    assert [one.inside for one in alone.quantities] == [True, True, *[None] * 6]


def test_where_requests_have_several_responses_theirs_is_the_tail():
    answers = [flow(fct_ms=1) for _ in range(30)]
    asking = runs(*answers, asked=[*range(1, 25), None])
    found = judge("cubic", asking, asking, TOLERANCE)
    assert (quantity(found, "fct-p99").sim, found.sim.completions) == (24.0, 24)
    single = Runs(asking.flows, requests(*range(1, 25), responses=1), asking.ports, asking.measured_ns)
    assert quantity(judge("cubic", single, single, TOLERANCE), "fct-p99").sim == 1.0


def test_a_flow_that_finishes_in_one_world_only_is_outside():
    both = [flow(size=size, fct_ms=1) for size in (100, 100, 200)]
    kernel = runs(*both, flow(size=300, finished=False))
    same = judge("cubic", runs(*both), kernel, TOLERANCE)
    assert quantity(same, "finished").inside is True
    one_more = judge("cubic", runs(*both[1:], flow(size=300, fct_ms=1)), kernel, TOLERANCE)
    found = quantity(one_more, "finished")
    assert (found.sim, found.kernel, found.inside) == (3, 3, False), "as many, but not the same"
    assert found.said == "1 in the simulator alone, 1 in the kernel alone"
    assert one_more.outside == (found,)


@pytest.mark.parametrize(
    ("column", "key", "share", "least"),
    [("dropped_packets", "drops", 0.25, 5), ("marked_packets", "marks", 0.25, 20)],
)
@pytest.mark.parametrize("kernel", [4, 8, 1000])
def test_packets_of_ports_may_differ_by_a_share_or_a_few(column, key, share, least, kernel):
    def judged(sim, other=kernel):
        worlds = [runs(long(1), port_frames=[ports(**{column: int(count)})]) for count in (sim, other)]
        return quantity(judge("cubic", *worlds, TOLERANCE), key)

    most = max(share * kernel, least)
    found = judged(kernel + most)
    assert (found.sim, found.kernel, found.inside) == (int(kernel + most), kernel, True)
    assert judged(kernel + most + 1).inside is False
    assert judged(max(0, kernel - most)).inside is True
    assert kernel < most or judged(kernel - most - 1).inside is False
    assert (judged(least, 0).inside, judged(least + 1, 0).inside) == (True, False)
    assert judged(0, 0).inside is None


def test_retransmissions_are_packets_per_run_and_those_of_the_warm_up_count():
    def both(count):
        return [long(1, seed=seed, again=1448 * count) for seed in (1, 2)]

    frames = [ports(1), ports(2)]
    for sim, inside in [(50, True), (51, False), (30, True), (29, False)]:
        verdict = judge("cubic", runs(*both(sim), port_frames=frames), runs(*both(40), port_frames=frames), TOLERANCE)
        found = quantity(verdict, "retransmissions")
        assert (found.sim, found.kernel, found.inside) == (sim, 40, inside)


def test_the_share_is_of_the_kind_of_traffic_that_differs_most():
    def world(near, far, web=0):
        return runs(long(near, kind="near"), long(far, kind="far"), *([long(web, kind="web")] if web else []))

    for sim, inside in [((550, 450), True), ((560, 440), False), ((440, 560), False)]:
        found = quantity(judge("cubic", world(*sim), world(500, 500), TOLERANCE), "share")
        assert (found.inside, found.kernel) == (inside, 50)
        assert found.sim == pytest.approx(sim[0 if found.said == "of near" else 1] / 10)
    three = quantity(judge("cubic", world(500, 300, 200), world(500, 200, 300), TOLERANCE), "share")
    assert not three.inside
    assert three.said in {"of far", "of web"}
    alone = quantity(judge("cubic", runs(long(5)), runs(long(9)), TOLERANCE), "share")
    assert (alone.sim, alone.inside) == (None, None)


def test_only_seeds_that_count_in_both_worlds_are_compared():
    sim = runs(long(100), long(900, seed=2), port_frames=[ports(1), ports(2, dropped_packets=7, marked_packets=4)])
    kernel = runs(long(900, seed=2), port_frames=[ports(2, dropped_packets=5)])
    verdict = judge("cubic", sim, kernel, TOLERANCE)
    assert (verdict.seeds, verdict.sim.goodput_mbps, verdict.word) == ((2,), 0.0072, "inside")
    assert (verdict.sim.drops, verdict.kernel.drops, verdict.sim.marks) == (7, 5, 4)
    nothing = judge("cubic", sim.of([1]), kernel, TOLERANCE)
    assert (nothing.seeds, nothing.quantities, nothing.word) == ((), (), "not judged")


def scenario(name, note=""):
    return Scenario(name, f"about {name}", note, False, Figure(CHECKOUT / "experiments" / "linux" / name))


def three_verdicts():
    """Inside, outside with a note and a run left out, and not run."""
    good = judge("cubic", runs(long(100)), runs(long(100)), TOLERANCE)
    sim = runs(long(12_500_000), flow(size=300, fct_ms=1), port_frames=[ports(backlog=60_000)])
    kernel = runs(long(12_500_000), flow(size=300, finished=False), port_frames=[ports(backlog=30_000)])
    bad = judge("vegas | 10", sim, kernel, TOLERANCE)
    made_by = "Narrows 1; narrowsd 2 on 6.1.0"
    return [
        ScenarioVerdict(scenario("one", "never shown"), (good,), made_by=made_by, kernels=("6.1.0",)),
        ScenarioVerdict(scenario("two", "the kernel waits"), (good, bad), left_out="1 of 6 runs does not count: late"),
        ScenarioVerdict(scenario("three", "never shown"), reason="not run yet"),
    ]


def test_the_table_has_both_worlds_and_tells_what_lies_outside():
    verdicts = three_verdicts()
    assert [verdict.word for verdict in verdicts] == ["inside", "outside", "not judged"]
    comparison = Comparison(CHECKOUT / "experiments" / "linux", TOLERANCE, tuple(one.scenario for one in verdicts))
    text = page.markdown(comparison, verdicts, quick=True)
    for line in (
        (
            "| one: about one | cubic | 0.000800 / 0.000800 | 1.20 / 1.20 | – | – | – | – | – | – | inside "
            "| quick; Narrows 1; narrowsd 2 on 6.1.0 |"
        ),
        (
            "|  | vegas \\| 10 | 100 / 100 | **4.80 / 2.40, +100 %** | – | **1 / 0, 1 in the simulator alone** "
            "| – | – | – | – | outside |  |"
        ),
        "| three: about three | – | – | – | – | – | – | – | – | – | not judged |  |",
        "- two, vegas | 10: queueing delay 4.80 ms in the simulator, 2.40 ms in the kernel, +100 %",
        "- two, vegas | 10: finished 1 flows in the simulator, 0 flows in the kernel, 1 in the simulator alone",
        "- two: the kernel waits",
        "- two: 1 of 6 runs does not count: late",
        "- three: not judged, not run yet",
        "| two | vegas \\| 10 | 1 | a->b | 40.0 / 20.0 | 0 / 0 | 1 / 0 |",
    ):
        assert f"\n{line}\n" in f"\n{text}", line
    assert text.startswith("# Simulator and kernel: linux (quick runs)\n")
    assert "\n**1 of 3 scenarios inside, 1 not judged.** Simulator / kernel. Inside: goodput within" in text
    assert "never shown" not in text
    card = table.card(comparison, verdicts, quick=True)
    assert (card["inside"], card["of"], card["command"]) == (1, 3, "narrows reproduce linux --quick")
    assert card["scenarios"][1]["arms"][1]["quantities"]["queue-delay"] == {
        "sim": 4.8, "kernel": 2.4, "difference": 1.0, "inside": False, "said": "",
    }  # fmt: skip
    assert json.loads(json.dumps(card))["tolerance"]["queue_delay_packets"] == 2
    assert summary(verdicts[:1]) == "1 of 1 scenario inside"
    held = [replace(one, scenario=replace(one.scenario, held_out=place > 0)) for place, one in enumerate(verdicts)]
    assert summary(held) == "1 of 3 scenarios inside, 1 not judged; of the 2 held out 0 inside"


def test_what_has_not_been_run_keeps_what_the_page_says(tmp_path):
    verdicts = three_verdicts()
    comparison = Comparison(CHECKOUT / "experiments" / "linux", TOLERANCE, tuple(one.scenario for one in verdicts))
    written = tmp_path / "page.md"
    first = page.block(comparison, verdicts, quick=False)
    written.write_text(f"before\n<!-- table -->\n{first}\n<!-- /table -->\n- one: this is no remark of the table\n")
    kept = page.read(comparison, written)
    assert {name: part.word for name, part in kept.items()} == {
        "one": "inside",
        "two": "outside",
        "three": "not judged",
    }
    assert kept["one"].remarks == ()
    gone = [replace(one, arms=(), reason="gone") for one in verdicts]
    assert page.block(comparison, gone, quick=False, kept=kept) == first
    alone = page.block(comparison, gone, quick=False)
    assert "0 of 3 scenarios inside, 3 not judged" in alone
    again = page.block(
        comparison, [gone[0], gone[1], replace(verdicts[0], scenario=verdicts[2].scenario)], quick=False, kept=kept
    )
    assert "**2 of 3 scenarios inside.**" in again
    assert "not run yet" not in again
    written.write_text(
        first.replace("| verdict |", "|").replace("| inside |", "|").join(["<!-- table -->", "<!-- /table -->"])
    )
    assert "one" not in page.read(comparison, written)


def test_the_table_is_written_between_the_markers_of_a_page(tmp_path):
    there = tmp_path / "page.md"
    there.write_text("before\n<!-- table -->\nold\n<!-- /table -->\nafter\n")
    assert marked.filled(there, page.MARK, "new") == "before\n<!-- table -->\nnew\n<!-- /table -->\nafter\n"
    there.write_text("<!-- table -->\n")
    with pytest.raises(BadInput, match="no place for the table"):
        marked.filled(there, page.MARK, "new")
    kept = marked.filled(CHECKOUT / "docs" / "explanation" / "fidelity.md", page.MARK)
    assert kept.count("<!-- table -->\n\n<!-- /table -->\n") == 1


def test_the_checkout_compares_its_scenarios_with_linux(monkeypatch):
    monkeypatch.chdir(CHECKOUT)
    comparison = catalogue.find()
    assert comparison.tolerance == TOLERANCE
    assert comparison.names[:2] == ("linux", "linux/dc-one")
    assert [sum(one.held_out is held for one in comparison.scenarios) for held in (False, True)] == [13, 12]
    said = (CHECKOUT / "docs" / "explanation" / "fidelity.md").read_text()
    assert all(f"{100 * share:g} %" in said for share in (0.03, 0.10, 0.15, 0.25, 0.05))


FIDELITY = """
[tolerance]
goodput = 0.03
queue-delay = 0.10
queue-delay-packets = 2
fct-p99 = 0.15
drops = 0.25
drops-packets = 5
retransmissions = 0.25
retransmissions-packets = 10
marks = 0.25
marks-packets = 20
share = 0.05
[[scenario]]
name = "two"
about = "named first"
note = "it is a fake"
[[scenario]]
name = "one"
about = "named second"
"""


@pytest.fixture
def linux(folder, without_charts):
    """A folder with two scenarios of two arms and two seeds."""
    for name in ("one", "two"):
        path = folder / "experiments" / "linux" / name / "experiment.toml"
        path.parent.mkdir(parents=True)
        path.write_text(TWO_ARMS.replace('"two"', f'"linux-{name}"').replace("[run]", '[run]\nwarmup = "200ms"'))
        if name == "one":
            path.write_text(path.read_text().replace('end = "3s"', 'end = "2s"'))
    (folder / "experiments" / "linux" / "fidelity.toml").write_text(FIDELITY)
    return folder


def narrows(*arguments):
    return CliRunner().invoke(app, ["reproduce", *arguments])


def events(done, kind):
    return [found for found in lines(done.stdout) if found["event"] == kind]


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("goodput = 0.03\n", "", "is incomplete or has more"),
        ("goodput = 0.03", "goodput = true", "is incomplete or has more"),
        ('name = "one"', 'name = "two"', "names 'two' twice"),
        ('name = "one"', 'name = "three"', "names 'three', which has no experiment.toml"),
        ('[[scenario]]\nname = "one"\nabout = "named second"', "", "does not name 'one'"),
        ('about = "named second"', 'aboot = "named second"', "is not understood"),
        ('name = "one"', 'name = "one"\nset = "tuned"', "is not understood"),
        ("[tolerance]", "[tolerance", "cannot read"),
    ],
)
def test_a_mistake_in_the_comparison_is_said(linux, before, after, said):
    path = linux / "experiments" / "linux" / "fidelity.toml"
    path.write_text(FIDELITY.replace(before, after, 1))
    with pytest.raises(BadInput, match=re.escape(said)):
        catalogue.find()


def test_both_worlds_are_run_reported_and_compared(linux, narrowsd, monkeypatch):
    monkeypatch.setenv("FAKE_NARROWSD", "is-late:gemini/2")
    done = narrows("linux", "--json")
    assert done.exit_code == 0, done.stderr
    assert [event["identifier"] for event in events(done, "finished")] == [
        "linux-two@guest", "linux-two", "linux-one@guest", "linux-one",
    ]  # fmt: skip
    assert [event["path"] for event in events(done, "report")] == [
        f"runs/reports/report-linux-{name}@sim+guest.html" for name in ("two", "one")
    ]
    first, second = events(done, "scenario")
    assert (first["scenario"], second["scenario"]) == ("linux/two", "linux/one")
    assert [arm["seeds"] for arm in first["arms"]] == [[1, 2], [1]], "a late run is left out in both worlds"
    assert first["left_out"].startswith("1 of 4 runs does not count: a packet was delivered 31000 us late")
    assert first["kernels"] == ["6.12.8-fake"]
    (told,) = events(done, "fidelity")
    assert told["paths"] == ["runs/reports/fidelity.json", "runs/reports/fidelity.md"]
    assert (told["inside"], told["of"]) == (0, 2), "the fake kernel has other flows"
    page = (linux / "runs" / "reports" / "fidelity.md").read_text()
    assert "**0 of 2 scenarios inside.** Simulator / kernel. Inside: " in page
    assert page.count(f"simulator, Narrows {native.version()}; Linux in a guest (guest), ") == 2, "one for a scenario"
    assert "\n- two: it is a fake\n" in page
    assert narrows("linux", "--strict").exit_code == 1
    listed = events(narrows("--json"), "scenario")
    assert [(event["scenario"], event["run"]) for event in listed] == [("linux/two", ["full"]), ("linux/one", ["full"])]


def test_goodput_of_the_runs_is_what_their_tables_have(linux, narrowsd, monkeypatch):
    narrows("linux/one")
    comparison = catalogue.find()
    absent, found = stored.verdicts(comparison, Store(linux / "runs"), quick=False)
    assert (absent.word, absent.reason) == ("not judged", "not run yet")
    for manifest in (linux / "runs").glob("*/*/manifest.json"):
        read = json.loads(manifest.read_text())
        assert read["plan"]["schedule"]["warmup"] == 200_000_000_000, "ps: 1.8 s are measured"
    by_folder = {
        folder: sum(
            pl.read_parquet(path)["delivered_after_warmup_bytes"].sum() for path in folder.glob("*/flows.parquet")
        )
        for folder in (linux / "runs").iterdir()
        if list(folder.glob("*/flows.parquet"))
    }
    rates = sorted(8 * delivered / 1.8 / 2 / 1e6 for delivered in by_folder.values())
    ours = sorted(world.goodput_mbps for arm in found.arms for world in (arm.sim, arm.kernel))
    assert ours == pytest.approx(rates)


def test_worlds_that_are_the_same_are_inside(linux, narrowsd, monkeypatch):
    monkeypatch.setenv("FAKE_NARROWSD_SHIFT", "0")
    (linux / "page.md").write_text("<!-- table -->\nnot run\n<!-- /table -->\n")
    done = narrows("linux/one", "--quick", "--strict", "--write", "page.md")
    assert done.exit_code == 0, done.stderr
    assert "linux (quick): 1 of 1 scenario inside" in done.stdout
    assert "runs/reports/fidelity-quick.md\npage.md\n" in done.stdout
    assert "runs/reports/report-linux-one-quick@sim+guest.html\n" in done.stdout
    text = (linux / "page.md").read_text()
    assert "**1 of 2 scenarios inside, 1 not judged.** Simulator / kernel. Inside: " in text
    assert text.count(" | quick; simulator, Narrows ") == 1
    assert "not run\n<!--" not in text
    again = narrows("linux/one", "--quick")
    assert again.stdout.count("0 new, 4 reused") == 2


def test_what_the_kernel_lacks_is_said_before_anything_is_simulated(linux, narrowsd, monkeypatch):
    monkeypatch.setenv("FAKE_NARROWSD", "lacks")
    done = narrows("linux")
    assert done.exit_code == 3
    assert "error: qemu-system-x86_64 is not installed\n  help: install QEMU" in done.stderr
    assert not list((linux / "runs").glob("*/*/manifest.json"))


def test_without_narrowsd_it_is_three_and_the_list_says_so(linux, monkeypatch):
    monkeypatch.delenv("NARROWSD", raising=False)
    monkeypatch.setattr(shutil, "which", lambda _: None)
    monkeypatch.setattr(daemon, "BUILT", "target/absent")
    done = narrows("linux/one")
    assert done.exit_code == 3
    assert "help: run `make narrowsd` in a checkout" in done.stderr
    listed = narrows()
    assert listed.exit_code == 0, listed.stderr
    assert "linux  2 scenarios, each in the simulator and on Linux in a guest  narrowsd, which" in listed.stdout
    assert "linux/one            named second  not run\n" in listed.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("linux/won",), "'linux/won' names no scenario\n  help: such as linux/two, linux/one; 'linux' is all"),
        (("linux/",), "'linux/' names no scenario"),
        (("linus",), "no paper, figure or claim is called 'linus'\n  help: the nearest: linux"),
        (("linux", "--write", "absent.md"), "cannot read absent.md"),
        (("linux", "office"), "no paper, figure or claim is called 'office'"),
    ],
)
def test_what_there_is_not_is_two_and_runs_nothing(linux, narrowsd, arguments, said):
    done = narrows(*arguments)
    assert done.exit_code == 2
    assert said in done.stderr
    assert not (linux / "runs").exists()


def test_the_comparison_is_no_paper(gemini, narrowsd, monkeypatch):
    monkeypatch.setenv("FAKE_NARROWSD_SHIFT", "0")
    work = narrowsd.parent / "work"
    shutil.copytree(gemini / "experiments" / "gemini", work / "experiments" / "gemini")
    monkeypatch.chdir(work)
    (work / "experiments" / "linux" / "one").mkdir(parents=True)
    (work / "experiments" / "linux" / "one" / "experiment.toml").write_text(TWO_ARMS)
    text = FIDELITY.replace('[[scenario]]\nname = "two"\nabout = "named first"\nnote = "it is a fake"\n', "")
    (work / "experiments" / "linux" / "fidelity.toml").write_text(text)
    done = narrows("gem-043", "linux", "--quick", "--json")
    assert done.exit_code == 0, done.stderr
    assert [event["paper"] for event in events(done, "scorecard")] == ["gemini"]
    assert [event["inside"] for event in events(done, "fidelity")] == [1]
    assert narrows("gem-043", "--write", "docs.md").stderr.startswith("error: cannot read docs.md: ")


@pytest.mark.parametrize(("text", "sentence"), [
    ("scenario = true\n", "`scenario` of"), ("scenario = [7]\n", "`scenario` of"),
    ("tolerance = 7\n", "is incomplete or has more"), ("a = " + "[" * 5000, "cannot read"),
])  # fmt: skip
def test_a_comparison_of_another_shape_is_refused(tmp_path, text, sentence):
    (tmp_path / "fidelity.toml").write_text(text)
    with pytest.raises(BadInput) as raised:
        catalogue.load(tmp_path)
    assert sentence in str(raised.value)
    assert "fidelity.toml" in str(raised.value)
