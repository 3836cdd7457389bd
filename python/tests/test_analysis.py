import math
import tomllib

import pytest
from conftest import CHECKOUT

from narrows.measures import analysis
from narrows.measures.analysis import Sawtooth

TEN_GBPS, SHORT = analysis.packets_per_second(10e9), 100e-6


@pytest.mark.parametrize(("flows", "lowest", "highest", "alpha"), [(2, 30.6, 42, 0.182), (40, 20.8, 80, 0.724)])
def test_the_sawtooth_of_dctcp_at_ten_gigabits(flows, lowest, highest, alpha):
    tooth = Sawtooth(flows, TEN_GBPS, SHORT, 40)
    assert tooth.highest == highest
    assert tooth.lowest == pytest.approx(lowest, abs=0.1)
    assert tooth.alpha == pytest.approx(alpha, abs=0.001)


def test_printed_amplitudes_are_those_of_the_paper():
    # A = ½·√(2N(C·RTT + K)) [DCTCP §3.3 eq. 8]
    for flows in (2, 10, 40):
        expected = math.sqrt(2 * flows * (TEN_GBPS * SHORT + 40)) / 2
        assert Sawtooth(flows, TEN_GBPS, SHORT, 40).printed_amplitude == pytest.approx(expected)


def test_alpha_solves_its_equation_and_is_at_most_one():
    tooth = Sawtooth(10, TEN_GBPS, SHORT, 40)
    left = tooth.alpha**2 * (1 - tooth.alpha / 4)
    assert left == pytest.approx((2 * tooth.critical_window + 1) / (tooth.critical_window + 1) ** 2)
    assert Sawtooth(1000, TEN_GBPS, SHORT, 40).alpha == pytest.approx(1.0)


def test_bounds():
    gigabit = analysis.packets_per_second(1e9)
    assert analysis.largest_scale(gigabit, 200e-6, 50) == pytest.approx(3.0)
    assert analysis.largest_scale(gigabit, 10e-3, 50) == pytest.approx(0.2264, abs=1e-4)
    assert analysis.least_threshold(TEN_GBPS, SHORT) == pytest.approx(11.9, abs=0.01)


def test_the_least_value_of_a_valley_is_found():
    assert analysis.least(lambda x: (x - 3) ** 2 + 7, (1e-3, 1e3)) == pytest.approx(7)


def test_the_gains_of_pi_are_those_that_its_design_rules_ask_for():
    # The loop K·(s/z + 1)/s · (RC)³/(2N)² · e^(−sR) / ((s/z + 1)(sR + 1)) crosses unity at ½/R [Hollot 2001 §III].
    capacity, flows = analysis.packets_per_second(1e9), 5
    gains = analysis.pi_gains(flows, capacity, 100e-6, 20)
    full = 100e-6 + 20 / capacity
    zero, crossover = 2 * flows / (full**2 * capacity), 0.5 / full
    integral, proportional = (gains.a - gains.b) / gains.period, (gains.a + gains.b) / 2
    assert integral / proportional == pytest.approx(zero)
    plant = (full * capacity) ** 3 / (2 * flows) ** 2 / (1 + 0.5j)
    assert abs(integral / (1j * crossover) * plant) == pytest.approx(1)
    assert 2 * math.pi / gains.period == pytest.approx(20 * crossover)


def test_the_experiment_with_pi_has_these_gains():
    text = (CHECKOUT / "experiments/dctcp/pi/experiment.toml").read_text()
    stated = next(arm for arm in tomllib.loads(text)["arm"] if arm["name"] == "tcp-pi")["set"]["fabric.aqm"]["pi"]
    gains = analysis.pi_gains(5, analysis.packets_per_second(1e9), 100e-6, 20)
    assert (stated["a"], stated["b"]) == (pytest.approx(gains.a, rel=1e-3), pytest.approx(gains.b, rel=1e-3))
    assert stated["period"] == f"{gains.period * 1e6:.0f}us"
