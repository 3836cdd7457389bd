"""Set-ups that a paper's text allows: each is run, and claims are judged under each."""

from pathlib import Path

import polars as pl
import pytest
from conftest import CHECKOUT

from narrows import Experiment
from narrows.claims import Binding, Claim, Paper, Readings, catalogue, scorecard
from narrows.claims.readings import judged

PAYLOAD = 1448 / 1538
"""Of a full frame's time on the wire."""

LINK = """
[topology.dumbbell]
pairs = 1
fabric = {{ rate = "20Mbps", delay = "1ms" }}
edge = {{ rate = "1Gbps" }}
[[traffic]]
name = "bulk"
from = "left-1"
to = "right-1"
long = {{ flows = 1, spread = "1ms" }}
[[arm]]
name = "cubic"
cc = "cubic"
{more}
[run]
end = "2s"
warmup = "500ms"
seeds = 2
"""
AXIS = """
[sweep.reading]
fast = {}
slow = { "fabric.rate" = "10Mbps" }
"""
ARM = """
[[arm]]
name = "cubic-slow"
cc = "cubic"
set = { "fabric.rate" = "10Mbps" }
"""


def claim(name, kind, **more):
    given = {"order": (), "accept": None, "schemes": ("cubic",)} | more
    return Claim(
        name,
        "Fig.",
        ("S",),
        "m",
        kind=kind,
        expect="",
        unit="",
        needs_simulation=True,
        confidence="H",
        note="",
        **given,
    )


def paper(readings, **bindings):
    claims = tuple(claim(name, "number", accept=(15.0, 25.0)) for name in bindings)
    return Paper("p", Path("/nowhere"), claims, bindings, {"S": "fig"}, readings={"fig": readings})


def results(tmp_path, more):
    handle = Experiment(LINK.format(more=more)).run(out=tmp_path)
    return handle.join()


GOODPUT = "goodput_total(cubic)"
OF_AXIS = Readings({"fast": "the link has 20 Mbit/s", "slow": "it has 10 Mbit/s"}, why="it is stated first")
OF_SCHEMES = Readings(OF_AXIS.about, why=OF_AXIS.why, schemes={"fast": {}, "slow": {"cubic": "cubic-slow"}})


@pytest.mark.simulator
@pytest.mark.parametrize(("readings", "more"), [(OF_AXIS, AXIS), (OF_SCHEMES, ARM)])
def test_a_claim_is_judged_under_each_reading_by_the_same_binding(tmp_path, readings, more):
    own = results(tmp_path, more)
    made = paper(readings, first=Binding((GOODPUT,)), second=Binding((GOODPUT,), reading="slow"))
    first, second = judged(made, {"fig": own}, quick=False)
    assert (first.word, first.reading, [(one.word, one.reading) for one in first.others]) == (
        "holds", "fast", [("fails", "slow")],
    )  # fmt: skip
    assert first.estimate.mean == pytest.approx(20 * PAYLOAD, rel=0.01)
    assert first.others[0].estimate.mean == pytest.approx(10 * PAYLOAD, rel=0.01)
    # A binding may say that its claim is judged by another reading than its figure.
    assert (second.word, second.reading, second.others[0].word) == ("fails", "slow", "holds")
    assert scorecard.under(first) == "holds; slow: fails"
    record = scorecard.record(first)
    assert (record["reading"], record["other_readings"][0]["verdict"]) == ("fast", "fails")


@pytest.mark.simulator
def test_results_of_a_reading_are_those_of_its_runs_under_plain_names(tmp_path):
    whole = results(tmp_path, AXIS)
    slow = whole.under("reading", "slow")
    assert slow.frames.cases == ("cubic",)
    assert slow.frames.axes == ()
    of_slow = whole.frames.ports.filter(pl.col("case") == "cubic · reading=slow").drop("case", "reading")
    assert slow.frames.ports.drop("case").equals(of_slow)
    assert whole.under("reading", "slower") is None
    assert whole.standing_for({"cubic": "nobody"}) is None


@pytest.mark.parametrize("name", ["gemini", "dctcp", "cee"])
def test_readings_are_of_figures_and_each_is_run(name):
    folder = CHECKOUT / "experiments" / name
    for figure, readings in catalogue.readings_of(folder).items():
        plans = Experiment(folder / figure / "experiment.toml").plans
        if readings.schemes:
            arms = {plan.arm for plan in plans}
            assert readings.schemes.keys() == readings.about.keys()
            assert arms >= {each for own in readings.schemes.values() for pair in own.items() for each in pair}
            assert readings.schemes[readings.favoured] == {}
        else:
            assert {dict(plan.axes)[readings.axis] for plan in plans} == set(readings.about)
            # Quick runs may be of the favoured reading alone, and do not bear the axis then.
            file = folder / figure / "experiment.toml"
            if f'sweep = {{ {readings.axis} = ["{readings.favoured}"] }}' not in file.read_text():
                quick = Experiment(file, quick=True).plans
                assert readings.axis in {name for plan in quick for name, _ in plan.axes}
