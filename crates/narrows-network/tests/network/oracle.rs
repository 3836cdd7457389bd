//! The explicit port, with an event per departure and nothing clever, against the computed and the lazily served one: on
//! random small networks both must give the same arrivals, drops, marks, pauses, backlogs and counters. So must links that
//! change during the run: here each change is an event.

mod cases;
mod explicit;
mod port;

use self::cases::{Case, Ports, case};
use self::explicit::explicit;
use crate::support::Packet;
use narrows_core::queue::{AqmConfig, DropReason, SchedulerConfig};
use narrows_core::units::{Packets, Span, Time};
use narrows_network::{Class, Entity, Event, Network, Offered};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

/// 84 bytes at 1 Gbit/s. Delays, injections and most service times are multiples, so that times often tie.
const TICK: u64 = 672_000;

const SEED: u64 = 7;

/// Everything that both models must agree on, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Seen {
    Arrived(u64, u32, Packet),
    /// When, and which packet.
    Dropped(u64, u32),
    /// When a packet has left a host's port, and which.
    Left(u64, u32, u32),
    Backlog(u64, u32, u64, u64),
    /// Sent packets and bytes, largest backlog, its integral, how long the packet in service had been so at the reset and is,
    /// drops by reason, marks, how long it was paused, and at most without a break, pause frames, packets late on the wire.
    Counters(u32, u64, u64, u64, u128, [u64; 2], [u64; DropReason::COUNT], [u64; 5]),
}

/// In which order departures are compared: some are told ahead.
fn order(seen: &Seen) -> (u64, u32) {
    let Seen::Left(at, link, _) = seen else { unreachable!("of departures") };
    (*at, *link)
}

fn computed(case: &Case) -> Vec<Seen> {
    let mut network: Network<Packet> = Network::new(&case.graph, SEED).unwrap();
    let (mut seen, mut left, served) = (Vec::new(), Vec::new(), case.graph.served());
    for (slot, &(at, ..)) in (0..).zip(&case.packets) {
        network.arm(Entity::start(u64::from(slot), slot), Time::from_ps(at));
    }
    for (slot, &at) in (0..).zip(&case.samples) {
        network.arm(Entity::sample(u64::from(slot), slot), Time::from_ps(at));
    }
    let reset = Entity::sample(u64::from(u32::MAX), u32::try_from(case.samples.len()).unwrap());
    network.arm(reset, Time::from_ps(case.reset));
    let mut windows = case.windows.iter().cycle();
    let (mut until, mut last) = (0, Time::ZERO);
    while until < case.end {
        until = case.end.min(until + windows.next().unwrap());
        while let Some((now, event)) = network.next(Time::from_ps(until)) {
            assert!(last <= now, "time goes back from {last:?} to {now:?}: {event:?}");
            last = now;
            match event {
                Event::Arrival { host, packet } => {
                    // The explicit port writes no telemetry.
                    packet.telemetry.map(|place| network.take_telemetry(place));
                    seen.push(Seen::Arrived(now.as_ps(), host, Packet { telemetry: None, ..packet }));
                }
                Event::Dropped { packet } => {
                    packet.telemetry.map(|place| network.take_telemetry(place));
                    seen.push(Seen::Dropped(now.as_ps(), packet.id));
                }
                Event::Sampled { .. } => unreachable!("nothing is sampled"),
                Event::Left { link, packet } => left.push(Seen::Left(now.as_ps(), link, packet.id)),
                Event::Recalled { .. } => {
                    let recalled: Vec<u32> = network.take_recalled().iter().map(|packet| packet.id).collect();
                    left.retain(
                        |seen| !matches!(seen, Seen::Left(at, _, id) if recalled.contains(id) && *at > now.as_ps()),
                    );
                }
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
                    let link = network.host_link(host);
                    match network.offer(now, link, packet) {
                        Offered::Accepted { departure: Time::NEVER, .. } => {}
                        Offered::Accepted { departure, .. } if served[link as usize] => {
                            left.push(Seen::Left(departure.as_ps(), link, packet.id));
                        }
                        Offered::Accepted { .. } => {}
                        Offered::Dropped(_) => seen.push(Seen::Dropped(now.as_ps(), packet.id)),
                    }
                }
            }
        }
    }
    left.retain(|seen| matches!(seen, Seen::Left(at, ..) if *at <= case.end));
    left.sort_by_key(order);
    seen.extend(left);
    for (link, counters) in (0..).zip(network.finish(Time::from_ps(case.end))) {
        let (sent, max) = (counters.sent, counters.queue_max.get());
        // At a line that changes, what has gone is told in units of the line as it begins.
        let changes = !case.graph.links[link as usize].events.is_empty();
        let begun = [counters.begun_before, counters.begun].map(|begun| if changes { 0 } else { begun.as_ps() });
        let (integral, dropped) = (counters.queue_integral, counters.dropped.map(Packets::get));
        let paused = [counters.paused, counters.longest_pause].map(Span::as_ps);
        let told = [counters.marked.get(), paused[0], paused[1], counters.pause_frames.get(), counters.late.get()];
        seen.push(Seen::Counters(link, sent.packets.get(), sent.bytes.get(), max, integral, begun, dropped, told));
    }
    while let Some((now, event)) = network.next(Time::from_ps(case.end)) {
        let Event::Dropped { packet } = event else { panic!("{event:?} after the end") };
        seen.push(Seen::Dropped(now.as_ps(), packet.id));
    }
    seen
}

/// Both agree. What is dropped after it was accepted may be told later than it happened.
fn agree(case: &Case) -> Result<(), TestCaseError> {
    let (explicit, mut withdrawn) = explicit(case);
    let mut computed = computed(case);
    let mut late = Vec::new();
    computed.retain(|seen| match seen {
        Seen::Dropped(told, id) => match withdrawn.remove(id) {
            Some(at) => {
                late.push((*told, at));
                false
            }
            None => true,
        },
        _ => true,
    });
    prop_assert_eq!(computed, explicit);
    prop_assert!(withdrawn.is_empty(), "not told of: {withdrawn:?}");
    prop_assert!(late.iter().all(|(told, at)| told >= at), "told too early: {late:?}");
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]
    #[test]
    fn computed_departures_equal_explicit_ones(case in case(Ports::Computed)) {
        agree(&case)?;
    }

    #[test]
    fn links_that_change_do_as_links_with_an_event_for_each_change(case in case(Ports::Changing)) {
        agree(&case)?;
    }

    #[test]
    fn queues_served_lazily_leave_as_queues_served_by_an_event_each(case in case(Ports::Queues)) {
        agree(&case)?;
    }

    #[test]
    fn switches_that_pause_links_pause_and_resume_them_as_explicit_ones_do(case in case(Ports::Pausable)) {
        agree(&case)?;
    }
}

/// The random cases are about what they are named for: in most of them ports are paused, and in some packets come again after.
#[test]
fn most_random_switches_that_may_pause_do() {
    let mut runner = TestRunner::deterministic();
    let cases = (0..200).map(|_| case(Ports::Pausable).new_tree(&mut runner).unwrap().current());
    let (mut pausing, mut resumed) = (0, 0);
    for case in cases {
        let counters = computed(&case).into_iter().filter_map(|seen| match seen {
            Seen::Counters(_, sent, .., [_, paused, _, frames, _]) => Some((sent, paused, frames)),
            _ => None,
        });
        let (mut paused, mut goes_on) = (false, false);
        for (sent, time, frames) in counters {
            paused |= frames > 0;
            goes_on |= time > 0 && sent > 0;
        }
        pausing += u32::from(paused);
        resumed += u32::from(goes_on);
    }
    assert!(pausing > 60 && resumed > 40, "{pausing}, {resumed}");
}

/// In many random cases the line of a served port changes while packets leave it, with several queues and with pauses.
#[test]
fn the_lines_of_many_random_served_ports_change() {
    let mut runner = TestRunner::deterministic();
    for (ports, pauses) in [(Ports::Queues, false), (Ports::Pausable, true)] {
        let cases = (0..300).map(|_| case(ports).new_tree(&mut runner).unwrap().current());
        let changed = cases.filter(|case| {
            let served = case.graph.served();
            computed(case).iter().any(|seen| match seen {
                Seen::Counters(link, sent, .., [_, paused, ..]) => {
                    let (link, is_served) = (&case.graph.links[*link as usize], served[*link as usize]);
                    let changes =
                        link.events.iter().any(|event| event.at.as_ps() > case.reset && event.at.as_ps() < case.end);
                    is_served && changes && *sent > 3 && (!pauses || *paused > 0)
                }
                _ => false,
            })
        });
        let changed = changed.count();
        assert!(changed > 20, "{ports:?}: {changed}");
    }
}

/// Packets are dropped and marked when they leave, with every discipline, and flow queues lose packets to their limit.
#[test]
fn many_random_ports_drop_and_mark_what_leaves() {
    let mut runner = TestRunner::deterministic();
    let cases = (0..2_000).map(|_| case(Ports::Queues).new_tree(&mut runner).unwrap().current());
    let mut found = [0; 8];
    for case in cases {
        let case = Case { reset: 0, ..case };
        for seen in explicit(&case).0 {
            let Seen::Counters(link, .., dropped, [marked, ..]) = seen else { continue };
            let link = &case.graph.links[link as usize];
            let is_codel = matches!(link.aqm, Some(AqmConfig::Codel(_)));
            let is_fq = matches!(link.scheduler, Some(SchedulerConfig::FqCodel(_)));
            let is_plain_fq = matches!(link.scheduler, Some(SchedulerConfig::Fq(_)));
            found[6] += usize::from(is_plain_fq && dropped[DropReason::Limit as usize] > 0);
            let is_phantom = matches!(link.aqm, Some(AqmConfig::Phantom(_)));
            found[7] += usize::from(is_phantom && marked > 0);
            let judges = link.aqm.is_some_and(|aqm| aqm.judges_departures());
            found[0] += usize::from(is_codel && dropped[DropReason::Aqm as usize] > 0);
            found[1] += usize::from(is_fq && dropped[DropReason::Aqm as usize] > 0);
            found[2] += usize::from(is_fq && dropped[DropReason::Limit as usize] > 0);
            found[3] += usize::from(judges && !is_codel && marked > 0);
            let is_dual = matches!(link.scheduler, Some(SchedulerConfig::DualPi2(_)));
            found[4] += usize::from(is_dual && dropped[DropReason::Aqm as usize] > 0);
            found[5] += usize::from(is_dual && marked > 0);
        }
    }
    assert!(found.iter().all(|&ports| ports > 15), "{found:?}");
}

/// And of networks that change, many lose packets at a port that is down and on a wire that is cut, and delay some.
#[test]
fn many_random_links_that_change_lose_and_reorder() {
    let mut runner = TestRunner::deterministic();
    let cases = (0..200).map(|_| case(Ports::Changing).new_tree(&mut runner).unwrap().current());
    let mut found = [0; 4];
    for case in cases {
        let mut seen = [0; 4];
        for one in computed(&case) {
            if let Seen::Counters(.., dropped, [.., late]) = one {
                let reasons = [DropReason::Outage, DropReason::Cut, DropReason::Impairment];
                let counts = reasons.map(|reason| dropped[reason as usize]).into_iter().chain([late]);
                seen.iter_mut().zip(counts).for_each(|(seen, count)| *seen += count);
            }
        }
        found.iter_mut().zip(seen).for_each(|(found, count)| *found += u32::from(count > 0));
    }
    assert!(found.into_iter().all(|cases| cases > 30), "{found:?}");
}
