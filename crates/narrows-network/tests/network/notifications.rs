//! Samples of a congested port, and the urgent queues that notifications take back.

use crate::support::{Packet, connect, graph};
use narrows_core::queue::CongestionPointConfig;
use narrows_core::queue::SchedulerConfig;
use narrows_core::queue::scheduler::drr;
use narrows_core::units::{Bytes, Packets, Rate, Span, Time};
use narrows_network::{Event, Network};
use narrows_plan::{CongestionPoint, Graph, Scope};

const GBPS: Rate = Rate::from_gbps(1);
const DELAY: Span = Span::from_us(3);
/// 1500 bytes at 1 Gbit/s, and 88.
const FRAME: Span = Span::from_ns(12_304);
const NOTE: Span = Span::from_ns(1_008);

/// Hosts 0, 1 and 2 on a switch; the port towards host 1 has a tenth of the rate and a congestion point. The links towards
/// hosts have 1 us more, which is their stack's.
fn star() -> Graph {
    let mut graph = graph(3, 1);
    for host in 0..3 {
        let up = connect(&mut graph, host, 3, GBPS, DELAY);
        graph.links[up + 1].delay = DELAY + Span::from_us(1);
        graph.links[up + 1].stack = Span::from_us(1);
    }
    let down = graph.links.iter().position(|link| link.to == 1).unwrap();
    graph.links[down].rate = Rate::from_mbps(100);
    let sampling = CongestionPointConfig { set_point: Bytes::new(3_000), weight: 2, sample_base: Bytes::new(15_000) };
    graph.links[down].congestion_point = Some(CongestionPoint { sampling, scope: Scope::Tor });
    graph
}

/// Link ids: from host 0 up, from the switch to host 0, and to host 1.
const TO_0: u32 = 1;
const TO_1: u32 = 3;

fn note(destination: u32) -> Packet {
    Packet { id: 99, ..Packet::to(destination, 88) }
}

fn arrivals(network: &mut Network<Packet>, host: u32) -> Vec<(Time, u32)> {
    std::iter::from_fn(|| network.next(Time::NEVER))
        .filter_map(|(at, event)| match event {
            Event::Arrival { host: at_host, packet } if at_host == host => Some((at, packet.id)),
            _ => None,
        })
        .collect()
}

#[test]
fn a_growing_queue_is_sampled_more_and_more_often_and_tells_of_itself() {
    let mut network = Network::new(&star(), 1).unwrap();
    let link = network.host_link(0);
    (0..200).for_each(|id| {
        network.offer(Time::ZERO, link, Packet { id, ..Packet::to(1, 1_500) });
    });
    let mut samples = Vec::new();
    while let Some((now, event)) = network.next(Time::NEVER) {
        if let Event::Sampled { link, feedback, packet } = event {
            let (backlog, _) = network.backlog(now, link);
            assert_eq!(link, TO_1);
            assert_eq!(feedback.offset, i64::try_from(backlog.get()).unwrap() - 3_000, "the sampled packet counts");
            samples.push((packet.id, feedback.quantized));
        }
    }
    // 15 KB, then with most congestion 1.85 KB, 15 % more or less: two packets apart, sometimes one.
    assert!((5..=12).contains(&samples[0].0), "{samples:?}");
    assert!((75..=200).contains(&samples.len()), "{}", samples.len());
    assert_eq!(samples.last().unwrap().1, 63);
    assert_eq!(network.counters(Time::NEVER, TO_1).samples, Packets::new(samples.len() as u64));
}

#[test]
fn the_end_of_a_warmup_moves_no_sample() {
    let sampled = |warmup: Span| {
        let mut network = Network::new(&star(), 1).unwrap();
        let link = network.host_link(0);
        (0..200).for_each(|id| {
            network.offer(Time::ZERO, link, Packet { id, ..Packet::to(1, 1_500) });
        });
        let (mut ids, mut warmup) = (Vec::new(), Some(warmup));
        while let Some((now, event)) = network.next(Time::NEVER) {
            if let Event::Sampled { packet, .. } = event {
                ids.push(packet.id);
            }
            if warmup.is_some_and(|span| Time::ZERO + span <= now) {
                network.reset_counters(now);
                warmup = None;
            }
        }
        assert_eq!(warmup, None, "it ends in the midst of them");
        ids
    };
    // Of 200 packets the first is at the switch after 15 us, the last after 2.5 ms.
    let never_again = sampled(Span::ZERO);
    assert!(never_again.len() > 50);
    for us in [100, 700, 1_234] {
        assert_eq!(sampled(Span::from_us(us)), never_again);
    }
}

#[test]
fn a_notification_is_there_after_its_service_and_the_wire() {
    let mut network = Network::new(&star(), 1).unwrap();
    network.notify(Time::ZERO, TO_1, note(0));
    assert_eq!(arrivals(&mut network, 0), [(Time::ZERO + NOTE + DELAY, 99)]);
}

#[test]
fn it_waits_for_the_packet_in_service_and_the_rest_waits_for_it() {
    let mut network = Network::new(&star(), 1).unwrap();
    let link = network.host_link(2);
    let up = FRAME + DELAY;
    let packet = |id| Packet { id, ..Packet::to(0, 1_500) };
    (0..4).for_each(|id| {
        network.offer(Time::ZERO, link, packet(id));
    });
    // The first packet is at the switch and in service when the notification comes.
    let now = Time::ZERO + up + Span::from_us(2);
    while network.next(now).is_some() {}
    network.notify(now, TO_1, note(0));
    network.notify(now, TO_1, note(0));
    let stack = Span::from_us(1);
    let first = Time::ZERO + up + FRAME;
    let second = first + NOTE * 2 + FRAME;
    let expected = [
        (first + NOTE + DELAY, 99),
        (first + DELAY + stack, 0),
        (first + NOTE * 2 + DELAY, 99),
        (second + DELAY + stack, 1),
        (second + FRAME + DELAY + stack, 2),
        (second + FRAME * 2 + DELAY + stack, 3),
    ];
    let mut seen = arrivals(&mut network, 0);
    seen.sort_unstable();
    let mut expected = expected.to_vec();
    expected.sort_unstable();
    assert_eq!(seen, expected);
    // Ports lost track of nothing.
    assert_eq!(network.finish(Time::ZERO + Span::from_ms(1))[TO_0 as usize].sent.packets, Packets::new(4));
}

#[test]
fn it_goes_on_from_switch_to_switch_and_ends_where_the_site_ends() {
    let mut graph = graph(3, 3);
    connect(&mut graph, 0, 3, GBPS, DELAY);
    connect(&mut graph, 1, 5, GBPS, DELAY);
    connect(&mut graph, 2, 4, GBPS, DELAY);
    connect(&mut graph, 3, 4, GBPS, DELAY);
    let wan = connect(&mut graph, 4, 5, GBPS, DELAY);
    for link in [wan, wan + 1] {
        graph.links[link].role = narrows_plan::Role::Wan;
    }
    let sampling = CongestionPointConfig { set_point: Bytes::new(3_000), weight: 2, sample_base: Bytes::new(15_000) };
    graph.links[wan].congestion_point = Some(CongestionPoint { sampling, scope: Scope::SourceDatacenter });
    let mut network = Network::new(&graph, 1).unwrap();
    network.notify(Time::ZERO, u32::try_from(wan).unwrap(), note(0));
    network.notify(Time::ZERO, u32::try_from(wan).unwrap(), note(1));
    assert_eq!(arrivals(&mut network, 0), [(Time::ZERO + (NOTE + DELAY) * 2, 99)]);
    assert_eq!(network.packet_hops(), 2);
}

#[test]
fn served_ports_take_notifications_ahead_of_their_queues() {
    // With a stack at the hosts, and without: then no wire is beside another.
    for stack in [Span::from_us(1), Span::ZERO] {
        let mut graph = star();
        for link in &mut graph.links {
            if link.from == 3 {
                (link.delay, link.stack) = (DELAY + stack, stack);
                link.scheduler = Some(SchedulerConfig::Drr(drr::Config { weights: vec![1, 1] }));
            }
        }
        let mut network = Network::new(&graph, 1).unwrap();
        let up = FRAME + DELAY;
        let link = network.host_link(2);
        for id in 0..3 {
            network.offer(Time::ZERO, link, Packet { id, ..Packet::to(0, 1_500) });
        }
        let now = Time::ZERO + up + Span::from_us(2);
        while network.next(now).is_some() {}
        let note = Packet { id: crate::support::NOTE, ..Packet::to(0, 88) };
        network.notify(now, TO_1, note);
        let first = Time::ZERO + up + FRAME;
        let mut expected = vec![
            (first + DELAY + stack, 0),
            (first + NOTE + DELAY, crate::support::NOTE),
            (first + NOTE + FRAME + DELAY + stack, 1),
            (first + NOTE + FRAME * 2 + DELAY + stack, 2),
        ];
        expected.sort_unstable();
        assert_eq!(arrivals(&mut network, 0), expected);
        network.finish(Time::ZERO + Span::from_ms(1));
    }
}

/// As they do where ports are computed: what would go on over the WAN, or to another site, ends.
#[test]
fn notifications_end_at_the_border_of_a_site_where_ports_are_served_too() {
    for served in [false, true] {
        let mut graph = graph(2, 2);
        connect(&mut graph, 0, 2, GBPS, DELAY);
        let wan = connect(&mut graph, 2, 3, GBPS, DELAY);
        connect(&mut graph, 3, 1, GBPS, DELAY);
        (graph.nodes[1].site, graph.nodes[3].site) = (1, 1);
        let sampling =
            CongestionPointConfig { set_point: Bytes::new(3_000), weight: 2, sample_base: Bytes::new(15_000) };
        graph.links[wan].congestion_point = Some(CongestionPoint { sampling, scope: Scope::SourceDatacenter });
        for link in graph.links.iter_mut().filter(|link| served && link.from >= 2) {
            link.scheduler = Some(SchedulerConfig::Drr(drr::Config { weights: vec![1, 1] }));
        }
        let mut network = Network::new(&graph, 1).unwrap();
        for host in [0, 1] {
            let note = Packet { id: crate::support::NOTE, ..Packet::to(host, 88) };
            network.notify(Time::ZERO, u32::try_from(wan).unwrap(), note);
        }
        assert_eq!(arrivals(&mut network.clone(), 0), [(Time::ZERO + NOTE + DELAY, crate::support::NOTE)], "{served}");
        assert_eq!(arrivals(&mut network, 1), [], "{served}");
        assert_eq!(network.packet_hops(), 1);
    }
}
