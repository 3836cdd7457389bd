//! The explicit port, with an event per departure and nothing clever, against the computed and the lazily served one: on
//! random small networks both must give the same arrivals, drops, marks, backlogs and counters.
#![allow(clippy::unwrap_used, reason = "a test may")]

mod support;

use narrows_core::queue::aqm::Size;
use narrows_core::queue::{AqmConfig, DropReason, Limit, PoolConfig};
use narrows_core::units::{Bytes, Packets, Rate, Span, Time};
use narrows_network::{Class, Entity, Event, Network, Offered};
use narrows_plan::{Graph, NodeKind, Scheduler};
use proptest::prelude::*;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use support::{Packet, connect, graph};

/// 84 bytes at 1 Gbit/s. Delays, injections and most service times are multiples, so that times often tie.
const TICK: u64 = 672_000;

/// Everything that both models must agree on, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Seen {
    Arrived(u64, u32, Packet),
    /// When, and which packet.
    Dropped(u64, u32),
    Backlog(u64, u32, u64, u64),
    /// Sent packets and bytes, largest backlog, its integral, how long the packet in service had been so at the reset and is,
    /// drops by reason, marks.
    Counters(u32, u64, u64, u64, u128, [u64; 2], [u64; DropReason::COUNT], u64),
}

#[derive(Clone, Debug)]
struct Case {
    graph: Graph,
    /// When, where, what.
    packets: Vec<(u64, u32, Packet)>,
    samples: Vec<u64>,
    reset: u64,
    end: u64,
    /// Steps in which the driver asks for events.
    windows: Vec<u64>,
}

// --- The explicit model ---------------------------------------------------------------------------------------------

/// A port with one class is a FIFO.
struct Port {
    /// What waits, by class.
    waiting: Vec<VecDeque<Packet>>,
    in_service: Option<Packet>,
    /// When it went into service.
    begun_at: u64,
    begun_before: u64,
    /// Deficit round robin as published: classes that wait in the order of their turns, what each has been given and not
    /// sent, and whether the first has had its quantum in this turn.
    turns: VecDeque<usize>,
    quanta: Vec<u64>,
    deficits: Vec<u64>,
    given: bool,
    wire: VecDeque<Packet>,
    sent: (u64, u64),
    dropped: [u64; DropReason::COUNT],
    marked: u64,
    max: u64,
    integral: u128,
    touched: u64,
}

impl Port {
    fn new(scheduler: Option<&Scheduler>) -> Port {
        let weights = scheduler.map_or(vec![1], |Scheduler::Drr { weights }| weights.clone());
        Port {
            waiting: vec![VecDeque::new(); weights.len()],
            in_service: None,
            begun_at: 0,
            begun_before: 0,
            turns: VecDeque::new(),
            deficits: vec![0; weights.len()],
            quanta: weights.into_iter().map(|weight| 1_500 * u64::from(weight)).collect(),
            given: false,
            wire: VecDeque::new(),
            sent: (0, 0),
            dropped: [0; DropReason::COUNT],
            marked: 0,
            max: 0,
            integral: 0,
            touched: 0,
        }
    }
    fn class_of(&self, packet: &Packet) -> usize {
        if self.waiting.len() == 1 { 0 } else { usize::from(packet.class) }
    }
    fn packets_of(&self, class: usize) -> impl Iterator<Item = &Packet> {
        self.waiting[class].iter().chain(self.in_service.iter().filter(move |packet| self.class_of(packet) == class))
    }
    fn bytes_of(&self, class: usize) -> u64 {
        self.packets_of(class).map(|packet| u64::from(packet.size)).sum()
    }
    fn bytes(&self) -> u64 {
        (0..self.waiting.len()).map(|class| self.bytes_of(class)).sum()
    }
    fn packets(&self) -> u64 {
        (0..self.waiting.len()).map(|class| self.packets_of(class).count() as u64).sum()
    }
    /// The next packet goes into service, if any waits: its size.
    fn begin(&mut self) -> Option<u64> {
        loop {
            let &class = self.turns.front()?;
            if !std::mem::replace(&mut self.given, true) {
                self.deficits[class] += self.quanta[class];
            }
            let size = u64::from(self.waiting[class][0].size);
            if size > self.deficits[class] {
                let class = self.turns.pop_front().unwrap();
                self.turns.push_back(class);
                self.given = false;
                continue;
            }
            self.deficits[class] -= size;
            self.in_service = self.waiting[class].pop_front();
            if self.waiting[class].is_empty() {
                self.turns.pop_front();
                (self.deficits[class], self.given) = (0, false);
            }
            return Some(size);
        }
    }
    /// How long the packet in service has been so.
    fn begun(&self, now: u64) -> u64 {
        self.in_service.map_or(0, |_| now - self.begun_at)
    }
    /// Adds the time since the last change to the integral.
    fn pass(&mut self, now: u64) {
        self.integral += u128::from(self.bytes()) * u128::from(now - self.touched);
        self.touched = now;
    }
}

struct Explicit<'a> {
    case: &'a Case,
    ports: Vec<Port>,
    /// Time, class (service end, arrival, start, sample), identifier.
    events: BinaryHeap<Reverse<(u64, u32, u32)>>,
    seen: Vec<Seen>,
}

impl Explicit<'_> {
    fn offer(&mut self, now: u64, link: u32, mut packet: Packet) {
        let description = &self.case.graph.links[link as usize];
        let port = &self.ports[link as usize];
        let (class, shares) = (port.class_of(&packet), port.waiting.len() as u64);
        let (bytes, packets) = (port.bytes_of(class), port.packets_of(class).count() as u64);
        let size = u64::from(packet.size);
        let fits = match description.limit {
            Limit::Unlimited => true,
            Limit::Packets(most) => packets < most.get() / shares,
            Limit::Bytes(most) => bytes + size <= most.get() / shares,
        };
        if !fits {
            return self.drop(now, link, DropReason::Limit, packet);
        }
        if description.pooled {
            let pool = self.case.graph.nodes[description.from as usize].pool.unwrap();
            let ports = self.ports.iter().zip(&self.case.graph.links);
            let used: u64 =
                ports.filter(|(_, l)| l.pooled && l.from == description.from).map(|(port, _)| port.bytes()).sum();
            let free = pool.size.get() - used;
            if size > free || (bytes + size) * shares * 65_536 > u64::from(pool.alpha) * free {
                return self.drop(now, link, DropReason::Pool, packet);
            }
        }
        let above = match description.aqm {
            Some(AqmConfig::Threshold(narrows_core::queue::aqm::threshold::Config { mark_at: Size::Packets(k) })) => {
                packets > k.get()
            }
            Some(AqmConfig::Threshold(narrows_core::queue::aqm::threshold::Config { mark_at: Size::Bytes(k) })) => {
                bytes > k.get()
            }
            _ => false,
        };
        if above && packet.capable {
            packet.marked = true;
            self.ports[link as usize].marked += 1;
        }
        let port = &mut self.ports[link as usize];
        port.pass(now);
        port.waiting[class].push_back(packet);
        if port.waiting[class].len() == 1 {
            port.turns.push_back(class);
        }
        port.max = port.max.max(port.bytes());
        if port.in_service.is_none() {
            self.begin(now, link);
        }
    }

    fn drop(&mut self, now: u64, link: u32, reason: DropReason, packet: Packet) {
        self.ports[link as usize].dropped[reason as usize] += 1;
        self.seen.push(Seen::Dropped(now, packet.id));
    }

    fn begin(&mut self, now: u64, link: u32) {
        if let Some(size) = self.ports[link as usize].begin() {
            let service = self.case.graph.links[link as usize].rate.time_for(Bytes::new((size + 38).max(84))).as_ps();
            self.events.push(Reverse((now + service, 0, link)));
            self.ports[link as usize].begun_at = now;
        }
    }

    fn service_ends(&mut self, now: u64, link: u32) {
        let port = &mut self.ports[link as usize];
        port.pass(now);
        let packet = port.in_service.take().unwrap();
        port.sent.0 += 1;
        port.sent.1 += u64::from(packet.size);
        port.wire.push_back(packet);
        self.begin(now, link);
        self.events.push(Reverse((now + self.case.graph.links[link as usize].delay.as_ps(), 1, link)));
    }

    fn run(mut self) -> Vec<Seen> {
        let graph = &self.case.graph;
        self.events.extend((0..).zip(&self.case.packets).map(|(i, packet)| Reverse((packet.0, 2, i))));
        self.events.extend((0..).zip(&self.case.samples).map(|(i, &at)| Reverse((at, 3, i))));
        self.events.push(Reverse((self.case.reset, 3, u32::MAX)));
        while let Some(Reverse((now, class, id))) = self.events.pop() {
            if now > self.case.end {
                break;
            }
            match class {
                0 => self.service_ends(now, id),
                1 => {
                    let packet = self.ports[id as usize].wire.pop_front().unwrap();
                    let node = graph.links[id as usize].to;
                    match graph.nodes[node as usize].kind {
                        NodeKind::Host => self.seen.push(Seen::Arrived(now, node, packet)),
                        NodeKind::Switch => self.offer(now, towards(graph, node, packet.destination), packet),
                    }
                }
                2 => {
                    let (_, host, packet) = self.case.packets[id as usize];
                    self.offer(now, towards(graph, host, packet.destination), packet);
                }
                _ if id == u32::MAX => {
                    for port in &mut self.ports {
                        port.begun_before = port.begun(now);
                        (port.dropped, port.marked) = ([0; DropReason::COUNT], 0);
                        (port.sent, port.max, port.integral, port.touched) = ((0, 0), port.bytes(), 0, now);
                    }
                }
                _ => {
                    for (link, port) in (0..).zip(&self.ports) {
                        self.seen.push(Seen::Backlog(now, link, port.bytes(), port.packets()));
                    }
                }
            }
        }
        for (link, port) in (0..).zip(&mut self.ports) {
            port.pass(self.case.end);
            let begun = [port.begun_before, port.begun(self.case.end)];
            let Port { sent, max, integral, dropped, marked, .. } = *port;
            self.seen.push(Seen::Counters(link, sent.0, sent.1, max, integral, begun, dropped, marked));
        }
        self.seen
    }
}

fn explicit(case: &Case) -> Vec<Seen> {
    let ports = case.graph.links.iter().map(|link| Port::new(link.scheduler.as_ref())).collect();
    Explicit { case, ports, events: BinaryHeap::new(), seen: Vec::new() }.run()
}

/// The link towards `destination` in a tree: the one behind which it can be found.
fn towards(graph: &Graph, from: u32, destination: u32) -> u32 {
    fn leads(graph: &Graph, link: usize, destination: u32) -> bool {
        let (back, here) = (graph.links[link].from, graph.links[link].to);
        here == destination
            || (0..graph.links.len()).any(|next| {
                graph.links[next].from == here && graph.links[next].to != back && leads(graph, next, destination)
            })
    }
    let link = (0..graph.links.len()).find(|&link| graph.links[link].from == from && leads(graph, link, destination));
    u32::try_from(link.unwrap()).unwrap()
}

// --- The model under test -------------------------------------------------------------------------------------------

fn computed(case: &Case) -> Vec<Seen> {
    let mut network: Network<Packet> = Network::new(&case.graph, 7).unwrap();
    let mut seen = Vec::new();
    for (slot, &(at, ..)) in (0..).zip(&case.packets) {
        network.arm(Entity::start(u64::from(slot), slot), Time::from_ps(at));
    }
    for (slot, &at) in (0..).zip(&case.samples) {
        network.arm(Entity::sample(u64::from(slot), slot), Time::from_ps(at));
    }
    let reset = Entity::sample(u64::from(u32::MAX), u32::try_from(case.samples.len()).unwrap());
    network.arm(reset, Time::from_ps(case.reset));
    let mut windows = case.windows.iter().cycle();
    let mut until = 0;
    while until < case.end {
        until = case.end.min(until + windows.next().unwrap());
        while let Some((now, event)) = network.next(Time::from_ps(until)) {
            match event {
                Event::Arrival { host, packet } => seen.push(Seen::Arrived(now.as_ps(), host, packet)),
                Event::Dropped { packet } => seen.push(Seen::Dropped(now.as_ps(), packet.id)),
                Event::Sampled { .. } => unreachable!("nothing is sampled"),
                Event::Entering { .. } | Event::Crossed { .. } => unreachable!("nothing is bridged"),
                Event::Due(entity) if entity == reset => network.reset_counters(now),
                Event::Due(entity) if entity.class() == Class::Sample => {
                    for link in 0..u32::try_from(case.graph.links.len()).unwrap() {
                        let (bytes, packets) = network.backlog(now, link);
                        seen.push(Seen::Backlog(now.as_ps(), link, bytes.get(), packets.get()));
                    }
                }
                Event::Due(entity) => {
                    let (_, host, packet) = case.packets[entity.slot() as usize];
                    if let Offered::Dropped(_) = network.offer(now, network.host_link(host), packet) {
                        seen.push(Seen::Dropped(now.as_ps(), packet.id));
                    }
                }
            }
        }
    }
    for (link, counters) in (0..).zip(network.finish(Time::from_ps(case.end))) {
        let (sent, max) = (counters.sent, counters.queue_max.get());
        let begun = [counters.begun_before, counters.begun].map(Span::as_ps);
        let (integral, dropped) = (counters.queue_integral, counters.dropped.map(Packets::get));
        let marked = counters.marked.get();
        seen.push(Seen::Counters(link, sent.packets.get(), sent.bytes.get(), max, integral, begun, dropped, marked));
    }
    seen
}

// --- Random cases ---------------------------------------------------------------------------------------------------

#[derive(Clone, Debug)]
struct Wire {
    rate: u64,
    delay: u64,
    limit: Limit,
    pooled: bool,
    aqm: Option<AqmConfig>,
    weights: Option<Vec<u16>>,
}

/// Packets are of the classes below this.
const CLASSES: u8 = 3;

fn wire() -> impl Strategy<Value = Wire> {
    let rate = prop_oneof![4 => Just(1_000_000_000u64), 1 => Just(10_000_000_000), 1 => 100_000_000u64..3_000_000_000];
    let delay = prop_oneof![3 => (0u64..20).prop_map(|ticks| ticks * TICK), 1 => 0u64..20 * TICK];
    let limit = prop_oneof![
        Just(Limit::Unlimited),
        (0u64..12).prop_map(|most| Limit::Packets(Packets::new(most))),
        (0u64..15_000).prop_map(|most| Limit::Bytes(Bytes::new(most))),
    ];
    let mark_at = prop_oneof![
        (0u64..8).prop_map(|k| Size::Packets(Packets::new(k))),
        (0u64..9_000).prop_map(|k| Size::Bytes(Bytes::new(k))),
    ];
    let aqm = prop::option::of(
        mark_at.prop_map(|mark_at| AqmConfig::Threshold(narrows_core::queue::aqm::threshold::Config { mark_at })),
    );
    let weights = prop::collection::vec(prop_oneof![3 => 1u16..4, 1 => 1u16..=1_000], usize::from(CLASSES)..=8);
    (rate, delay, limit, any::<bool>(), aqm, prop::option::of(weights))
        .prop_map(|(rate, delay, limit, pooled, aqm, weights)| Wire { rate, delay, limit, pooled, aqm, weights })
}

/// A random network, with ports that serve several classes or without.
fn case(classes: bool) -> impl Strategy<Value = Case> {
    let tick = prop_oneof![3 => (0u64..150).prop_map(|ticks| ticks * TICK), 1 => 0u64..150 * TICK];
    // 84, 168, 1538 and odd numbers of bytes on the wire.
    let size = prop_oneof![Just(46u32), Just(20), Just(130), Just(1_500), 20u32..1_500];
    let packet = (tick.clone(), any::<u32>(), any::<u32>(), size, 0..CLASSES, prop::bool::weighted(0.8));
    (
        (prop::collection::vec(any::<u32>(), 1..4), prop::collection::vec(any::<u32>(), 2..7)),
        prop::collection::vec(wire(), 1..20),
        prop::collection::vec((0u64..40_000, 0u32..4 * 65_536), 4),
        prop::collection::vec(packet, 1..200),
        prop::collection::vec(tick.clone(), 0..10),
        (tick, 1u64..300, prop::collection::vec(prop_oneof![1u64..TICK, 1u64..100 * TICK], 1..5)),
    )
        .prop_map(move |((parents, places), wires, pools, packets, samples, (reset, end, windows))| {
            let (hosts, switches) = (places.len(), parents.len());
            let mut graph = graph(hosts, switches);
            let id = |index: usize| u32::try_from(index).unwrap();
            for (switch, parent) in parents.iter().enumerate().skip(1) {
                let parent = hosts + *parent as usize % switch;
                connect(&mut graph, id(hosts + switch), id(parent), Rate::from_bps(1), Span::ZERO);
            }
            for (host, place) in places.iter().enumerate() {
                connect(&mut graph, id(host), id(hosts + *place as usize % switches), Rate::from_bps(1), Span::ZERO);
            }
            for (switch, &(size, alpha)) in pools.iter().enumerate().take(switches) {
                graph.nodes[hosts + switch].pool = Some(PoolConfig { size: Bytes::new(size), alpha });
            }
            for (link, wire) in graph.links.iter_mut().zip(wires.iter().cycle()) {
                link.rate = Rate::from_bps(wire.rate);
                link.delay = Span::from_ps(wire.delay);
                (link.limit, link.aqm) = (wire.limit, wire.aqm);
                link.pooled = wire.pooled && link.from as usize >= hosts;
                let weights = wire.weights.clone().filter(|_| classes && link.from as usize >= hosts);
                link.scheduler = weights.map(|weights| Scheduler::Drr { weights });
            }
            let packets = (0..)
                .zip(packets)
                .map(|(id, (at, from, to, size, class, capable))| {
                    let from = from % u32::try_from(hosts).unwrap();
                    let to = (from + 1 + to % u32::try_from(hosts - 1).unwrap()) % u32::try_from(hosts).unwrap();
                    (at, from, Packet { id, destination: to, flow: id, size, class, capable, marked: false })
                })
                .collect();
            let end = end * TICK;
            Case { graph, packets, samples, reset: reset.min(end), end, windows }
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]
    #[test]
    fn computed_departures_equal_explicit_ones(case in case(false)) {
        prop_assert_eq!(computed(&case), explicit(&case));
    }

    #[test]
    fn classes_served_lazily_leave_as_classes_served_by_an_event_each(case in case(true)) {
        prop_assert_eq!(computed(&case), explicit(&case));
    }
}
