//! Closed forms, and promises about order, routes and impairments.

use crate::support::{Packet, connect, graph, threshold};
use narrows_core::queue::SchedulerConfig;
use narrows_core::queue::aqm::Size;
use narrows_core::queue::pfc::{Thresholds, headroom};
use narrows_core::queue::scheduler::{drr, fq};
use narrows_core::queue::{AqmConfig, CongestionPointConfig, DropReason, Limit, PoolConfig};
use narrows_core::rng::{SmallStream, mix};
use narrows_core::units::{Bytes, Packets, Rate, Span, Time};
use narrows_network::{Counters, Entity, Event, GraphError, Network, Offered};
use narrows_plan::{CongestionPoint, Graph, Ingress, Scope};
use proptest::prelude::*;

const GBPS: Rate = Rate::from_gbps(1);
/// 1500 bytes at 1 Gbit/s.
const FRAME: Span = Span::from_ns(12_304);

/// Host 0 and host 1, back to back at 1 Gbit/s.
fn pair() -> Graph {
    let mut graph = graph(2, 0);
    connect(&mut graph, 0, 1, GBPS, Span::from_us(3));
    graph
}

fn run(network: &mut Network<Packet>, until: Time) -> Vec<(Time, Event<Packet>)> {
    std::iter::from_fn(|| network.next(until)).collect()
}

fn accepted(offered: Offered) -> Time {
    match offered {
        Offered::Accepted { departure, .. } => departure,
        Offered::Dropped(reason) => panic!("dropped: {reason:?}"),
    }
}

#[test]
fn a_packet_takes_its_service_and_the_delay() {
    let mut network = Network::new(&pair(), 0).unwrap();
    let link = network.host_link(0);
    let (full, short) = (Packet::to(1, 1_500), Packet::to(1, 20));
    assert_eq!(accepted(network.offer(Time::ZERO, link, full)), Time::ZERO + FRAME);
    // 84 bytes on the wire at least.
    let departure = Time::ZERO + FRAME + Span::from_ns(672);
    assert_eq!(accepted(network.offer(Time::ZERO, link, short)), departure);
    let expected = [(Time::ZERO + FRAME, full), (departure, short)]
        .map(|(at, packet)| (at + Span::from_us(3), Event::Arrival { host: 1, packet }));
    assert_eq!(run(&mut network, Time::NEVER), expected);
    assert_eq!((network.packet_hops(), network.events()), (2, 2));
}

#[test]
fn classes_share_a_line_by_weight_and_who_is_alone_has_all_of_it() {
    let mut graph = graph(2, 1);
    connect(&mut graph, 0, 2, Rate::from_gbps(100), Span::ZERO);
    let port = connect(&mut graph, 1, 2, GBPS, Span::from_us(3)) + 1;
    graph.links[port].scheduler = Some(SchedulerConfig::Drr(drr::Config { weights: vec![5, 1] }));
    let mut network = Network::new(&graph, 0).unwrap();
    let link = network.host_link(0);
    for class in [1, 0] {
        for id in 0..600 {
            let packet = Packet { id, class, ..Packet::to(1, 1_500) };
            network.offer(Time::ZERO, link, packet);
        }
    }
    let arrivals: Vec<(Time, Packet)> = (run(&mut network, Time::NEVER).into_iter())
        .map(|(at, event)| match event {
            Event::Arrival { packet, .. } => (at, packet),
            other => panic!("{other:?}"),
        })
        .collect();
    // The line is never idle: each packet arrives a frame's time after the one before, to the last.
    assert_eq!(arrivals.len(), 1_200);
    assert!(arrivals.windows(2).all(|pair| pair[1].0.since(pair[0].0) == FRAME));
    let of = |class: u8, from: usize, to: usize| arrivals[from..to].iter().filter(|(_, p)| p.class == class).count();
    // While class 1 is there alone, 600 packets at a hundredth of its port's time each, all is its; then 5 of 6 are the other's.
    assert_eq!(of(1, 0, 6), 6);
    assert_eq!((of(0, 12, 612), of(1, 12, 612)), (500, 100));
    // Class 0 has gone by 12 + 720: what is left has the line to itself.
    assert_eq!(of(1, 740, 1_200), 460);
    // Each class in its own order.
    for class in [0, 1] {
        assert!(arrivals.iter().filter(|(_, p)| p.class == class).map(|(_, p)| p.id).eq(0..600));
    }
}

#[test]
fn a_fair_host_port_lets_a_lone_packet_pass_a_burst_and_shares_by_bytes() {
    // 3 KB a turn, as a topology's hosts: two full packets.
    let fair = Some(SchedulerConfig::Fq(fq::Config { queues: 1_024, quantum: Bytes::new(3_000) }));
    let arrivals = |scheduler: Option<SchedulerConfig>, offers: &[(u64, u32, u32, u32)]| {
        let mut graph = pair();
        graph.links[0].scheduler = scheduler;
        let mut network = Network::new(&graph, 0).unwrap();
        let (link, mut found) = (network.host_link(0), Vec::new());
        for &(us, flow, count, size) in offers {
            let at = Time::ZERO + Span::from_us(us);
            found.extend(run(&mut network, at));
            for _ in 0..count {
                network.offer(at, link, Packet { flow, ..Packet::to(1, size) });
            }
        }
        found.extend(run(&mut network, Time::NEVER));
        let arrived = found.into_iter().filter_map(|(at, event)| match event {
            Event::Arrival { packet, .. } => Some((at, packet.flow)),
            _ => None,
        });
        arrived.collect::<Vec<(Time, u32)>>()
    };
    // At 20 us a burst of 100 has sent one packet and is sending its second.
    let offers = [(0, 7, 100, 1_500), (20, 8, 1, 1_500)];
    let place = |arrived: &[(Time, u32)]| arrived.iter().position(|(_, flow)| *flow == 8).unwrap();
    let (fair_order, fifo_order) = (arrivals(fair.clone(), &offers), arrivals(None, &offers));
    assert_eq!((place(&fair_order), place(&fifo_order)), (2, 100));
    // The line is never idle, in whatever order.
    assert!(fair_order.windows(2).all(|pair| pair[1].0.since(pair[0].0) == FRAME));
    // Small packets and large ones: each flow the same bytes while both wait, to a turn of each.
    let arrived = arrivals(fair, &[(0, 7, 300, 1_500), (0, 8, 900, 500)]);
    let (mut large, mut small) = (0_i64, 0_i64);
    for (_, flow) in &arrived[..800] {
        if *flow == 7 {
            large += 1_500
        } else {
            small += 500
        }
        assert!((large - small).abs() <= 3_000 + 1_500, "{large} and {small} bytes");
    }
}

#[test]
fn clocks_of_hosts_differ_by_up_to_their_spread() {
    let mut graph = graph(100, 1);
    let own: Vec<usize> = (0..100).map(|host| connect(&mut graph, host, 100, GBPS, Span::ZERO)).collect();
    own.iter().for_each(|&link| graph.links[link].clock_spread = 100);
    let rates = |graph: &Graph, seed: u64| -> Vec<f64> {
        own.iter().map(|&link| graph.links[link].clocked(seed).rate.as_bps() as f64 / 1e9 - 1.0).collect()
    };
    let slower = rates(&graph, 1);
    assert!(slower.iter().all(|share| (-100e-6..=0.0).contains(share)));
    // Uniform: mean and deviation of a hundred draws.
    let mean = slower.iter().sum::<f64>() / 100.0;
    assert!((mean + 50e-6).abs() < 3.0 * 100e-6 / 12_f64.sqrt() / 10.0, "{mean}");
    assert!(slower != rates(&graph, 2) && slower == rates(&graph, 1));
    // What a port sends follows: a thousand full packets back to back.
    let mut network = Network::new(&graph, 1).unwrap();
    let link = network.host_link(3);
    for id in 0..1_000 {
        network.offer(Time::ZERO, link, Packet { id, ..Packet::to(4, 1_500) });
    }
    let at_switch = 1_000.0 * FRAME.as_ps() as f64 / (1.0 + slower[3]);
    let (last, _) = run(&mut network, Time::NEVER).into_iter().next_back().unwrap();
    let took = last.since(Time::ZERO + FRAME).as_ps() as f64;
    assert!((took / at_switch - 1.0).abs() < 1e-9 + 1_000.0 / at_switch, "{took} and not {at_switch} ps");
}

/// Ports of one switch that share its memory: whether there is room for one's packet is known only when the others have
/// taken their decisions, and these move packets about. A burst to a port with classes, a pause before any of it is at the
/// far end, and a burst to the FIFO: many decisions are due together, enough to write where the packet that has just arrived
/// lay.
#[test]
fn classes_beside_a_fifo_mix_up_no_packets() {
    let mut graph = graph(4, 1);
    connect(&mut graph, 0, 4, Rate::from_gbps(10), Span::from_us(500));
    let ports = [1, 2, 3].map(|host| connect(&mut graph, host, 4, GBPS, Span::from_us(500)) + 1);
    graph.nodes[4].pool = Some(PoolConfig { size: Bytes::new(100_000), alpha: 1 << 16 });
    for port in ports {
        graph.links[port].pooled = true;
        graph.links[port].scheduler =
            (port != ports[0]).then(|| SchedulerConfig::Drr(drr::Config { weights: vec![2, 1] }));
    }
    let mut network = Network::new(&graph, 0).unwrap();
    let (mut dice, mut sent, mut drops) = (SmallStream::new(3), Vec::new(), 0);
    let (most, mut now) = (40_000, Time::ZERO);
    network.arm(Entity::start(0, 0), now);
    let mut gone = vec![false; most];
    while let Some((at, event)) = network.next(Time::NEVER) {
        now = at;
        let packet = match event {
            Event::Due(entity) => {
                let size = 20 + dice.below(1_481) as u32;
                let burst = sent.len() / 100;
                let (destination, class) = ([2, 1, 3, 1][burst % 4], dice.below(2) as u8);
                let packet = Packet { id: sent.len() as u32, class, ..Packet::to(destination, size) };
                sent.push(packet);
                network.offer(now, network.host_link(0), packet);
                if sent.len() < most {
                    let pause = match (sent.len() / 100 == burst, burst % 2) {
                        (true, _) => Span::from_ns(dice.below(1_500)),
                        (false, 0) => Span::from_us(250),
                        (false, _) => Span::from_ms(3),
                    };
                    network.arm(entity, now + pause);
                }
                continue;
            }
            Event::Arrival { host, packet } => {
                assert_eq!(host, packet.destination);
                packet
            }
            Event::Dropped { packet } => {
                drops += 1;
                packet
            }
            Event::Sampled { .. } => unreachable!("nothing samples"),
            Event::Left { .. } | Event::Recalled { .. } | Event::Entering { .. } | Event::Crossed { .. } => {
                unreachable!("nothing is bridged")
            }
        };
        assert_eq!(packet, sent[packet.id as usize]);
        assert!(!std::mem::replace(&mut gone[packet.id as usize], true), "{packet:?} twice");
    }
    assert!(gone.iter().all(|&gone| gone));
    assert!((most / 20..most / 2).contains(&drops), "{drops} of {most}");
    network.finish(now);
}

#[test]
fn jitter_delays_packets_of_an_idle_host_evenly_and_costs_a_busy_one_nothing() {
    let most = FRAME * 4;
    let mut graph = pair();
    graph.links[0].jitter = most;
    let mut network = Network::new(&graph, 7).unwrap();
    let link = network.host_link(0);
    // Far enough apart that each finds the port idle: the wait alone.
    let waits: Vec<Span> = (0..10_000)
        .map(|i| {
            let now = Time::ZERO + FRAME * (10 * i);
            run(&mut network, now);
            accepted(network.offer(now, link, Packet::to(1, 1_500))).since(now + FRAME)
        })
        .collect();
    assert!(waits.iter().all(|&wait| wait <= most));
    let mean = waits.iter().map(|wait| wait.as_ps()).sum::<u64>() / 10_000;
    // The mean of 10,000 uniform waits is within 1 % of the middle with a confidence of 99.9 %.
    assert!(mean.abs_diff(most.as_ps() / 2) < most.as_ps() / 100, "{mean} ps");
    // All at once: they leave in order, and all but the first few back to back.
    let now = Time::ZERO + FRAME * 200_000;
    run(&mut network, now);
    let left: Vec<Time> = (0..100).map(|_| accepted(network.offer(now, link, Packet::to(1, 1_500)))).collect();
    assert!(left.windows(2).all(|pair| pair[1].since(pair[0]) >= FRAME));
    assert!(left[99] <= now + most + FRAME * 100);
    assert!(left[10..].windows(2).all(|pair| pair[1].since(pair[0]) == FRAME));
}

#[test]
fn a_periodic_queue_has_its_exact_mean() {
    // Three packets at once each period of five service times: 3 + 2 + 1 packet-services in 5.
    let mut network = Network::new(&pair(), 0).unwrap();
    let (periods, link) = (100, network.host_link(0));
    for period in 0..periods {
        let now = Time::ZERO + FRAME * (5 * period);
        run(&mut network, now);
        for _ in 0..3 {
            network.offer(now, link, Packet::to(1, 1_500));
        }
    }
    let end = Time::ZERO + FRAME * (5 * periods);
    let counters = network.finish(end)[link as usize];
    assert_eq!(counters.queue_mean(end), Bytes::new(1_500 * 6 / 5));
    assert_eq!(counters.queue_max, Bytes::new(4_500));
    assert_eq!(counters.sent.packets, Packets::new(300));
}

#[test]
fn means_are_cut_at_the_reset_and_at_the_end() {
    let mut network = Network::new(&pair(), 0).unwrap();
    let link = network.host_link(0);
    for _ in 0..10 {
        network.offer(Time::ZERO, link, Packet::to(1, 1_500));
    }
    // From the middle of the third service to the middle of the fifth: 8 for half a service, 7 for one, 6 for a half.
    let at = |halves: u64| Time::ZERO + FRAME.div(2) * halves;
    network.reset_counters(at(5));
    let counters = network.counters(at(9), link);
    assert_eq!(counters.queue_mean(at(9)), Bytes::new(7 * 1_500));
    assert_eq!((counters.carried.packets, counters.sent.packets), (Packets::new(8), Packets::new(2)));
    assert_eq!((counters.queued.packets, counters.queue_max), (Packets::new(6), Bytes::new(12_000)));
    assert!(counters.conserved());
}

#[test]
fn random_arrivals_queue_as_in_an_m_d_1_system() {
    // Pollaczek and Khinchine: ρ + ρ² / (2 (1 − ρ)) packets in the system.
    for (load, tolerance) in [(0.5, 0.01), (0.9, 0.04)] {
        let mut network = Network::new(&pair(), 0).unwrap();
        let (mut stream, link, mut now) = (SmallStream::new(3), network.host_link(0), Time::ZERO);
        for _ in 0..1_000_000 {
            let uniform = (stream.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
            let gap = -(1.0 - uniform).ln() / load * FRAME.as_ps() as f64;
            now += Span::from_ps(gap as u64);
            while network.next(now).is_some() {}
            network.offer(now, link, Packet::to(1, 1_500));
        }
        let mean = network.counters(now, link).queue_mean(now).get() as f64 / 1_500.0;
        let expected = load + load * load / (2.0 * (1.0 - load));
        assert!((mean / expected - 1.0).abs() < tolerance, "load {load}: {mean} instead of {expected}");
    }
}

/// `senders` hosts at 10 Gbit/s into one switch; each sends `packets` at once to the host after them, over 1 Gbit/s.
fn incast(senders: u32, packets: u32, prepare: impl Fn(&mut Graph, usize)) -> (Network<Packet>, usize) {
    let mut graph = graph(senders as usize + 1, 1);
    for host in 0..senders {
        connect(&mut graph, host, senders + 1, Rate::from_gbps(10), Span::from_us(1));
    }
    let port = connect(&mut graph, senders + 1, senders, GBPS, Span::from_us(1));
    prepare(&mut graph, port);
    let mut network = Network::new(&graph, 0).unwrap();
    for host in 0..senders {
        let link = network.host_link(host);
        for _ in 0..packets {
            network.offer(Time::ZERO, link, Packet::to(senders, 1_500));
        }
    }
    (network, port)
}

#[test]
fn a_hot_port_ends_at_its_share_of_the_pool() {
    // α·B / (1 + α), within a packet.
    for (alpha, share) in [(1 << 16, 500_000), (13_107, 166_666), (1 << 18, 800_000)] {
        let (mut network, port) = incast(4, 1_000, |graph, port| {
            graph.nodes[5].pool = Some(PoolConfig { size: Bytes::new(1_000_000), alpha });
            graph.links[port].pooled = true;
        });
        run(&mut network, Time::NEVER);
        let counters = network.finish(Time::from_ns(100_000_000))[port];
        let max = counters.queue_max.get();
        assert!(max.abs_diff(share) <= 1_500, "α = {alpha}/65536: {max} instead of {share}");
        let dropped = counters.dropped_for(DropReason::Pool);
        assert_eq!(dropped + counters.sent.packets, Packets::new(4_000));
    }
}

#[test]
fn a_full_port_drops_and_a_long_one_marks() {
    let (mut network, port) = incast(2, 500, |graph, port| {
        graph.links[port].limit = Limit::Packets(Packets::new(100));
        graph.links[port].aqm = threshold(20);
    });
    let mut marked = 0;
    let mut events = run(&mut network, Time::NEVER);
    let all = events.len();
    events.retain(|(_, event)| matches!(event, Event::Arrival { .. }));
    let returned = all - events.len();
    for (_, event) in &events {
        let Event::Arrival { packet, .. } = event else { unreachable!("only arrivals are kept") };
        marked += u64::from(packet.marked);
    }
    let counters = network.finish(Time::from_ns(100_000_000))[port];
    assert_eq!(counters.queue_max, Bytes::new(150_000));
    // What the port refused came back to the driver.
    assert_eq!(counters.dropped_for(DropReason::Limit), Packets::new(returned as u64));
    assert_eq!(counters.marked, Packets::new(marked));
    // Unmarked are the first 21, and what replaces the one or two of them that leave meanwhile.
    let unmarked = events.len() as u64 - marked;
    assert!((21..=23).contains(&unmarked), "{unmarked}");
    assert_eq!(counters.sent.packets.get(), events.len() as u64);
    assert_eq!(counters.dropped_for(DropReason::Limit).get(), 1_000 - events.len() as u64);
}

#[test]
fn red_keeps_the_average_near_its_slope() {
    let (min, max) = (Size::Packets(Packets::new(20)), Size::Packets(Packets::new(60)));
    let (mut network, port) = incast(3, 3_000, |graph, port| {
        graph.links[port].aqm = Some(AqmConfig::Red(narrows_core::queue::aqm::red::Config {
            min,
            max,
            max_probability: 65_536,
            weight_shift: 5,
            gentle: false,
            ecn: false,
            marks_only: false,
        }));
    });
    run(&mut network, Time::NEVER);
    let counters = network.finish(Time::from_ns(1_000_000_000))[port];
    // Offered 30 times what leaves: the queue must settle where 29 of 30 are dropped, close below `max`.
    let mean = counters.queue_integral / u128::from(counters.sent.bytes.get() / 1_500) / u128::from(FRAME.as_ps());
    assert!((45 * 1_500..70 * 1_500).contains(&mean), "{mean} bytes");
    assert!(counters.dropped_for(DropReason::Aqm) > Packets::new(7_000));
}

#[test]
fn a_link_never_beats_its_rate() {
    // 7 bit/s short of a round number: every service is rounded up.
    let rate = Rate::from_bps(999_999_993);
    let mut graph = graph(2, 0);
    connect(&mut graph, 0, 1, rate, Span::ZERO);
    let mut network = Network::new(&graph, 0).unwrap();
    let (mut stream, link, mut wire_bytes) = (SmallStream::new(1), network.host_link(0), 0);
    for _ in 0..10_000 {
        let size = 20 + u32::try_from(stream.below(9_000)).unwrap();
        wire_bytes += u64::from(size + 38).max(84);
        let departure = accepted(network.offer(Time::ZERO, link, Packet::to(1, size)));
        let (sent, exact) = (rate.bytes_in(departure - Time::ZERO), rate.time_for(Bytes::new(wire_bytes)));
        assert!(sent.get() >= wire_bytes && departure - Time::ZERO < exact + Span::from_ns(10), "{departure}");
    }
}

/// Host 0 — switch — `paths` switches — switch — host 1.
fn parallel(paths: u32) -> Graph {
    let mut graph = graph(2, paths as usize + 2);
    let ten = Rate::from_gbps(10);
    connect(&mut graph, 0, 2, ten, Span::ZERO);
    connect(&mut graph, 1, 3, ten, Span::ZERO);
    for middle in 4..4 + paths {
        connect(&mut graph, 2, middle, ten, Span::ZERO);
        connect(&mut graph, middle, 3, ten, Span::ZERO);
    }
    graph
}

fn flows_over(graph: &Graph, seed: u64, flows: u32, packets: u32) -> (Vec<(Time, Event<Packet>)>, Vec<Counters>) {
    let mut network = Network::new(graph, seed).unwrap();
    for _ in 0..packets {
        for flow in 0..flows {
            let hash = u32::try_from(mix(u64::from(flow)) >> 32).unwrap();
            let packet = Packet { id: flow, flow: hash, ..Packet::to(1, 100) };
            network.offer(Time::ZERO, network.host_link(0), packet);
        }
    }
    let events = run(&mut network, Time::NEVER);
    let end = events.last().unwrap().0;
    (events, network.finish(end))
}

#[test]
fn flows_spread_evenly_over_equal_paths() {
    let (paths, flows) = (4, 8_000);
    let graph = parallel(paths);
    let (_, counters) = flows_over(&graph, 5, flows, 1);
    for (link, counters) in graph.links.iter().zip(counters).filter(|(link, _)| link.from == 2 && link.to >= 4) {
        let sent = counters.sent.packets.get();
        assert!(sent.abs_diff(u64::from(flows / paths)) < 150, "{sent} over {}", link.name);
    }
}

#[test]
fn a_flow_keeps_to_one_path() {
    let graph = parallel(5);
    for flow_packets in [1, 7] {
        let (_, counters) = flows_over(&graph, 5, 1, flow_packets);
        let used = graph.links.iter().zip(&counters).filter(|(link, counters)| {
            link.from == 2 && link.to >= 4 && counters.sent.packets == Packets::new(u64::from(flow_packets))
        });
        assert_eq!(used.count(), 1);
    }
}

#[test]
fn switches_in_a_row_choose_independently() {
    // 2 -> {3, 4} -> 5 -> {6, 7} -> 8, and a longer way from 6 over 9.
    let mut graph = graph(2, 8);
    for (a, b) in [(0, 2), (2, 3), (2, 4), (3, 5), (4, 5), (5, 6), (5, 7), (6, 8), (7, 8), (6, 9), (9, 8), (8, 1)] {
        connect(&mut graph, a, b, GBPS, Span::ZERO);
    }
    let (events, counters) = flows_over(&graph, 1, 4_000, 1);
    assert_eq!(events.len(), 4_000);
    let sent = |from, to| {
        let link = graph.links.iter().position(|link| (link.from, link.to) == (from, to)).unwrap();
        counters[link].sent.packets.get()
    };
    assert!(sent(2, 3).abs_diff(2_000) < 120 && sent(5, 6).abs_diff(2_000) < 120);
    assert_eq!(sent(6, 9), 0);
    // Of the flows over 3, half go over 6: as a stage chooses by a salt of its own, both stages together halve twice.
    let hashes = (0..4_000u64).map(|flow| u32::try_from(mix(flow) >> 32).unwrap());
    let over_three_and_six = hashes
        .filter(|&flow| {
            let mut network = Network::new(&graph, 1).unwrap();
            network.offer(Time::ZERO, 0, Packet { flow, ..Packet::to(1, 100) });
            let end = run(&mut network, Time::NEVER)[0].0;
            network.counters(end, 2).sent.packets == Packets::new(1)
                && network.counters(end, 10).sent.packets == Packets::new(1)
        })
        .count();
    assert!(over_three_and_six.abs_diff(1_000) < 100, "{over_three_and_six}");
}

#[test]
fn the_same_seed_gives_the_same_run_and_another_one_other_paths() {
    let mut graph = parallel(3);
    for link in &mut graph.links {
        link.loss = 1 << 28;
    }
    let run = |seed| flows_over(&graph, seed, 300, 10);
    assert_eq!(run(1), run(1));
    assert_ne!(run(1).0, run(2).0);
}

#[test]
fn the_wire_loses_what_it_is_told_to() {
    let mut graph = pair();
    graph.links[0].loss = 1 << 28;
    let mut network = Network::new(&graph, 1).unwrap();
    let (offered, mut delivered, mut lost) = (100_000, 0, 0_u64);
    for _ in 0..offered {
        network.offer(Time::ZERO, 0, Packet::to(1, 100));
    }
    let mut end = Time::ZERO;
    while let Some((now, event)) = network.next(Time::from_ns(10_000_000_000)) {
        end = now;
        match event {
            Event::Dropped { .. } => lost += 1,
            _ => delivered += 1,
        }
    }
    // One in sixteen, standard deviation 77.
    assert!(lost.abs_diff(offered / 16) < 300, "{lost}");
    assert_eq!(delivered + lost, offered);
    let counters = network.finish(end)[0];
    assert_eq!(counters.sent.packets, Packets::new(offered));
    assert_eq!(counters.dropped_for(DropReason::Impairment), Packets::new(lost));
}

#[test]
fn equal_times_come_as_arrivals_timers_starts_samples() {
    let mut network = Network::new(&pair(), 0).unwrap();
    let arrival = Time::ZERO + FRAME + Span::from_us(3);
    let armed = [Entity::sample(0, 0), Entity::start(0, 0), Entity::timer(1, 1), Entity::timer(0, 2)];
    for entity in armed {
        network.arm(entity, arrival);
    }
    let packet = Packet::to(1, 1_500);
    network.offer(Time::ZERO, 0, packet);
    let events: Vec<Event<Packet>> = run(&mut network, arrival).into_iter().map(|(_, event)| event).collect();
    let mut expected = vec![Event::Arrival { host: 1, packet }];
    expected.extend(armed.into_iter().rev().map(Event::Due));
    assert_eq!(events, expected);
}

/// A link that is paused and resumed with each packet, while its way back is busy for a hundred of them.
#[test]
fn one_pause_frame_waits_for_a_busy_line_and_says_what_holds_when_it_leaves() {
    let mut graph = graph(2, 1);
    connect(&mut graph, 0, 2, Rate::from_gbps(100), Span::ZERO);
    connect(&mut graph, 1, 2, Rate::from_gbps(100), Span::ZERO);
    graph.links[1].rate = GBPS;
    graph.links[3].rate = Rate::from_gbps(90);
    let thresholds = Thresholds { xoff: Bytes::new(1_500), xon: Bytes::new(1_500), may_lose: false };
    let room = headroom((graph.links[0].rate, Span::ZERO), (GBPS, Span::ZERO), Bytes::new(1_500));
    let limit = Limit::Bytes(thresholds.xoff + room);
    graph.links[0].ingress = Some(Ingress { limit, thresholds: Some(thresholds) });
    let mut network = Network::new(&graph, 0).unwrap();
    network.offer(Time::ZERO, 2, Packet::to(0, 1_500));
    let busy = Time::ZERO + FRAME;
    for _ in 0..300 {
        network.offer(Time::ZERO, 0, Packet::to(1, 1_500));
    }
    run(&mut network, busy);
    let counters = network.counters(busy, 3);
    assert!(counters.sent.packets > Packets::new(50) && counters.queue_max > Bytes::new(3_000), "{counters:?}");
    assert_eq!(network.counters(busy, 1).pause_frames, Packets::new(1));
    let end = Time::ZERO + Span::from_ms(1);
    run(&mut network, end);
    assert_eq!(network.finish(end)[3].sent.packets, Packets::new(300), "nothing was lost");
}

#[test]
fn a_graph_that_is_no_network_is_refused() {
    let refused = |graph: &Graph| Network::<Packet>::new(graph, 0).err();

    let mut unknown = pair();
    unknown.links[1].to = 9;
    assert_eq!(refused(&unknown), Some(GraphError::UnknownNode(1)));

    let mut slow = pair();
    slow.links[1].rate = Rate::from_bps(0);
    assert_eq!(refused(&slow), Some(GraphError::ZeroRate(1)));

    let mut unpooled = pair();
    unpooled.links[0].pooled = true;
    assert_eq!(refused(&unpooled), Some(GraphError::NoPool(0)));

    let mut told_by_a_host = pair();
    let sampling = CongestionPointConfig { set_point: Bytes::new(33_000), weight: 2, sample_base: Bytes::new(150_000) };
    told_by_a_host.links[0].congestion_point = Some(CongestionPoint { sampling, scope: Scope::Tor });
    assert_eq!(refused(&told_by_a_host), Some(GraphError::HostSamples(0)));

    let drr = Some(SchedulerConfig::Drr(drr::Config { weights: vec![1, 1] }));
    let mut classes_at_a_host = pair();
    classes_at_a_host.links[0].scheduler = drr;
    assert_eq!(refused(&classes_at_a_host), Some(GraphError::HostClasses(0)));
    let mut delayed = pair();
    delayed.links[0].scheduler = Some(SchedulerConfig::Fq(fq::Config { queues: 1, quantum: Bytes::new(3_000) }));
    assert_eq!(refused(&delayed), None);
    delayed.links[0].jitter = Span::from_us(1);
    assert_eq!(refused(&delayed), Some(GraphError::HostClasses(0)));

    let thresholds = Thresholds { xoff: Bytes::new(3_000), xon: Bytes::new(1_500), may_lose: true };
    let mut one_way = graph(2, 2);
    for (a, b) in [(0, 2), (1, 3), (2, 3)] {
        connect(&mut one_way, a, b, GBPS, Span::ZERO);
    }
    one_way.links.push(one_way.links[4].clone());
    one_way.links[4].ingress = Some(Ingress { limit: Limit::Unlimited, thresholds: Some(thresholds) });
    assert_eq!(refused(&one_way), None);
    one_way.links.swap(4, 6);
    assert_eq!(refused(&one_way), Some(GraphError::NoWayBack(6)));
    // The port that link 6 fills pauses whoever fills it.
    one_way.links[6].ingress = None;
    one_way.links[3].pauses = Some(thresholds);
    assert_eq!(refused(&one_way), Some(GraphError::NoWayBack(6)));
    let mut leaves = classes_at_a_host.clone();
    (leaves.links[0].scheduler, leaves.links[0].aqm) = (None, Some(AqmConfig::Codel(Default::default())));
    assert_eq!(refused(&leaves), Some(GraphError::HostClasses(0)));

    let mut two = graph(3, 0);
    connect(&mut two, 0, 1, GBPS, Span::ZERO);
    connect(&mut two, 0, 2, GBPS, Span::ZERO);
    assert_eq!(refused(&two), Some(GraphError::HostLinks(0)));
    assert_eq!(refused(&graph(1, 0)), Some(GraphError::HostLinks(0)));

    let mut islands = graph(4, 2);
    for host in 0..4 {
        connect(&mut islands, host, 4 + host / 2, GBPS, Span::ZERO);
    }
    let error = refused(&islands).unwrap();
    assert_eq!(error, GraphError::Unreachable { from: 0, to: 2 });
    assert_eq!(error.to_string(), "host 0 has no path to host 2");
    connect(&mut islands, 4, 5, GBPS, Span::ZERO);
    assert_eq!(refused(&islands), None);

    for _ in 1..4_096 {
        connect(&mut islands, 4, 5, GBPS, Span::ZERO);
    }
    assert_eq!(refused(&islands), None);
    connect(&mut islands, 4, 5, GBPS, Span::ZERO);
    assert_eq!(refused(&islands), Some(GraphError::TooManyWays(5)));
}

/// Three hosts on the corners of a triangle of switches, whose sides are narrow, mark and lose.
fn triangle(host_delay: Span) -> Graph {
    let mut graph = graph(3, 3);
    for host in 0..3 {
        connect(&mut graph, host, host + 3, Rate::from_mbps(100), host_delay);
    }
    for (a, b) in [(3, 4), (4, 5), (5, 3)] {
        let first = connect(&mut graph, a, b, Rate::from_mbps(40), Span::from_us(300));
        for link in &mut graph.links[first..] {
            (link.limit, link.aqm, link.loss) = (Limit::Packets(Packets::new(4)), threshold(2), 1 << 29);
        }
    }
    graph
}

/// Takes what is due up to `until` as one who sleeps as long as he is told.
fn wake(network: &mut Network<Packet>, until: Time) -> Vec<(Time, Event<Packet>)> {
    let mut seen = Vec::new();
    while let Some(at) = network.next_at().filter(|&at| at <= until) {
        let events = run(network, at);
        assert!(events.iter().all(|&(time, _)| time == at), "{at} was announced: {events:?}");
        assert!(network.next_at().is_none_or(|next| next > at), "what is due is handled");
        seen.extend(events);
    }
    seen
}

proptest! {
    /// Who sleeps until what is announced misses nothing: the same events, counters and backlogs as for one who always looks.
    #[test]
    fn nothing_happens_before_it_is_announced(
        delay_us in 0u64..50, seed in 0u64..4, timers in prop::collection::vec((0u64..30_000, 0u64..3), 0..20),
        offers in prop::collection::vec((0u64..400, 0u32..3, 1u32..3, 40u32..1_500), 1..200),
    ) {
        let graph = triangle(Span::from_us(delay_us));
        let (mut awake, mut asleep) = (Network::new(&graph, seed).unwrap(), Network::new(&graph, seed).unwrap());
        let (mut now, mut expected, mut seen) = (Time::ZERO, Vec::new(), Vec::new());
        let mut timers = timers.into_iter();
        for (id, (wait_us, from, by, size)) in (0..).zip(offers) {
            now += Span::from_us(wait_us);
            expected.extend(run(&mut awake, now));
            seen.extend(wake(&mut asleep, now));
            let (packet, link) = (Packet { id, flow: id % 3, ..Packet::to((from + by) % 3, size) }, awake.host_link(from));
            let offered = awake.offer(now, link, packet);
            prop_assert_eq!(offered, asleep.offer(now, link, packet));
            // Appointments are moved about.
            if let Some((ahead_us, timer)) = timers.next() {
                let entity = Entity::timer(timer, timer as u32);
                awake.arm(entity, now + Span::from_us(ahead_us));
                asleep.arm(entity, now + Span::from_us(ahead_us));
            }
            for link in 0..12 {
                prop_assert_eq!(asleep.backlog(now, link), awake.backlog(now, link));
            }
        }
        let end = now + Span::from_secs(1);
        expected.extend(run(&mut awake, end));
        seen.extend(wake(&mut asleep, end));
        prop_assert_eq!(seen, expected);
        prop_assert_eq!((asleep.next_at(), awake.next_at()), (None, None));
        prop_assert_eq!(asleep.finish(end), awake.finish(end));
    }
}
