//! Datagrams at a constant rate, against closed forms.

use crate::plans::{Dumbbell, flow, run};
use narrows_core::packet::Mtu;
use narrows_core::queue::aqm::threshold::Config as Threshold;
use narrows_core::transport::datagram::{self, SendRate};
use narrows_core::units::{Bytes, Rate, Span};
use narrows_plan::{Connections, ControllerChoice, Pattern, Plan, Traffic, Transport};
use narrows_results::{FlowRow, Results};

const MTUS: [u16; 4] = [576, 1_500, 4_096, 9_000];

fn datagrams(rate: SendRate) -> Transport {
    Transport::Datagram(datagram::Config { rate })
}

fn gbps(rate: u64) -> SendRate {
    SendRate::Fixed(Rate::from_gbps(rate))
}

/// The traffic as datagrams.
fn sent_as(traffic: &mut Traffic, rate: SendRate) {
    traffic.transport = datagrams(rate);
    traffic.controller = ControllerChoice::none();
    traffic.connections = Connections::FreshEstablished;
}

/// Flows of datagrams over a dumbbell.
fn plan(network: &Dumbbell, mtu: u16, rate: SendRate, pattern: Pattern) -> Plan {
    let mut plan = network.plan("newreno", false, Span::from_ms(20), pattern);
    plan.network.mtu = Mtu::new(mtu).expect("in range");
    plan.schedule.warmup = Span::ZERO;
    sent_as(&mut plan.traffic[0], rate);
    plan
}

fn sized(bytes: u64) -> Pattern {
    Pattern::List(vec![flow(Span::ZERO, 0, 1, Some(bytes))])
}

/// All that was sent of a flow arrived or was dropped.
fn conserved(flow: &FlowRow) -> bool {
    flow.received_bytes + flow.dropped_bytes.expect("known of a simulation") == flow.size_bytes
}

fn sent_packets(results: &Results, port: usize) -> u64 {
    results.ports[port].sent_packets
}

#[test]
fn a_flow_takes_its_wire_bytes_at_its_rate_and_the_path() {
    for mtu in MTUS {
        let network = Dumbbell { rate: Rate::from_gbps(10), ..Dumbbell::default() };
        let (payload, wire) = (u64::from(mtu) - 28, u64::from(mtu) + 38);
        // The last of 100 packets leaves after 99 intervals at 5 Gbps, and is serialised at 10 Gbps three times.
        let results = run(&plan(&network, mtu, gbps(5), sized(100 * payload)), 1);
        let row = &results.flows[0];
        let expected = Rate::from_gbps(5).time_for(Bytes::new(wire)) * 99
            + Rate::from_gbps(10).time_for(Bytes::new(wire)) * 3
            + Span::from_ms(5);
        assert_eq!((row.fct_ns, row.ideal_fct_ns), (Some(expected.as_ns()), expected.as_ns()), "{mtu}");
        assert_eq!(sent_packets(&results, network.bottleneck()), 100);
        assert_eq!(sent_packets(&results, network.bottleneck() + 1), 0, "nothing comes back");
        assert_eq!((row.received_bytes, row.dropped_packets, row.retransmitted_bytes), (100 * payload, Some(0), 0));
        let first = Rate::from_gbps(10).time_for(Bytes::new(wire)) * 3 + Span::from_ms(5);
        assert_eq!(row.first_byte_ns, Some(first.as_ns()));
    }
}

#[test]
fn goodput_at_line_rate_is_the_payloads_part_of_the_wire() {
    for mtu in MTUS {
        let network = Dumbbell { rtt: Span::ZERO, ..Dumbbell::default() };
        let long = Pattern::List(vec![flow(Span::ZERO, 0, 1, None)]);
        let results = run(&plan(&network, mtu, gbps(1), long), 1);
        let expected = 20e-3 * 1e9 / 8.0 * f64::from(mtu - 28) / f64::from(mtu + 38);
        let received = results.flows[0].delivered_after_warmup_bytes as f64;
        assert!((received - expected).abs() <= 2.0 * f64::from(mtu), "{mtu}: {received} {expected}");
        assert_eq!(results.flows[0].dropped_packets, Some(0));
        assert!(results.ports[network.bottleneck()].utilisation > 0.995);
    }
}

#[test]
fn a_share_is_of_the_hosts_own_link() {
    let network = Dumbbell { rate: Rate::from_gbps(10), access: Rate::from_gbps(2), ..Dumbbell::default() };
    let of = |rate| run(&plan(&network, 1_500, rate, sized(1_000_000)), 1);
    assert_eq!(of(SendRate::Share(1 << 15)), of(gbps(1)));
}

#[test]
fn what_a_full_port_drops_stays_lost_and_nothing_backs_off() {
    let network = Dumbbell { limit: 10, ..Dumbbell::default() };
    let results = run(&plan(&network, 1_500, gbps(10), sized(1_472_000)), 1);
    let row = &results.flows[0];
    assert_eq!(row.fct_ns, None);
    assert!(conserved(row), "{row:?}");
    // 1,000 packets come within 1.23 ms, ten times as fast as the bottleneck serves them.
    let dropped = row.dropped_packets.expect("known");
    assert!((885..=895).contains(&dropped), "{dropped}");
    assert_eq!(row.dropped_bytes, Some(dropped * 1_472));
    assert_eq!((row.timeouts, row.retransmitted_bytes, row.marked_bytes), (0, 0, 0));
    // The run does not wait for what will never come.
    assert_eq!(results.ended_ns, 20_000_000);
}

#[test]
fn the_run_goes_on_until_the_last_datagram_has_arrived() {
    let network = Dumbbell { rtt: Span::from_ms(100), ..Dumbbell::default() };
    let late = Pattern::List(vec![flow(Span::from_ms(19), 0, 1, Some(1_472)), flow(Span::ZERO, 0, 1, None)]);
    let results = run(&plan(&network, 1_500, SendRate::Fixed(Rate::from_mbps(100)), late), 1);
    assert!(results.flows[1].fct_ns > Some(50_000_000));
    // Of the endless one all that was sent by the end of the arrivals comes too: 20 ms at 100 Mbps.
    let endless = &results.flows[0];
    assert_eq!(endless.received_bytes, 163 * 1_472);
    assert_eq!(results.ended_ns, 70_000_000);
}

#[test]
fn datagrams_are_not_marked_and_keep_their_rate_beside_tcp() {
    let network = Dumbbell { pairs: 2, ..Dumbbell::default() };
    let flows = |from: u32, to| Pattern::List(vec![flow(Span::ZERO, from, to, None)]);
    let mut plan = network.plan("dctcp", true, Span::from_ms(100), flows(0, 2));
    let bottleneck = network.bottleneck();
    plan.network.links[bottleneck].aqm = Some(Threshold::at(20));
    let mut other = Traffic { name: "other".into(), pattern: flows(1, 3), ..plan.traffic[0].clone() };
    sent_as(&mut other, SendRate::Fixed(Rate::from_mbps(500)));
    plan.traffic.push(other);
    let results = run(&plan, 1);
    let (tcp, datagrams) = (&results.flows[0], &results.flows[1]);
    assert!(tcp.marked_bytes > 0 && tcp.dropped_packets == Some(0), "{tcp:?}");
    assert!(datagrams.marked_bytes == 0 && datagrams.dropped_packets == Some(0), "{datagrams:?}");
    let rate = datagrams.delivered_after_warmup_bytes as f64 * 8.0 / 75e-3 * 1_538.0 / 1_472.0;
    assert!((rate / 0.5e9 - 1.0).abs() < 1e-3, "{rate}");
}

#[test]
fn a_socket_that_blocks_sends_no_more_than_its_host_can() {
    // Four flows at half the link each: every one gets a quarter, and the port holds four send buffers.
    let network =
        Dumbbell { access: Rate::from_gbps(1), rate: Rate::from_gbps(10), rtt: Span::ZERO, ..Dumbbell::default() };
    let long = Pattern::List((0..4).map(|_| flow(Span::ZERO, 0, 1, None)).collect());
    let results = run(&plan(&network, 1_500, SendRate::Share(1 << 15), long), 1);
    let own = &results.ports[0];
    assert!(own.queue_max_bytes <= 4 * (212_992 + 1_500), "{own:?}");
    assert!(own.queue_max_bytes > 3 * 212_992 && own.utilisation > 0.99, "{own:?}");
    assert_eq!(results.flows.iter().map(|flow| flow.dropped_packets).max(), Some(Some(0)));
}

#[test]
fn as_many_packets_cross_as_the_mtu_makes_of_a_flow() {
    for mtu in MTUS {
        let network = Dumbbell { rate: Rate::from_gbps(10), limit: 5_000, ..Dumbbell::default() };
        let results = run(&plan(&network, mtu, gbps(5), sized(1_000_000)), 1);
        assert_eq!(sent_packets(&results, network.bottleneck()), 1_000_000_u64.div_ceil(u64::from(mtu) - 28));
    }
}
