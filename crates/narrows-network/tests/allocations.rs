//! Nothing is allocated once every structure has reached the size that its traffic needs.
#![allow(clippy::unwrap_used, clippy::cast_possible_truncation, reason = "a test may")]

#[path = "network/support.rs"]
mod support;

use narrows_core::queue::SchedulerConfig;
use narrows_core::queue::scheduler::drr;
use narrows_core::queue::{Limit, PoolConfig};
use narrows_core::units::{Bytes, Packets, Rate, Span, Time};
use narrows_network::{Class, Entity, Event, Network};
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, Ordering};
use support::{Packet, connect, graph, threshold};

struct Counting;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

// SAFETY: every call goes to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc(layout) }
    }
    unsafe fn realloc(&self, old: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.realloc(old, layout, size) }
    }
    unsafe fn dealloc(&self, old: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise is passed on.
        unsafe { System.dealloc(old, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const HOSTS: u32 = 8;
const WINDOW: u32 = 60;

/// Echoing hosts at two pooled switches with two paths between them. Each arrival moves its host's timer to later, and a
/// second one to earlier than it was, which leaves stale entries.
fn step(network: &mut Network<Packet>, until: Time) {
    while let Some((now, event)) = network.next(until) {
        let (host, packets) = match event {
            Event::Due(entity) if entity.class() == Class::Start => (entity.slot(), WINDOW),
            Event::Due(entity) => {
                network.arm(entity, now + Span::from_ms(200));
                continue;
            }
            Event::Dropped { .. } | Event::Sampled { .. } => continue,
            Event::Left { .. } | Event::Recalled { .. } | Event::Entering { .. } | Event::Crossed { .. } => {
                unreachable!("nothing is bridged")
            }
            Event::Arrival { host, .. } => (host, 1),
        };
        let timer = |kind: u32| Entity::timer(u64::from(2 * host + kind), 2 * host + kind);
        network.arm(timer(0), now + Span::from_ms(200));
        network.arm(timer(1), now + Span::from_ms(if now.as_ns() % 2 == 0 { 3 } else { 1 }));
        for _ in 0..packets {
            let packet =
                Packet { flow: host, class: (host % 2) as u8, ..Packet::to((host + HOSTS / 2) % HOSTS, 1_500) };
            network.offer(now, network.host_link(host), packet);
        }
    }
}

#[test]
fn a_warm_network_allocates_nothing() {
    stays_as_it_is(false);
    stays_as_it_is(true);
}

/// With `classes`, half of the switches serve two.
fn stays_as_it_is(classes: bool) {
    let mut graph = graph(HOSTS as usize, 4);
    for host in 0..HOSTS {
        connect(&mut graph, host, HOSTS + host / (HOSTS / 2), Rate::from_gbps(10), Span::from_us(5));
    }
    for (a, b) in [(8, 10), (8, 11), (9, 10), (9, 11)] {
        connect(&mut graph, a, b, Rate::from_gbps(1), Span::from_us(500));
    }
    for switch in 8..12 {
        graph.nodes[switch].pool = Some(PoolConfig { size: Bytes::new(4_000_000), alpha: 1 << 16 });
    }
    for link in graph.links.iter_mut().filter(|link| link.from >= HOSTS) {
        (link.pooled, link.limit, link.aqm) = (true, Limit::Packets(Packets::new(1_000)), threshold(20));
        link.scheduler =
            (classes && link.from % 2 == 0).then(|| SchedulerConfig::Drr(drr::Config { weights: vec![2, 1] }));
    }
    let mut network = Network::new(&graph, 1).unwrap();
    for host in 0..HOSTS {
        network.arm(Entity::start(u64::from(host), host), Time::ZERO);
    }
    step(&mut network, Time::from_ns(500_000_000));
    let (before, hops) = (ALLOCATIONS.load(Ordering::Relaxed), network.packet_hops());
    step(&mut network, Time::from_ns(1_500_000_000));
    assert_eq!(ALLOCATIONS.load(Ordering::Relaxed), before);
    assert!(network.packet_hops() - hops > 500_000, "{}", network.packet_hops() - hops);
}
