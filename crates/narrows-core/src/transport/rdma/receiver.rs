//! The receiving half: order, acknowledgements, and the echo of marks.

use alloc::collections::{BTreeMap, VecDeque};

use super::{Config, Recovery};
use crate::packet::{Ecn, Flags, SackBlocks, Segment, Seq, Tag};
use crate::tcp::Tallies;
use crate::units::{Span, Time};

/// A packet that came before one that is missing.
#[derive(Clone, Copy, Debug)]
struct Early {
    end: Seq,
    /// The message that it ends.
    completes: Option<Tag>,
}

/// The receiving half of a connection's end.
#[derive(Clone, Debug)]
pub(super) struct Receiver {
    config: Config,
    /// Longest that an acknowledgement waits for more packets.
    patience: Span,
    /// First byte that is not here in order.
    expected: Seq,
    /// By first byte; empty where what comes out of order is discarded.
    early: BTreeMap<Seq, Early>,
    early_bytes: u64,
    /// The transmission that came last.
    echo: u32,
    /// That the expected packet is missing has been said.
    is_missing_told: bool,
    /// What the next acknowledgement says is missing below: the packet that came last out of order.
    beyond: SackBlocks,
    must_answer: bool,
    says_missing: bool,
    says_marked: bool,
    /// Packets in order since the last acknowledgement, and when it goes at the latest.
    unanswered: u16,
    answer_at: Time,
    /// What was in order before a packet whose mark differs from theirs, and whether they were marked: told first, so that each
    /// acknowledgement is of packets that are marked alike.
    before_change: Option<(Seq, bool)>,
    /// With `cnp-interval`: marks before this are not told.
    silent_until: Time,
    completed: VecDeque<Tag>,
    marked_bytes: u64,
}

impl Receiver {
    /// The exchange that set the connection up took `round_trip`.
    pub(super) fn new(config: Config, round_trip: Span) -> Receiver {
        Receiver {
            config,
            patience: round_trip.div(4),
            expected: Seq::FIRST,
            early: BTreeMap::new(),
            early_bytes: 0,
            echo: 0,
            is_missing_told: false,
            beyond: SackBlocks::NONE,
            must_answer: false,
            says_missing: false,
            says_marked: false,
            unanswered: 0,
            answer_at: Time::NEVER,
            before_change: None,
            silent_until: Time::ZERO,
            completed: VecDeque::new(),
            marked_bytes: 0,
        }
    }

    /// A packet with data came.
    pub(super) fn handle(&mut self, now: Time, segment: &Segment) {
        let is_marked = segment.ecn == Ecn::Marked;
        if self.unanswered > 0 && self.config.cnp_interval.is_none() && is_marked != self.says_marked {
            self.before_change = Some((self.expected, self.says_marked));
            (self.unanswered, self.says_marked, self.answer_at) = (0, false, Time::NEVER);
        }
        self.echo = segment.timestamp;
        if is_marked {
            self.marked_bytes += u64::from(segment.length);
            self.note_mark(now);
        }
        let start = Seq::expand(segment.seq, self.expected);
        let end = start.plus(segment.length.into());
        let completes = segment.flags.contains(Flags::END).then_some(segment.tag);
        if start == self.expected {
            self.must_answer |= segment.flags.contains(Flags::ACK_REQUEST);
            self.advance(now, Early { end, completes });
        } else if start > self.expected {
            self.handle_early(start, Early { end, completes });
        } else {
            // It came before: the acknowledgement may have been lost.
            self.must_answer = true;
        }
    }

    fn note_mark(&mut self, now: Time) {
        match self.config.cnp_interval {
            None => self.says_marked = true,
            Some(interval) if self.silent_until <= now => {
                (self.says_marked, self.must_answer) = (true, true);
                self.silent_until = now + interval;
            }
            Some(_) => {}
        }
    }

    /// The expected packet, and what waited for it.
    fn advance(&mut self, now: Time, packet: Early) {
        self.take(packet);
        if self.unanswered == 0 {
            self.answer_at = now + self.patience;
        }
        self.unanswered += 1;
        self.must_answer |= self.unanswered >= self.config.ack_every;
        while let Some((_, early)) = self.early.first_key_value().filter(|(start, _)| **start == self.expected) {
            let early = *early;
            self.early_bytes -= early.end.since(self.expected);
            self.early.pop_first();
            self.take(early);
            self.must_answer = true;
        }
        (self.is_missing_told, self.says_missing, self.beyond) = (false, false, SackBlocks::NONE);
    }

    fn take(&mut self, packet: Early) {
        self.expected = packet.end;
        self.completed.extend(packet.completes);
    }

    fn handle_early(&mut self, start: Seq, packet: Early) {
        match self.config.recovery {
            Recovery::GoBackN if self.is_missing_told => {}
            Recovery::GoBackN => (self.is_missing_told, self.says_missing, self.must_answer) = (true, true, true),
            Recovery::SelectiveRepeat => {
                let length = packet.end.since(start);
                if self.early.insert(start, packet).is_none() {
                    self.early_bytes += length;
                }
                self.beyond = SackBlocks::NONE;
                self.beyond.push(start, packet.end);
                (self.says_missing, self.must_answer) = (true, true);
            }
        }
    }

    /// The acknowledgement that is due, if one is, into an empty `segment`.
    pub(super) fn take_answer(&mut self, segment: &mut Segment) -> bool {
        segment.timestamp_echo = self.echo;
        if let Some((expected, marked)) = self.before_change.take() {
            segment.ack = expected.wire();
            segment.flags = Flags::RDMA.with(Flags::ACK).with_if(Flags::ECE, marked);
            return true;
        }
        if !core::mem::take(&mut self.must_answer) {
            return false;
        }
        (self.unanswered, self.answer_at) = (0, Time::NEVER);
        segment.ack = self.expected.wire();
        segment.flags = Flags::RDMA
            .with(Flags::ACK)
            .with_if(Flags::NAK, core::mem::take(&mut self.says_missing))
            .with_if(Flags::ECE, core::mem::take(&mut self.says_marked));
        segment.sack = core::mem::take(&mut self.beyond);
        true
    }

    pub(super) fn has_answer(&self) -> bool {
        self.must_answer || self.before_change.is_some()
    }

    /// When an acknowledgement goes that waits for more packets.
    pub(super) fn deadline(&self) -> Time {
        self.answer_at
    }

    pub(super) fn handle_timeout(&mut self, now: Time) {
        if self.answer_at <= now {
            (self.must_answer, self.answer_at) = (true, Time::NEVER);
        }
    }

    /// First byte that is not here in order.
    pub(super) fn expected(&self) -> Seq {
        self.expected
    }

    pub(super) fn has_completed(&self) -> bool {
        !self.completed.is_empty()
    }

    /// A message that is whole.
    pub(super) fn poll_completed(&mut self) -> Option<Tag> {
        self.completed.pop_front()
    }

    /// The receiving half's counts beside the sending half's.
    pub(super) fn tallies(&self, sender: Tallies) -> Tallies {
        Tallies {
            marked_bytes: self.marked_bytes,
            delivered_bytes: self.expected.since(Seq::FIRST),
            beyond_bytes: self.early_bytes,
            ..sender
        }
    }
}
