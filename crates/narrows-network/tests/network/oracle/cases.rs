//! Random networks and what is sent over them.

use super::TICK;
use crate::support::{Packet, connect, graph};
use narrows_core::link::{Change, Event as LinkEvent, FunctionConfig, gilbert_elliott, reorder};
use narrows_core::queue::aqm::{Size, codel, phantom, threshold};
use narrows_core::queue::pfc::Thresholds;
use narrows_core::queue::scheduler::{Aqms, drr, dual_pi2, fq, fq_codel, strict_priority};
use narrows_core::queue::{AqmConfig, Limit, PoolConfig, SchedulerConfig};
use narrows_core::units::{Bytes, Packets, Rate, Span, Time};
use narrows_plan::{Graph, Ingress};
use proptest::prelude::*;

#[derive(Clone, Debug)]
pub(super) struct Case {
    pub(super) graph: Graph,
    /// When, where, what.
    pub(super) packets: Vec<(u64, u32, Packet)>,
    pub(super) samples: Vec<u64>,
    pub(super) reset: u64,
    pub(super) end: u64,
    /// Steps in which the driver asks for events.
    pub(super) windows: Vec<u64>,
}

#[derive(Clone, Debug)]
struct Wire {
    rate: u64,
    delay: u64,
    stack: u64,
    limit: Limit,
    pooled: bool,
    aqm: Option<AqmConfig>,
    scheduler: Option<SchedulerConfig>,
    ingress: Option<Ingress>,
    pauses: Option<Thresholds>,
    functions: Vec<FunctionConfig>,
    events: Vec<LinkEvent>,
    /// Whether they count where ports are served.
    varies: bool,
    /// Whether the port writes telemetry, of which the explicit one knows nothing: it must change nothing.
    telemetry: bool,
}

/// Packets are of the classes below this.
const CLASSES: u8 = 3;

/// Of short times, so that it acts on few packets.
fn dual_pi2() -> impl Strategy<Value = dual_pi2::Config> {
    let times = (TICK / 4..10 * TICK, TICK..20 * TICK, 0u64..3 * TICK, 0u64..3 * TICK);
    (times, 1u64..4).prop_map(|((target, rtt_max, threshold, range), coupling)| {
        let [target, rtt_max, threshold, range] = [target, rtt_max, threshold, range].map(Span::from_ps);
        dual_pi2::Config { target, rtt_max, coupling, threshold, range }
    })
}

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
    let codel = || {
        (1u64..10 * TICK, 0u64..15 * TICK, prop::bool::weighted(0.3)).prop_map(|(target, more, ecn)| {
            codel::Config::checked(Span::from_ps(target), Span::from_ps(target + more), ecn).unwrap()
        })
    };
    let phantom = (mark_at.clone(), 1u64..1 << 16, any::<bool>())
        .prop_map(|(mark_at, drain, at_arrival)| AqmConfig::Phantom(phantom::Config { mark_at, drain, at_arrival }));
    let marks = (mark_at, any::<bool>());
    let marks = marks.prop_map(|(mark_at, at_dequeue)| AqmConfig::Threshold(threshold::Config { mark_at, at_dequeue }));
    let aqm = prop::option::of(prop_oneof![2 => marks, 1 => phantom, 2 => codel().prop_map(AqmConfig::Codel)]);
    let weights = prop::collection::vec(prop_oneof![3 => 1u16..4, 1 => 1u16..=1_000], usize::from(CLASSES)..=8);
    let scheduler = prop_oneof![
        Just(None),
        (CLASSES..=8).prop_map(|classes| Some(SchedulerConfig::StrictPriority(strict_priority::Config { classes }))),
        weights.prop_map(|weights| Some(SchedulerConfig::Drr(drr::Config { weights }))),
        (1u32..6, 1u64..4_000).prop_map(|(queues, quantum)| {
            Some(SchedulerConfig::Fq(fq::Config { queues, quantum: Bytes::new(quantum) }))
        }),
        (1u32..6, 1u64..4_000, codel()).prop_map(|(queues, quantum, codel)| {
            Some(SchedulerConfig::FqCodel(fq_codel::Config { queues, quantum: Bytes::new(quantum), codel }))
        }),
        dual_pi2().prop_map(|config| Some(SchedulerConfig::DualPi2(config))),
    ];
    let thresholds = || {
        (0u64..1_500, 0u64..1_500).prop_map(|(xon, more)| Thresholds {
            xon: Bytes::new(xon),
            xoff: Bytes::new(xon + more),
            may_lose: true,
        })
    };
    let memory = prop_oneof![Just(Limit::Unlimited), (0u64..15_000).prop_map(|most| Limit::Bytes(Bytes::new(most)))];
    let ingress = (memory, prop::option::weighted(0.9, thresholds()))
        .prop_map(|(limit, thresholds)| Ingress { limit, thresholds });
    let pauses = prop::option::weighted(0.3, thresholds());
    let stack = prop_oneof![Just(0u64), (0u64..20).prop_map(|ticks| ticks * TICK), 0u64..20 * TICK];
    let switching = (scheduler, prop::option::weighted(0.9, ingress), pauses);
    let varying = (functions(), events(), prop::bool::weighted(0.3), prop::bool::weighted(0.2));
    ((rate, delay, stack), limit, any::<bool>(), aqm, switching, varying).prop_map(
        |(
            (rate, delay, stack),
            limit,
            pooled,
            aqm,
            (scheduler, ingress, pauses),
            (functions, events, varies, telemetry),
        )| Wire {
            rate,
            delay,
            stack,
            limit,
            pooled,
            aqm,
            scheduler,
            ingress,
            pauses,
            functions,
            events,
            varies,
            telemetry,
        },
    )
}

/// What happens on a wire.
fn functions() -> impl Strategy<Value = Vec<FunctionConfig>> {
    let probability = || prop_oneof![0u64..1 << 31, Just(1 << 32), Just(1 << 30)];
    let loss = (1u64..1 << 32, 1u64..1 << 32, probability()).prop_map(|(p, r, loss_bad)| {
        FunctionConfig::GilbertElliott(gilbert_elliott::Config { p, r, loss_bad, loss_good: 0 })
    });
    let reorder = (probability(), 0u64..20, prop_oneof![Just(0), 0u64..20 * TICK]).prop_map(|(share, ticks, more)| {
        let delay = Span::from_ps(ticks * TICK);
        FunctionConfig::Reorder(reorder::Config { share, delay, delay_max: delay + Span::from_ps(more) })
    });
    (prop::option::of(loss), prop::option::of(reorder))
        .prop_map(|(loss, reorder)| loss.into_iter().chain(reorder).collect())
}

/// What changes at a link: rates and delays in any order, and outages that do not overlap.
fn events() -> impl Strategy<Value = Vec<LinkEvent>> {
    let time = || prop_oneof![3 => (0u64..120).prop_map(|ticks| ticks * TICK), 1 => 0u64..120 * TICK];
    let rate = prop_oneof![Just(1_000_000_000u64), Just(10_000_000_000), 50_000_000u64..3_000_000_000];
    let rates = prop::collection::vec((time(), rate.prop_map(|bps| Change::Rate(Rate::from_bps(bps)))), 0..4);
    let delay = (0u64..30).prop_map(|ticks| Change::Delay(Span::from_ps(ticks * TICK)));
    let delays = prop::collection::vec((time(), delay), 0..4);
    let outages = prop::collection::btree_set(time(), 0..5).prop_map(|times| {
        let changes = [Change::Down, Change::Up].into_iter().cycle();
        times.into_iter().zip(changes).collect::<Vec<(u64, Change)>>()
    });
    (rates, delays, outages).prop_map(|(rates, delays, outages)| {
        let all = rates.into_iter().chain(delays).chain(outages);
        let mut events: Vec<LinkEvent> = all.map(|(at, change)| LinkEvent { at: Time::from_ps(at), change }).collect();
        events.sort_by_key(|event| event.at);
        events
    })
}

/// What a case draws in beside plain ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ports {
    Computed,
    Changing,
    Queues,
    Pausable,
}

/// A random network with such ports.
pub(super) fn case(ports: Ports) -> impl Strategy<Value = Case> {
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
                let (of_switch, to_switch) = (link.from as usize >= hosts, link.to as usize >= hosts);
                // What judges departures is served.
                let is_plain = !matches!(ports, Ports::Queues | Ports::Pausable) || !of_switch;
                link.aqm = link.aqm.filter(|aqm| !(is_plain && aqm.judges_departures()));
                link.scheduler = wire.scheduler.clone().filter(|_| !is_plain);
                link.telemetry = wire.telemetry && !is_plain;
                if ports == Ports::Changing {
                    (link.functions, link.events) = (wire.functions.clone(), wire.events.clone());
                }
                if matches!(ports, Ports::Queues | Ports::Pausable) && wire.varies {
                    (link.functions, link.events) = (wire.functions.clone(), wire.events.clone());
                }
                if link.scheduler.as_ref().is_some_and(|scheduler| scheduler.aqm() != Aqms::OfPort) {
                    link.aqm = None;
                }
                link.ingress = wire.ingress.filter(|_| ports == Ports::Pausable && to_switch);
                if ports == Ports::Pausable && !(of_switch && to_switch) {
                    link.stack = Span::from_ps(wire.stack);
                    link.delay += link.stack;
                }
                link.pauses = wire.pauses.filter(|_| ports == Ports::Pausable && of_switch);
            }
            let can_be_paused = graph.can_be_paused();
            for link in (0..graph.links.len()).filter(|&link| can_be_paused[link] || can_be_paused[link ^ 1]) {
                let link = &mut graph.links[link];
                link.events.retain(|event| matches!(event.change, Change::Rate(_)));
                link.functions.clear();
            }
            let packets = (0..)
                .zip(packets)
                .map(|(id, (at, from, to, size, class, capable))| {
                    // Close together where queues are to grow.
                    let at = if ports == Ports::Computed { at } else { at / 4 };
                    let from = from % u32::try_from(hosts).unwrap();
                    let to = (from + 1 + to % u32::try_from(hosts - 1).unwrap()) % u32::try_from(hosts).unwrap();
                    (
                        at,
                        from,
                        Packet {
                            id,
                            destination: to,
                            flow: id % 7,
                            size,
                            class,
                            capable,
                            marked: false,
                            pause: None,
                            telemetry: None,
                        },
                    )
                })
                .collect();
            let end = end * TICK;
            Case { graph, packets, samples, reset: reset.min(end), end, windows }
        })
}
