//! What comes in: acknowledges marked packets, drops what came twice, and undoes the marks.

use super::resequence::Resequencer;
use super::seen::{Seen, expand};
use super::{Config, Hiding, Marks, Message, Packet, Shim, Transmit};
use crate::packet::Ecn;
use crate::rng::SmallStream;
use crate::units::{Bytes, Span, Time};

/// A session of which nothing was heard for so long gives way to any greeting.
const IDLE: Span = Span::from_secs(10);

/// What a receiver has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReceiveCounters {
    /// Marked packets that came for the first time.
    pub marked_packets: u64,
    /// Marked packets that had come before, or may have.
    pub duplicates: u64,
    /// Marked packets of another session.
    pub strangers: u64,
    /// Greetings that were not answered, as they are older than one that was.
    pub stale_greetings: u64,
    /// Marks of congestion taken off packets of hosts without ECN.
    pub cleared_marks: u64,
    /// Packets of hosts without ECN that were dropped for such a mark.
    pub dropped_marks: u64,
    /// Packets that were held back.
    pub held_packets: u64,
    /// Holes that were filled in time.
    pub filled_holes: u64,
    /// Holes that the host was shown, as their time was over.
    pub late_holes: u64,
    /// Holes that the host was shown, as no marked packet was missing.
    pub plain_holes: u64,
    /// Connections whose held packets were released, as there was no room for more.
    pub overflows: u64,
    /// Packets so far ahead of what comes next that they were passed on as they came.
    pub strays: u64,
    /// Most bytes of held packets at once.
    pub held_max: Bytes,
}

/// What was agreed with the far edge.
#[derive(Clone, Copy, Debug)]
struct Session {
    clock: u64,
    token: u64,
    number: u32,
    heard: Time,
}

/// See the [module](self).
#[derive(Clone, Debug)]
pub(super) struct Receiver<P: Packet> {
    session: Option<Session>,
    seen: Seen,
    resequencer: Option<Resequencer<P>>,
    marks: Marks,
    stream: SmallStream,
    pub(super) counters: ReceiveCounters,
}

impl<P: Packet> Receiver<P> {
    pub(super) fn new(config: &Config, stream: SmallStream) -> Receiver<P> {
        let resequencer = match config.hiding {
            Hiding::Resequence => Some(Resequencer::new(config.hold, config.held, false)),
            Hiding::ResequenceRepairable => Some(Resequencer::new(config.hold, config.held, true)),
            Hiding::Snoop | Hiding::Nothing => None,
        };
        Receiver {
            session: None,
            seen: Seen::new(),
            resequencer,
            marks: config.marks,
            stream,
            counters: ReceiveCounters::default(),
        }
    }

    /// Bytes of held packets.
    pub(super) fn held(&self) -> Bytes {
        self.resequencer.as_ref().map_or(Bytes::ZERO, Resequencer::held)
    }

    /// A packet from outside; `send` takes what goes on.
    pub(super) fn plain(&mut self, now: Time, packet: P, send: impl FnMut(Transmit<P>)) {
        self.pass(now, packet, None, send);
    }

    /// A packet of a host without ECN.
    pub(super) fn disguised(&mut self, now: Time, mut packet: P, mut send: impl FnMut(Transmit<P>)) {
        let is_marked = packet.ecn() == Ecn::Marked;
        packet.set_ecn(Ecn::NotCapable);
        if is_marked && self.marks == Marks::Drop {
            self.counters.dropped_marks += 1;
            return send(Transmit::Dropped(packet));
        }
        self.counters.cleared_marks += u64::from(is_marked);
        self.pass(now, packet, None, send);
    }

    /// A marked packet.
    pub(super) fn marked(&mut self, now: Time, mut packet: P, shim: Shim, mut send: impl FnMut(Transmit<P>)) {
        let Some(session) = self.session.as_mut().filter(|session| session.number == shim.session) else {
            self.counters.strangers += 1;
            return;
        };
        session.heard = now;
        let Shim { session, number, tries, .. } = shim;
        send(Transmit::Outside(Message::Acknowledgement { session, number, tries }));
        let number = expand(shim.number, self.seen.next());
        if !self.seen.insert(shim.number) {
            self.counters.duplicates += 1;
            return;
        }
        self.counters.marked_packets += 1;
        packet.set_ecn(shim.ecn);
        let first = (!shim.is_repair()).then_some(number);
        self.pass(now, packet, first, &mut send);
        if let Some(resequencer) = &mut self.resequencer {
            resequencer.learn(&self.seen, first, &mut self.counters, |packet| send(Transmit::Inside(packet)));
        }
    }

    fn pass(&mut self, now: Time, packet: P, number: Option<u64>, mut send: impl FnMut(Transmit<P>)) {
        match &mut self.resequencer {
            Some(resequencer) => {
                let deliver = |packet| send(Transmit::Inside(packet));
                resequencer.handle(now, packet, number, &self.seen, &mut self.counters, deliver);
            }
            None => send(Transmit::Inside(packet)),
        }
    }

    /// The far edge asks for a session.
    pub(super) fn greeting(&mut self, now: Time, clock: u64, token: u64, mut send: impl FnMut(Transmit<P>)) {
        let number = match self.session {
            Some(session) if session.token == token => session.number,
            Some(session) if session.clock >= clock && now.since(session.heard) < IDLE => {
                self.counters.stale_greetings += 1;
                return;
            }
            _ => self.begin(now, clock, token),
        };
        send(Transmit::Outside(Message::Welcome { token, session: number }));
    }

    #[allow(clippy::cast_possible_truncation, reason = "any 32 bits name a session")]
    fn begin(&mut self, now: Time, clock: u64, token: u64) -> u32 {
        let number = (self.stream.next_u64() >> 32) as u32;
        self.session = Some(Session { clock, token, number, heard: now });
        self.seen.clear();
        if let Some(resequencer) = &mut self.resequencer {
            resequencer.forget_numbers();
        }
        number
    }

    /// Packets went past: nothing is held back for them.
    pub(super) fn lose_order(&mut self, mut send: impl FnMut(Transmit<P>)) {
        if let Some(resequencer) = &mut self.resequencer {
            resequencer.lose_order(|packet| send(Transmit::Inside(packet)));
        }
    }

    /// When something is due; [`Time::NEVER`] if nothing is.
    pub(super) fn deadline(&self) -> Time {
        self.resequencer.as_ref().map_or(Time::NEVER, Resequencer::deadline)
    }

    /// Releases what was held for too long.
    pub(super) fn handle_timeout(&mut self, now: Time, mut send: impl FnMut(Transmit<P>)) {
        if let Some(resequencer) = &mut self.resequencer {
            resequencer.handle_timeout(now, &mut self.counters, |packet| send(Transmit::Inside(packet)));
        }
    }
}
