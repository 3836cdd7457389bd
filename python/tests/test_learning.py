"""Controllers that learn, and the environment in which an agent decides."""

from __future__ import annotations

import math
import re
import subprocess
import sys
import threading
import time

import gymnasium
import numpy as np
import polars as pl
import pytest
from conftest import CHECKOUT
from gymnasium.utils.env_checker import check_env
from polars.testing import assert_frame_equal

import narrows
from narrows.learning import Interval, Learner
from narrows.learning.environment import CongestionControl

LEARNED = """
from narrows.learning import Learner

class Learned(Learner):
    def policy(self, observation):
        return 0.2 if observation[0] < 0.3 else -0.3
"""
EXPERIMENT = """
title = "Learned"
name = "learn"
run = { end = "3s", seeds = "1..=2" }

[topology.dumbbell]
pairs = 2
fabric = { rate = "20Mbps", delay = "5ms", limit = "60pkt", loss = "0.5%" }

[[traffic]]
name = "bulk"
from = "left-*"
to = "right-*"
long = { flows = 1, spread = "5ms" }

[[arm]]
name = "learned"
cc = { file = "learned.py" }

[[arm]]
name = "newreno"
cc = "newreno"
"""


def written(folder, text=LEARNED, experiment=EXPERIMENT):
    (folder / "learned.py").write_text(text)
    (folder / "learn.toml").write_text(experiment)
    return folder / "learn.toml"


def finish(env, action):
    """The last step's dict, and how many steps there were."""
    for step in range(1, 100_000):
        _, _, terminated, truncated, info = env.step(action)
        assert not terminated
        if truncated:
            return info, step
    raise AssertionError("it does not end")


@pytest.mark.simulator
@pytest.mark.filterwarnings("ignore:.*A Box observation space")
def test_it_is_an_environment_of_gymnasium(folder):
    name = "narrows.learning.environment:narrows/CongestionControl-v0"
    env = gymnasium.make(name, experiment=written(folder))
    check_env(env.unwrapped)
    assert env.action_space == gymnasium.spaces.Box(-1.0, 1.0, (1,), np.float32)


@pytest.mark.simulator
def test_an_agent_that_follows_the_policy_gets_the_runs_results(folder):
    experiment = written(folder)
    results = narrows.run(experiment, seeds=[1], out=folder / "runs").join()
    env = CongestionControl(experiment)
    observation, info = env.reset(seed=1)
    assert (info["seed"], info["case"]) == (1, "learned")
    truncated = False
    steps = 0
    while not truncated:
        action = 0.2 if observation[0] < 0.3 else -0.3
        observation, _, _, truncated, info = env.step([action])
        steps += 1
    assert steps > 50
    expected = results.flows.filter(pl.col("arm") == "learned").select(info["flows"].columns)
    assert_frame_equal(info["flows"], expected)


@pytest.mark.simulator
def test_actions_decide_the_window(folder):
    env = CongestionControl(written(folder))
    _, info = env.reset(seed=1)
    assert info["interval"].window == 10
    for action in (0.5, 0.5, 0, 0):
        *_, info = env.step([action])
    assert info["interval"].window == pytest.approx(20)
    seen = info["interval"]
    assert seen.acked / seen.length == pytest.approx(20 / seen.rtt, rel=0.1), "a window in each RTT"


@pytest.mark.simulator
def test_other_connections_follow_the_policy(folder):
    text = LEARNED.replace("0.2 if observation[0] < 0.3 else -0.3", "1 / 0")
    alone = CongestionControl(written(folder, text))
    alone.reset(seed=1)
    assert finish(alone, [0.0])[1] > 50
    env = CongestionControl(written(folder, text, EXPERIMENT.replace("flows = 1", "flows = 2")))
    with pytest.raises(narrows.BadInput, match=r"learned.py:6: ZeroDivisionError"):
        finish(env, [0.0]) if env.reset(seed=1) else None


OTHER = """
from narrows.controller import Controller

class Other(Controller):
    def on_ack(self, ack, path):
        self.window = 3

    def on_congestion(self, cause, path):
        pass
"""
WITH_OTHER = EXPERIMENT.replace(
    "[[arm]]",
    """[[traffic]]
name = "fixed"
from = "left-*"
to = "right-*"
long = { flows = 1, spread = "5ms" }
cc = { file = "other.py" }

[[arm]]""",
    1,
)


@pytest.mark.simulator
def test_other_files_run_as_they_are(folder):
    (folder / "other.py").write_text(OTHER)
    experiment = written(folder, experiment=WITH_OTHER)
    env = CongestionControl(experiment)
    observation, _ = env.reset(seed=1)
    ended = False
    while not ended:
        observation, _, _, ended, info = env.step([0.2 if observation[0] < 0.3 else -0.3])
    expected = narrows.run(experiment, seeds=[1], out=folder / "runs").join().flows
    expected = expected.filter(pl.col("arm") == "learned").select(info["flows"].columns)
    assert set(expected["controller"]) == {"Learned", "Other"}
    assert_frame_equal(info["flows"], expected)


@pytest.mark.simulator
def test_a_file_may_do_what_modules_do(folder):
    text = (
        "from __future__ import annotations\nfrom dataclasses import dataclass\nfrom typing import ClassVar\n" + LEARNED
    )
    CongestionControl(written(folder, text + "\n@dataclass\nclass More:\n    n: ClassVar[int] = 1\n")).reset(seed=1)


@pytest.mark.simulator
def test_a_number_of_actions(folder):
    text = (
        LEARNED + "    actions = 3\n\n    def apply(self, action, path):\n        self.window = (10, 20, 30)[action]\n"
    )
    env = CongestionControl(written(folder, text))
    assert env.action_space == gymnasium.spaces.Discrete(3)
    env.reset(seed=1)
    for action, window in ((2, 30), (0, 10), (1, 20)):
        *_, info = env.step(np.int64(action))
        assert info["interval"].window == window


@pytest.mark.simulator
def test_an_interval_of_fixed_length(folder):
    env = CongestionControl(written(folder, LEARNED + "    interval = 0.1\n"))
    env.reset(seed=1)
    for _ in range(5):
        *_, info = env.step([0.0])
        assert 0.1 <= info["interval"].length < 0.13, "it ends with an acknowledgement"


@pytest.mark.simulator
def test_a_run_that_is_not_finished_ends_with_the_environment(folder):
    env = CongestionControl(written(folder))
    # Threads of other tests may end meanwhile.
    before = set(threading.enumerate())
    for _ in range(3):
        env.reset(seed=1)
        env.step([0.1])
    assert len(set(threading.enumerate()) - before) == 1
    env.close()
    assert not set(threading.enumerate()) - before
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.step([0.1])
    env.reset(seed=1)
    del env
    for _ in range(100):
        if not set(threading.enumerate()) - before:
            break
        time.sleep(0.05)
    assert not set(threading.enumerate()) - before


@pytest.mark.simulator
def test_an_interrupted_step_ends_the_episode(folder, monkeypatch):
    env = CongestionControl(written(folder))
    env.reset(seed=1)
    with monkeypatch.context() as patch:

        def interrupted(self):
            raise KeyboardInterrupt

        patch.setattr("narrows.learning.episode.Episode.next", interrupted)
        with pytest.raises(KeyboardInterrupt):
            env.step([0.1])
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.step([0.1])
    env.reset(seed=1)
    env.step([0.1])


@pytest.mark.simulator
def test_a_step_that_fails_ends_the_episode(folder):
    reward = "\n    def reward(self, interval):\n        return 1 if interval.end < 1 else 1 / 0\n"
    env = CongestionControl(written(folder, LEARNED + reward))
    env.reset(seed=1)
    with pytest.raises(narrows.BadInput, match=r"learned.py:9: ZeroDivisionError"):
        finish(env, [0.0])
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.step([0.0])


@pytest.mark.simulator
def test_a_file_that_handles_every_exception_can_be_left(folder):
    handles = """
    def on_ack(self, ack, path):
        try:
            super().on_ack(ack, path)
        except Exception:
            pass
"""
    before = set(threading.enumerate())
    env = CongestionControl(written(folder, LEARNED + handles))
    env.reset(seed=1)
    assert len(set(threading.enumerate()) - before) == 1
    env.close()
    assert not set(threading.enumerate()) - before


@pytest.mark.simulator
@pytest.mark.parametrize("action", [[1.5], [float("nan")], [0.1, 0.1], "up", None, []])
def test_an_action_that_is_none_is_refused(folder, action):
    env = CongestionControl(written(folder))
    env.reset(seed=1)
    with pytest.raises(narrows.BadInput, match=r"the action cannot be .*\n  help: give one number from -1 to 1"):
        env.step(action)


@pytest.mark.simulator
def test_what_a_timeout_gives_up_is_lost(folder):
    experiment = EXPERIMENT.replace('loss = "0.5%"', 'loss = "25%"').replace('"3s"', '"30s"')
    env = CongestionControl(written(folder, experiment=experiment))
    _, info = env.reset(seed=1)
    seen = [info["interval"]]
    ended = False
    while not ended:
        *_, ended, info = env.step([-1.0])
        seen.append(info["interval"])
    timeouts = [interval for interval in seen if interval.timeouts]
    assert len(timeouts) > 2
    assert all(interval.lost >= interval.timeouts for interval in timeouts)


@pytest.mark.simulator
def test_cases_are_drawn_or_chosen(folder):
    experiment = EXPERIMENT + '\n[sweep]\n"fabric.rate" = ["10Mbps", "20Mbps"]\n'
    env = CongestionControl(written(folder, experiment=experiment))
    cases = ["learned · rate=10Mbps", "learned · rate=20Mbps"]
    assert env.cases == cases
    env.reset(seed=1)
    drawn = [env.reset()[1] for _ in range(20)]
    assert {info["case"] for info in drawn} == set(cases)
    assert len({info["seed"] for info in drawn}) == 20
    assert env.reset(options={"case": cases[1]})[1]["case"] == cases[1]
    with pytest.raises(narrows.BadInput, match="there is no case 'other'"):
        env.reset(options={"case": "other"})
    with pytest.raises(narrows.BadInput, match="there is no option 'caes'"):
        env.reset(options={"caes": cases[1]})
    with pytest.raises(narrows.BadInput, match="seed cannot be"):
        env.reset(seed=2**64)
    with pytest.raises(narrows.BadInput, match="an Experiment has its settings already"):
        CongestionControl(narrows.Experiment(folder / "learn.toml"), settings={"run.end": "1s"})


@pytest.mark.simulator
def test_schemes_with_unlike_actions_are_refused(folder):
    apply = "\n    actions = 3\n\n    def apply(self, action, path):\n        pass\n"
    (folder / "other.py").write_text(LEARNED + apply)
    experiment = EXPERIMENT.replace('cc = "newreno"', 'cc = { file = "other.py" }')
    with pytest.raises(narrows.BadInput, match="schemes differ in how many observations or actions"):
        CongestionControl(written(folder, experiment=experiment))


@pytest.mark.simulator
@pytest.mark.parametrize(
    ("text", "experiment", "said"),
    [
        (LEARNED, EXPERIMENT.replace('"3s"', '"15ms"'), "ended before the agent's first decision"),
        (LEARNED + "    observations = 4\n", EXPERIMENT, "observe returned 5 numbers, where the class says 4"),
        (LEARNED + "    observations = 0\n", EXPERIMENT, "learned.py:4: TypeError: `observations` is 0"),
        (LEARNED + "    actions = 3\n", EXPERIMENT, "learned.py:4: TypeError: a class with a number"),
        (LEARNED + "    interval = -1\n", EXPERIMENT, "learned.py:4: TypeError: `interval` is -1"),
        (LEARNED + "\n    def reward(self, interval):\n        return 1 / 0\n", EXPERIMENT, "learned.py:9: ZeroDiv"),
        (LEARNED.replace("policy", "polish"), EXPERIMENT, "learned.py: Learned has no method policy"),
        (LEARNED, EXPERIMENT.replace("{ file = \"learned.py\" }", '"vegas"'), "no scheme of learn has a controller"),
    ],
    ids=["too short", "observations", "none", "no apply", "interval", "an exception", "no policy", "no class"],
)  # fmt: skip
def test_what_goes_wrong_is_told(folder, text, experiment, said):
    with pytest.raises(narrows.BadInput, match=said):
        CongestionControl(written(folder, text, experiment)).reset(seed=1)


def interval(**given):
    usual = {"end": 1.0, "length": 0.02, "acked": 20, "marked": 0, "lost": 0, "timeouts": 0, "rtt": 0.04, "srtt": 0.05}
    rest = {"min_rtt": 0.02, "window": 32.0, "in_flight": 30, "packet": 1500, "line_rate": 120_000_000}
    return Interval(**usual | rest | given)


class Still(Learner):
    def policy(self, observation):
        return 0


STILL = Still.__new__(Still)


def test_observation_and_reward_of_an_interval():
    # 20 packets of 12,000 bits in 20 ms are 12 Mbit/s, a tenth of the line rate; the RTT is twice the minimum.
    assert STILL.observe(interval(lost=5, marked=4)) == pytest.approx((1.0, 0.1, 0.2, 0.2, 5.0))
    assert STILL.reward(interval()) == pytest.approx(math.log(0.1) - math.log(2))
    assert STILL.reward(interval(lost=20)) == pytest.approx(math.log(0.1) - math.log(2) + math.log(0.5))
    assert STILL.reward(interval(acked=0, lost=19)) == pytest.approx(math.log(0.005) - math.log(2) + math.log(0.05))


def test_without_an_rtt_of_its_own_an_interval_has_the_smoothed_one():
    assert interval(rtt=None).rtt_ratio == pytest.approx(2.5)
    assert interval(rtt=None, srtt=None, min_rtt=None).rtt_ratio == 1


def test_without_gymnasium_it_is_said_what_to_install():
    look = "import sys; sys.modules['gymnasium'] = None\nimport narrows.learning.environment"
    said = subprocess.run([sys.executable, "-c", look], capture_output=True, text=True).stderr
    assert said.endswith("gymnasium is not installed\n  help: pip install 'narrows[learning]'\n")


@pytest.mark.simulator
@pytest.mark.page
def test_the_page_works_as_it_stands(folder):
    page = (CHECKOUT / "docs" / "how-to" / "controllers-that-learn.md").read_text()
    for name, text in re.findall(r"`([\w.]+)`:\n\n```\w+\n(.*?)```", page, re.DOTALL):
        shorter = text.replace("range(4)", "range(2)").replace("(12, 3)", "(6, 3)").replace('end = "6s"', 'end = "3s"')
        (folder / name).write_text(shorter)
    said = subprocess.run([sys.executable, "train.py"], cwd=folder, capture_output=True, text=True, check=True).stdout
    assert re.fullmatch(r"(generation \d: mean reward -\d\.\d\d, best -\d\.\d\d\n){2}", said), said
    assert "WEIGHTS = [0.0, 0.0, 0.0]" not in (folder / "learned.py").read_text()
    results = narrows.run(folder / "learn.toml", seeds=[1], out=folder / "runs").join()
    assert set(results.measure("goodput_long").filter(pl.col("value") > 1)["case"]) >= {
        f"{scheme} · rate=20Mbps" for scheme in ("learned", "newreno", "vegas")
    }
