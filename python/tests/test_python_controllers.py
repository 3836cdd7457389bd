"""Controllers in Python and in plain C: the simulator's own, written in them, and what goes wrong."""

from __future__ import annotations

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import narrows

pytestmark = pytest.mark.simulator

EXPERIMENT = """
title = "Two flows"
name = "two"
run = { end = "8s", seeds = "1..=2" }

[topology.dumbbell]
pairs = 2

[topology.dumbbell.fabric]
rate = "20Mbps"
delay = "4ms"
limit = "30pkt"
loss = "0.1%"
reorder = { late = { share = 0.002, delay = "6ms" } }

[[traffic]]
name = "web"
from = "left-*"
to = "right-*"
size = { fixed = "200KB" }
arrivals = { poisson = { rate = "2/s" } }
connections = { persistent = { pool = 1 } }

[[traffic]]
name = "bulk"
from = "left-*"
to = "right-*"
long = { spread = "5ms" }

[[arm]]
name = "mine"
"""
NEWRENO = """
from narrows.controller import Controller


class Reno(Controller):
    def __init__(self, path):
        super().__init__(path)
        self.credit = 0

    def on_ack(self, ack, path):
        in_slow_start = self.window < self.threshold
        used = ack.limited_by in ("window", "pacing")
        if in_slow_start:
            used = ack.limited_by != "near-source" and self.window < 2 * ack.max_in_flight
        if not (ack.may_grow and used):
            return
        left = ack.acked
        if in_slow_start:
            grown = min(self.window + left, self.threshold)
            left, self.window = left - (grown - self.window), grown
        if left > 0:
            each = self.window
            if self.credit >= each:
                self.credit, self.window = 0, self.window + 1
            self.credit += left
            self.window += self.credit // each
            self.credit %= each

    def cut(self):
        self.threshold = max(self.window // 2, 2)
        self.credit = 0

    def on_congestion(self, cause, path):
        self.cut()
        self.window = min(self.window, self.threshold)

    def on_timeout(self, repeated, path):
        if not repeated:
            self.cut()
        self.credit, self.window = 0, 1

    def on_undo(self, window, threshold):
        self.window = int(max(self.window, window))
        self.threshold = max(self.threshold, threshold, int(window) // 2 + int(window) // 4)

    def on_idle_restart(self, idle, path):
        self.threshold = max(self.threshold, self.window // 2 + self.window // 4)
        least = min(path.initial_window, self.window)
        while idle > path.rto and self.window > least:
            idle, self.window = idle - path.rto, self.window // 2
        self.window = max(self.window, least)
"""
NEWRENO_IN_C = """
#include <narrows.h>
struct reno { double credit; };
static void cut(struct narrows_sender *s)
{
	s->threshold = fmax(floor(s->window / 2), 2);
	((struct reno *)s->state)->credit = 0;
}
static void on_ack(struct narrows_sender *s, const struct narrows_ack *ack, const struct narrows_path *path)
{
	struct reno *own = s->state;
	bool slow_start = s->window < s->threshold;
	bool used = ack->limited_by == NARROWS_WINDOW || ack->limited_by == NARROWS_PACING;
	double left = ack->acked, each;

	if (slow_start)
		used = ack->limited_by != NARROWS_NEAR_SOURCE && s->window < 2 * ack->max_in_flight;
	if (!ack->may_grow || !used)
		return;
	if (slow_start) {
		double grown = fmin(s->window + left, s->threshold);
		left -= grown - s->window;
		s->window = grown;
	}
	if (left > 0) {
		each = s->window;
		if (own->credit >= each) {
			own->credit = 0;
			s->window++;
		}
		own->credit += left;
		s->window += floor(own->credit / each);
		own->credit = fmod(own->credit, each);
	}
}
static void on_congestion(struct narrows_sender *s, enum narrows_cause cause, const struct narrows_path *path)
{
	cut(s);
	s->window = fmin(s->window, s->threshold);
}
static void on_timeout(struct narrows_sender *s, bool repeated, const struct narrows_path *path)
{
	if (!repeated)
		cut(s);
	((struct reno *)s->state)->credit = 0;
	s->window = 1;
}
static void on_undo(struct narrows_sender *s, double window, double threshold)
{
	s->window = floor(fmax(s->window, window));
	s->threshold = fmax(fmax(s->threshold, threshold), floor(window / 2) + floor(window / 4));
}
static void on_idle_restart(struct narrows_sender *s, double idle, const struct narrows_path *path)
{
	double least = fmin(path->initial_window, s->window);

	s->threshold = fmax(s->threshold, floor(s->window / 2) + floor(s->window / 4));
	for (; idle > path->rto && s->window > least; idle -= path->rto)
		s->window = floor(s->window / 2);
	s->window = fmax(s->window, least);
}
NARROWS_CONTROLLER(reno, .state_size = sizeof(struct reno), .on_ack = on_ack, .on_congestion = on_congestion,
	.on_timeout = on_timeout, .on_undo = on_undo, .on_idle_restart = on_idle_restart);
"""
CONSTANT = """
from narrows.controller import Controller

class Constant(Controller):
    def on_ack(self, ack, path):
        self.window = 10

    def on_congestion(self, cause, path):
        pass
"""


def run(folder, text, cc='{ file = "mine.py" }', **options):
    (folder / "mine.py").write_text(text)
    (folder / "two.toml").write_text(f"{EXPERIMENT}cc = {cc}\n")
    return narrows.run(folder / "two.toml", **{"out": folder / "runs", **options}).join()


@pytest.mark.parametrize("file", ["mine.py", "mine.c"])
def test_newreno_in_python_and_in_plain_c_gives_the_results_of_newreno(folder, file):
    (folder / "mine.c").write_text(NEWRENO_IN_C)
    rates = {}
    for name, cc in {"file": f'{{ file = "{file}" }}', "rust": '"newreno"'}.items():
        results = run(folder, NEWRENO, cc)
        rates[name] = results.flows.drop("controller", "case", "arm", strict=False)
    assert rates["rust"].filter(pl.col("retransmitted_bytes") > 0).height > 10
    assert_frame_equal(rates["file"], rates["rust"])


def test_newrenos_network_has_undos_and_pauses(folder):
    for method in ("on_undo", "on_idle_restart", "on_timeout"):
        head, _, rest = NEWRENO.partition(f"    def {method}(")
        arguments, _, body = rest.partition("\n")
        with pytest.raises(narrows.BadInput, match="seen"):
            run(folder, f"{head}    def {method}({arguments}\n        raise Exception('seen')\n{body}")


def test_each_run_begins_with_the_files_variables_as_they_are_written(folder):
    text = CONSTANT.replace("class", "COUNT = []\n\nclass").replace(
        "= 10", "= 10 + min(len(COUNT), 50)\n        COUNT.append(1)"
    )
    flows = [run(folder, text, seeds=[1], out=folder / name).flows for name in ("one", "other")]
    assert_frame_equal(*flows)


def test_results_name_the_class(folder):
    assert set(run(folder, CONSTANT, seeds=[1]).flows["controller"].unique()) == {"Constant"}


@pytest.mark.parametrize(
    ("broken", "said"),
    {
        "the line of an exception": (CONSTANT.replace("= 10", "= 10 / 0"), "mine.py:6: ZeroDivisionError"),
        "a line below the method": (
            CONSTANT.replace("self.window = 10", "self.help()") + "\n    def help(self):\n        nothing\n",
            "mine.py:12: NameError: name 'nothing' is not defined",
        ),
        "no window": (CONSTANT.replace("= 10", "= 0"), "mine.py: `window` is 0 packets, where 1 to"),
        "not a number": (CONSTANT.replace("= 10", "= float('nan')"), "mine.py: `window` is NaN packets"),
        "a text": (CONSTANT.replace("= 10", "= 'ten'"), "mine.py: TypeError"),
        "pacing": (CONSTANT.replace("self.window = 10", "self.pacing_rate = 0"), "mine.py: `pacing_rate` is 0 bit/s"),
        "a missing method": (
            CONSTANT.replace("on_ack", "on_akc"),
            "the simulator does not call Constant.on_akc: rename what you call yourself; did you mean on_ack?",
        ),
        "a method that is not there": (
            CONSTANT.replace("    def on_ack", "    on_ack = on_congestion = None\n\n    def on_any_event", 1),
            "mine.py:4: TypeError: the simulator does not call Constant.on_any_event",
        ),
        "a misspelt attribute": (
            CONSTANT.replace("    def on_ack", "    need_ecn = True\n\n    def on_ack", 1),
            "the simulator does not read Constant.need_ecn; did you mean needs_ecn?",
        ),
        "a method too few": (CONSTANT.replace("def on_congestion", "def congestion"), "has no method on_congestion"),
        "a syntax error": ("class Mine(\n", "mine.py:1: SyntaxError"),
        "no class": ("x = 1\n", "`mine.py` has no class that derives from narrows.controller.Controller"),
        "several": (CONSTANT + CONSTANT.replace("Constant", "Other"), "has several controllers: Constant, Other"),
        "a missing module": ("import nowhere_to_be_found\n", "mine.py:1: ModuleNotFoundError"),
    }.values(),
    ids=lambda value: None,
)
def test_what_goes_wrong_is_told_with_the_file(folder, broken, said):
    with pytest.raises((narrows.BadInput, narrows.RunFailed)) as raised:
        run(folder, broken, seeds=[1])
    assert said in str(raised.value)


def test_what_a_file_prints_while_it_is_loaded_is_not_an_answer(folder, capfd):
    run(folder, "print('loaded')\n" + CONSTANT, seeds=[1])
    said = capfd.readouterr()
    assert "loaded" not in said.out
    assert "loaded" in said.err


def test_names_of_your_own_are_not_misspelt(folder):
    own = "    in_recovery = False\n    min_delivery_rate = 1e6\n\n    def delivery_rate(self):\n        return 1\n\n"
    run(folder, CONSTANT.replace("    def on_ack", own + "    def on_ack", 1), seeds=[1])


def test_an_experiment_sets_what_a_class_declares(folder):
    text = CONSTANT.replace(
        "class Constant(Controller):", "class Constant(Controller):\n    SIZE = 10\n    ON = True\n"
    )
    text = text.replace("self.window = 10", "self.window = self.SIZE if self.ON else 1")

    def received(parameters):
        cc = f'{{ file = {{ path = "mine.py", parameters = {{ {parameters} }} }} }}'
        results = run(folder, text, cc, seeds=[1])
        return results.flows["received_bytes"].max()

    # A window of fixed size is a rate.
    assert received("ON = false") < received("SIZE = 2")  # one packet waits for delayed acknowledgements, too
    assert received("SIZE = 4") / received("SIZE = 2") == pytest.approx(2, rel=0.1)
    for parameters, said in {
        "SIZES = 3": "`mine.py` has no parameter `SIZES`: it has ON, SIZE",
        "on_ack = 3": "has no parameter `on_ack`",
        "SIZE = 0.5": "`0.5` is no value of the parameter `SIZE` of `mine.py`, which is a whole number",
        "ON = 1": "`1` is no value of the parameter `ON` of `mine.py`, which is true or false",
    }.items():
        with pytest.raises(narrows.BadInput) as raised:
            received(parameters)
        assert said in str(raised.value)


def test_one_of_several_is_chosen_by_name(folder):
    both = CONSTANT + CONSTANT.replace("Constant", "Other")
    results = run(folder, both, '{ file = { path = "mine.py", name = "Other" } }', seeds=[1])
    assert set(results.flows["controller"].unique()) == {"Other"}


def test_a_class_that_needs_ecn_gets_marks(folder):
    text = CONSTANT.replace("    def on_ack", "    needs_ecn = True\n\n    def on_ack", 1).replace("= 10", "= 30")
    marking = {"fabric.aqm.threshold.mark-at": "5pkt"}
    assert run(folder, text, seeds=[1], settings=marking).flows["marked_bytes"].sum() > 0
    assert run(folder, CONSTANT, seeds=[1], settings=marking).flows["marked_bytes"].sum() == 0


TOLD = """
from narrows.controller import Controller

class Told(Controller):
    needs_telemetry = needs_delivery_rate = owns_recovery = True

    def __init__(self, path):
        self.window, self.lost, self.hops, self.losses, self.told = 20, 0, None, 0, 0

    def on_lost(self, lost, path):
        assert 0 < lost.sent_at < path.now and 1 <= lost.lost_since_send, vars(lost)
        assert 1 <= lost.in_flight_at_send <= 20, lost.in_flight_at_send
        self.lost += 1

    def on_telemetry(self, hops):
        # The switch in front of the bottleneck, and that of the receiver.
        assert [hop.rate for hop in hops] == [20_000_000, 20_000_000], hops
        for before, hop in zip(self.hops or hops, hops):
            assert hop.sent >= before.sent and hop.at >= before.at and 0 <= hop.queue <= 30 * 1500
        assert hops[0].at < hops[1].at < hops[0].at + 1
        self.hops, self.told = hops, self.told + 1

    def on_ack(self, ack, path):
        assert self.lost == ack.lost, (self.lost, ack.lost)
        assert self.hops is None or self.hops[-1].at < path.now
        self.lost, self.losses = 0, self.losses + ack.lost
        # 20 packets of 1500 B sent on 20 Mbit/s take 12 ms.
        assert path.now < 7 or self.told > 1000 and self.losses > 2, (self.told, self.losses)

    def on_congestion(self, cause, path):
        pass

    def on_timeout(self, repeated, path):
        self.window, self.lost = 1, 0

    def on_idle_restart(self, idle, path):
        pass
"""


def test_what_was_lost_and_what_switches_wrote_is_told(tmp_path):
    bulk = EXPERIMENT[: EXPERIMENT.index("[[traffic]]")] + EXPERIMENT[EXPERIMENT.rindex("[[traffic]]") :]
    text = bulk.replace('reorder = { late = { share = 0.002, delay = "6ms" } }\n', "").replace("left-*", "left-1")
    (tmp_path / "mine.py").write_text(TOLD)
    (tmp_path / "told.toml").write_text(f'{text}cc = {{ file = "mine.py" }}\n')
    results = narrows.run(tmp_path / "told.toml", out=tmp_path / "runs").join()
    assert results.flows["received_bytes"].min() > 1_000_000
    (tmp_path / "mine.py").write_text(TOLD.replace("needs_telemetry = needs_delivery_rate", "needs_delivery_rate"))
    with pytest.raises(narrows.BadInput, match="called only with needs_telemetry = True"):
        narrows.run(tmp_path / "told.toml", out=tmp_path / "other")
