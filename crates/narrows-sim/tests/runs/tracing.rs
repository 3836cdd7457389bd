//! Traced runs: the run is the same, and where the time of its flows went adds up.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use narrows_core::packet::Mtu;
use narrows_core::tcp::profile::{LossDetection, Profile};
use narrows_core::transport::datagram::{self, SendRate};
use narrows_core::transport::rdma;
use narrows_core::units::{Bytes, Rate, Span, Time};
use narrows_plan::*;
use narrows_results::trace::{TimeRow, Trace};
use narrows_results::{FlowRow, Results};
use narrows_sim::{Selection, Wanted, run_traced};

use crate::partition::{on_one_core, scenario};
use crate::plans::{Dumbbell, flow, run, smooth};
use crate::truths::hpcc::write_telemetry;

fn traced(plan: &Plan, seed: u64, selection: Selection) -> Results {
    run_traced(plan, seed, selection, |_| ControlFlow::Continue(())).expect("a run").expect("not cancelled").results
}

/// The first plan of an experiment.
fn plan_of(text: &str) -> Plan {
    let loaded = narrows_scenario::load_str(text, &Default::default(), &Default::default());
    loaded.unwrap_or_else(|error| panic!("{}", error.render())).plans.remove(0)
}

/// A traced run in which the time of each flow is explained by a known reason.
fn explained(plan: &Plan, seed: u64) -> Results {
    let results = traced(plan, seed, Selection::All);
    for rows in by_flow(&results.trace).values() {
        assert!(rows.iter().all(|row| row.reason != "unknown"), "seed {seed}: {rows:?}");
    }
    results
}

fn by_flow(trace: &Trace) -> BTreeMap<u32, Vec<TimeRow>> {
    let mut flows: BTreeMap<u32, Vec<TimeRow>> = BTreeMap::new();
    trace.times.iter().for_each(|row| flows.entry(row.flow).or_default().push(*row));
    flows
}

/// Nanoseconds of the stretches that are such.
fn sum(rows: &[TimeRow], is_such: impl Fn(&TimeRow) -> bool) -> u64 {
    rows.iter().filter(|row| is_such(row)).map(|row| row.until_ns - row.from_ns).sum()
}

/// Each rounding of a stretch to nanoseconds, and of the ideal's hops.
const ROUNDINGS_NS: u64 = 12;

/// Whether nothing but distance and rates determines how long an empty network takes.
fn is_plain(graph: &Graph) -> bool {
    let plain = |link: &Link| {
        link.events.is_empty() && link.functions.is_empty() && link.loss == 0 && link.jitter == Span::ZERO
    };
    graph.links.iter().all(|link| plain(link) && link.bridge.is_none())
}

#[test]
fn a_traced_run_is_the_run_and_the_time_of_each_flow_is_explained_to_the_nanosecond() {
    let cases = std::env::var("CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(40);
    let (mut explained, mut handshakes, mut alone, mut carried) = (0, 0, 0, 0);
    for seed in 0..cases {
        let mut plan = scenario(seed);
        if seed % 3 == 0 && plan.network.links.iter().all(|link| link.bridge.is_none()) {
            plan.traffic[0].controller = ControllerChoice::new("hpcc", false);
            write_telemetry(&mut plan);
            carried += 1;
        }
        let mut found = traced(&plan, seed, Selection::All);
        let trace = std::mem::take(&mut found.trace);
        assert!(found == on_one_core(&plan, seed), "scenario {seed}: another run");
        let times = by_flow(&trace);
        let has_limiters = plan.traffic.iter().any(|traffic| traffic.profile.nic_limiter.is_some());
        for flow in &found.flows {
            let rows = times.get(&flow.flow).map_or(&[][..], Vec::as_slice);
            let Some(fct_ns) = flow.fct_ns else {
                assert!(rows.is_empty(), "scenario {seed}: {flow:?}");
                continue;
            };
            let until = rows.iter().fold(0, |until, row| {
                assert_eq!(row.from_ns, until, "scenario {seed}: {flow:?}: {rows:#?}");
                assert_ne!(row.reason, "unknown", "scenario {seed}: {flow:?}: {rows:#?}");
                row.until_ns
            });
            assert_eq!(until, fct_ns, "scenario {seed}: {flow:?}");
            explained += 1;
            // What the run itself has measured of the same flow.
            let loses_nothing = flow.syn_retransmits == Some(0) && flow.dropped_packets == Some(0);
            if let Some(handshake_ns) = flow.handshake_ns.filter(|_| loses_nothing && !has_limiters) {
                let of_trace = sum(rows, |row| row.reason == "handshake");
                assert_eq!(of_trace, handshake_ns, "scenario {seed}: {flow:?}: {rows:#?}");
                handshakes += 1;
            }
            alone += u64::from(check_single(&plan, flow, rows));
        }
    }
    assert!(explained > 1_000 && handshakes > 100 && alone > 20, "{explained} {handshakes} {alone}");
    assert!(carried >= cases / 10, "{carried} with telemetry");
}

/// A flow of one packet that needs no handshake and asks for nothing spends what the empty network would take on wires,
/// whatever else there was. False if this is no such flow.
fn check_single(plan: &Plan, flow: &FlowRow, rows: &[TimeRow]) -> bool {
    let traffic = &plan.traffic[flow.traffic as usize];
    let fits = flow.size_bytes <= u64::from(traffic.transport.payload(plan.network.mtu));
    let goes_at_once = traffic.connections == Connections::FreshEstablished && flow.first_byte_ns == flow.fct_ns;
    let is_asked_for = rows.iter().any(|row| row.reason == "request");
    let lost = flow.dropped_packets != Some(0) || flow.retransmitted_bytes > 0;
    if !fits || !goes_at_once || is_asked_for || lost || !is_plain(&plan.network) {
        return false;
    }
    let wire = sum(rows, |row| row.place == "wire");
    assert!(wire.abs_diff(flow.ideal_fct_ns) <= ROUNDINGS_NS, "{flow:?}: {rows:#?}");
    true
}

/// One flow over a dumbbell whose hosts do as little as closed forms assume, traced alone.
pub fn alone(mut plan: Plan, change: impl FnOnce(&mut Plan)) -> (FlowRow, Vec<TimeRow>, Trace) {
    change(&mut plan);
    let numbers = run(&plan, 1);
    let flow = &numbers.flows[0];
    let wanted = Wanted {
        traffic: flow.traffic,
        start_ns: flow.start_ns,
        source: flow.source,
        destination: flow.destination,
        earlier: 0,
    };
    let mut found = traced(&plan, 1, Selection::Flows(vec![wanted]));
    let trace = std::mem::take(&mut found.trace);
    assert!(found == numbers);
    (found.flows[0].clone(), trace.times.clone(), trace)
}

/// How long a packet of so many IP bytes takes to be sent over the three links of the dumbbell.
fn sending(dumbbell: &Dumbbell, ip_bytes: u64) -> Span {
    let wire = Bytes::new((ip_bytes + 38).max(84));
    dumbbell.access.time_for(wire) * 2 + dumbbell.rate.time_for(wire)
}

#[test]
fn on_an_empty_network_a_packet_costs_a_handshake_and_its_way() {
    let dumbbell = Dumbbell::default();
    let plan = dumbbell.plan("newreno", false, Span::from_ms(500), one_flow(1_000));
    let (flow, rows, _) = alone(plan, |_| ());
    let syn = sending(&dumbbell, 60);
    let handshake = dumbbell.rtt + syn * 2;
    let delivery = dumbbell.rtt.div(2) + sending(&dumbbell, 1_052);
    assert_eq!(flow.fct_ns, Some((handshake + delivery).as_ns()));
    assert_eq!(sum(&rows, |row| row.reason == "handshake"), handshake.as_ns());
    assert_eq!(sum(&rows, |row| row.place != "wire"), 0, "{rows:#?}");
    assert_eq!(sum(&rows, |row| row.reason == "delivery"), flow.fct_ns.expect("it finished") - handshake.as_ns());
}

fn one_flow(size: u64) -> Pattern {
    Pattern::List(vec![flow(Span::from_ms(1), 0, 1, Some(size))])
}

#[test]
fn slow_start_waits_for_the_window_one_rtt_after_the_other() {
    let dumbbell = Dumbbell::default();
    // Windows of 10, 20 and 40 packets, each a third of what the path holds or less: three RTTs and the last way.
    let mss = u64::from(Mtu::ETHERNET.segment_payload());
    let (flow, rows, _) =
        alone(dumbbell.plan("newreno", false, Span::from_ms(500), one_flow((10 + 20 + 5) * mss)), |_| ());
    let window = sum(&rows, |row| row.reason == "window" && row.place == "wire");
    let round_trip = dumbbell.rtt + sending(&dumbbell, 1_500) + sending(&dumbbell, 52);
    assert_eq!(window / 1_000, (round_trip * 2).as_ns() / 1_000, "{flow:?} {rows:#?}");
}

#[test]
fn datagrams_at_a_rate_wait_for_their_pacing() {
    let dumbbell = Dumbbell::default();
    let rate = Rate::from_mbps(100);
    let packets = 40;
    let payload = u64::from(Mtu::ETHERNET.datagram_payload());
    let (flow, rows, _) =
        alone(dumbbell.plan("newreno", false, Span::from_ms(500), one_flow(packets * payload)), |plan| {
            plan.traffic[0].transport = Transport::Datagram(datagram::Config { rate: SendRate::Fixed(rate) });
            plan.traffic[0].controller = ControllerChoice::none();
            plan.traffic[0].connections = Connections::FreshEstablished;
        });
    let pacing = sum(&rows, |row| row.reason == "pacing");
    assert_eq!(pacing, (rate.time_for(Bytes::new(1_538)) * (packets - 1)).as_ns(), "{flow:?} {rows:#?}");
    let way = dumbbell.rtt.div(2) + sending(&dumbbell, 1_500);
    assert_eq!(sum(&rows, |row| row.reason == "delivery"), way.as_ns());
}

/// What an RDMA receiver discards has arrived, and not been delivered: the packet that completes a message is the last that came.
#[test]
fn what_go_back_n_repeats_is_no_delivery() {
    let dumbbell =
        Dumbbell { profile: Profile { near_source: None, ..smooth(Profile::LINUX_6) }, ..Dumbbell::default() };
    let payload = u64::from(Mtu::ETHERNET.rdma_payload());
    let (mut lossy, way) = (0, dumbbell.rtt.div(2) + sending(&dumbbell, 1_500));
    for seed in 1..60 {
        let mut plan = dumbbell.plan("newreno", false, Span::from_secs(1), one_flow(40 * payload));
        let config = rdma::Config {
            recovery: rdma::Recovery::GoBackN,
            timeout: Span::from_ms(100),
            ack_every: 1,
            cnp_interval: None,
        };
        plan.traffic[0].transport = Transport::Rdma(config);
        plan.traffic[0].connections = Connections::FreshEstablished;
        plan.network.links[dumbbell.bottleneck()].loss = 1 << 27;
        let found = traced(&plan, seed, Selection::All);
        let (flow, rows) = (&found.flows[0], &by_flow(&found.trace)[&0]);
        assert_eq!(sum(rows, |_| true), flow.fct_ns.expect("it finishes"), "{flow:?}");
        assert_eq!(sum(rows, |row| row.reason == "unknown"), 0, "{rows:#?}");
        if flow.timeouts == 0 && flow.retransmitted_bytes > payload {
            lossy += 1;
            let delivery = sum(rows, |row| row.reason == "delivery");
            // It may wait behind others that are repeated with it.
            let most = way.as_ns() + 40 * sending(&dumbbell, 1_500).as_ns();
            assert!((way.as_ns()..most).contains(&delivery), "{seed}: {delivery} {way} {flow:?} {rows:#?}");
            assert!(sum(rows, |row| row.reason == "retransmission") > 0, "{rows:#?}");
            assert_eq!(sum(rows, |row| row.reason == "probe-timeout"), 0, "{rows:#?}");
        }
    }
    assert!(lossy > 10, "{lossy}");
}

/// The last packet of one message, late, and the first of the next reach the receiver at the same moment: found by random search.
#[test]
fn a_message_is_not_whole_by_what_lies_behind_it() {
    let text = r#"
[topology.leaf-spine]
leaves = 2
spines = 1
hosts-per-leaf = 4
host = { profile = "freebsd-cee" }
[topology.leaf-spine.fabric]
rate = "100Mbps"
delay = "5us"
limit = "100pkt"
scheduler = { drr = { weights = [1, 1] } }
reorder = { late = { share = 0.3, delay = "50us" } }
[[traffic]]
name = "one"
from = "*1"
to = "*2"
long = { flows = 1, size = "20KB" }
[[traffic]]
name = "other"
from = "*1"
to = "*2"
long = { flows = 1, size = "20KB" }
[[traffic]]
name = "collective"
program = { generate = { cg = { ranks = 4, points = 1000, iterations = 1, compute = "1us" } }, sigma = 0 }
transport = { rdma = { recovery = "go-back-n", timeout = "67ms", ack-every = 1, cnp-interval = "50us" } }
cc = "dcqcn"
[[arm]]
name = "a"
cc = "newreno"
[run]
end = "20ms"
drain = "1s"
"#;
    let plan = plan_of(text);
    let flows: usize = (0..20)
        .chain([596_259_892_951])
        .map(|seed| {
            let results = explained(&plan, seed);
            results.flows.iter().filter(|flow| flow.fct_ns.is_some()).count()
        })
        .sum();
    assert!(flows > 1_000, "{flows}");
}

/// An edge router sends copies of a packet that waits behind the pair, and the wire loses one of them: found by random search.
#[test]
fn a_copy_that_an_edge_router_sends_in_vain_is_not_the_packet() {
    let text = r#"
[topology.two-datacenters]
servers = 3
racks = 1
fabric = { rate = "100Mbps", delay = "5us", limit = "100pkt" }
[topology.two-datacenters.wan]
rate = "1Gbps"
delay = "1ms"
limit = "100pkt"
loss = { gilbert-elliott = { p = 0.01, r = 0.3 } }
bridge = { dcib = { share = 1.0, marks = "clear" } }
[topology.two-datacenters.host]
profile = "linux-4.9"
stack-delay = { tx = "5us", rx = "5us", jitter = "12us" }
[[traffic]]
name = "t1"
between = "all"
arrivals = { poisson = { load = 0.3, of = "fabric" } }
size = { cdf = "cache" }
cc = "ledbat-plus-plus"
[[traffic]]
name = "t2"
between = "all"
arrivals = { on-off = { on = "2ms", off = "5ms", gap = "300us", sigma = 1 } }
size = { fixed = "300KB" }
[[traffic]]
name = "t3"
program = { generate = { all-to-all = { ranks = 3, bytes = "50KB" } }, sigma = 0 }
transport = { rdma = { recovery = "go-back-n", timeout = "67ms", ack-every = 1, cnp-interval = "50us" } }
cc = "dcqcn"
[[arm]]
name = "a"
cc = "newreno"
[run]
end = "20ms"
drain = "1s"
"#;
    let plan = plan_of(text);
    let mut copies = 0;
    for seed in [1, 2, 3, 429_598_765_649] {
        let results = explained(&plan, seed);
        // What begins behind the sender's port.
        let begun: BTreeMap<u32, u32> = results.trace.hops.iter().rev().map(|row| (row.packet, row.hop)).collect();
        copies += begun.values().filter(|hop| **hop > 0).count();
    }
    assert!(copies > 10, "{copies}");
}

/// A pacing controller's repairs leave by the pacing timer, which is no probe.
#[test]
fn what_repairs_wait_for_is_their_pacing_and_no_probe() {
    let profile = Profile {
        tail_loss_probe: false,
        early_retransmit: false,
        loss_detection: LossDetection::DuplicateAcks,
        ..smooth(Profile::LINUX_4_9)
    };
    let dumbbell = Dumbbell { profile, ..Dumbbell::default() };
    let size = 300 * u64::from(Mtu::ETHERNET.segment_payload());
    let (mut repaired, mut paced) = (0, 0);
    for seed in 1..60 {
        let mut plan = dumbbell.plan("bbr", false, Span::from_secs(2), one_flow(size));
        plan.network.links[dumbbell.bottleneck()].loss = 1 << 25;
        let found = traced(&plan, seed, Selection::All);
        let (flow, rows) = (&found.flows[0], &by_flow(&found.trace)[&0]);
        if flow.timeouts > 0 || sum(rows, |row| row.reason == "retransmission") == 0 {
            continue;
        }
        repaired += 1;
        assert_eq!(sum(rows, |row| row.reason == "probe-timeout"), 0, "{seed}: {rows:#?}");
        assert_eq!(sum(rows, |_| true), flow.fct_ns.expect("it finishes"), "{flow:?}");
        // A repair that left by the timer: what it waited for since the packet before it follows what it waited for as lost.
        let waits = rows.windows(2).filter(|two| two[0].reason == "retransmission" && two[1].reason == "pacing");
        paced += waits.count();
    }
    assert!(repaired > 10, "{repaired}");
    assert!(paced > 5, "{paced} of {repaired}");
}

#[test]
fn a_packet_lost_in_an_outage_costs_the_timeout_that_the_run_counts() {
    let dumbbell = Dumbbell::default();
    let profile = Profile { tail_loss_probe: false, ..smooth(Profile::LINUX_4_9) };
    let dumbbell = Dumbbell { profile, ..dumbbell };
    let (flow, rows, trace) = alone(dumbbell.plan("newreno", false, Span::from_secs(3), one_flow(1_000)), |plan| {
        plan.traffic[0].connections = Connections::FreshEstablished;
        let down = [(Span::ZERO, Change::Down), (Span::from_ms(20), Change::Up)];
        let at = |(at, change)| Event { at: Time::ZERO + at, change };
        plan.network.links[dumbbell.bottleneck()].events = down.map(at).to_vec();
    });
    assert_eq!(flow.timeouts, 1);
    assert_eq!(Some(sum(&rows, |row| row.reason == "timeout")), flow.rto_wait_ns, "{rows:#?}");
    let lost: Vec<_> = trace.hops.iter().filter(|row| row.dropped).collect();
    assert_eq!(lost.len(), 1, "{lost:#?}");
    assert_eq!(lost[0].port as usize, dumbbell.bottleneck());
    assert!(trace.hops.iter().any(|row| row.retransmission && row.seq == lost[0].seq && row.packet != lost[0].packet));
}

#[test]
fn a_packet_behind_others_waits_for_each_of_them() {
    let dumbbell = Dumbbell { pairs: 2, ..Dumbbell::default() };
    // Ten packets of the first pair leave their hosts at once; the second's single one comes behind them.
    let mss = u64::from(Mtu::ETHERNET.segment_payload());
    let flows = vec![flow(Span::from_ms(1), 1, 3, Some(mss)), flow(Span::from_us(980), 0, 2, Some(10 * mss))];
    let mut plan = dumbbell.plan("newreno", false, Span::from_ms(500), Pattern::List(flows));
    plan.traffic[0].connections = Connections::FreshEstablished;
    let found = traced(&plan, 1, Selection::All);
    let late = found.flows.iter().find(|flow| flow.source == 1).expect("it ran");
    let rows = &by_flow(&found.trace)[&late.flow];
    let queue = sum(rows, |row| row.place == "queue" && row.link == u32::try_from(dumbbell.bottleneck()).ok());
    assert_eq!(queue, late.fct_ns.expect("it finished") - late.ideal_fct_ns);
    // It came 20 µs after the first began to come, all of which take ten times 12.304 µs at the bottleneck.
    let wire = Bytes::new(1_538);
    let all = dumbbell.rate.time_for(wire) * 10;
    assert!(queue.abs_diff(all.as_ns() - 20_000) <= 1, "{queue} {}", all.as_ns());
}

#[test]
fn a_trace_of_a_reused_connection_ends_with_its_flows() {
    let dumbbell = Dumbbell::default();
    let starts = (0..20).map(|number| flow(Span::from_ms(1 + 20 * number), 0, 1, Some(30_000)));
    let mut plan = dumbbell.plan("newreno", false, Span::from_secs(1), Pattern::List(starts.collect()));
    plan.traffic[0].connections = Connections::Persistent { pool: 1 };
    let numbers = run(&plan, 1);
    let chosen = &numbers.flows[3];
    let wanted = Wanted {
        traffic: chosen.traffic,
        start_ns: chosen.start_ns,
        source: chosen.source,
        destination: chosen.destination,
        earlier: 0,
    };
    let found = traced(&plan, 1, Selection::Flows(vec![wanted]));
    let data: Vec<_> = found.trace.hops.iter().filter(|row| row.payload_bytes > 0 && row.hop == 0).collect();
    assert_eq!(data.iter().map(|row| u64::from(row.payload_bytes)).sum::<u64>(), 30_000);
    assert!(data.iter().all(|row| row.flow == 3), "{data:#?}");
    assert_eq!(sum(&found.trace.times, |_| true), chosen.fct_ns.expect("it finished"));
    assert!(found.trace.times.iter().all(|row| row.reason != "unknown"), "{:#?}", found.trace.times);
}
