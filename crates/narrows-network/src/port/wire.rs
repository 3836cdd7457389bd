//! The wire of a link on which more happens than a delay: link functions, and changes at stated times.
//!
//! A port computes departures ahead with the whole schedule ([`Ports::finish`]), and its ring holds arrivals as they would be with
//! the least delay that the link ever has: what other parts of a run may count on. When a packet has come so far,
//! [`Ports::cross`] says what became of it on the wire: arrived, lost, or still under way. What is still under way lies beside
//! the ring, by the time of its arrival, and has an appointment of its own.
//!
//! What waits when the link goes down leaves the port at that moment, into nothing: it is in the ring as if it had departed
//! then, and the wire drops it. The port counts it when it is accepted, by outage, as it is known to be lost.

use std::collections::BTreeMap;

use narrows_core::link::{Context, Fate, Function, Schedule};
use narrows_core::queue::{Backlog, DropReason};
use narrows_core::rng::SmallStream;
use narrows_core::units::{Bytes, Packets, Rate, Span, Time};
use narrows_plan::{Link, LossOf};

use super::{NONE, Ports, index};
use crate::network::Payload;

/// See the [module](self).
#[derive(Clone, Debug)]
pub(super) struct Wire<P> {
    schedule: Option<Schedule>,
    /// What of the schedule's delays lies before the port: a host's stack, where the port is served.
    stack: Span,
    functions: Vec<Function>,
    loss_of: LossOf,
    /// What each outage has taken out of the port, whenever it begins.
    flushed: Vec<Backlog>,
    /// What outages had taken when the counters were reset last.
    flushed_before: Backlog,
    /// When the last packet that kept its place arrives.
    in_order: Time,
    /// Under way beyond the least delay: by arrival, then in the order in which they came so far.
    late: BTreeMap<(Time, u64), P>,
    came: u64,
}

/// What became of a packet on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Crossed {
    Arrived,
    Lost,
    /// It is still under way, the next of these arrives then.
    UnderWay(Time),
}

impl<P> Wire<P> {
    /// `None` where nothing happens but a delay, of which `stack` lies before the port. `small` makes the stream of a purpose.
    pub(super) fn new(link: &Link, stack: Span, small: impl Fn(&str) -> SmallStream) -> Option<Wire<P>> {
        let functions = link.all_functions();
        let function = |config| Function::new(config, Context { stream: small(config.key().name()) });
        let schedule = (!link.events.is_empty()).then(|| link.schedule());
        (schedule.is_some() || !functions.is_empty()).then(|| Wire {
            flushed: vec![Backlog::EMPTY; schedule.as_ref().map_or(0, |schedule| schedule.outages().len())],
            schedule,
            stack,
            functions: functions.iter().map(function).collect(),
            loss_of: link.loss_of,
            flushed_before: Backlog::EMPTY,
            in_order: Time::ZERO,
            late: BTreeMap::new(),
            came: 0,
        })
    }

    /// Whether the port must ask of each packet whether the link is up.
    pub(super) fn goes_down(&self) -> bool {
        !self.flushed.is_empty()
    }

    /// Whether its departures cannot be computed from one rate.
    pub(super) fn changes(&self) -> bool {
        self.schedule.is_some()
    }

    /// At a line that changes, when a packet leaves that came at `now` and begins to leave at `start`: its last bit, or with
    /// the link's going down.
    pub(super) fn finish(&mut self, now: Time, start: Time, wire_bytes: u64, size: Bytes) -> Option<Time> {
        let schedule = self.schedule.as_ref()?;
        let departure = schedule.finish(start, wire_bytes);
        let Some((outage, down)) = schedule.flushed(now, departure) else { return Some(departure) };
        self.flushed[outage].bytes += size;
        self.flushed[outage].packets += Packets::new(1);
        Some(down)
    }

    /// What outages have taken out of the port by `now`.
    fn flushed_by(&self, now: Time) -> Backlog {
        let outages = self.schedule.iter().flat_map(Schedule::outages);
        let begun = outages.zip(&self.flushed).filter(|((down, _), _)| *down <= now);
        begun.fold(Backlog::EMPTY, |all, (_, taken)| Backlog {
            bytes: all.bytes + taken.bytes,
            packets: all.packets + taken.packets,
        })
    }
}

impl<P: Payload> Ports<P> {
    fn wire(&mut self, link: u32) -> Option<&mut Wire<P>> {
        let wire = self.rules[link as usize].wire;
        (wire != NONE).then(|| &mut self.wires[wire as usize])
    }

    /// Whether the link is down.
    pub(super) fn is_down(&self, now: Time, link: u32) -> bool {
        let wire = self.wires.get(self.rules[link as usize].wire as usize);
        wire.and_then(|wire| wire.schedule.as_ref()).is_some_and(|schedule| schedule.is_down(now))
    }

    /// When the last bit of a packet of this size has left that came at `now` and begins to leave at `start`, at a line where
    /// a byte takes no whole number of picoseconds, or that changes.
    #[inline(never)]
    pub(super) fn finish(&mut self, now: Time, link: u32, start: Time, wire_bytes: u64, size: Bytes) -> Time {
        let line = self.rules[link as usize].line;
        let changing = self.wire(link).and_then(|wire| wire.finish(now, start, wire_bytes, size));
        changing.unwrap_or_else(|| start + Span::from_ps(line.time_for(wire_bytes)))
    }

    /// Whether the link has gone down at `at`.
    pub(super) fn goes_down_at(&self, at: Time, link: u32) -> bool {
        let wire = self.wires.get(self.rules[link as usize].wire as usize);
        wire.and_then(|wire| wire.schedule.as_ref()).is_some_and(|schedule| schedule.is_flushed(at))
    }

    /// The line's rate at `now`.
    pub(super) fn rate(&self, now: Time, link: u32) -> Rate {
        let rules = &self.rules[link as usize];
        let schedule = self.wires.get(rules.wire as usize).and_then(|wire| wire.schedule.as_ref());
        schedule.map_or(rules.line.as_rate(), |schedule| schedule.rate(now))
    }

    /// At a line that changes, the bits that it sends from `now` up to a departure; all, where that is the link's going down.
    pub(super) fn bits_left(&self, now: Time, link: u32, departure: Time) -> Option<u64> {
        let wire = self.wires.get(self.rules[link as usize].wire as usize)?;
        let schedule = wire.schedule.as_ref()?;
        Some(if schedule.is_flushed(departure) { u64::MAX } else { schedule.capacity(now, departure) })
    }

    /// What became on the wire of a packet that would now arrive, were the link's delay its least.
    pub(crate) fn cross(&mut self, now: Time, link: u32, packet: &P) -> Crossed {
        let base = self.delay(link);
        let Some(wire) = self.wire(link) else { return Crossed::Arrived };
        let mut arrival = now;
        if let Some(schedule) = &wire.schedule {
            let departure = Time::from_ps(now.as_ps() - base.as_ps());
            if schedule.is_flushed(departure) {
                return Crossed::Lost;
            }
            let delay = schedule.delay(departure).saturating_sub(wire.stack);
            arrival = (departure + delay).max(wire.in_order);
            wire.in_order = arrival;
            if schedule.is_cut(departure, arrival) {
                self.rules[link as usize].dropped[DropReason::Cut as usize] += Packets::new(1);
                return Crossed::Lost;
            }
            if let (Some(loss), Some(Function::Bernoulli(independent))) =
                (schedule.loss(arrival), wire.functions.first_mut())
            {
                independent.set(loss);
            }
        }
        let exposed = match wire.loss_of {
            LossOf::All => true,
            LossOf::Data => packet.carries_data(),
            LossOf::Unprotected => packet.carries_data() && !packet.ecn_capable(),
        };
        let mut extra = Span::ZERO;
        for function in &mut wire.functions {
            match function.decide(exposed) {
                Fate::Arrives => {}
                Fate::Late(more) => extra += more,
                Fate::Lost => {
                    self.rules[link as usize].dropped[DropReason::Impairment as usize] += Packets::new(1);
                    return Crossed::Lost;
                }
            }
        }
        if extra > Span::ZERO {
            self.rules[link as usize].late += Packets::new(1);
        }
        self.hold(now, link, arrival + extra, *packet)
    }

    /// Keeps a packet that has not arrived yet, or that would arrive ahead of one that has its turn.
    fn hold(&mut self, now: Time, link: u32, arrival: Time, packet: P) -> Crossed {
        let wire = self.wire(link).expect("asked before");
        let is_first = wire.late.first_key_value().is_none_or(|((at, _), _)| *at > now);
        if arrival == now && is_first {
            return Crossed::Arrived;
        }
        wire.came += 1;
        wire.late.insert((arrival, wire.came), packet);
        let ((first, _), _) = wire.late.first_key_value().expect("one was put there");
        Crossed::UnderWay(*first)
    }

    /// Takes out what now arrives of what was under way, and says when the next does.
    pub(crate) fn arrive_late(&mut self, now: Time, link: u32) -> (P, Option<Time>) {
        let wire = self.wire(link).expect("it had an appointment");
        let ((at, _), packet) = wire.late.pop_first().expect("it had an appointment");
        debug_assert_eq!(at, now);
        (packet, wire.late.first_key_value().map(|((at, _), _)| *at))
    }

    /// What outages have taken out of the port since the counters were reset.
    pub(super) fn flushed(&self, now: Time, link: u32) -> Backlog {
        let Some(wire) = self.wires.get(self.rules[link as usize].wire as usize) else { return Backlog::EMPTY };
        let (all, before) = (wire.flushed_by(now), wire.flushed_before);
        Backlog { bytes: all.bytes - before.bytes, packets: all.packets - before.packets }
    }

    /// Counts anew what outages take.
    pub(super) fn reset_flushed(&mut self, now: Time, link: u32) {
        if let Some(wire) = self.wire(link) {
            wire.flushed_before = wire.flushed_by(now);
        }
    }

    /// The wire of a link; [`NONE`] where nothing happens on it.
    pub(super) fn add_wire(&mut self, wire: Option<Wire<P>>) -> u32 {
        let Some(wire) = wire else { return NONE };
        self.wires.push(wire);
        index(self.wires.len() - 1)
    }
}
