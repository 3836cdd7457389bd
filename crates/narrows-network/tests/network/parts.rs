//! Two parts of a network hand over what the whole network sends from one to the other: the same packets, marks and times.

use crate::support::{Packet, connect, graph, threshold};
use narrows_core::queue::Limit;
use narrows_core::units::{Packets, Rate, Span, Time};
use narrows_network::{Event, Network, Partition};
use narrows_plan::Graph;
use proptest::prelude::*;

const DELAY: Span = Span::from_ms(1);

/// Host 0 on switch 3; in another site hosts 1 and 2, each on a switch of its own. Both links between the sites are slower than the
/// host's line, so that long queues stand before both.
fn graph_of_two_sites() -> Graph {
    let mut graph = graph(3, 3);
    for node in [1, 2, 4, 5] {
        graph.nodes[node].site = 1;
    }
    for (host, switch) in [(0, 3), (1, 4), (2, 5)] {
        connect(&mut graph, host, switch, Rate::from_gbps(10), Span::ZERO);
    }
    for switch in [4, 5] {
        let link = connect(&mut graph, 3, switch, Rate::from_gbps(1), DELAY);
        graph.links[link].limit = Limit::Packets(Packets::new(150));
        graph.links[link].aqm = threshold(100);
    }
    graph
}

type Seen = Vec<(Time, Event<Packet>)>;

/// Runs up to `until`, with the packets that host 0 sends meanwhile.
fn advance(network: &mut Network<Packet>, until: Time, sent: &[(Time, Packet)], seen: &mut Seen) {
    let own = network.host_link(0);
    for (at, packet) in sent {
        seen.extend(std::iter::from_fn(|| network.next(*at)));
        network.offer(*at, own, *packet);
    }
    seen.extend(std::iter::from_fn(|| network.next(until)));
}

/// Bursts of packets of a flow number and a destination, after pauses of so many microseconds.
fn bursts() -> impl Strategy<Value = Vec<(Time, Packet)>> {
    let burst = (0u64..3_000, prop::collection::vec(1u32..3, 1..300));
    prop::collection::vec(burst, 1..12).prop_map(|bursts| {
        let (mut at, mut id) = (Time::ZERO, 0);
        let mut packets = Vec::new();
        for (pause, destinations) in bursts {
            at += Span::from_us(pause);
            for destination in destinations {
                packets.push((at, Packet { id, ..Packet::to(destination, 1_462) }));
                id += 1;
            }
        }
        packets
    })
}

proptest! {
    #[test]
    fn what_parts_hand_over_is_what_the_whole_network_carries(packets in bursts(), steps in prop::collection::vec(1u64..1_000, 1..50)) {
        let graph = graph_of_two_sites();
        let end = packets.last().expect("some").0 + Span::from_ms(20);
        let mut whole = Seen::new();
        advance(&mut Network::new(&graph, 1).unwrap(), end, &packets, &mut whole);

        let partition = Partition::by_site(&graph);
        let mut parts = [0, 1].map(|part| Network::part(&graph, 1, &partition, part).unwrap());
        let [mut here, mut there] = [Seen::new(), Seen::new()];
        let (mut mail, mut rest, mut now) = (Vec::new(), packets.as_slice(), Time::ZERO);
        for step in steps.iter().cycle() {
            now = (now + Span::from_us(*step)).min(end);
            let (due, later) = rest.split_at(rest.partition_point(|(at, _)| *at <= now));
            advance(&mut parts[0], now, due, &mut here);
            rest = later;
            parts[0].hand_over(now, 1, &mut mail);
            mail.chunk_by(|one, next| one.link == next.link).for_each(|carried| parts[1].import(carried));
            mail.clear();
            advance(&mut parts[1], now, &[], &mut there);
            if now == end {
                break;
            }
        }
        let is_drop = |(_, event): &&(Time, Event<Packet>)| matches!(event, Event::Dropped { .. });
        prop_assert!(whole.iter().filter(is_drop).eq(here.iter()));
        prop_assert!(whole.iter().filter(|seen| !is_drop(seen)).eq(there.iter()));
        prop_assert_eq!(whole.len(), packets.len());
        prop_assert_eq!(parts[0].packet_hops() + parts[1].packet_hops(), {
            // Three hops each, but one for what was dropped.
            3 * there.len() as u64 + here.len() as u64
        });
    }
}
