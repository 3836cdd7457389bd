"""Files of other simulators and tools, as they are found, and the experiments that come of them."""

import json
import re
import shlex
from fractions import Fraction
from pathlib import Path

import pytest
from conftest import CHECKOUT, lines, narrows
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from narrows.errors import BadInput
from narrows.experiment import Experiment
from narrows.imports import Options, write_experiment
from narrows.imports.mahimahi import rates

LEAF_SPINE = """\
Nodes 32
Tiers 2
Podsize 32

Tier 0
Downlink_speed_Gbps 100
Radix_Down 8
Radix_Up 2
Downlink_Latency_ns 1000
Switch_Latency_ns 0
Oversubscribed 4

# the spines
Tier 1
Downlink_speed_Gbps 100
Radix_Down 4
Downlink_Latency_ns 2000
Switch_Latency_ns 0
"""
BUNDLED = """\
Nodes 16
Tiers 3
Podsize 8

Tier 0
Downlink_speed_Gbps 100
Radix_Down 4
Radix_Up 4
Queue_Up 400000
Queue_Down 100000
Downlink_Latency_ns 1000
Switch_Latency_ns 300

Tier 1
Downlink_speed_Gbps 100
Radix_Down 4
Radix_Up 2
Oversubscribed 2
Bundle 2
Queue_Up 500000
Queue_Down 200000
Downlink_Latency_ns 1500
Switch_Latency_ns 500

Tier 2
Downlink_speed_Gbps 100
Radix_Down 4
Bundle 2
Queue_Down 300000
Downlink_Latency_ns 600000
Switch_Latency_ns 0
"""
MATRIX = """\
Nodes 32
Connections 3
1->0 id 1 start 0 size 2000000
31->8 id 2 start 1500000 size 100001
9->8 start 0.000000 size 0
"""
HPCC = """\
7 2 6
0 4
1 0 100Gbps 0.001ms 0
2 0 100Gb/s 1us 0
3 0 25Gbps 1000ns 0.000000
5 4 100Gbps 1000ns 0
6 4 12.5GB/s 1000ns 0.001
0 4 400Gbps 2us 0
0 9 1Gbps 1us 0

First line: total node #, switch node #, link #
"""
FLOWS = """\
2
1 5 3 100 2000000 2
6 3 3 100 150000 2.0000015
2 1 3 100 200000 2

First line: # of flows
"""
WEB_SEARCH = [0, 10000, 20000, 30000, 50000, 80000, 200000, 1000000, 2000000, 5000000, 10000000, 30000000]
PERCENT = [0, 15, 20, 30, 40, 53, 60, 70, 80, 90, 97, 100]
HKUST_CDF = "".join(f"{size:<8} {share / 100}\n" for size, share in zip(WEB_SEARCH, PERCENT, strict=True))
HPCC_CDF = "".join(f"{size} {share}\n" for size, share in zip(WEB_SEARCH, PERCENT, strict=True))
CLIENT = """\
server 192.168.1.51 5001
server 192.168.1.52 5001
server 192.168.1.53 5001
req_size_dist conf/DCTCP_CDF.txt
load 800Mbps
num_reqs 5000
rate 0Mbps 10
dscp 0 25
dscp 8 75
fanout 1 100
"""


@pytest.fixture
def imported(folder):
    """What the command makes of files: the experiment's first plan."""

    def run(*arguments, **files):
        for name, text in files.items():
            (folder / name.replace("_", ".", 1)).write_text(text)
        names = [name.replace("_", ".", 1) for name in files]
        done = narrows("import", *names, *arguments)
        assert done.returncode == 0, done.stderr
        return Experiment("experiment.toml")

    return run


def links_of(experiment):
    """By name: rate in bit/s, delay in ns, limit, share lost."""
    links = experiment.plans[0].body["network"]["links"]
    return {it["name"]: (it["rate"], it["delay"] // 1000, it["limit"], it["loss"] / 2**32) for it in links}


def flows_of(experiment):
    """Sender, receiver, start in ns, size in bytes."""
    (traffic,) = experiment.plans[0].body["traffic"]
    nodes = [node["name"] for node in experiment.plans[0].body["network"]["nodes"]]
    return [
        (nodes[it["source"]], nodes[it["destination"]], it["at"] / 1000, it["size"])
        for it in traffic["pattern"]["list"]
    ]


def test_a_topology_and_a_connection_matrix_of_htsim(imported):
    experiment = imported("--start-unit", "ps", leaf_topo=LEAF_SPINE, perm_cm=MATRIX)
    links = links_of(experiment)
    hosts = [node for node in experiment.plans[0].body["network"]["nodes"] if node["kind"] == "host"]
    assert (len(hosts), len(links)) == (32, 2 * (32 + 4 * 2))
    assert links["leaf-1->l1-1"][:2] == (100_000_000_000, 1000)
    assert links["leaf-4->spine-2"][:2] == (100_000_000_000, 2000)
    assert sorted(flows_of(experiment)) == [
        ("l1-2", "l1-1", 0, 2_000_000), ("l2-2", "l2-1", 0, None), ("l4-8", "l2-1", 1500, 100_001),
    ]  # fmt: skip
    text = Path("experiment.toml").read_text()
    assert "leaf.topo: htsim topology" in text
    assert "`start` in ps, as --start-unit says" in text
    assert "assumed" in text[text.index("[[arm]]") : text.index("cubic")]


def test_bundles_latencies_of_switches_and_queues_of_htsim_are_kept(imported):
    experiment = imported(clos_topo=BUNDLED)
    links = links_of(experiment)
    # 4 ToRs × 2 aggregation switches of the pod × a bundle of 2; 4 aggregation switches × 1 core switch × 2
    assert len(links) == 2 * (16 + 4 * 2 * 2 + 4 * 1 * 2)
    assert links["tor-0->agg-1#2"] == (100_000_000_000, 1500 + 500, {"bytes": 400_000}, 0)
    assert links["agg-1->tor-0#2"] == (100_000_000_000, 1500 + 300, {"bytes": 200_000}, 0)
    assert links["core-0->agg-0#1"] == (100_000_000_000, 600_000 + 500, {"bytes": 300_000}, 0)
    assert links["tor-0->h0-1"][2] == {"bytes": 100_000}
    assert "core-0->agg-1#1" not in links, "aggregation switch a of a pod has the cores a, a + 2, …"
    # Between pods a packet crosses links of 1, 1.5 and 600 µs up and down, and switches of 0.3, 0.5, 0, 0.5 and 0.3 µs.
    far = max(rtt["largest_ns"] for rtt in experiment.plans[0].summary["network"]["base_rtts"])
    assert far == 2 * (2 * (1000 + 1500 + 600_000) + 300 + 500 + 500 + 300)


def test_a_symmetric_topology_of_htsim_is_a_fat_tree(imported):
    tiers = "".join(
        f"Tier {tier}\nDownlink_speed_Gbps 100\nRadix_Down {down}\n{up}Downlink_Latency_ns 1000\n"
        for tier, down, up in ((0, 2, "Radix_Up 2\n"), (1, 2, "Radix_Up 2\n"), (2, 4, ""))
    )
    experiment = imported(k4_topo=f"Nodes 16\nTiers 3\nPodsize 4\n{tiers}")
    assert "[topology.fat-tree]\nk = 4\n" in Path("experiment.toml").read_text()
    links = links_of(experiment)
    assert len(links) == 2 * 3 * 16
    assert {it[:2] for it in links.values()} == {(100_000_000_000, 1000)}


def test_topology_flows_and_nodes_of_hpcc(imported):
    watched = "3\n0 6 99\n\nFirst line: tracing node #\nNode IDs...\n"
    experiment = imported(topology_txt=HPCC, flow_txt=FLOWS, trace_txt=watched)
    links = links_of(experiment)
    assert len(links) == 12, "lines beyond the stated number of links are left out"
    assert links["n2->s0"][:2] == (100_000_000_000, 1000)
    assert links["n3->s0"][:2] == (25_000_000_000, 1000)
    assert links["n6->s4"][0] == 100_000_000_000, "12.5 GB/s"
    assert links["s0->s4"][:2] == links["s4->s0"][:2] == (400_000_000_000, 2000)
    lossy = {name for name, (_, _, _, loss) in links.items() if loss}
    assert lossy == {"n6->s4", "s4->n6"}
    assert links["n6->s4"][3] == pytest.approx(0.001)
    assert flows_of(experiment) == [("n1", "n5", 2e9, 2_000_000), ("n6", "n3", 2_000_001_500, 150_000)]
    body = experiment.plans[0].body
    assert {it["name"] for it in body["network"]["links"] if it["watched"]} == {
        "s0->n1", "s0->n2", "s0->n3", "s0->s4", "n6->s4",
    }  # fmt: skip


def test_many_flows_go_into_a_file_that_counts_hosts_as_the_network_does(imported):
    rows = [f"{1 + n % 3} {5 + n % 2} 3 100 {1000 + n} {2 + n / 10**6:.6f}" for n in range(150)]
    experiment = imported(topology_txt=HPCC, flow_txt="\n".join(["150", *rows]) + "\n")
    assert Path("experiment-flows.txt").read_text().startswith("150\n0 3 0 0 1000 2\n1 4 0 0 1001 2.000001\n")
    names = ("n1", "n2", "n3"), ("n5", "n6")
    assert flows_of(experiment) == [(names[0][n % 3], names[1][n % 2], 2e9 + 1000 * n, 1000 + n) for n in range(150)]


@pytest.mark.parametrize("table", [HKUST_CDF, HPCC_CDF])
def test_distributions_end_at_one_or_at_a_hundred(imported, table):
    experiment = imported("--load", "0.3", sizes_cdf=table, topology_txt=HPCC)
    (kind,) = experiment.plans[0].summary["traffic"]
    assert kind["mean_size_bytes"] == pytest.approx(1_711_250)
    busiest = max(role["max_load"] for role in experiment.plans[0].summary["roles"] if role["role"] == "host")
    assert busiest == pytest.approx(0.3)


def test_shares_and_loads_keep_their_digits(imported):
    shares = ["0.1234567890123", "0.33333333333333", "0.9999998", "1"]
    table = "".join(f"{10**5 * (n + 1)} {share}\n" for n, share in enumerate(shares))
    experiment = imported("--load", "0.3333333333", sizes_cdf=table)
    written = [line.split()[1] for line in Path("experiment-sizes.cdf").read_text().splitlines()[1:]]
    assert written == shares
    assert "load = 0.3333333333, of" in Path(experiment.file).read_text()


def test_a_rate_finer_than_an_experiment_has_is_told_or_refused(imported, folder):
    (folder / "conf").mkdir()
    (folder / "conf" / "DCTCP_CDF.txt").write_text("10000000 1\n")  # 5 MB in the mean
    one = CLIENT.replace("dscp 8 75\n", "")
    imported(client_txt=one.replace("800Mbps", "0.001Mbps"))
    # 1000 * 1448/1538 / (8 * 5e6) = 2.3537e-5
    text = Path("experiment.toml").read_text()
    assert 'rate = "0.000024/s"' in text
    assert "2.35371e-05 requests per second are rounded to 0.000024/s" in text
    (folder / "client.txt").write_text(one.replace("800Mbps", "0.000001Mbps"))
    done = narrows("import", "client.txt", "-o", "other.toml")
    assert done.returncode == 2
    assert done.stderr.startswith("error: client.txt:5: the load makes 2.35e-08 requests per second, and")


def test_a_client_of_traffic_generator(imported, folder):
    (folder / "conf").mkdir()
    (folder / "conf" / "DCTCP_CDF.txt").write_text(HKUST_CDF)
    experiment = imported(client_txt=CLIENT)
    body, (first, second) = experiment.plans[0].body, experiment.plans[0].summary["traffic"]
    assert [node["name"] for node in body["network"]["nodes"]] == ["h1", "h2", "h3", "h4", "switch"]
    all_per_second = 800e6 * 1448 / 1538 / (8 * 1_711_250)
    assert (first["name"], second["name"]) == ("dscp-0", "dscp-8")
    assert first["flows_per_second"] == pytest.approx(all_per_second / 4, rel=1e-6)
    assert second["flows_per_second"] == pytest.approx(all_per_second * 3 / 4, rel=1e-6)
    assert experiment.plans[0].end_ns == pytest.approx(5000 / all_per_second * 1e9, rel=1e-3)
    pairs = body["traffic"][0]["pattern"]["open"]["pairs"]["between"]
    assert (sorted(pairs["sources"]), pairs["destinations"]) == ([0, 1, 2], [3])
    assert "h1 is server 192.168.1.51 5001." in Path("experiment.toml").read_text()


def test_a_trace_of_mahimahi_is_a_rate_schedule_that_repeats(imported):
    # 250 ms: two packets a millisecond, then none for 100 ms, then one at the end of each millisecond.
    times = [ms for ms in range(1, 101) for _ in range(2)] + list(range(201, 251))
    text = "".join(f"{time}\n" for time in times)
    experiment = imported("--end", "600ms", up_trace=text, down_trace="1\n")
    links = {it["name"]: it for it in experiment.plans[0].body["network"]["links"]}
    packet = 8 * 1538
    assert links["near->far"]["rate"] == 2000 * packet
    assert links["far->near"]["rate"] == 1000 * packet, "a trace of one line is a constant rate"
    changes = [(it["at"] // 10**9, it["change"]["rate"]) for it in links["near->far"]["events"]]
    late = round(50 * packet / 0.150)
    assert changes == [(100, late), (250, 2000 * packet), (350, late), (500, 2000 * packet)]
    carried = sum(
        rate * (end - begin) / 1000
        for (begin, rate), (end, _) in zip([(0, 2000 * packet), *changes], [*changes, (600, 0)], strict=True)
    )
    assert carried == pytest.approx(packet * (2 * len(times) + 200), abs=2), "as many packets as opportunities"
    assert "events" not in links["far->near"]


@pytest.mark.simulator
@pytest.mark.page
def test_the_guides_files_and_commands_work(folder):
    text = (CHECKOUT / "docs" / "how-to" / "import.md").read_text()
    blocks = list(re.finditer(r"^```(sh|text)\n(.*?)^```$", text, re.DOTALL | re.MULTILINE))
    for place, block in enumerate(blocks):
        if block.group(1) == "text":
            before = text[blocks[place - 1].end() if place else 0 : block.start()]
            (folder / re.findall(r"^`(\S+)`[:,]", before, re.MULTILINE)[-1]).write_text(block.group(2))
    for block in blocks:
        if block.group(1) == "sh":
            for line in block.group(2).splitlines():
                done = narrows(*shlex.split(line, comments=True)[1:])
                assert done.returncode == 0, (line, done.stderr)
    rates_bps = [rate for _, rate in rates((40, 80, 100, 110, 120, 130, 140, 150, 300), 100)]
    assert rates_bps == [3 * 10 * 8 * 1538, 5 * 10 * 8 * 1538, 10 * 8 * 1538]
    assert {path.name for path in folder.glob("*.toml")} == {
        "hpcc.toml", "random.toml", "htsim.toml", "cellular.toml",
    }  # fmt: skip


@given(st.lists(st.integers(0, 5000), min_size=1, max_size=200).filter(any), st.integers(1, 700))
def test_rates_of_a_trace_carry_its_packets(times, bin_ms):
    times = sorted(times)
    changes = rates(tuple(times), bin_ms)
    ends = [begin for begin, _ in changes[1:]] + [times[-1]]
    carried = sum(Fraction(rate * (end - begin), 1000) for (begin, rate), end in zip(changes, ends, strict=True))
    assert changes[0][0] == 0
    assert abs(carried / (8 * 1538) - len(times)) < Fraction(times[-1], 1000) / 8
    assert all(rate > 0 for _, rate in changes)


@pytest.mark.simulator
def test_what_is_imported_runs(imported):
    imported(topology_txt=HPCC, flow_txt=FLOWS)
    done = narrows("run", "experiment.toml", "--json")
    assert done.returncode == 0, done.stderr
    import narrows as lab

    flows = lab.load("experiment").flows.sort("start_ns")
    assert flows["finished"].to_list() == [True, True]
    # 2 MB at 100 Gbit/s take 160 µs, and the base RTT is 8 µs.
    assert all(fct_ns > size * 8 / 100 for fct_ns, size in flows.select("fct_ns", "size_bytes").iter_rows())


REFUSED = [
    ("p.cm", MATRIX, "p.cm:4: the unit of `start 1500000` cannot be known", "--start-unit"),
    ("p.cm", MATRIX.replace("31->8", "32->8"), "p.cm:4: a flow from 32 to 8", "below 32"),
    (
        "p.cm",
        MATRIX.replace("tions 3", "tions 4").replace("1500000", "0"),
        "p.cm:2: 4 connections are announced and 3 follow",
        "correct",
    ),
    ("p.cm", MATRIX.replace("start 0 ", "trigger 7 "), "p.cm:3: `trigger`: flows that depend on others", "start"),
    ("p.cm", MATRIX.replace("id 1", "prio 1"), "p.cm:3: `prio` cannot be imported", "scheduler"),
    ("p.cm", MATRIX.replace("size 2000000", "size 2MB"), "p.cm:3: '2MB' is no whole number", "digits"),
    ("p.cm", MATRIX.replace("Nodes 32\n", ""), "p.cm:2: no line `Nodes` precedes", "Nodes 128"),
    ("l.topo", LEAF_SPINE.replace("Radix_Down 4", "Radix_Down 5"), "l.topo:1: aggregation switches have 5", "radix"),
    ("l.topo", LEAF_SPINE.replace("ed 4", "ed 2"), "l.topo:11: tier 0 has 8 links down at 100Gbps and 2 up", "Overs"),
    ("l.topo", LEAF_SPINE.replace("_ns 2000", "_us 2"), "l.topo:17: `Downlink_Latency_us` is unknown", "switch_lat"),
    ("l.topo", LEAF_SPINE.replace("Radix_Up 2\n", ""), "l.topo:5: tier 0 has no `radix_up`", "below"),
    ("t.txt", HPCC.replace("25Gbps", "25"), "t.txt:5: '25' is no rate", "unit"),
    ("t.txt", HPCC.replace("0.001ms", "0.001"), "t.txt:3: '0.001' is no delay", "unit"),
    ("t.txt", HPCC.replace("6 4 12", "6 1 12"), "t.txt:7: a link between the hosts 6 and 1", "switch"),
    ("t.txt", HPCC.replace("6 4 12", "5 0 12"), "t.txt:7: a second link of host 5, which is on line 6", "one"),
    ("t.txt", HPCC.replace("7 2 6", "7 2 60"), "t.txt:1: 60 links are announced and", "correct"),
    ("t.txt", HPCC.replace("7 2 6", "8 2 6"), "t.txt:1: node 7 has no link", "numbers"),
    ("f.txt", FLOWS.replace("6 3 3 100", "6 3 100"), "f.txt:3: 5 columns, not 6", "seconds"),
    ("f.txt", FLOWS.replace("2.0000015", "now"), "f.txt:3: 'now' is no time in seconds", "source"),
    ("f.txt", FLOWS.replace("2\n1", "9\n1", 1), "f.txt:1: 9 flows are announced and 4 lines follow", "correct"),
    ("u.trace", "1\n5\n3\n", "u.trace:3: 3 follows 5", "not go down"),
    ("u.trace", "1\n5\n6.5\n", "u.trace:3: '6.5' is no whole number", "digits"),
    ("u.trace", "0\n0\n", "u.trace:2: the trace ends at 0 ms", "above 0"),
    ("s.cdf", "6 0\n6 0.15\n20000 1\n", "s.cdf:3: the largest size is 20000, and the file does not say", "--size-unit"),
    ("s.cdf", "0 1 0\n10000 1 0.2\n", "s.cdf:1: three columns: a table of ns-2", "--size-unit"),
    ("s.cdf", "0 0\n10000 0.2\n30000000 0.97\n", "s.cdf:3: the last probability is 0.97", "100"),
    ("s.cdf", "0 0\n10000 0.3\n20000000 0.2\n", "s.cdf:3: cumulative probabilities must not go down", "write"),
    ("s.cdf", HPCC_CDF, "s.cdf:1: a distribution of sizes says nothing of the load", "--load"),
    ("c.txt", CLIENT, "c.txt:4: there is no file 'conf/DCTCP_CDF.txt'", "another FILE"),
    ("c.txt", CLIENT.replace("conf/", "x" * 300), "c.txt:4: there is no file 'xxx", "another FILE"),
    ("c.txt", CLIENT.replace("rate 0", "rate 500"), "c.txt:7: senders that limit a flow's rate", "0Mbps"),
    ("c.txt", CLIENT.replace("fanout 1", "fanout 5"), "c.txt:10: requests of several flows", "incast"),
    ("c.txt", CLIENT.replace("800Mbps", "800"), "c.txt:5: `load 800` has no unit", "Mbps"),
    ("c.txt", CLIENT.replace("num_reqs", "reqs"), "c.txt:6: the key `reqs` is unknown", "num_reqs"),
    ("c.txt", CLIENT.replace(" 5001\n", " 5001 1\n", 1), "c.txt:1: `server` has 2 values, not 3", "correct"),
    ("x.txt", "\x1b[31mhello world\n", "x.txt:1: the format of this file is not known", "htsim"),
]


@pytest.mark.parametrize(("name", "text", "sentence", "help_text"), REFUSED)
def test_what_is_not_understood_is_refused_with_file_and_line(folder, name, text, sentence, help_text):
    (folder / name).write_text(text)
    done = narrows("import", name)
    first, second = done.stderr.splitlines()
    assert (done.returncode, done.stdout) == (2, "")
    assert first.startswith(f"error: {sentence}")
    assert second.startswith("  help: ")
    assert help_text in second
    assert "\x1b" not in done.stderr
    assert [path.name for path in folder.iterdir()] == [name]


@pytest.mark.parametrize(("arguments", "sentence"), [
    (["flow.txt", "leaf.topo"], "flow.txt:1: flows of HPCC, and a topology of htsim"),
    (["leaf.topo", "perm.cm", "--start-unit", "hours"], "--start-unit cannot be hours"),
    (["leaf.topo", "--bin", "1s"], "--bin has no effect on leaf.topo"),
    (["leaf.topo", "topology.txt"], "2 of the files are topologies"),
    (["perm.cm", "k16.topo", "--start-unit", "ps"], "perm.cm:1: 32 nodes, and k16.topo has 16 hosts"),
    (["trace.txt"], "trace.txt names nodes of a topology that is not given"),
    (["flow.txt", "up.trace"], "flow.txt, up.trace do not belong together"),
    (["topology.txt", "late.txt"], "late.txt:3: node 4 is no host of topology.txt"),
    (["up.trace", "--bin", "1ms", "--end", "1000s"], "up.trace:3: the trace changes the rate more than 10000 times"),
    (["runs.zip"], "runs.zip is damaged, or no archive"),
    (["runs.zip", "perm.cm"], "runs.zip is an archive, which is imported by itself"),
    (["runs.zip", "--rate", "1Gbps"], "runs.zip is an archive, which is imported by itself"),
    (["absent.cm"], "cannot read absent.cm: No such file or directory"),
])  # fmt: skip
def test_what_does_not_belong_together_is_refused(folder, arguments, sentence):
    files = {
        "flow.txt": FLOWS, "leaf.topo": LEAF_SPINE, "perm.cm": MATRIX, "topology.txt": HPCC, "k16.topo": BUNDLED,
        "trace.txt": "3\n0 6 99\n", "up.trace": "1\n7\n9\n", "late.txt": FLOWS.replace("6 3 3", "4 3 3"),
        "runs.zip": "PK",
    }  # fmt: skip
    for name, text in files.items():
        (folder / name).write_text(text)
    done = narrows("import", *arguments)
    assert done.returncode == 2
    assert done.stderr.startswith(f"error: {sentence}"), done.stderr
    assert {path.name for path in folder.iterdir()} == set(files)


def test_nothing_is_overwritten_and_files_are_told_to_programs(folder):
    (folder / "f.txt").write_text(FLOWS)
    assert lines(narrows("import", "f.txt", "--json").stdout) == [{"event": "imported", "path": "experiment.toml"}]
    before = (folder / "experiment.toml").read_text()
    assert json.dumps("Imported from f.txt") in before
    again = narrows("import", "f.txt")
    assert again.stderr.startswith("error: experiment.toml is there already\n  help: ")
    assert (folder / "experiment.toml").read_text() == before


@pytest.mark.parametrize("stem", ["", "plain/x", "n" * 300, "loop/x", "missing/../plain/x"])
@pytest.mark.parametrize("files", [["f.txt"], ["many.txt"]])
def test_no_place_to_write_to_ends_in_a_traceback(folder, stem, files):
    """One flow makes one file, many make two."""
    (folder / "f.txt").write_text(FLOWS)
    rows = [f"{n % 3} {3 + n % 3} 3 100 1000 2" for n in range(150)]
    (folder / "many.txt").write_text("\n".join(["150", *rows]) + "\n")
    (folder / "plain").touch()
    (folder / "loop").symlink_to("loop")
    before = {path.name for path in folder.iterdir()}
    done = narrows("import", *files, "-o", f"{stem}.toml" if stem else ".")
    assert (done.returncode, done.stdout) == (2, "")
    assert re.match(r"error: (cannot write \S+: .*|\. is there already)\n  help: .*\n$", done.stderr), done.stderr
    assert {path.name for path in folder.iterdir()} - {"missing"} == before


TOKENS = [
    "0", "1", "2", "7", "3 2 1", "1->0", "start", "size", "Nodes", "Connections", "Tiers", "Podsize", "Tier", "0.5",
    "100", "100Gbps", "1us", "server", "load", "800Mbps", "num_reqs", "req_size_dist", "dscp", "\n", "\n", "#", "1e9",
    "-1", "é", "9" * 30, "\x00",
]  # fmt: skip


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.sampled_from(TOKENS), max_size=30), st.booleans())
def test_no_text_ends_in_a_traceback(tmp_path, tokens, has_options):
    file, output = tmp_path / "file.txt", tmp_path / "experiment.toml"
    file.write_text(" ".join(tokens))
    options = Options(start_unit="ps", end="1s") if has_options else Options()
    try:
        written = write_experiment([file], output, options)
    except BadInput:
        written = []
    for path in written:
        path.unlink()
    assert [path.name for path in tmp_path.iterdir()] == ["file.txt"]
