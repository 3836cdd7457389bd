//! Holds back what comes after a hole, until it is filled or can be no more.
//!
//! What is kept of a connection's direction is soft: the sequence number that comes next, and what is held. It is forgotten
//! after a second without a packet, and begins with whatever comes then.
//!
//! With `repairable`, a hole is not hidden that nobody will fill. Marked packets are numbered in the order in which they
//! are sent. So a packet that is missing, if it was marked, has a number between that of what came before the packet
//! ahead of it and that of the first marked packet to come after the hole was noticed. Where none of those lacks, it was not
//! marked.

use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::vec::Vec;

use super::receive::ReceiveCounters;
use super::seen::Seen;
use super::{Packet, Segment};
use crate::units::{Bytes, Span, Time};

/// A connection is forgotten when nothing has come for so long.
const IDLE: Span = Span::from_secs(1);
/// Most connections whose packets are put in order; others' are passed on as they come.
const MAX_FLOWS: usize = 65_536;

/// What is further ahead of a hole than so many times all that may be held was forged, or went on while nobody looked: it is passed on as it
/// came, and what comes next stays what it was.
const FURTHEST: u64 = 4;

/// See the [module](self).
#[derive(Clone, Debug)]
pub(super) struct Resequencer<P: Packet> {
    flows: BTreeMap<P::Flow, Stream<P>>,
    /// When the first hole of each connection that has one is shown.
    deadlines: BTreeSet<(Time, P::Flow)>,
    /// Holes that were noticed after the last marked packet, and behind which packet they are.
    unsettled: Vec<(P::Flow, u32)>,
    held: Bytes,
    most: Bytes,
    hold: Span,
    repairable: bool,
    forget_at: Time,
}

/// One direction of a connection.
#[derive(Clone, Debug)]
struct Stream<P> {
    /// The sequence number after the last one that was passed on.
    next: u32,
    /// When its last packet came.
    touched: Time,
    /// The first number that no marked packet had when its last packet came.
    numbers: u64,
    /// What came after a hole, by sequence number; from the first to the last, each came no later than the next.
    held: VecDeque<Held<P>>,
}

#[derive(Clone, Debug)]
struct Held<P> {
    packet: P,
    seq: u32,
    end: u32,
    /// When it came; what fills a part of a hole takes over when the hole was noticed.
    at: Time,
    /// What the packet ahead of it may be numbered, if that was marked.
    numbers: Numbers,
}

/// Numbers of marked packets: from the first to before the last, once that is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Numbers {
    from: u64,
    to: Option<u64>,
}

impl<P: Packet> Resequencer<P> {
    pub(super) fn new(hold: Span, most: Bytes, repairable: bool) -> Resequencer<P> {
        Resequencer {
            flows: BTreeMap::new(),
            deadlines: BTreeSet::new(),
            unsettled: Vec::new(),
            held: Bytes::ZERO,
            most,
            hold,
            repairable,
            forget_at: Time::NEVER,
        }
    }

    /// Bytes of held packets.
    pub(super) fn held(&self) -> Bytes {
        self.held
    }

    /// A packet has come; `deliver` takes what goes on. Of a marked packet that was not sent before, `number` is its number.
    pub(super) fn handle(
        &mut self,
        now: Time,
        packet: P,
        number: Option<u64>,
        seen: &Seen,
        counters: &mut ReceiveCounters,
        mut deliver: impl FnMut(P),
    ) {
        let Some(segment) = packet.segment().filter(|segment| segment.length > 0) else {
            deliver(packet);
            return;
        };
        let Some(stream) = self.flows.get_mut(&segment.flow) else {
            self.meet(now, &segment, seen);
            deliver(packet);
            return;
        };
        stream.touched = now;
        let before = core::mem::replace(&mut stream.numbers, seen.next());
        if segment.syn {
            // The ports are used anew: what is held is of the connection before.
            self.release_all(segment.flow, &mut deliver);
            self.set_next(segment.flow, segment.end());
            deliver(packet);
            return;
        }
        if !is_after(segment.seq, stream.next) {
            if is_after(segment.end(), stream.next) {
                stream.next = segment.end();
            }
            deliver(packet);
            counters.filled_holes += u64::from(self.release_contiguous(segment.flow, &mut deliver));
            self.settle(segment.flow, seen, counters, &mut deliver);
            return;
        }
        // Nothing true is so far ahead of a hole that is hidden for an RTT and a half.
        if u64::from(segment.seq.wrapping_sub(stream.next)) > FURTHEST * self.most.get() {
            counters.strays += 1;
            deliver(packet);
            return;
        }
        if self.held + packet.ip_bytes() > self.most {
            counters.overflows += 1;
            self.release_all(segment.flow, &mut deliver);
            if let Some(stream) = self.flows.get_mut(&segment.flow)
                && is_after(segment.end(), stream.next)
            {
                stream.next = segment.end();
            }
            deliver(packet);
            return;
        }
        let numbers = Numbers { from: before, to: number };
        self.hold(now, packet, &segment, numbers, counters);
        self.settle(segment.flow, seen, counters, &mut deliver);
    }

    /// A marked packet has come, with this number if it was not sent before: what may be missing is known better.
    pub(super) fn learn(
        &mut self,
        seen: &Seen,
        number: Option<u64>,
        counters: &mut ReceiveCounters,
        mut deliver: impl FnMut(P),
    ) {
        if !self.repairable {
            return;
        }
        if let Some(number) = number {
            for (flow, seq) in core::mem::take(&mut self.unsettled) {
                let Some(stream) = self.flows.get_mut(&flow) else { continue };
                if let Some(held) = stream.held.iter_mut().find(|held| held.seq == seq) {
                    held.numbers.to.get_or_insert(number);
                }
            }
        }
        let waiting: Vec<P::Flow> = self.deadlines.iter().map(|&(_, flow)| flow).collect();
        for flow in waiting {
            self.settle(flow, seen, counters, &mut deliver);
        }
    }

    /// No number that was known counts any more.
    pub(super) fn forget_numbers(&mut self) {
        self.unsettled.clear();
        for stream in self.flows.values_mut() {
            stream.numbers = 0;
            for held in &mut stream.held {
                held.numbers = Numbers { from: 0, to: None };
            }
        }
    }

    /// Some packets of connections went another way: what comes next is not known any more, and nothing is held for it.
    pub(super) fn lose_order(&mut self, mut deliver: impl FnMut(P)) {
        let waiting: Vec<P::Flow> = self.deadlines.iter().map(|&(_, flow)| flow).collect();
        for flow in waiting {
            self.release_all(flow, &mut deliver);
        }
        self.flows.clear();
        self.unsettled.clear();
        self.forget_at = Time::NEVER;
    }

    /// When something is due; [`Time::NEVER`] if nothing is.
    pub(super) fn deadline(&self) -> Time {
        self.deadlines.first().map_or(self.forget_at, |&(at, _)| at.min(self.forget_at))
    }

    /// Shows holes that were hidden for too long, and forgets connections that are over.
    pub(super) fn handle_timeout(&mut self, now: Time, counters: &mut ReceiveCounters, mut deliver: impl FnMut(P)) {
        while let Some(&(at, flow)) = self.deadlines.first()
            && at <= now
        {
            counters.late_holes += 1;
            self.release_all(flow, &mut deliver);
        }
        if self.forget_at <= now {
            self.flows.retain(|_, stream| !stream.held.is_empty() || now.since(stream.touched) < IDLE);
            self.forget_at = if self.flows.is_empty() { Time::NEVER } else { now + IDLE };
        }
    }

    /// The first packet of a connection, as far as is known here.
    fn meet(&mut self, now: Time, segment: &Segment<P::Flow>, seen: &Seen) {
        if self.flows.len() == MAX_FLOWS {
            return;
        }
        let stream = Stream { next: segment.end(), touched: now, numbers: seen.next(), held: VecDeque::new() };
        self.flows.insert(segment.flow, stream);
        if self.forget_at == Time::NEVER {
            self.forget_at = now + IDLE;
        }
    }

    fn set_next(&mut self, flow: P::Flow, next: u32) {
        if let Some(stream) = self.flows.get_mut(&flow) {
            stream.next = next;
        }
    }

    fn hold(
        &mut self,
        now: Time,
        packet: P,
        segment: &Segment<P::Flow>,
        numbers: Numbers,
        counters: &mut ReceiveCounters,
    ) {
        let stream = self.flows.get_mut(&segment.flow).expect("the caller has met it");
        self.held += packet.ip_bytes();
        counters.held_packets += 1;
        counters.held_max = counters.held_max.max(self.held);
        let place =
            stream.held.iter().rposition(|held| !is_after(held.seq, segment.seq)).map_or(0, |before| before + 1);
        let (at, numbers) = stream.held.get(place).map_or((now, numbers), |later| (later.at, later.numbers));
        if self.repairable && numbers.to.is_none() {
            self.unsettled.push((segment.flow, segment.seq));
        }
        stream.held.insert(place, Held { packet, seq: segment.seq, end: segment.end(), at, numbers });
        if stream.held.len() == 1 {
            self.deadlines.insert((at + self.hold, segment.flow));
        }
    }

    /// Passes on what follows without a hole: whether there was anything.
    fn release_contiguous(&mut self, flow: P::Flow, deliver: &mut impl FnMut(P)) -> bool {
        let Some(stream) = self.flows.get_mut(&flow) else { return false };
        let Some(first) = stream.held.front() else { return false };
        let due = first.at + self.hold;
        let mut released = false;
        while let Some(first) = stream.held.front()
            && !is_after(first.seq, stream.next)
        {
            let first = stream.held.pop_front().expect("it was looked at");
            if is_after(first.end, stream.next) {
                stream.next = first.end;
            }
            self.held -= first.packet.ip_bytes();
            released = true;
            deliver(first.packet);
        }
        if released {
            self.deadlines.remove(&(due, flow));
            if let Some(first) = stream.held.front() {
                self.deadlines.insert((first.at + self.hold, flow));
            }
        }
        released
    }

    /// Shows the host holes that cannot be filled.
    fn settle(&mut self, flow: P::Flow, seen: &Seen, counters: &mut ReceiveCounters, deliver: &mut impl FnMut(P)) {
        if !self.repairable {
            return;
        }
        while let Some(stream) = self.flows.get_mut(&flow)
            && let Some(first) = stream.held.front()
            && let Numbers { from, to: Some(to) } = first.numbers
            && !seen.lacks_any(from..to)
        {
            counters.plain_holes += 1;
            stream.next = first.seq;
            self.release_contiguous(flow, deliver);
        }
    }

    /// Passes on all that is held of a connection, in its order.
    fn release_all(&mut self, flow: P::Flow, deliver: &mut impl FnMut(P)) {
        let Some(stream) = self.flows.get_mut(&flow) else { return };
        let Some(first) = stream.held.front() else { return };
        self.deadlines.remove(&(first.at + self.hold, flow));
        for held in stream.held.drain(..) {
            if is_after(held.end, stream.next) {
                stream.next = held.end;
            }
            self.held -= held.packet.ip_bytes();
            deliver(held.packet);
        }
    }
}

/// Whether one sequence number lies after another [RFC 9293 §3.4].
const fn is_after(one: u32, other: u32) -> bool {
    one.wrapping_sub(other).cast_signed() > 0
}
