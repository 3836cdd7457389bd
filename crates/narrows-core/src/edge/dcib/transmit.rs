//! What goes out: marks, keeps copies, and sends again what is not acknowledged.

use alloc::collections::{BinaryHeap, VecDeque};
use core::cmp::Reverse;

use super::choose::Choose;
use super::hush::Hush;
use super::liveness::Liveness;
use super::round_trip::RoundTrip;
use super::seen::expand;
use super::{Config, Hiding, Message, Packet, Shim};
use crate::packet::Ecn;
use crate::rng::SmallStream;
use crate::units::{Bytes, Span, Time};

/// A copy whose number is so far below an acknowledged one is missing.
const LATER: u64 = 3;
/// Where so many of the last [`OUTCOMES`] marked packets were lost, nothing is marked for [`REST`].
const SEVERE: u32 = OUTCOMES * 6 / 10;
const OUTCOMES: u32 = 1_000;
const REST: Span = Span::from_secs(1);
/// So many numbers a session has: they are told by 32 bits, and none may be used twice under one key.
const NUMBERS: u64 = 1 << 30;
/// After so many silences, one after another, nothing that is kept will ever be acknowledged: longer than three repairs take.
const SILENCES: u64 = 16;

/// What a transmitter has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TransmitCounters {
    /// Packets with data that came from inside.
    pub data_packets: u64,
    /// Of these, marked.
    pub marked_packets: u64,
    /// IP bytes of the marked.
    pub marked_bytes: Bytes,
    /// Packets chosen and not marked, as the store was full.
    pub store_full: u64,
    /// Packets chosen and not marked, as the far edge was not known or silent.
    pub far_silent: u64,
    /// Packets chosen and not marked, as too many marked ones were lost recently.
    pub severe: u64,
    /// Packets retransmitted after later ones were acknowledged.
    pub fast_repairs: u64,
    /// Packets retransmitted after a time.
    pub late_repairs: u64,
    /// Of both, sent though the first try arrived.
    pub needless_repairs: u64,
    /// Marked packets of which a repair arrived, and not the first try.
    pub repaired: u64,
    /// Marked packets that never were acknowledged.
    pub given_up: u64,
    /// Acknowledgements of no copy: a packet was acknowledged twice, or of another session.
    pub stray_acknowledgements: u64,
    /// Most bytes of copies at once.
    pub store_max: Bytes,
    /// Sessions begun.
    pub sessions: u64,
}

/// A marked packet that is not acknowledged.
#[derive(Clone, Debug)]
struct Kept<P> {
    /// As its host sent it.
    packet: P,
    /// When it was sent first.
    sent: Time,
    /// How often it was sent.
    tries: u8,
    /// When it is retransmitted, or given up.
    due: Time,
}

/// What is known of a marked packet.
#[derive(Clone, Debug)]
enum Slot<P> {
    /// Nothing yet.
    Kept(Kept<P>),
    /// It was acknowledged or given up: whether its first try was lost.
    Settled { lost: bool },
}

impl<P> Slot<P> {
    fn kept(&self) -> Option<&Kept<P>> {
        match self {
            Slot::Kept(kept) => Some(kept),
            Slot::Settled { .. } => None,
        }
    }
}

/// See the [module](self).
#[derive(Clone, Debug)]
pub(super) struct Transmitter<P: Packet> {
    config: Config,
    choose: Choose,
    liveness: Liveness,
    round_trip: RoundTrip,
    /// Marked packets by number, from `base` on. The first is not settled.
    kept: VecDeque<Slot<P>>,
    base: u64,
    stored: Bytes,
    /// When copies are due, and their numbers. An entry counts if the copy says the same; the first always does.
    timers: BinaryHeap<Reverse<(Time, u64)>>,
    /// Copies below this were looked at for a fast repair.
    looked: u64,
    /// How many numbers a session has.
    numbers: u64,
    outcomes: Outcomes,
    rests_until: Time,
    hush: Option<Hush<P::Flow>>,
    pub(super) counters: TransmitCounters,
}

impl<P: Packet> Transmitter<P> {
    pub(super) fn new(config: &Config, clock: u64, mut stream: SmallStream) -> Transmitter<P> {
        let tokens = SmallStream::new(stream.next_u64());
        Transmitter {
            config: *config,
            choose: Choose::new(config, stream),
            liveness: Liveness::new(clock, tokens),
            round_trip: RoundTrip::new(config.round_trip),
            kept: VecDeque::new(),
            base: 0,
            stored: Bytes::ZERO,
            timers: BinaryHeap::new(),
            looked: 0,
            numbers: NUMBERS,
            outcomes: Outcomes::default(),
            rests_until: Time::ZERO,
            hush: (config.hiding == Hiding::Snoop).then(|| Hush::new(config.hold)),
            counters: TransmitCounters::default(),
        }
    }

    /// Bytes of copies.
    pub(super) fn stored(&self) -> Bytes {
        self.stored
    }

    /// Whether the far edge has answered and is not silent.
    pub(super) fn is_connected(&self, now: Time) -> bool {
        self.session(now).is_some()
    }

    /// `SRTT_AB`, what was configured until it is measured.
    pub(super) fn round_trip(&self) -> Span {
        self.round_trip.smoothed()
    }

    fn session(&self, now: Time) -> Option<u32> {
        self.liveness.session(now, self.round_trip.silence())
    }

    /// A packet from inside; `send` takes what goes out.
    pub(super) fn handle(&mut self, now: Time, packet: P, mut send: impl FnMut(Message<P>)) {
        let Some(segment) = packet.segment() else {
            send(Message::Plain(packet));
            return;
        };
        if segment.payload > 0 && !segment.syn {
            self.counters.data_packets += 1;
            if self.choose.choose(now, packet.ip_bytes())
                && let Some(session) = self.may_mark(now, packet.ip_bytes(), &mut send)
            {
                if let Some(hush) = &mut self.hush {
                    hush.watch(&segment);
                }
                self.mark(now, session, packet, send);
                return;
            }
        }
        send(spare(packet));
    }

    /// The session in which a packet of this size can be marked. If the far edge is not known, it may be time to greet it.
    fn may_mark(&mut self, now: Time, size: Bytes, send: &mut impl FnMut(Message<P>)) -> Option<u32> {
        // What is over, or used up, ends with its last copy.
        let is_used_up = self.base + self.kept.len() as u64 >= self.numbers;
        let session = self.session(now).filter(|_| !is_used_up);
        if session.is_none() && self.kept.is_empty() {
            self.liveness.lose(now);
        }
        let Some(session) = session else {
            self.counters.far_silent += 1;
            if let Some((clock, token)) = self.liveness.greet(now, self.round_trip.timeout()) {
                send(Message::Greeting { clock, token });
            }
            return None;
        };
        if now < self.rests_until {
            self.counters.severe += 1;
            return None;
        }
        if self.stored + size > self.config.store {
            self.counters.store_full += 1;
            return None;
        }
        Some(session)
    }

    fn mark(&mut self, now: Time, session: u32, packet: P, mut send: impl FnMut(Message<P>)) {
        let number = self.base + self.kept.len() as u64;
        self.counters.marked_packets += 1;
        self.counters.marked_bytes += packet.ip_bytes();
        self.stored += packet.ip_bytes();
        self.counters.store_max = self.counters.store_max.max(self.stored);
        let due = now + self.round_trip.timeout();
        send(droppable(packet.clone(), session, number));
        self.liveness.expect(now);
        self.kept.push_back(Slot::Kept(Kept { packet, sent: now, tries: 1, due }));
        self.timers.push(Reverse((due, number)));
    }

    /// A packet that was marked leaves this router's own queue at `at`: its RTT begins then.
    pub(super) fn leave(&mut self, shim: &Shim, at: Time) {
        let due = at + self.round_trip.timeout();
        let number = expand(shim.number, self.base);
        if self.liveness.current() != Some(shim.session) {
            return;
        }
        let Some(Slot::Kept(kept)) = self.index(number).and_then(|index| self.kept.get_mut(index)) else { return };
        if kept.tries == shim.tries && !shim.is_repair() {
            (kept.sent, kept.due) = (at, due);
            if number == self.base {
                self.liveness.put_off(at);
            }
            self.timers.push(Reverse((due, number)));
            self.forget_stale_timers();
        }
    }

    /// The far edge has a packet, which it was sent so often before.
    pub(super) fn acknowledge(
        &mut self,
        now: Time,
        session: u32,
        number: u32,
        tries: u8,
        mut send: impl FnMut(Message<P>),
    ) {
        if !self.liveness.is_current(session) {
            self.counters.stray_acknowledgements += 1;
            return;
        }
        let number = expand(number, self.base);
        // What arrived at the first try was not lost, though it may have been retransmitted: that was too soon.
        let lost = tries > 1;
        let settled = self.settle(now, number, lost, true);
        let waiting = self.kept.front().and_then(Slot::kept).map(|kept| kept.sent);
        self.liveness.hear(now, waiting);
        let Some(kept) = settled else {
            self.counters.stray_acknowledgements += 1;
            return;
        };
        if lost {
            self.counters.repaired += 1;
        } else {
            self.counters.needless_repairs += u64::from(kept.tries - 1);
            self.round_trip.measure(now.since(kept.sent));
            self.repair_earlier(now, session, number, kept.sent, &mut send);
        }
        self.forget_stale_timers();
    }

    /// A packet that was sent once at `sent` has arrived: copies of a good deal earlier ones should have been acknowledged.
    fn repair_earlier(&mut self, now: Time, session: u32, number: u64, sent: Time, send: &mut impl FnMut(Message<P>)) {
        let apart = self.round_trip.smoothed().div(4);
        self.looked = self.looked.max(self.base);
        while self.looked + LATER < number {
            let Some(kept) = self.get(self.looked) else {
                self.looked += 1;
                continue;
            };
            if kept.sent + apart > sent {
                return;
            }
            if kept.tries == 1 {
                self.counters.fast_repairs += 1;
                self.send_again(now, session, self.looked, send);
            }
            self.looked += 1;
        }
    }

    fn send_again(&mut self, now: Time, session: u32, number: u64, send: &mut impl FnMut(Message<P>)) {
        let timeout = self.round_trip.timeout();
        let index = self.index(number).expect("a copy is retransmitted");
        let Slot::Kept(kept) = &mut self.kept[index] else { unreachable!("a copy is retransmitted") };
        kept.due = now + timeout.saturating_mul(1 << kept.tries);
        kept.tries += 1;
        self.timers.push(Reverse((kept.due, number)));
        send(repair(kept.packet.clone(), session, number, kept.tries));
    }

    /// When a copy is due; [`Time::NEVER`] without any.
    pub(super) fn deadline(&self) -> Time {
        self.timers.peek().map_or(Time::NEVER, |Reverse((due, _))| *due)
    }

    /// Sends again, or gives up, what is due.
    pub(super) fn handle_timeout(&mut self, now: Time, mut send: impl FnMut(Message<P>)) {
        if self.liveness.silence(now) > self.round_trip.silence().saturating_mul(SILENCES) {
            for number in self.base..self.base + self.kept.len() as u64 {
                self.give_up(now, number);
            }
        }
        while let Some(&Reverse((due, number))) = self.timers.peek() {
            if due > now {
                return;
            }
            self.timers.pop();
            let tries = self.get(number).map_or(u8::MAX, |kept| kept.tries);
            match self.liveness.current() {
                Some(session) if tries <= self.config.repairs => {
                    self.counters.late_repairs += 1;
                    self.send_again(now, session, number, &mut send);
                }
                _ => self.give_up(now, number),
            }
            self.forget_stale_timers();
        }
    }

    fn give_up(&mut self, now: Time, number: u64) {
        let silent = !self.is_connected(now);
        let settled = self.settle(now, number, true, false);
        self.counters.given_up += u64::from(settled.is_some());
        if silent && self.kept.is_empty() {
            self.liveness.lose(now);
        }
    }

    /// The far edge answers a greeting.
    pub(super) fn welcome(&mut self, now: Time, token: u64, session: u32) {
        let Some(took) = self.liveness.welcome(now, token, session) else { return };
        debug_assert!(self.kept.is_empty(), "a session ends with its last copy");
        self.counters.sessions += 1;
        self.round_trip.measure(took);
        (self.base, self.looked) = (0, 0);
    }

    /// Whether a packet from outside tells of a loss that is being repaired.
    pub(super) fn silences(&mut self, now: Time, packet: &P) -> bool {
        self.hush.as_mut().is_some_and(|hush| hush.silences(now, packet))
    }

    fn get(&self, number: u64) -> Option<&Kept<P>> {
        self.kept.get(self.index(number)?)?.kept()
    }

    fn index(&self, number: u64) -> Option<usize> {
        usize::try_from(number.checked_sub(self.base)?).ok()
    }

    /// Takes a copy out, as it has arrived or is given up; whether its first try was `lost`.
    fn settle(&mut self, now: Time, number: u64, lost: bool, arrived: bool) -> Option<Kept<P>> {
        let index = self.index(number)?;
        let slot = self.kept.get_mut(index).filter(|slot| slot.kept().is_some())?;
        let Slot::Kept(kept) = core::mem::replace(slot, Slot::Settled { lost }) else { return None };
        if let (Some(hush), Some(segment)) = (&mut self.hush, kept.packet.segment()) {
            hush.leave(now, &segment, arrived && kept.tries > 1);
        }
        self.stored -= kept.packet.ip_bytes();
        // In the order in which they were marked: what was lost is known later than what was not.
        while let Some(&Slot::Settled { lost }) = self.kept.front() {
            self.kept.pop_front();
            self.base += 1;
            self.note_outcome(now, lost);
        }
        Some(kept)
    }

    fn forget_stale_timers(&mut self) {
        while let Some(&Reverse((due, number))) = self.timers.peek() {
            if self.get(number).is_some_and(|kept| kept.due == due) {
                return;
            }
            self.timers.pop();
        }
    }

    fn note_outcome(&mut self, now: Time, lost: bool) {
        if self.outcomes.note(lost) > SEVERE {
            self.outcomes = Outcomes::default();
            self.rests_until = now + REST;
        }
    }
}

/// The packet as it goes out unmarked: it looks ECN-capable.
fn spare<P: Packet>(mut packet: P) -> Message<P> {
    if packet.ecn() != Ecn::NotCapable {
        return Message::Plain(packet);
    }
    packet.set_ecn(Ecn::Capable);
    Message::Disguised(packet)
}

/// The packet as it goes out marked.
fn droppable<P: Packet>(mut packet: P, session: u32, number: u64) -> Message<P> {
    let shim = Shim { session, number: low(number), ecn: packet.ecn(), tries: 1 };
    packet.set_ecn(Ecn::NotCapable);
    Message::Marked(packet, shim)
}

/// The packet as it goes out again: it is spared.
fn repair<P: Packet>(mut packet: P, session: u32, number: u64, tries: u8) -> Message<P> {
    let shim = Shim { session, number: low(number), ecn: packet.ecn(), tries };
    packet.set_ecn(Ecn::Capable);
    Message::Marked(packet, shim)
}

#[allow(clippy::cast_possible_truncation, reason = "truncation is the meaning")]
const fn low(number: u64) -> u32 {
    number as u32
}

/// Of the last [`OUTCOMES`] marked packets, which were lost when they were sent first.
#[derive(Clone, Debug, Default)]
struct Outcomes {
    lost: VecDeque<bool>,
    count: u32,
}

impl Outcomes {
    /// One more; how many of the last were lost, 0 before there are enough.
    fn note(&mut self, lost: bool) -> u32 {
        self.lost.push_back(lost);
        self.count += u32::from(lost);
        if self.lost.len() <= OUTCOMES as usize {
            return if self.lost.len() == OUTCOMES as usize { self.count } else { 0 };
        }
        self.count -= u32::from(self.lost.pop_front() == Some(true));
        self.count
    }
}

#[cfg(test)]
mod tests;
