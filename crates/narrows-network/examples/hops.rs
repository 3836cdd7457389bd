//! What a packet-hop costs: window-limited hosts that echo, on a dumbbell and on fat-trees.
//!
//! Each sender keeps a window of 1500-byte packets in flight, each receiver answers every packet with 52 bytes. That is
//! the network without TCP. Every figure is also given in *holds*, the time in which a binary heap with 10,000 pending
//! 16-byte entries gives up its first and takes it back for a random later time: a unit that moves with the machine.
//!
//! `cargo run --release -p narrows-network --example hops [NAME]`: the works whose name contains `NAME`, or all.

use narrows_core::queue::Limit;
use narrows_core::queue::aqm::threshold::Config;
use narrows_core::rng::{SmallStream, mix};
use narrows_core::units::{Packets, Rate, Span, Time};
use narrows_network::{Entity, Event, Network, Offered, Payload};
use narrows_plan::{Graph, Link, Node, NodeKind, Role};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::hint::black_box;
use std::time::Instant;

#[derive(Clone, Copy)]
struct Packet {
    source: u32,
    destination: u32,
    flow: u32,
    size: u16,
    capable: bool,
    marked: bool,
    // What a TCP segment also carries.
    _rest: [u32; 4],
}

impl Packet {
    fn new(source: u32, destination: u32, flow: u32, size: u16, capable: bool) -> Packet {
        Packet { source, destination, flow, size, capable, marked: false, _rest: [0; 4] }
    }
}

impl Payload for Packet {
    fn ip_bytes(&self) -> u32 {
        u32::from(self.size)
    }
    fn destination(&self) -> u32 {
        self.destination
    }
    fn flow_hash(&self) -> u32 {
        self.flow
    }
    fn ecn_capable(&self) -> bool {
        self.capable
    }
    fn mark(&mut self) {
        self.marked = true;
    }
}

/// A network and who sends how many packets at a time to whom.
struct Work {
    name: &'static str,
    graph: Graph,
    pairs: Vec<(u32, u32)>,
    window: u32,
    end: Time,
}

fn add_node(graph: &mut Graph, kind: NodeKind) -> u32 {
    let id = u32::try_from(graph.nodes.len()).expect("few nodes");
    graph.nodes.push(Node::new(format!("n{id}"), kind));
    id
}

fn connect(graph: &mut Graph, a: u32, b: u32, rate: Rate, delay: Span, limit: u64, mark_at: Option<u64>) {
    for (from, to) in [(a, b), (b, a)] {
        let host = graph.nodes[from as usize].kind == NodeKind::Host;
        let role = if host { Role::Host } else { Role::Fabric };
        let plain = Link::new(format!("n{from}->n{to}"), (from, to), role, rate, delay);
        graph.links.push(match host {
            true => plain,
            false => Link { limit: Limit::Packets(Packets::new(limit)), aqm: mark_at.map(Config::at), ..plain },
        });
    }
}

fn dumbbell() -> Work {
    let mut graph = Graph { nodes: Vec::new(), links: Vec::new() };
    let hosts: Vec<u32> = (0..20).map(|_| add_node(&mut graph, NodeKind::Host)).collect();
    let (left, right) = (add_node(&mut graph, NodeKind::Switch), add_node(&mut graph, NodeKind::Switch));
    for (i, &host) in hosts.iter().enumerate() {
        let switch = if i < 10 { left } else { right };
        connect(&mut graph, host, switch, Rate::from_gbps(10), Span::from_us(10), 1_000, None);
    }
    connect(&mut graph, left, right, Rate::from_gbps(1), Span::from_us(4_980), 1_000, None);
    let pairs = (0..10).map(|i| (i, i + 10)).collect();
    Work { name: "W1-like: dumbbell", graph, pairs, window: 150, end: Time::from_ns(10_000_000_000) }
}

fn fat_tree(name: &'static str, k: u32, window: u32, end: Time) -> Work {
    let mut graph = Graph { nodes: Vec::new(), links: Vec::new() };
    let (rate, delay, half) = (Rate::from_gbps(10), Span::from_us(1), k / 2);
    let hosts: Vec<u32> = (0..k * half * half).map(|_| add_node(&mut graph, NodeKind::Host)).collect();
    let cores: Vec<u32> = (0..half * half).map(|_| add_node(&mut graph, NodeKind::Switch)).collect();
    let join = |graph: &mut Graph, a, b| connect(graph, a, b, rate, delay, 450, Some(65));
    for pod in 0..k {
        let upper: Vec<u32> = (0..half).map(|_| add_node(&mut graph, NodeKind::Switch)).collect();
        for (i, &switch) in (0..).zip(&upper) {
            for j in 0..half {
                join(&mut graph, switch, cores[(i * half + j) as usize]);
            }
        }
        for i in 0..half {
            let edge = add_node(&mut graph, NodeKind::Switch);
            upper.iter().for_each(|&switch| join(&mut graph, edge, switch));
            (0..half).for_each(|j| join(&mut graph, edge, hosts[((pod * half + i) * half + j) as usize]));
        }
    }
    let count = u32::try_from(hosts.len()).expect("few hosts");
    let pairs = (0..count).map(|host| (host, (host + count / 2 + 1) % count)).collect();
    Work { name, graph, pairs, window, end }
}

/// Runs once: nanoseconds, packet-hops, events, packets delivered.
fn run(work: &Work) -> (f64, u64, u64, u64) {
    let mut network: Network<Packet> = Network::new(&work.graph, 1).expect("a valid graph");
    let hash = |flow: u64| u32::try_from(mix(flow) >> 32).expect("32 bits");
    for (slot, _) in (0..).zip(&work.pairs) {
        network.arm(Entity::start(u64::from(slot), slot), Time::from_ns(u64::from(slot) * 997));
    }
    let mut delivered = 0;
    let begin = Instant::now();
    while let Some((now, event)) = network.next(work.end) {
        match event {
            Event::Due(entity) => {
                let (source, destination) = work.pairs[entity.slot() as usize];
                for _ in 0..work.window {
                    let packet = Packet::new(source, destination, hash(entity.id()), 1_500, true);
                    offer(&mut network, now, packet);
                }
            }
            Event::Dropped { .. } => unreachable!("windows fit the queues"),
            Event::Sampled { .. } => unreachable!("nothing is sampled"),
            Event::Entering { .. } | Event::Crossed { .. } => unreachable!("nothing is bridged"),
            // Data: echo. An echo: the next packet.
            Event::Arrival { host, packet } => {
                delivered += 1;
                let size = if packet.size == 1_500 { 52 } else { 1_500 };
                offer(&mut network, now, Packet::new(host, packet.source, packet.flow, size, true));
            }
        }
    }
    let elapsed = begin.elapsed().as_secs_f64() * 1e9;
    (elapsed, network.packet_hops(), network.events(), delivered)
}

fn offer(network: &mut Network<Packet>, now: Time, packet: Packet) {
    let link = network.host_link(packet.source);
    let offered = network.offer(now, link, packet);
    assert!(matches!(offered, Offered::Accepted { .. }), "a host's port takes everything");
}

/// Nanoseconds per hold.
fn hold() -> f64 {
    let mut stream = SmallStream::new(1);
    let mut heap: BinaryHeap<Reverse<(u64, u64)>> =
        (0..10_000).map(|key| Reverse((stream.below(1 << 20), key))).collect();
    let turns = 2_000_000;
    let begin = Instant::now();
    for _ in 0..turns {
        let Reverse((time, key)) = heap.pop().expect("never empty");
        heap.push(Reverse((time + stream.below(1 << 20), key)));
    }
    black_box(&heap);
    begin.elapsed().as_secs_f64() * 1e9 / f64::from(turns)
}

fn best(times: usize, mut measure: impl FnMut() -> f64) -> f64 {
    (0..times).map(|_| measure()).fold(f64::INFINITY, f64::min)
}

fn main() {
    let hold = best(5, hold);
    println!("hold: {hold:.1} ns");
    println!("{:24} {:>10} {:>8} {:>8} {:>12} {:>10}", "work", "hops", "ns/hop", "holds", "events/hop", "delivered");
    let works = [
        dumbbell(),
        fat_tree("W3-like: fat-tree k = 8", 8, 24, Time::from_ns(20_000_000)),
        fat_tree("W4-like: fat-tree k = 16", 16, 24, Time::from_ns(3_000_000)),
    ];
    let wanted = std::env::args().nth(1).unwrap_or_default();
    for work in works.iter().filter(|work| work.name.contains(&wanted)) {
        let mut last = (0.0, 0, 0, 0);
        let ns = best(5, || {
            last = run(work);
            last.0
        });
        let (_, hops, events, delivered) = last;
        let per_hop = ns / hops as f64;
        println!(
            "{:24} {hops:>10} {per_hop:>8.1} {:>8.3} {:>12.3} {delivered:>10}",
            work.name,
            per_hop / hold,
            events as f64 / hops as f64
        );
    }
}
