//! The fast path: what most segments of a transfer in one direction are, handled in straight lines [BSD's "header prediction";
//! Linux `tcp_rcv_established`].
//!
//! An end is *receiving* while it has nothing to send and the stream is in order, and *sending* while nothing comes and nothing is
//! lost, reported or retransmitted. What each of them expects takes the fast path: the next segment in order, or the
//! acknowledgement of whole segments without flags and options; after either, the next acknowledgement or the next new segment that
//! the window admits. Anything else takes the full path, which may do all of this as well, and must do the same.
//!
//! Which of the two an end is, is found out when it matters and then known until something takes the full path. What the fast path
//! itself does changes nothing of it; debug builds check that at each segment.

use super::{Endpoint, Handshake};
use crate::packet::{Flags, Segment};
use crate::tcp::Stack;
use crate::tcp::sender::NextNew;
use crate::units::Time;

/// Which fast path an end is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FastPath {
    /// Something took the full path: to be found out.
    Unknown,
    /// It has nothing to send, and the stream is in order.
    Receiving,
    /// Nothing comes, and nothing is lost, reported or retransmitted.
    Sending,
    /// None, ever: see [`Endpoint::take_full_path`].
    Off,
}

impl Endpoint {
    /// Never takes the fast path from now on: results are the same, and later.
    pub fn take_full_path(&mut self) {
        self.fast_path = FastPath::Off;
    }

    /// Something happens that the fast path does not know.
    #[inline(always)]
    pub(super) fn leave_fast_path(&mut self) {
        if self.fast_path != FastPath::Off {
            self.fast_path = FastPath::Unknown;
        }
    }

    /// Which fast path this end is on now.
    #[inline(always)]
    pub fn fast_path(&mut self, stack: &Stack) -> FastPath {
        if self.fast_path == FastPath::Unknown {
            self.fast_path = self.find_fast_path(stack);
        }
        self.fast_path
    }

    /// A segment arrived. False if it is for the full path, and nothing is changed then but what that changes as well.
    #[inline(always)]
    pub(super) fn handle_on_fast_path(&mut self, now: Time, segment: &Segment, stack: &Stack) -> bool {
        let flags = segment.flags.bits() & !Flags::PSH.bits();
        if flags != Flags::ACK.bits() || !segment.sack.is_empty() {
            return false;
        }
        match self.fast_path(stack) {
            FastPath::Receiving => self.receive_in_order(now, segment, stack),
            FastPath::Sending => {
                let in_order = self.acknowledged_in_order(now, segment, stack);
                if in_order {
                    self.probe_tail(now, stack);
                }
                in_order
            }
            FastPath::Unknown | FastPath::Off => false,
        }
    }

    /// A segment without options, and with no flags but ACK and PSH, at an end that is [receiving](FastPath::Receiving). False if it
    /// is for the full path, and nothing is changed then but what that changes as well.
    #[inline(always)]
    pub fn receive_in_order(&mut self, now: Time, segment: &Segment, stack: &Stack) -> bool {
        debug_assert!(self.may_receive());
        self.sender.hears_nothing_new(segment) && self.receiver.take_in_order(now, segment, stack)
    }

    /// The same at an end that is [sending](FastPath::Sending); [`probe_tail`](Self::probe_tail) once afterwards, when what it lets go
    /// has been [polled](Self::poll_new).
    #[inline(always)]
    pub fn acknowledged_in_order(&mut self, now: Time, segment: &Segment, stack: &Stack) -> bool {
        debug_assert!(self.may_send(stack));
        segment.length == 0 && self.sender.take_ack_in_order(now, segment, stack)
    }

    /// The acknowledgement that is due, into an empty segment, at an end that is [receiving](FastPath::Receiving); false if none is.
    #[inline(always)]
    pub fn poll_acknowledgement(&mut self, segment: &mut Segment, now: Time, stack: &Stack) -> bool {
        let due = self.receiver.must_acknowledge();
        if due {
            let fields = self.receiver.take_ack(stack);
            self.acknowledge(segment, now, fields, stack);
        }
        due
    }

    /// The next new segment that the window admits, into an empty one, at an end that is [sending](FastPath::Sending), or whether there
    /// is one; `None`, and nothing is changed, if the full path must say.
    #[inline(always)]
    pub fn poll_new(&mut self, segment: &mut Segment, now: Time, stack: &Stack) -> Option<bool> {
        match self.sender.next_new(now, stack) {
            NextNew::Segment(outgoing) => {
                let fields = self.receiver.take_ack(stack);
                self.acknowledge(segment, now, fields, stack);
                Endpoint::carry(segment, outgoing, stack);
                Some(true)
            }
            NextNew::Held => Some(false),
            NextNew::Undecided => None,
        }
    }

    /// After [`acknowledged_in_order`](Self::acknowledged_in_order) or [`poll_new`](Self::poll_new): when to probe the tail.
    #[inline(always)]
    pub fn probe_tail(&mut self, now: Time, stack: &Stack) {
        self.sender.probe_tail(now, stack);
    }

    /// The next segment, into an empty one, or whether there is one; `None`, and nothing is changed, if the full path must say.
    #[inline(always)]
    pub(super) fn poll_on_fast_path(
        &mut self,
        segment: &mut Segment,
        now: Time,
        room: bool,
        stack: &Stack,
    ) -> Option<bool> {
        match self.fast_path {
            FastPath::Receiving => Some(self.poll_acknowledgement(segment, now, stack)),
            FastPath::Sending if !room => Some(false),
            FastPath::Sending => {
                let found = self.poll_new(segment, now, stack);
                if found == Some(true) {
                    self.probe_tail(now, stack);
                }
                found
            }
            FastPath::Unknown | FastPath::Off => None,
        }
    }

    /// [`deadline`](Self::deadline) of an end that is [receiving](FastPath::Receiving).
    #[inline(always)]
    pub fn receiving_deadline(&self) -> Time {
        debug_assert_eq!(self.fast_path, FastPath::Receiving);
        self.receiver.deadline()
    }

    /// [`deadline`](Self::deadline) of an end that is [sending](FastPath::Sending).
    #[inline(always)]
    pub fn sending_deadline(&self) -> Time {
        debug_assert_eq!(self.fast_path, FastPath::Sending);
        self.sender.timeout_or_probe()
    }

    #[inline(never)]
    fn find_fast_path(&self, stack: &Stack) -> FastPath {
        if self.may_receive() {
            FastPath::Receiving
        } else if self.may_send(stack) {
            FastPath::Sending
        } else {
            FastPath::Unknown
        }
    }

    fn is_open(&self) -> bool {
        self.handshake == Handshake::Established && self.handshake_timer == Time::NEVER && !self.announce
    }

    fn may_receive(&self) -> bool {
        self.is_open() && self.sender.is_at_rest() && self.receiver.is_undisturbed()
    }

    fn may_send(&self, stack: &Stack) -> bool {
        self.is_open() && self.receiver.owes_nothing() && self.sender.is_undisturbed(stack)
    }
}
