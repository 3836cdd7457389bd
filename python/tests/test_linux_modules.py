"""Our controllers against Linux's own modules, both in the simulator: CUBIC, Vegas, DCTCP and BBR on four networks.

The modules are those of the kernel's source, of which nothing is in the project: `LINUX_SOURCE` names its folder, or
Debian's package linux-source-6.1 is installed.
"""

import polars as pl
import pytest

from narrows import api

pytestmark = pytest.mark.system

NETWORKS = {
    "wide": ('rate = "200Mbps", delay = "10ms", limit = "400pkt"', 4),
    "datacenter": ('rate = "1Gbps", delay = "200us", limit = "100pkt"', 4),
    "lossy": ('rate = "100Mbps", delay = "25ms", limit = "400pkt", loss = 0.001', 2),
    "shallow": ('rate = "100Mbps", delay = "5ms", limit = "50pkt"', 8),
}
OURS = ("cubic", "vegas", "dctcp", "bbr")
OTHERS = ("illinois", "htcp", "westwood", "yeah", "nv", "cdg", "hybla", "scalable", "veno", "bic", "highspeed", "lp")
EXPERIMENT = """
[topology.dumbbell]
pairs = {pairs}
fabric = {{ {fabric} }}
edge = {{ rate = "10Gbps", delay = "10us" }}
host = {{ profile = "linux-6", stack-delay = {{ jitter = "2us" }} }}
[[traffic]]
name = "bulk"
from = "left-*"
to = "right-*"
long = {{ spread = "100ms" }}
{arms}
[run]
end = "20s"
warmup = "5s"
seeds = "1..=5"
[sample]
queues = "10ms"
"""
BOTTLENECK = "switch-left->switch-right"


def experiment(fabric, pairs, schemes):
    """Schemes by name, as `cc` takes them."""
    mark = 'set = { "fabric.aqm.threshold.mark-at" = "40pkt" }\n'
    arms = (f'[[arm]]\nname = "{name}"\ncc = {cc}\n{mark * ("dctcp" in name)}' for name, cc in schemes.items())
    return EXPERIMENT.format(pairs=pairs, fabric=fabric, arms="".join(arms))


def goodput_and_queue(results):
    """Mbit/s of all flows and mean packets at the bottleneck after the warm-up, by scheme: means over seeds."""
    goodput = results.measure("goodput_total").group_by("case").agg(pl.col("value").mean())
    at = (pl.col("quantity") == "queue_bytes") & (pl.col("entity") == BOTTLENECK) & (pl.col("time_ns") >= 5 * 10**9)
    queue = results.series.filter(at).group_by("case").agg(pl.col("value").mean() / 1500)
    return dict(goodput.iter_rows()), dict(queue.iter_rows())


@pytest.mark.parametrize("network", NETWORKS)
def test_ours_do_what_linux_own_do(linux_modules, network):
    # Of BBR the version that the module is of.
    ours = {name: f'"{name}"' for name in OURS} | {"bbr": '{ bbr = { version = "linux-6" } }'}
    schemes = ours | {f"linux-{name}": f'{{ file = "tcp_{name}.c" }}' for name in OURS}
    (linux_modules / "one.toml").write_text(f'name = "{network}"\n' + experiment(*NETWORKS[network], schemes))
    goodput, queue = goodput_and_queue(api.run("one.toml").join())
    for name in OURS:
        print(f"{network:<10} {name:<6} Mbit/s {goodput[name]:6.1f} {goodput[f'linux-{name}']:6.1f}", end="  ")
        print(f"packets {queue[name]:6.2f} {queue[f'linux-{name}']:6.2f}")
        assert goodput[name] == pytest.approx(goodput[f"linux-{name}"], rel=0.03), name
        assert queue[name] == pytest.approx(queue[f"linux-{name}"], rel=0.1), name


def test_every_module_carries_traffic(linux_modules):
    schemes = {name: f'{{ file = "tcp_{name}.c" }}' for name in OTHERS}
    (linux_modules / "all.toml").write_text('name = "all"\n' + experiment(*NETWORKS["wide"], schemes))
    goodput, _ = goodput_and_queue(api.run("all.toml", seeds=1).join())
    assert goodput.keys() == set(OTHERS)
    assert min(goodput.values()) > 150, goodput
