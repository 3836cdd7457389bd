"""What a page says of outages, datagrams and the network."""

import itertools
import json
import re

import polars as pl
import pytest
from conftest import reported
from report_pages import MIXED, cells, charts, number

from narrows.figures import queues


@pytest.fixture(scope="module")
def mixed(tmp_path_factory):
    """Results with datagrams and an outage, and their page."""
    yield from reported(tmp_path_factory.mktemp("mixed"), MIXED)


def test_flows_that_met_an_outage_are_told_from_the_others(mixed):
    results, path = mixed
    rows = [row for row in cells(path, "changes")[1:] if len(row) == 6]
    flows = results.counted_flows.filter(pl.col("workload").str.starts_with("web") | (pl.col("workload") == "blocks"))
    flows = flows.with_columns(pl.col("events_met").is_not_null().alias("met")).collect()
    assert [row[1][0] for row in rows] == 2 * ["met a change", "met none"]
    for place, (case, met) in enumerate(itertools.product(("cubic", "dctcp"), (True, False))):
        own = flows.filter((pl.col("case") == case) & (pl.col("met") == met))
        assert number(rows[place][2][0]) == len(own) > 0
        assert number(rows[place][3][0]) == (~own["finished"]).sum()
        by_seed = own.group_by("seed").agg(pl.col("fct_ns").mean() / 1e6)["fct_ns"].drop_nulls()
        assert number(rows[place][4][0]) == pytest.approx(by_seed.mean(), rel=5e-3)
    assert number(rows[0][4][0]) > number(rows[1][4][0])


def test_packets_lost_in_an_outage_are_told_from_those_lost_on_the_wire(mixed):
    results, path = mixed
    rows = [row for row in cells(path, "changes") if len(row) == 4][1:]
    for row, case in zip(rows, ("cubic", "dctcp"), strict=True):
        ports = results.ports.filter(pl.col("case") == case)
        sums = ports.group_by("seed").agg(pl.col("^(dropped|lost)_.*packets$").sum().cast(pl.Float64)).mean()
        lost, outage = sums["lost_on_wire_packets"][0], sums["lost_in_outage_packets"][0]
        expected = [sums["dropped_outage_packets"][0], outage, lost - outage]
        assert min(expected) > 0
        assert [number(cell[0]) for cell in row[1:]] == pytest.approx(expected, rel=6e-3)


def test_no_backtick_is_left_on_a_page(mixed):
    text = re.sub(r"<(script|style).*?</\1>", "", mixed[1].read_text(), flags=re.DOTALL)
    assert "`" not in text
    assert "<code>border-a-&gt;border-b</code>" in text


def test_the_network_is_told_from_the_plan_and_by_scheme_where_it_differs(mixed):
    rows = {row[0][0]: [" ".join(cell) for cell in row[1:]] for row in cells(mixed[1], "network")}
    heads = rows["one-way"]
    wan = dict(zip(heads, rows["WAN links"], strict=True))
    assert (wan["links"], wan["rate"], wan["delay"], wan["buffer"]) == ("2", "100Mbps", "2ms", "30pkt")
    assert wan["AQM and congestion points"] == "no cubic threshold: mark-at 20pkt dctcp"
    assert "flow control" not in heads
    assert rows["nodes"] == ["8 hosts in 4 racks of 2 datacenters; switches: 4 tor, 2 border"]
    assert rows["hosts"] == ["TCP of linux-4.9, MTU 1500 B"]
    (rtt,) = rows["base RTT"]
    assert re.search(r"4\.\d+ ms in different datacenters", rtt)


def test_datagrams_are_told_by_what_was_lost_of_them(mixed):
    results, path = mixed
    rows = {(row[0][0], row[1][0]): row for row in cells(path, "datagrams")[1:]}
    assert set(rows) == set(itertools.product(("cubic", "dctcp"), ("blocks", "voice")))
    flows = results.flows.filter(pl.col("transport") == "datagram")
    for (case, traffic), row in rows.items():
        own = flows.filter((pl.col("case") == case) & (pl.col("workload") == traffic))
        assert number(row[2][0]) == len(own)
        lost = []
        for seed in (1, 2):
            part = own.filter(pl.col("seed") == seed)
            sent = (
                part["size_bytes"].sum()
                if traffic == "blocks"
                else (part["received_bytes"] + part["dropped_bytes"]).sum()
            )
            lost.append(100 * (1 - part["received_bytes"].sum() / sent))
        assert number(row[5][0]) == pytest.approx(sum(lost) / 2, rel=6e-3)
        assert row[5][0] != "0"
        whole = own["finished"].sum()
        assert row[3][0].partition(" ")[0] == ("–" if traffic == "voice" else str(whole))


def test_a_curve_of_completion_times_ends_at_the_share_that_finished(mixed):
    results, path = mixed
    spec = charts(path)["distribution"]
    drawn = [row for rows in spec["datasets"].values() for row in rows if "share" in row]
    flows = results.counted_flows.filter(pl.col("workload") != "bulk", pl.col("workload") != "voice").collect()
    for case in ("cubic", "dctcp"):
        own = flows.filter(pl.col("case") == case)
        share = own["finished"].mean()
        assert share < 0.99
        assert max(row["share"] for row in drawn if row["case"] == case) == pytest.approx(share, rel=1e-4)


def test_datagrams_have_no_controller_and_no_retransmissions(mixed):
    results, path = mixed
    text = path.read_text()
    rows = {(row[0][0], row[1][0]): row for row in cells(path, "long")}
    for case in ("cubic", "dctcp"):
        assert [cell[0] for cell in rows[case, "voice"]][2] == "datagrams"
        assert [cell[0] for cell in rows[case, "voice"]][-2:] == ["–", "–"]
        assert number(rows[case, "bulk"][-1][0]) >= 0
    for section in ("compared", "headline", "long"):
        assert not [
            row for row in cells(path, section) if any(re.search(r"\bnone\b", part) for cell in row for part in cell)
        ]
    assert '"controller": "none"' not in json.dumps(charts(path))
    tcp = results.frames.flows.filter(pl.col("controller").cast(pl.String) != "none", pl.col("case") == "cubic")
    by_seed = tcp.group_by("seed").agg((1000 * pl.col("timeouts").sum() / pl.len()).alias("timeouts"))
    drawn = [
        row for rows in charts(path)["recovery"]["datasets"].values() for row in rows if row.get("case") == "cubic"
    ]
    assert by_seed["timeouts"].mean() in [pytest.approx(row["mean"], rel=1e-4) for row in drawn]
    assert "Datagrams" in text


def test_every_port_that_was_chosen_to_be_watched_is_drawn(mixed, monkeypatch):
    monkeypatch.setattr(queues, "FEW", 1)
    assert len(queues.ports_that_matter(mixed[0].frames)) == 4
    drawn = charts(mixed[1])
    for chart in ("queue-time", "queue-share"):
        for port in ("border-a → border-b", "tor-a1 → border-a", "tor-a2 → border-a", "border-b → tor-b1"):
            assert json.dumps(port) in json.dumps(drawn[chart]), (chart, port)
    assert "Backlog at all 4 watched ports." in mixed[1].read_text()
