//! What goes next: new data, what is lost, or a probe; and what it takes to be let go.

use super::{Message, Outgoing, Probe, Sender};
use crate::cc::{Limit, Sent};
use crate::packet::{Seq, Tag};
use crate::tcp::Stack;
use crate::tcp::rate::Stamp;
use crate::units::{Bytes, Packets, Rate, Span, Time};

/// What [`Sender::next_new`] finds.
pub(in crate::tcp) enum NextNew {
    Segment(Outgoing),
    /// The window is full, or a piece of several segments waits for more room in it.
    Held,
    /// More than the window decides, and nothing was changed.
    Undecided,
}

impl Sender {
    /// The same as [`next`](Self::next) while the sender is [undisturbed](Self::is_undisturbed), where the window alone decides,
    /// and how many segments make a piece; but for the [probe](Self::probe_tail), to be scheduled after the last.
    #[inline(always)]
    pub(in crate::tcp) fn next_new(&mut self, now: Time, stack: &Stack) -> NextNew {
        let outstanding = self.board.outstanding();
        if outstanding == 0 {
            return NextNew::Undecided;
        }
        if u64::from(outstanding) >= self.controller_window {
            self.hold(Limit::Window);
            return NextNew::Held;
        }
        if self.nxt >= self.offered {
            return NextNew::Undecided;
        }
        let (length, tag, ends_message) = self.next_piece_of_message(stack);
        if self.nxt.plus(u64::from(length)) > self.allowed || self.pacing_rate(stack).is_some() {
            return NextNew::Undecided;
        }
        if stack.profile.offload_segments > 1 || self.burst_left > 0 {
            return self.next_of_burst(now, u64::from(outstanding), (length, tag, ends_message), stack);
        }
        self.pushes_burst = false;
        let announces_reduction = core::mem::take(&mut self.announce_reduction);
        let segment = Outgoing { announces_reduction, ..self.new_data(length, tag, ends_message) };
        self.send_new(now, segment, None, None, stack);
        NextNew::Segment(segment)
    }

    /// The same of hosts that hand their port pieces of several segments.
    #[inline(always)]
    fn next_of_burst(&mut self, now: Time, in_flight: u64, piece: (u16, Tag, bool), stack: &Stack) -> NextNew {
        if self.burst_left == 0 && !self.begin_burst(now, self.controller_window, in_flight, None, stack) {
            self.hold(Limit::Window);
            return NextNew::Held;
        }
        NextNew::Segment(self.send_of_burst(now, piece, None, None, stack))
    }

    /// The next segment to send now, if any.
    #[inline(never)]
    pub(in crate::tcp) fn next(&mut self, now: Time, stack: &Stack) -> Option<Outgoing> {
        if self.probe_now {
            self.probe_now = false;
            if let Some(segment) = self.send_probe(now, stack) {
                return Some(segment);
            }
        }
        if self.board.outstanding() == 0 {
            if self.nxt >= self.offered {
                self.ask_for_window = false;
                return self.hold(Limit::Application);
            }
            self.restart_after_idle(now, stack);
        }
        let in_flight = u64::from(self.board.in_flight());
        let window = self.window();
        if core::mem::take(&mut self.resend_now) && self.board.wants_resend() {
            return self.send_again(now, self.pacing_rate(stack), stack);
        }
        if in_flight >= window {
            return self.hold(Limit::Window);
        }
        let resend = self.board.wants_resend();
        if !resend && self.nxt >= self.offered {
            if stack.delivery_rate {
                self.rate.limited_by_application(self.board.in_flight());
            }
            return self.hold(Limit::Application);
        }
        let (mut length, tag, mut ends_message) = self.next_piece_of_message(stack);
        if !resend && self.nxt.plus(u64::from(length)) > self.allowed {
            if !self.ask_for_window {
                if self.board.outstanding() == 0 && self.timeout_at == Time::NEVER {
                    // Word of an open window may be lost [RFC 9293 §3.8.6.1].
                    self.arm_timeout(now, stack);
                }
                return self.hold(Limit::Receiver);
            }
            length = u16::try_from(self.allowed.since(self.nxt).max(1)).unwrap_or(length);
            ends_message = false;
        }
        let pacing = self.pacing_rate(stack);
        let paces = pacing.is_some() && self.burst_left == 0;
        if self.near_source.is_some() && self.is_held_near_source(now, paces, stack) {
            return self.hold_near_source(stack);
        }
        if paces && now < self.pacer.next() {
            return self.hold(Limit::Pacing);
        }
        if resend {
            return self.send_again(now, pacing, stack);
        }
        if self.burst_left == 0 && !self.begin_burst(now, window, in_flight, pacing, stack) {
            return self.hold(Limit::Window);
        }
        let idle = self.idle_if_none_is_out(now);
        let segment = self.send_of_burst(now, (length, tag, ends_message), pacing, idle, stack);
        self.schedule_probe(now, stack);
        Some(segment)
    }

    /// Says how many segments go at once; false if they wait for more room in the window.
    #[inline(always)]
    fn begin_burst(&mut self, now: Time, window: u64, in_flight: u64, pacing: Option<Rate>, stack: &Stack) -> bool {
        let burst = self.burst(now, window - in_flight, window, pacing, stack);
        self.burst_left = u32::try_from(burst).unwrap_or(u32::MAX);
        self.pushes_burst = burst > 1 && stack.profile.push_bursts;
        burst > 0
    }

    /// Sends the next new segment of a burst.
    #[inline(always)]
    fn send_of_burst(
        &mut self,
        now: Time,
        (length, tag, ends_message): (u16, Tag, bool),
        pacing: Option<Rate>,
        idle: Option<Span>,
        stack: &Stack,
    ) -> Outgoing {
        let announces_reduction = core::mem::take(&mut self.announce_reduction);
        let pushes = ends_message || (self.pushes_burst && self.burst_left == 1);
        let segment = Outgoing { pushes, announces_reduction, ..self.new_data(length, tag, ends_message) };
        self.send_new(now, segment, pacing, idle, stack);
        segment
    }

    #[inline(never)]
    fn tell_near_source(&mut self, now: Time, length: u16, stack: &Stack) {
        if let (Some(near), Some(point)) = (&mut self.near_source, &stack.profile.near_source) {
            near.catch_up(now, stack.line_rate, point);
            near.on_sent(now, packet_of(length, stack), stack.line_rate, point);
        }
    }

    /// Whether the near-source switch keeps the next packet longer than the pacer would.
    #[inline(never)]
    fn is_held_near_source(&mut self, now: Time, paces: bool, stack: &Stack) -> bool {
        let (Some(near), Some(point)) = (&mut self.near_source, &stack.profile.near_source) else { return false };
        near.catch_up(now, stack.line_rate, point);
        let next = near.next();
        now < next && !(paces && self.pacer.next() > next)
    }

    /// What the path delivers meanwhile says as little of it as when the application has nothing to send.
    #[inline(never)]
    fn hold_near_source(&mut self, stack: &Stack) -> Option<Outgoing> {
        if stack.delivery_rate {
            self.rate.limited_by_application(self.board.in_flight());
        }
        self.hold(Limit::NearSource)
    }

    /// Nothing more goes now, for this `reason`. What limited the sender when most was outstanding in a round is what
    /// that round was limited by (Linux `tcp_cwnd_validate`).
    #[inline]
    fn hold(&mut self, reason: Limit) -> Option<Outgoing> {
        self.burst_left = 0;
        self.held_by = reason;
        if core::mem::take(&mut self.sent_since_hold) {
            let outstanding = self.board.outstanding();
            if self.una >= self.usage_until || outstanding > self.most_outstanding {
                self.most_outstanding = outstanding;
                self.usage_until = self.nxt;
                self.limited_by = reason;
            }
        }
        None
    }

    #[inline(never)]
    fn send_probe(&mut self, now: Time, stack: &Stack) -> Option<Outgoing> {
        if self.nxt < self.offered {
            let (length, tag, ends_message) = self.next_piece_of_message(stack);
            if self.nxt.plus(u64::from(length)) <= self.allowed {
                let segment = self.new_data(length, tag, ends_message);
                self.send_new(now, segment, None, self.idle_if_none_is_out(now), stack);
                self.probe = Some(Probe { high: self.nxt, resent: false });
                self.probe_at = Time::NEVER;
                return Some(segment);
            }
        }
        let stamp = self.stamp(now, stack);
        let (start, length) = self.board.resend_last(now, self.una, stamp)?;
        self.probe = Some(Probe { high: self.nxt, resent: true });
        Some(self.note_resent(now, start, length, None, stack))
    }

    #[inline(never)]
    fn send_again(&mut self, now: Time, pacing: Option<Rate>, stack: &Stack) -> Option<Outgoing> {
        let stamp = self.stamp(now, stack);
        let (start, length) = self.board.resend(now, self.una, stamp)?;
        self.resent_at.get_or_insert(stack.profile.timestamp(now));
        if let Some(undo_state) = &mut self.undo_state {
            undo_state.resent = true;
            undo_state.unreported += 1;
        }
        Some(self.note_resent(now, start, length, pacing, stack))
    }

    fn note_resent(&mut self, now: Time, start: Seq, length: u16, pacing: Option<Rate>, stack: &Stack) -> Outgoing {
        self.retransmitted_bytes += u64::from(length);
        // The head's retransmission gets a whole timeout (Linux `tcp_xmit_retransmit_queue`).
        if self.timeout_at == Time::NEVER || start <= self.una {
            self.arm_timeout(now, stack);
        }
        let message = self.message_of(start);
        let ends_message = message.whole && start.plus(u64::from(length)) == message.end;
        // The timer gave up all that was in flight.
        let starts = self.board.in_flight() == 1;
        self.note_sent(now, length, pacing, (None, starts), stack);
        Outgoing {
            start,
            length,
            tag: message.tag,
            ends_message,
            pushes: ends_message,
            resent: true,
            announces_reduction: false,
        }
    }

    /// `idle` if nothing [is out](Self::idle_if_none_is_out). A [probe](Self::probe_tail) is to be scheduled afterwards.
    #[inline(always)]
    fn send_new(&mut self, now: Time, segment: Outgoing, pacing: Option<Rate>, idle: Option<Span>, stack: &Stack) {
        debug_assert_eq!(idle, self.idle_if_none_is_out(now));
        let stamp = self.stamp(now, stack);
        self.board.push(now, segment.start, segment.length, stamp);
        self.nxt = self.nxt.plus(u64::from(segment.length));
        self.note_sent(now, segment.length, pacing, (idle, idle.is_some()), stack);
        // Sending more does not put off the timeout of what was sent before.
        if self.timeout_at == Time::NEVER || idle.is_some() {
            self.arm_timeout(now, stack);
        }
    }

    #[inline(always)]
    fn note_sent(
        &mut self,
        now: Time,
        length: u16,
        pacing: Option<Rate>,
        (idle, starts): (Option<Span>, bool),
        stack: &Stack,
    ) {
        self.burst_left = self.burst_left.saturating_sub(1);
        self.sent_since_hold = true;
        self.last_sent = now;
        self.restarted = false;
        self.ask_for_window = false;
        self.reduction.on_sent();
        if let Some(rate) = pacing {
            self.pacer.on_sent(now, packet_of(length, stack), rate);
        }
        if self.near_source.is_some() {
            self.tell_near_source(now, length, stack);
        }
        if starts || !self.hears_of_starts_only {
            self.tell_sent(now, Sent { size: packet_of(length, stack), idle, starts });
        }
    }

    /// The controller hears of a transmission.
    #[inline(always)]
    fn tell_sent(&mut self, now: Time, sent: Sent) {
        self.path.una = self.una;
        self.path.nxt = self.nxt;
        self.path.in_flight = Packets::new(u64::from(self.board.in_flight()));
        self.path.outstanding = self.board.outstanding();
        let before = self.controller_window;
        self.controller_window = self.controller.on_sent(now, &sent, &self.path).get();
        // One of the user's may change its pacing or its threshold alone; ours do not while data is out.
        if before != self.controller_window || sent.idle.is_some() || self.controller.is_external() {
            self.known_limit.set(0);
        }
    }

    #[inline(always)]
    fn stamp(&mut self, now: Time, stack: &Stack) -> Option<Stamp> {
        if stack.delivery_rate { Some(self.stamp_rate(now)) } else { None }
    }

    /// Out of line, and what it needs not gathered where no rate is wanted.
    #[inline(never)]
    fn stamp_rate(&mut self, now: Time) -> Stamp {
        self.rate.stamp(now, self.board.outstanding(), self.board.in_flight())
    }

    /// Since when nothing was sent, if nothing is out.
    fn idle_if_none_is_out(&self, now: Time) -> Option<Span> {
        (self.board.outstanding() == 0).then(|| self.idle(now))
    }

    /// Time since the last segment left; none before the first.
    pub(super) fn idle(&self, now: Time) -> Span {
        if self.last_sent == Time::NEVER { Span::ZERO } else { now.since(self.last_sent) }
    }

    #[inline(never)]
    fn restart_after_idle(&mut self, now: Time, stack: &Stack) {
        if let Some(plb) = &mut self.plb {
            plb.on_start(now);
        }
        let idle = self.idle(now);
        // Once per idle time, even if the segment itself must wait.
        if stack.profile.restart_after_idle && !self.restarted && idle > self.rtt.timeout() {
            self.refresh_path();
            let window = self.controller.on_idle_restart(now, idle, &self.path);
            self.take_window(window);
            self.restarted = true;
        }
    }

    /// The next new segment, of this length.
    #[inline(always)]
    fn new_data(&self, length: u16, tag: Tag, ends_message: bool) -> Outgoing {
        let (start, pushes) = (self.nxt, ends_message);
        Outgoing { start, length, tag, ends_message, pushes, resent: false, announces_reduction: false }
    }

    /// Length, tag and whether it ends its message, of the next new segment: no segment spans two messages.
    #[inline(always)]
    fn next_piece_of_message(&self, stack: &Stack) -> (u16, Tag, bool) {
        // As by `message_of`, but taken apart at once, lest a message be copied.
        let (end, tag) = match self.messages.front() {
            Some(first) if self.nxt < first.end => (first.end, first.tag),
            _ => {
                let message = self.find_message_of(self.nxt);
                (message.end, message.tag)
            }
        };
        let left = end.since(self.nxt);
        let length = left.min(stack.mss());
        (u16::try_from(length).expect("at most one MSS"), tag, length == left)
    }

    /// The message that the byte at `seq` belongs to.
    #[inline(always)]
    fn message_of(&self, seq: Seq) -> Message {
        match self.messages.front() {
            Some(&first) if seq < first.end => first,
            _ => self.find_message_of(seq),
        }
    }

    #[inline(never)]
    fn find_message_of(&self, seq: Seq) -> Message {
        let place = self.messages.partition_point(|message| message.end <= seq);
        let none = Message { end: self.offered.max(seq), tag: Tag::default(), whole: false };
        self.messages.get(place).copied().unwrap_or(none)
    }
}

/// IP bytes of a packet that carries so many of payload.
#[inline]
fn packet_of(length: u16, stack: &Stack) -> Bytes {
    Bytes::new(u64::from(length) + stack.packet().get() - stack.mss())
}
