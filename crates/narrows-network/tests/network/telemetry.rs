//! What ports write into packets, by hand.

use crate::support::{Packet, connect, graph};
use narrows_core::queue::{DropReason, Limit};
use narrows_core::telemetry::Hop;
use narrows_core::units::{Bytes, Packets, Rate, Span, Time};
use narrows_network::{Event, Network};

const GBPS: Rate = Rate::from_gbps(1);
const SLOW: Rate = Rate::from_mbps(100);
const DELAY: Span = Span::from_us(3);
/// 1500 bytes at 1 Gbit/s, and at a tenth of that.
const FRAME: Span = Span::from_ns(12_304);
const SLOW_FRAME: Span = Span::from_ns(123_040);

/// Hosts 0 and 1 with two switches between them; the second one's port towards host 1 has a tenth of the rate. Both write telemetry.
fn line() -> Network<Packet> {
    let mut graph = graph(2, 2);
    connect(&mut graph, 0, 2, GBPS, DELAY);
    let first = connect(&mut graph, 2, 3, GBPS, DELAY);
    let second = connect(&mut graph, 3, 1, SLOW, DELAY);
    for port in [first, second] {
        graph.links[port].telemetry = true;
    }
    graph.links[second].limit = Limit::Packets(Packets::new(4));
    Network::new(&graph, 0).expect("a network")
}

fn offer(network: &mut Network<Packet>, id: u32, size: u32) {
    network.offer(Time::ZERO, network.host_link(0), Packet { id, ..Packet::to(1, size) });
}

fn hop(at: Time, queue: u64, sent: u64, rate: Rate) -> Hop {
    Hop { at, queue: Bytes::new(queue), sent: Bytes::new(sent), rate }
}

#[test]
fn each_port_writes_when_a_packet_begins_to_leave_and_what_waits_then() {
    let mut network = line();
    // Two packets of data, an acknowledgement of 52 bytes, which takes 90 on the wire, and data again.
    for (id, size) in [(0, 1_500), (1, 1_500), (2, 52), (3, 1_500)] {
        offer(&mut network, id, size);
    }
    let mut told = vec![];
    while let Some((_, event)) = network.next(Time::NEVER) {
        let Event::Arrival { packet, .. } = event else { panic!("{event:?}") };
        let Some(place) = packet.telemetry else {
            told.push((packet.id, vec![]));
            continue;
        };
        let (kept, hops) = network.take_telemetry(place);
        assert_eq!(kept, packet.id, "what it held before");
        told.push((packet.id, hops));
    }
    let short = GBPS.time_for(Bytes::new(90));
    let at_first = Time::ZERO + FRAME + DELAY;
    let at_second = at_first + FRAME + DELAY;
    let expected = vec![
        (0, vec![hop(at_first, 0, 0, GBPS), hop(at_second, 0, 0, SLOW)]),
        // The others have come meanwhile.
        (1, vec![hop(at_first + FRAME, 0, 1_538, GBPS), hop(at_second + SLOW_FRAME, 1_552, 1_538, SLOW)]),
        (2, vec![]),
        (
            3,
            vec![
                hop(at_first + FRAME * 2 + short, 0, 2 * 1_538 + 90, GBPS),
                hop(at_second + SLOW_FRAME * 2 + short * 10, 0, 2 * 1_538 + 90, SLOW),
            ],
        ),
    ];
    assert_eq!(told, expected);
    assert_eq!(network.telemetry_records(), 0);
}

/// What is dropped keeps its telemetry until the driver takes it out.
#[test]
fn telemetry_of_a_dropped_packet_is_there_to_be_taken() {
    let mut network = line();
    (0..8).for_each(|id| offer(&mut network, id, 1_500));
    let (mut arrived, mut dropped) = (0, 0);
    while let Some((_, event)) = network.next(Time::NEVER) {
        let (Event::Arrival { packet, .. } | Event::Dropped { packet }) = event else { panic!("{event:?}") };
        let hops = network.take_telemetry(packet.telemetry.expect("it left a port that writes")).1;
        match hops.len() {
            1 => dropped += 1,
            2 => arrived += 1,
            other => panic!("{other} ports"),
        }
    }
    assert_eq!((arrived + dropped, network.telemetry_records()), (8, 0));
    let counters = network.finish(Time::ZERO + Span::from_secs(1));
    assert_eq!(counters[4].dropped[DropReason::Limit as usize].get(), dropped);
    assert!(dropped > 0);
}

/// Telemetry that is put beside a packet comes back as it was.
#[test]
fn telemetry_can_be_sent_back() {
    let mut network = line();
    let hops = vec![hop(Time::ZERO, 7, 9, GBPS)];
    let mut packet = Packet { id: 5, ..Packet::to(1, 52) };
    network.put_telemetry(&mut packet, hops.clone());
    network.offer(Time::ZERO, network.host_link(0), packet);
    let Some((_, Event::Arrival { packet, .. })) = network.next(Time::NEVER) else { panic!("it arrives") };
    assert_eq!(network.take_telemetry(packet.telemetry.expect("it carries it")), (5, hops));
}
