"""Traces of runs that are made again, and where the time of flows went; files as other programs read them."""

import json
import os
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
from conftest import lines, narrows
from scapy.layers.inet import IP, TCP
from scapy.utils import PcapNgReader, RawPcapNgReader

from narrows import api
from narrows.errors import BadInput
from narrows.traces import Explanation, explain, trace
from narrows.traces.explanation import PLACES, REASONS
from narrows.traces.formats import FORMATS

pytestmark = pytest.mark.simulator

TWO_HOSTS = """\
[topology.two-datacenters]
servers = 2
fabric = { rate = "100Mbps", aqm = { threshold = { mark-at = "20pkt" } } }
wan = { rate = "100Mbps", delay = "2ms", limit = "40pkt" }
[[traffic]]
name = "web"
between = "datacenters"
arrivals = { poisson = { load = 0.7, of = "wan" } }
size = { cdf = "web-search" }
[[arm]]
name = "gemini"
cc = "gemini"
[[arm]]
name = "cubic"
cc = "cubic"
[run]
end = "6s"
seeds = "1..=2"
"""


def go_on(_now):
    return True


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """Results of a small experiment whose cubic flows lose packets and whose gemini flows are marked."""
    base = tmp_path_factory.mktemp("traces")
    (base / "small.toml").write_text(TWO_HOSTS)
    before = Path.cwd()
    os.chdir(base)
    try:
        return api.run("small.toml", out=base / "runs").join()
    finally:
        os.chdir(before)


@pytest.fixture
def there(results, monkeypatch):
    """The working directory of these results."""
    folder = Path(results.entry.location).parent
    monkeypatch.chdir(folder)
    return folder


def large_flow(results, scheme):
    """A flow of some hundred packets that lost some, if any did."""
    member = next(member for member in results.entry.members if member.arm == scheme)
    table = results.table_of(member, 1, "flows").collect().filter(pl.col("finished"))
    own = table.filter((pl.col("size_bytes") > 50_000) & (pl.col("size_bytes") < 3_000_000))
    return own.sort("marked_bytes", "retransmitted_bytes", descending=True)["flow"][0]


@pytest.fixture(scope="module")
def marked(results):
    """A trace of a flow whose packets are marked."""
    return trace(results, [large_flow(results, "gemini")], scheme="gemini", look=go_on)


@pytest.fixture(scope="module")
def lossy(results):
    """A trace of a flow that loses packets."""
    return trace(results, [large_flow(results, "cubic")], scheme="cubic", look=go_on)


def test_parts_of_every_flow_add_up_to_its_completion_time_by_reason_and_by_place(results):
    for scheme in ("gemini", "cubic"):
        found = Explanation.of(trace(results, None, scheme=scheme, look=go_on))
        assert found.flows.height > 20
        parts = found.parts
        for names, prefix in ((REASONS, ""), (PLACES, "in_")):
            columns = [f"{prefix}{name.replace('-', '_')}_ns" for name in names]
            assert parts.select(total=pl.sum_horizontal(columns))["total"].equals(parts["fct_ns"], check_names=False)
        assert parts["unknown_ns"].sum() == 0
        assert (parts["queue_port_ns"] <= parts["in_queue_ns"]).all()
        # As the run itself has counted them.
        assert parts["dropped_packets"].equals(found.flows["dropped_packets"], check_names=False)
        assert (parts["drop_port_packets"] <= parts["dropped_packets"]).all()
        dropped = parts.filter(pl.col("dropped_packets") > 0)
        assert dropped["drop_port"].null_count() == 0
        assert all("dropped or lost" in found.why(flow) for flow in dropped["flow"])
        assert scheme == "gemini" or dropped.height > 0


def test_flows_without_a_size_have_no_completion_time_to_explain(tmp_path):
    long = TWO_HOSTS.replace('arrivals = { poisson = { load = 0.7, of = "wan" } }\nsize = { cdf = "web-search" }', "")
    (tmp_path / "long.toml").write_text(long.replace('name = "web"\n', 'name = "web"\nlong = { flows = 2 }\n'))
    made = api.run(tmp_path / "long.toml", out=tmp_path / "runs").join()
    with pytest.raises(BadInput, match=r"no flow of cubic that began has a size: .*\n.*`narrows trace` shows"):
        explain(made, scheme="cubic", look=go_on)


def test_the_slowest_are_explained_and_the_named_in_full(results, there):
    slowest = explain(results, scheme="cubic", look=go_on)
    member = next(member for member in results.entry.members if member.arm == "cubic")
    flows = results.table_of(member, 1, "flows").collect().filter(pl.col("finished"))
    assert slowest.flows["slowdown"].to_list() == flows["slowdown"].sort(descending=True).head(10).to_list()

    flow = large_flow(results, "cubic")
    found = explain(results, [flow], scheme="cubic", look=go_on)
    path = found.path_of(flow)
    assert path["ns"].sum() == found.parts["fct_ns"][0]
    assert path["share"].sum() == pytest.approx(1)

    told = lines(narrows("explain", "small", "--json").stdout)
    assert {row["scheme"] for row in told} == {"gemini", "cubic"}
    assert len(told) == 20
    shown = narrows("explain", "small", "--scheme", "cubic", "--flow", flow).stdout
    assert "window" in shown
    assert "100.0%" in shown


def test_a_capture_has_what_left_and_reached_the_port_with_its_numbers_marks_and_times(marked, tmp_path):
    traced = marked
    own, last = traced.own_ports[0], traced.hops.filter(pl.col("payload_bytes") > 0).sort("hop")["port"][-1]
    ports = [own, last]
    [path] = FORMATS["pcapng"](traced, tmp_path, ports)
    back = "->".join(reversed(own.split("->")))
    hops = traced.hops
    sent = hops.filter((pl.col("port") == own) & pl.col("arrived_ns").is_not_null())
    came = hops.filter((pl.col("port") == back) & pl.col("arrived_ns").is_not_null())

    read = list(PcapNgReader(str(path)))
    assert {packet.sniffed_on for packet in read} == set(ports)
    at_own = [packet for packet in read if packet.sniffed_on == own]
    assert len(at_own) == sent.height + came.height
    wire = {"not-ect": 0, "ect1": 1, "ect0": 2, "ce": 3}
    outbound = {
        (row["seq"] % 2**32, row["ack"] % 2**32, row["payload_bytes"], row["offered_ns"] + row["waited_ns"]): row
        for row in sent.iter_rows(named=True)
    }
    source = [packet for packet in at_own if packet.direction == 2]
    assert len(source) == len(outbound)
    for packet in source:
        at_ns = round(packet.time * 10**9)
        row = outbound.pop(
            (packet[TCP].seq, packet[TCP].ack, packet.wirelen - packet[IP].ihl * 4 - packet[TCP].dataofs * 4, at_ns)
        )
        assert packet[IP].tos & 3 == wire[row["ecn"]]
        assert packet.wirelen == packet[IP].len == row["ip_bytes"]
        names = {"S": "SYN", "F": "FIN", "P": "PSH", "A": "ACK", "E": "ECE", "C": "CWR"}
        assert {names[flag] for flag in str(packet[TCP].flags)} == set(row["flags"].split("|"))
    assert not outbound
    # At the last port, marks that switches set are in the header.
    came_marked = hops.filter((pl.col("port") == last) & (pl.col("arrived_ns") > 0) & (pl.col("ecn") == "ce")).height
    seen = [packet for packet in read if packet.sniffed_on == last and packet.direction == 2]
    assert sum(packet[IP].tos & 3 == 3 for packet in seen) == came_marked > 0
    # Checksums are those of the whole packet, whose payload is zero.
    first = next(packet for packet in source if packet[TCP].flags.S)
    kept = first[TCP].chksum, first[IP].chksum
    del first[TCP].chksum, first[IP].chksum
    again = IP(bytes(first[IP]))
    assert (again[TCP].chksum, again[IP].chksum) == kept
    # What senders of data were like is beside their packets.
    comments = [meta.comments for _, meta in RawPcapNgReader(str(path)) if meta.comments]
    assert any(b"cwnd" in comment for all_of in comments for comment in all_of)


def test_lost_syns_are_named_with_their_port_beside_lost_data(lossy):
    flow = lossy.flows["flow"][0]
    assert " with data dropped or lost" in Explanation.of(lossy).why(flow)
    assert "SYN" not in Explanation.of(lossy).why(flow)
    syn = pl.col("flags").cast(pl.String) == "SYN"
    port = lossy.hops.filter(syn & (pl.col("hop") == 1))["port"][0]
    hops = lossy.hops.with_columns(dropped=pl.col("dropped") | (syn & (pl.col("hop") == 1)))
    told = Explanation.of(replace(lossy, hops=hops)).why(flow)
    assert told.endswith(f"1 SYN or SYN-ACK dropped or lost at {port}")


def test_every_lost_packet_of_a_flow_is_dropped_once_and_sent_again(lossy):
    traced = lossy
    [row] = traced.flows.iter_rows(named=True)
    data = traced.hops.filter(pl.col("payload_bytes") > 0)
    dropped = data.filter(pl.col("dropped"))
    assert row["dropped_packets"] == dropped.height > 0
    assert row["dropped_bytes"] == dropped["payload_bytes"].sum()
    again = data.filter((pl.col("hop") == 0) & pl.col("retransmission"))
    assert row["retransmitted_bytes"] == again["payload_bytes"].sum()
    arrived = data.group_by("packet").agg(pl.col("dropped").any(), pl.col("seq").first())
    assert set(dropped["seq"]) <= set(arrived.filter(~pl.col("dropped"))["seq"])
    # A packet's next hop begins where the last one ends.
    chained = traced.hops.sort("packet", "hop").with_columns(
        after=pl.col("offered_ns").shift(-1).over("packet"), there=pl.col("arrived_ns")
    )
    assert chained.filter(pl.col("after").is_not_null())["after"].equals(
        chained.filter(pl.col("after").is_not_null())["there"], check_names=False
    )


def test_every_format_holds_the_same_rows(marked, tmp_path):
    traced = marked
    for path in FORMATS["parquet"](traced, tmp_path, ()):
        assert pl.read_parquet(path).equals(traced.tables[path.stem])
    for path in FORMATS["csv"](traced, tmp_path, ()):
        read = pl.read_csv(path, schema=traced.tables[path.stem].schema)
        assert read.equals(traced.tables[path.stem])
    [log] = FORMATS["json-seq"](traced, tmp_path, ())
    empty, header, *records = log.read_text().split("\x1e")
    assert empty == ""
    assert json.loads(header)["qlog_format"] == "JSON-SEQ"
    assert len(records) == traced.senders.height
    assert all(record.endswith("\n") for record in records)
    last = json.loads(records[-1])
    assert last["data"]["congestion_window"] == traced.senders["window_packets"][-1]
    assert last["time"] == traced.senders["time_ns"][-1] / 1e6


def test_the_slices_of_a_flow_in_perfettos_format_cover_its_time(marked, tmp_path):
    from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace, TrackEvent

    traced = marked
    [path] = FORMATS["perfetto"](traced, tmp_path, ())
    packets = Trace.FromString(path.read_bytes()).packet
    names = {
        packet.track_descriptor.uuid: packet.track_descriptor.name
        for packet in packets
        if packet.HasField("track_descriptor")
    }
    [row] = traced.flows.iter_rows(named=True)
    for track in ("waits for", "where"):
        [uuid] = [uuid for uuid, name in names.items() if name == track]
        events = [
            packet for packet in packets if packet.HasField("track_event") and packet.track_event.track_uuid == uuid
        ]
        begins = [packet.timestamp for packet in events if packet.track_event.type == TrackEvent.TYPE_SLICE_BEGIN]
        ends = [packet.timestamp for packet in events if packet.track_event.type == TrackEvent.TYPE_SLICE_END]
        assert begins[0] == row["start_ns"]
        assert begins[1:] == ends[:-1]
        assert ends[-1] == row["start_ns"] + row["fct_ns"]
    assert f"port {traced.own_ports[0]}" in names.values()
    assert "congestion window (packets)" in names.values()


def test_what_cannot_be_traced_is_said_and_nothing_is_written(results, there, tmp_path):
    def refused(*arguments):
        done = narrows(*arguments)
        assert done.returncode == 2, done
        return done.stderr

    assert "no flow is named" in refused("trace", "small", "--scheme", "cubic")
    assert "there is no flow 99999" in refused("trace", "small", "--scheme", "cubic", "--flow", 99999)
    assert "say of which scheme" in refused("trace", "small", "--flow", 1)
    assert "did you mean cubic? give --scheme" in refused("trace", "small", "--flow", 1, "--scheme", "Cubic")
    assert "help: give --scheme with one of" in refused("trace", "small", "--flow", 1, "--scheme", "vegas")
    assert "there is no format" in refused("trace", "small", "--flow", 1, "--format", "pcap")
    assert "has no seed 9" in refused("trace", "small", "--flow", 1, "--scheme", "cubic", "--seed", 9)
    folder = tmp_path / "nothing"
    asked = ("trace", "small", "--scheme", "cubic", "--flow", 1, "--output", folder)
    assert "no packet of the flow comes to a port" in refused(*asked, "--port", "x->y")
    assert not list(folder.glob("*"))
    assert "flows are not slow by" in refused("explain", "small", "--by", "size")


def test_a_run_of_another_version_or_another_run_is_not_traced(results, there):
    member = results.entry.members[0]
    manifest = there / "runs" / member.stored / "1" / "manifest.json"
    text = manifest.read_text()
    read = json.loads(text)
    try:
        manifest.write_text(json.dumps(read | {"version": "0.0.0+0"}))
        with pytest.raises(BadInput, match="was made by version"):
            trace(results, [0], scheme=member.case, look=go_on)
        changed = read["plan"] | {"schedule": read["plan"]["schedule"] | {"warmup": 1}}
        manifest.write_text(json.dumps(read | {"plan": changed}))
        with pytest.raises(BadInput, match="was changed: it is not the one that was run"):
            trace(results, [0], scheme=member.case, look=go_on)
        manifest.write_text(json.dumps({key: value for key, value in read.items() if key != "plan"}))
        with pytest.raises(BadInput, match="does not say what its plan was"):
            trace(results, [0], scheme=member.case, look=go_on)
        tables = read["tables"] | {"flows": "0" * 32}
        manifest.write_text(json.dumps(read | {"tables": tables}))
        with pytest.raises(BadInput, match=r"is damaged|its flows differ"):
            trace(results, [0], scheme=member.case, look=go_on)
    finally:
        manifest.write_text(text)


def test_the_report_has_the_slowest_flows_where_their_runs_took_little(results, there, monkeypatch):
    from narrows.report import slowest

    found = slowest.of(results, ["gemini", "cubic"])
    assert found.left_out == ""
    for case in ("gemini", "cubic"):
        explained = explain(results, scheme=case, look=go_on)
        own = [row for row in found.rows if row.case == case]
        assert [(row.flow, row.why) for row in own] == [(flow, explained.why(flow)) for flow in explained.parts["flow"]]
    page = results.report().read_text()
    assert "<h2>Slowest flows</h2>" in page
    assert found.rows[0].ends in page
    monkeypatch.setattr(slowest, "MAX_CPU_NS", 0)
    found = slowest.of(results, ["gemini", "cubic"])
    assert found.rows == ()
    assert "not made again" in found.left_out
    assert found.example == 'narrows explain small --scheme "gemini"'
