"""What `check` draws of networks, and lists of their paths and buffers."""

import pytest
from conftest import lines, narrows

from narrows import native, wording
from narrows.experiment import Experiment
from narrows.experiment.drawing import drawing
from narrows.experiment.paths import paths_of

REST = """
[[traffic]]
name = "t"
from = "{}"
to = "{}"
long = {{}}
[[arm]]
name = "cubic"
cc = "cubic"
[run]
end = "1s"
seeds = 1
"""
OFFICE = """
[topology.graph]
switches = [{ name = "office", site = 1 }, { name = "cloud", site = 2 }]
hosts = [{ name = "server", count = 3, switch = "cloud" }, { name = "desk", switch = "office", link.rate = "100Mbps" }]
[[topology.graph.links]]
ends = ["office", "cloud"]
both = { delay = "8ms", limit = "500pkt" }
forward.rate = "20Mbps"
backward.rate = "200Mbps"
"""
NETWORKS = {
    "two-datacenters": ("[topology.two-datacenters]\n", "a1-1", "b1-1"),
    "fat-tree": ("[topology.fat-tree]\nk = 8\n", "p1e1-1", "p2e1-1"),
    "leaf-spine": ("[topology.leaf-spine]\nparallel-links = 2\n", "l1-1", "l2-1"),
    "star": ("[topology.star]\n", "h1", "h2"),
    "dumbbell": ("[topology.dumbbell]\n", "left-1", "right-1"),
    "office": (OFFICE, "desk", "server-1"),
}


def network(name):
    text, sender, receiver = NETWORKS[name]
    return Experiment(text + REST.format(sender, receiver)).plans[0]


def body(name):
    return network(name).body["network"]


def test_a_small_network_is_drawn_switch_by_switch():
    assert drawing(body("office")) == [
        "office  (datacenter 1)",
        "├─ desk   1 host  100 Mbit/s, 5 µs",
        "└─ cloud  switch  20 Mbit/s, 8 ms (back 200 Mbit/s, 8 ms) WAN",
        "cloud  (datacenter 2)",
        "└─ server-1 … server-3  3 hosts  1 Gbit/s, 5 µs",
    ]


def test_a_large_network_is_drawn_by_tiers_with_counts_of_nodes_and_links():
    rows = [" ".join(row.split()) for row in drawing(body("fat-tree"))]
    # k = 8: 16 core, 32 aggregation and 32 edge switches, 128 hosts, and 128 links between each two tiers.
    assert rows == [
        "core-1 … core-16 16 switches",
        "│ 128 links 10 Gbit/s, 1 µs",
        "aggregation-p1a1 … aggregation-p8a4 32 switches",
        "│ 128 links 10 Gbit/s, 1 µs",
        "edge-p1e1 … edge-p8e4 32 switches",
        "│ 128 links 10 Gbit/s, 1 µs",
        "p1e1-1 … p8e4-4 128 hosts 4 in each of 32 racks",
    ]
    rows = [" ".join(row.split()) for row in drawing(body("leaf-spine"))]
    assert rows[:2] == ["spine-1 … spine-4 4 switches", "│ 72 links 20 Gbit/s, 1 µs"]


def test_links_beside_the_tiers_and_between_datacenters_are_drawn():
    text = NETWORKS["two-datacenters"][0] + "racks = 4\nservers = 2\n"
    drawn = drawing(Experiment(text + REST.format("a1-1", "b1-1")).plans[0].body["network"])
    rows = [" ".join(row.split()) for row in drawn]
    assert rows[0] == "border-a, border-b 2 switches"
    assert rows[1] == "├─ among them 1 link 1 Gbit/s, 4.89 ms WAN"
    assert rows[-1] == "a1-1 … b4-2 16 hosts 2 in each of 8 racks, 8 in each of 2 datacenters"


@pytest.mark.parametrize("name", NETWORKS)
def test_base_rtts_are_those_of_the_simulator(name):
    """Of the example of each kind, which is the quickest way both ways."""
    plan = network(name)
    for kind in paths_of(plan.summary).kinds:
        assert native.base_rtt_ns(plan.body, *kind.example) == kind.rtt_ps[0] // 1000


def test_each_kind_of_pair_has_its_rtt_bottleneck_and_bdp():
    kinds = paths_of(network("fat-tree").summary).kinds
    # 1 µs a link: 2 links in a rack, 4 in a pod, 6 between pods; 10 Gbit/s · 12 µs = 15 KB.
    assert [(kind.hosts, kind.links, [rtt // 10**6 for rtt in kind.rtt_ps]) for kind in kinds] == [
        ("in a rack", 2, [4, 4]), ("in different racks", 4, [8, 8]), ("in different racks", 6, [12, 12]),
    ]  # fmt: skip
    assert kinds[-1].bdp_bytes == (15_000, 15_000)
    there, back = [
        kind for kind in paths_of(network("office").summary).kinds if kind.hosts == "in different datacenters"
    ]
    assert {there.example[0]: there.rate_bps, back.example[0]: back.rate_bps} == {
        "desk": 20_000_000, "server-1": 100_000_000,
    }  # fmt: skip


def test_links_of_a_path_lose_independently():
    text = """
    title = "lossy"
    [topology.dumbbell]
    pairs = 1
    fabric = { rate = "100Mbps", loss = 0.01 }
    """
    every = paths_of(Experiment(text + REST.format("left-1", "right-1")).plans[0].summary).kinds
    # `edge` is as `fabric` unless the file says otherwise: three lossy links between racks.
    assert {kind.hosts: kind.loss for kind in every} == {"in different racks": pytest.approx(1 - 0.99**3)}
    # The chain is in the bad state for p/(p + r) of the time, and loses all there.
    wan = text.replace("loss = 0.01", "loss = { gilbert-elliott = { p = 0.01, r = 0.19 } }")
    quiet = wan.replace("[topology.dumbbell]", "[topology.dumbbell]\nedge = { loss = 0 }")
    (kind,) = paths_of(Experiment(quiet + REST.format("left-1", "right-1")).plans[0].summary).kinds
    assert kind.loss == pytest.approx(0.05)


def test_buffers_are_told_in_time_and_in_bdps_of_the_paths_that_cross_them():
    paths = paths_of(network("office").summary)
    by_port = {(buffer.role, buffer.rate_bps): buffer for buffer in paths.buffers}
    slow = by_port["wan", 20_000_000]
    assert (slow.size_bytes, slow.ports, slow.time_s) == (750_000, 1, 0.3)
    (share,) = [share for path in paths.kinds for share in slow.shares_of(path)]
    assert share == pytest.approx(750_000 / (20e6 / 8 * 16.02e-3)), "its own direction only"
    assert by_port["host", 10**9].time_s is None


def test_of_a_shared_memory_one_busy_port_gets_its_share():
    (edge,) = [buffer for buffer in paths_of(network("star").summary).buffers if buffer.role == "edge"]
    assert edge.kind == "shared"
    assert edge.size_bytes == pytest.approx(4e6 * 0.21 / 1.21, rel=1e-4)


def test_memory_of_inputs_is_that_of_the_link():
    text = """
[topology.leaf-spine]
leaves = 2
spines = 2
hosts-per-leaf = 2
host = { mtu = 9000 }
[topology.leaf-spine.fabric]
rate = "10Gbps"
delay = "500ns"
limit = "220KB"
buffering = "input"
flow-control = { pfc = { xoff = "80KB", xon = "60KB" } }
"""
    plan = Experiment(text + REST.format("l1-1", "l2-1")).plans[0]
    held = {buffer.role: (buffer.kind, buffer.size_bytes) for buffer in paths_of(plan.summary).buffers}
    assert held == {"host": ("input", 220_000), "edge": ("port", None), "fabric": ("input", 220_000)}


def test_kinds_of_paths_are_bounded_and_keep_the_extremes():
    hosts = ", ".join(f'{{ name = "h{n}", switch = "s", link.delay = "{n}us" }}' for n in range(1, 15))
    text = f'[topology.graph]\nswitches = [{{ name = "s" }}]\nhosts = [{hosts}]\n'
    paths = paths_of(Experiment(text + REST.format("h1", "h2")).plans[0].summary)
    rtts = [kind.rtt_ps[0] // 10**6 for kind in paths.kinds]
    assert len(rtts) <= 8
    # Of hosts at n and m µs the base RTT is 2(n + m): from 6 µs to 54 µs, in steps of 2.
    assert (rtts[0], rtts[-1]) == (6, 54)
    assert paths.left_out == len(range(6, 55, 2)) - len(rtts)


def test_equally_short_paths_are_told_one_by_one():
    """A hash chooses: packets may take the slow link there, back, or both ways."""
    text = """
[topology.graph]
switches = [{ name = "s1" }, { name = "s2" }]
hosts = [{ name = "a", switch = "s1", link.delay = "1us" }, { name = "b", switch = "s2", link.delay = "1us" }]
[[topology.graph.links]]
ends = ["s1", "s2"]
both = { rate = "1Gbps", delay = "1ms" }
[[topology.graph.links]]
ends = ["s1", "s2"]
both = { rate = "100Mbps", delay = "5ms" }
"""
    plan = Experiment(text + REST.format("a", "b")).plans[0]
    # 2 µs of the hosts' links each way; 1 or 5 ms there, and 1 to 5 ms back.
    assert [(kind.rate_bps, [rtt // 10**6 for rtt in kind.rtt_ps]) for kind in paths_of(plan.summary).kinds] == [
        (10**9, [2004, 6004]), (10**8, [6004, 10004]),
    ]  # fmt: skip
    assert plan.summary["network"]["base_rtts"] == [
        {"hosts": "any two", "least_ns": 2_004_000, "largest_ns": 10_004_000}
    ]


def test_base_rtts_are_those_of_all_hosts_not_only_of_the_paths_that_are_listed():
    """One far host among many, and one host of another datacenter."""
    hosts = ", ".join(
        f'{{ name = "h{n}", switch = "s", link.delay = "{5000 if n == 12 else n}us" }}' for n in range(1, 41)
    )
    away = '{ name = "away", switch = "t", link.delay = "1us" }'
    text = f"""
[topology.graph]
switches = [{{ name = "s" }}, {{ name = "t", site = 1 }}]
hosts = [{hosts}, {away}]
links = [{{ ends = ["s", "t"], both.delay = "3us" }}]
"""
    told = Experiment(text + REST.format("h1", "h2")).plans[0].summary["network"]["base_rtts"]
    # h1 and h2; h12 and h40. h1 and away; h12 and away.
    assert told == [
        {"hosts": "in a rack", "least_ns": 2 * 3000, "largest_ns": 2 * 5_040_000},
        {"hosts": "in different datacenters", "least_ns": 2 * 5000, "largest_ns": 2 * 5_004_000},
    ]


def test_check_prints_and_tells_programs_the_same(folder):
    (folder / "office.toml").write_text(OFFICE + REST.format("desk", "server-1"))
    printed = narrows("check", "office.toml").stdout
    (told,) = [
        event for event in lines(narrows("check", "office.toml", "--json").stdout) if event["event"] == "network"
    ]
    assert all(wording.plain(row) in printed for row in told["drawing"])
    far = next(path for path in told["paths"] if path["hosts"] == "in different datacenters" and path["from"] == "desk")
    assert (far["base_rtt_ns"], far["bottleneck_bps"]) == (16_020_000, 20_000_000)
    assert far["bdp_bytes"] == pytest.approx(40_050)
    assert "in different datacenters desk → server-1 3 16 ms 20 Mbit/s 40.0 KB 26.7" in " ".join(printed.split())
    (slow,) = [it for it in told["buffers"] if it["rate_bps"] == 20_000_000]
    assert slow["seconds"] == 0.3
    assert "wan 1 20 Mbit/s 750 KB 0.3 s 18.7 in different datacenters" in " ".join(printed.split())


def test_of_several_networks_the_first_is_drawn_and_all_are_told_to_programs(folder):
    sweep = '[sweep]\n"links.wan.both.delay" = ["1ms", "2ms"]\n'
    text = OFFICE.replace("ends =", 'name = "wan"\nends =') + REST.format("desk", "server-1") + sweep
    (folder / "office.toml").write_text(text)
    assert "the plans have 2 different ones" in narrows("check", "office.toml").stdout
    told = [event for event in lines(narrows("check", "office.toml", "--json").stdout) if event["event"] == "network"]
    assert [max(path["base_rtt_ns"] for path in event["paths"]) for event in told] == [2_020_000, 4_020_000]


def test_networks_that_differ_in_loss_alone_are_told_apart(folder):
    text = OFFICE.replace("ends =", 'name = "wan"\nends =') + REST.format("desk", "server-1")
    (folder / "office.toml").write_text(text + '[sweep]\n"links.wan.both.loss" = [0, 0.01]\n')
    told = [event for event in lines(narrows("check", "office.toml", "--json").stdout) if event["event"] == "network"]
    assert [max(path["loss"] for path in event["paths"]) for event in told] == [0, pytest.approx(0.01)]
