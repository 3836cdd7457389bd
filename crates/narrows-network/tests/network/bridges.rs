//! Bridges as the network has them: the driver decides at both ends, what is urgent goes ahead; and wires that lose some packets only.

use crate::support::{Packet, connect, graph};
use narrows_core::edge::dcib::{Config, Share};
use narrows_core::queue::SchedulerConfig;
use narrows_core::queue::scheduler::drr;
use narrows_core::routing::rehash;
use narrows_core::units::{Packets, Rate, Span, Time};
use narrows_network::{Event, GraphError, Network, Offered, Partition};
use narrows_plan::{Graph, LossOf, RoutingConfig};

const GBPS: Rate = Rate::from_gbps(1);
const DELAY: Span = Span::from_ms(1);

/// Hosts 0 and 1, each on a switch of its own, and a bridge between the switches. Its links are 4 and 5.
fn pair() -> Graph {
    let mut graph = graph(2, 2);
    graph.nodes[1].site = 1;
    graph.nodes[3].site = 1;
    connect(&mut graph, 0, 2, GBPS, Span::ZERO);
    connect(&mut graph, 1, 3, GBPS, Span::ZERO);
    connect(&mut graph, 2, 3, GBPS, DELAY);
    for link in &mut graph.links[4..] {
        link.bridge = Some(Config::new(GBPS, Share::TENTH, DELAY + DELAY));
    }
    graph
}

const THERE: u32 = 4;

fn packet(id: u32) -> Packet {
    Packet { id, ..Packet::to(1, 1_462) }
}

#[test]
fn the_driver_is_asked_at_both_ends() {
    let mut network = Network::new(&pair(), 1).unwrap();
    let own = network.host_link(0);
    assert_eq!(network.path(0, 1, 0), [own, THERE, 3]);
    network.offer(Time::ZERO, own, packet(7));
    let (entered, event) = network.next(Time::NEVER).unwrap();
    assert_eq!(event, Event::Entering { link: THERE, packet: packet(7) });
    assert_eq!(network.next(Time::NEVER), None, "nothing goes over it by itself");
    // 1500 bytes with framing take 12 us.
    network.cross(entered, THERE, packet(8), false);
    let (crossed, event) = network.next(Time::NEVER).unwrap();
    assert_eq!(event, Event::Crossed { link: THERE, packet: packet(8) });
    assert_eq!(crossed.since(entered), Span::from_us(12) + DELAY);
    assert_eq!(network.go_on(crossed, THERE, packet(9)), None);
    let (_, event) = network.next(Time::NEVER).unwrap();
    assert_eq!(event, Event::Arrival { host: 1, packet: packet(9) });
}

#[test]
fn what_is_urgent_waits_for_the_packet_in_service_only_and_the_others_for_it() {
    let mut network = Network::new(&pair(), 1).unwrap();
    for id in 0..5 {
        network.cross(Time::ZERO, THERE, packet(id), false);
    }
    let offered = network.cross(Time::ZERO, THERE, packet(99), true);
    assert_eq!(offered, Offered::Accepted { departure: Time::ZERO + Span::from_us(24), marked: false });
    let late = network.cross(Time::ZERO, THERE, packet(5), false);
    assert_eq!(late, Offered::Accepted { departure: Time::ZERO + Span::from_us(7 * 12), marked: false });
    let order: Vec<u32> = std::iter::from_fn(|| network.next(Time::NEVER))
        .map(|(_, event)| match event {
            Event::Crossed { link: THERE, packet } => packet.id,
            other => panic!("{other:?}"),
        })
        .collect();
    // What waited before keeps its departure: packet 1 and the urgent one leave at once, and the last pays for it.
    assert_eq!(order, [0, 1, 99, 2, 3, 4, 5]);
}

#[test]
fn what_has_crossed_may_be_refused_beyond() {
    let mut graph = pair();
    graph.links[3].limit = narrows_core::queue::Limit::Packets(Packets::new(1));
    let mut network = Network::new(&graph, 1).unwrap();
    assert_eq!(network.go_on(Time::ZERO, THERE, packet(1)), None);
    assert_eq!(network.go_on(Time::ZERO, THERE, packet(2)), Some(Event::Dropped { packet: packet(2) }));
}

#[test]
fn a_bridge_joins_routers_and_is_not_cut() {
    let mut to_host = pair();
    to_host.links[0].bridge = to_host.links[4].bridge;
    assert_eq!(Network::<Packet>::new(&to_host, 1).unwrap_err(), GraphError::HostBridges(0));
    let mut classes = pair();
    classes.links[1].scheduler = Some(SchedulerConfig::Drr(drr::Config { weights: vec![1, 1] }));
    Network::<Packet>::new(&classes, 1).unwrap();
    classes.links[4].scheduler = Some(SchedulerConfig::Drr(drr::Config { weights: vec![1, 1] }));
    assert_eq!(Network::<Packet>::new(&classes, 1).unwrap_err(), GraphError::ServedBridge(4));
    assert_eq!(Partition::by_site(&pair()).count(), 1);
    let mut plain = pair();
    plain.links.iter_mut().for_each(|link| link.bridge = None);
    assert_eq!(Partition::by_site(&plain).count(), 2);
}

/// Of a thousand full packets and a thousand acknowledgements, ECN-capable or not, how many of each a wire loses.
fn lost(loss_of: LossOf, capable: bool) -> (usize, usize) {
    let mut graph = pair();
    for link in &mut graph.links[4..] {
        (link.bridge, link.loss, link.loss_of) = (None, 1 << 30, loss_of);
    }
    let mut network = Network::new(&graph, 1).unwrap();
    let own = network.host_link(0);
    for id in 0..2_000 {
        let size = if id % 2 == 0 { 1_462 } else { 52 };
        network.offer(Time::ZERO, own, Packet { id, size, capable, ..packet(0) });
    }
    let mut lost = (0, 0);
    while let Some((_, event)) = network.next(Time::NEVER) {
        match event {
            Event::Dropped { packet } if packet.size == 52 => lost.1 += 1,
            Event::Dropped { .. } => lost.0 += 1,
            _ => {}
        }
    }
    lost
}

#[test]
fn a_wire_loses_of_what_it_may() {
    let quarter = 200..300;
    for capable in [true, false] {
        let (data, acks) = lost(LossOf::All, capable);
        assert!(quarter.contains(&data) && quarter.contains(&acks));
        let (data, acks) = lost(LossOf::Data, capable);
        assert!(quarter.contains(&data) && acks == 0);
    }
    let (data, acks) = lost(LossOf::Unprotected, false);
    assert!(quarter.contains(&data) && acks == 0);
    assert_eq!(lost(LossOf::Unprotected, true), (0, 0));
}

#[test]
fn a_bridge_has_no_place_for_telemetry() {
    let mut graph = pair();
    assert!(Network::<Packet>::new(&graph, 1).is_ok());
    graph.links[1].telemetry = true;
    assert!(matches!(Network::<Packet>::new(&graph, 1), Err(GraphError::BridgedTelemetry(4))));
}

#[test]
fn a_bridge_knows_no_flow_whose_label_changes() {
    let config = rehash::Config { threshold: 128, rounds: 12, idle_rounds: 3, suspend: Span::ZERO };
    let graph = Graph { routing: Some(RoutingConfig::Rehash(config)), ..pair() };
    assert!(matches!(Network::<Packet>::new(&graph, 1), Err(GraphError::BridgedLabels(4))));
}
