//! The receiving half: puts the stream in order, decides when to acknowledge, and echoes congestion marks.

use alloc::boxed::Box;
use alloc::collections::VecDeque;

use super::buffers::ReceiveBuffer;
use super::{EcnMode, Stack};
use crate::packet::{Ecn, Flags, SackBlocks, Segment, Seq, Tag};
use crate::units::{Span, Time};

/// The window that a connection begins with (Linux `tcp_select_initial_window`), bytes.
const FIRST_WINDOW: u64 = 65_535;
/// Reports of a hole that go at once before others wait (Linux `TCP_FASTRETRANS_THRESH`).
const PROMPT_REPORTS: u8 = 3;
/// So many reports may wait, and no more (Linux `tcp_comp_sack_nr`).
const MAX_WAITING_REPORTS: u8 = 44;
/// Ranges that every acknowledgement has room for beside the latest (Linux `TCP_SACK_BLOCKS_EXPECTED`).
const TOLD_FIRST: usize = 2;
/// What reports wait longer for the kernel's convenience (Linux `tcp_comp_sack_slack_ns`).
const REPORT_SLACK: Span = Span::from_us(100);
/// Reports wait this part of an RTT: 5 %.
const REPORTS_PER_ROUND_TRIP: u64 = 20;
/// No range of bytes.
const NO_RANGE: (u32, u32) = (0, 0);
/// Segments with less do not let it grow (Linux `tcp_event_data_recv`), bytes.
const MIN_FOR_GROWTH: u64 = 128;

/// One or more segments in a row that the host's receive offload hands up as one [Linux GRO].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Arrival {
    pub(super) start: Seq,
    pub(super) end: Seq,
    pub(super) marked: bool,
    pub(super) flags: Flags,
    pub(super) timestamp: u32,
    pub(super) tag: Tag,
}

/// What must be sent back, and how soon.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Pending {
    #[default]
    Nothing,
    /// When the delayed-acknowledgement timer expires.
    Delayed(Time),
    Now,
}

/// Everything an acknowledgement says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct AckFields {
    pub(super) ack: Seq,
    pub(super) ece: bool,
    pub(super) timestamp_echo: u32,
    pub(super) window: u16,
}

/// The state of the receiving half.
#[derive(Clone, Debug)]
// What each packet needs comes first, lest it lie in many cache lines.
#[repr(C)]
pub(super) struct Receiver {
    /// Next byte expected.
    next: Seq,
    /// `next` as last acknowledged.
    acknowledged: Seq,
    pending: Pending,
    /// By how much the window to offer is still to grow, bytes: at most a buffer, 1 GiB.
    growth_left: u32,
    /// The timestamp to echo: of the earliest segment not yet acknowledged [RFC 7323 §4.3].
    timestamp: u32,
    beyond_bytes: u64,
    /// End of what was offered, as it travels; known while something lies beyond a hole.
    edge: u32,
    quick_acks: u8,
    /// The last data segment was marked (DCTCP), or a mark awaits its CWR (classic).
    congestion: bool,
    window_scale: u8,
    recent_count: u8,
    /// The socket's buffer, where it grows.
    buffer: Option<Box<ReceiveBuffer>>,
    marked_bytes: u64,
    reports: Reports,
    /// Ranges that arrived beyond a hole, ascending, apart from each other.
    beyond: VecDeque<(Seq, Seq)>,
    /// The ranges to report, most recently touched first (Linux `selective_acks`).
    recent: [(Seq, Seq); 4],
    /// A range that arrived twice and is to be reported, as it travels; an empty one for none.
    duplicate: (u32, u32),
    /// Ends of messages that lie beyond `next`, ascending.
    message_ends: VecDeque<(Seq, Tag)>,
    /// Messages delivered whole and in order, not yet told.
    completed: VecDeque<Tag>,
    /// The acknowledgement for the state before the last change of marks, due before any other [RFC 8257 §3.2].
    before_change: Option<(Seq, bool)>,
}

/// Which out-of-order arrivals are told at once, and which together with others (Linux "SACK compression").
#[derive(Clone, Copy, Debug)]
struct Reports {
    /// How long one may wait; no time for hosts that tell each at once.
    wait: Span,
    /// Of the hole at this byte, so many were told at once.
    hole: Seq,
    prompt: u8,
    waiting: u8,
}

impl Receiver {
    pub(super) fn new(stack: &Stack) -> Receiver {
        Receiver {
            next: Seq::FIRST,
            acknowledged: Seq::FIRST,
            beyond: VecDeque::new(),
            beyond_bytes: 0,
            recent: [(Seq::SYN, Seq::SYN); 4],
            recent_count: 0,
            duplicate: NO_RANGE,
            message_ends: VecDeque::new(),
            completed: VecDeque::new(),
            pending: Pending::Nothing,
            quick_acks: stack.profile.quick_acks,
            growth_left: u32::try_from(growth(stack)).unwrap_or(u32::MAX),
            edge: Seq::FIRST.wire(),
            window_scale: stack.profile.window_scale(),
            timestamp: 0,
            congestion: false,
            before_change: None,
            marked_bytes: 0,
            reports: Reports { wait: wait(Span::MAX, stack), hole: Seq::FIRST, prompt: 0, waiting: 0 },
            buffer: stack.profile.adaptive_buffers.as_ref().map(|buffers| Box::new(ReceiveBuffer::new(buffers))),
        }
    }

    /// Bytes delivered in order.
    pub(super) fn delivered(&self) -> u64 {
        self.next.since(Seq::FIRST)
    }

    /// Bytes that wait behind a hole.
    pub(super) fn beyond_bytes(&self) -> u64 {
        self.beyond_bytes
    }

    /// Payload bytes that arrived marked.
    pub(super) fn marked_bytes(&self) -> u64 {
        self.marked_bytes
    }

    /// The next byte expected: what incoming wire numbers are near to.
    pub(super) fn next_expected(&self) -> Seq {
        self.next
    }

    /// Whether a message became whole since the last call.
    pub(super) fn has_completed(&self) -> bool {
        !self.completed.is_empty()
    }

    /// A message that became whole since the last call.
    pub(super) fn poll_completed(&mut self) -> Option<Tag> {
        self.completed.pop_front()
    }

    /// The peer's first timestamp, from its SYN or SYN-ACK.
    pub(super) fn learn_timestamp(&mut self, timestamp: u32) {
        self.timestamp = timestamp;
    }

    /// The handshake took this long.
    pub(super) fn learn_round_trip(&mut self, span: Span, stack: &Stack) {
        self.reports.wait = wait(span, stack);
    }

    /// Whether something beyond a hole waits to be told.
    pub(super) fn reports_wait(&self) -> bool {
        self.reports.waiting > 0
    }

    #[inline]
    pub(super) fn handle(&mut self, now: Time, arrival: Arrival, stack: &Stack) {
        let length = arrival.end.since(arrival.start);
        if length == 0 {
            return;
        }
        // Nothing beyond the window was ever allowed [RFC 9293 §3.10.7.4].
        if arrival.start > self.next
            && (arrival.end > self.next.plus(self.capacity(stack)) || self.is_reassembly_full(length, stack))
        {
            self.pending = Pending::Now;
            return;
        }
        if arrival.marked {
            self.marked_bytes += length;
        }
        self.echo_marks(arrival, stack);
        // [RFC 7323 §4.3]: of the segment at the left edge, and never back, lest an old duplicate pass for an original.
        let older = arrival.timestamp.wrapping_sub(self.timestamp) > u32::MAX / 2;
        if arrival.start <= self.acknowledged && !older {
            self.timestamp = arrival.timestamp;
        }
        if arrival.flags.contains(Flags::END) && arrival.end > self.next {
            let place = self.message_ends.partition_point(|&(end, _)| end < arrival.end);
            if self.message_ends.get(place).is_none_or(|&(end, _)| end != arrival.end) {
                self.message_ends.insert(place, (arrival.end, arrival.tag));
            }
        }
        if arrival.end <= self.next {
            // All of it was here before: say which, so that the sender can undo a spurious reduction [RFC 2883 §4].
            self.duplicate = (arrival.start.wire(), arrival.end.wire());
            self.pending = Pending::Now;
            // The sender is at a loss for acknowledgements (Linux `tcp_enter_quickack_mode`).
            self.quick_acks = self.quick_acks.max(stack.profile.quick_acks);
            return;
        }
        self.grow_window(length, stack);
        if arrival.start < self.next {
            self.duplicate = (arrival.start.wire(), self.next.wire());
        }
        if arrival.start > self.next {
            if self.beyond_bytes == 0 {
                self.edge = self.acknowledged.plus(u64::from(self.window(stack)) << self.window_scale).wire();
            }
            let crowds_out = self.store(arrival.start, arrival.end);
            self.report(now, crowds_out);
            return;
        }
        let filled_hole = !self.beyond.is_empty();
        self.next = arrival.end;
        self.advance_over_stored();
        // A full segment alone: more may not come before it is acknowledged (Linux `tcp_measure_rcv_mss`).
        let pushed = stack.profile.push_bursts && arrival.flags.contains(Flags::PSH) && length == stack.mss();
        let at_once = self.complete_messages() | filled_hole | pushed;
        self.schedule(now, at_once, stack);
    }

    /// Whether nothing is missing, to be reported or to be told.
    pub(super) fn is_undisturbed(&self) -> bool {
        self.beyond.is_empty() && self.message_ends.is_empty() && self.completed.is_empty() && self.reports_nothing()
    }

    /// Whether acknowledgements say nothing but how far the stream has come.
    fn reports_nothing(&self) -> bool {
        !self.has_reports() && self.before_change.is_none() && self.reports.waiting == 0 && self.buffer.is_none()
    }

    /// Whether nothing at all is to be told.
    pub(super) fn owes_nothing(&self) -> bool {
        self.pending == Pending::Nothing && self.reports_nothing()
    }

    /// The next segment of a stream that is [undisturbed](Self::is_undisturbed), and ends no message. False, and nothing is changed, if
    /// it is another, or its mark changes the echo.
    #[inline(always)]
    pub(super) fn take_in_order(&mut self, now: Time, segment: &Segment, stack: &Stack) -> bool {
        let length = u64::from(segment.length);
        let marked = segment.ecn == Ecn::Marked;
        if segment.seq != self.next.wire() || length == 0 || marked != self.congestion {
            return false;
        }
        if marked {
            self.marked_bytes += length;
        }
        let older = segment.timestamp.wrapping_sub(self.timestamp) > u32::MAX / 2;
        if self.next == self.acknowledged && !older {
            self.timestamp = segment.timestamp;
        }
        self.grow_window(length, stack);
        self.next = self.next.plus(length);
        let pushed = stack.profile.push_bursts && segment.flags.contains(Flags::PSH) && length == stack.mss();
        self.schedule(now, pushed, stack);
        true
    }

    /// The window grows with what comes, by twice as much, and as long as it does the sender is to hear of it at once
    /// (Linux `tcp_grow_window`).
    #[inline(always)]
    fn grow_window(&mut self, length: u64, stack: &Stack) {
        if self.growth_left > 0 && length >= MIN_FOR_GROWTH {
            let grown = u32::try_from(2 * length.max(stack.mss())).unwrap_or(u32::MAX);
            self.growth_left = self.growth_left.saturating_sub(grown);
            self.quick_acks |= 1;
        }
    }

    /// The state machine of marks: run-exact for DCTCP, latched until CWR for classic ECN.
    fn echo_marks(&mut self, arrival: Arrival, stack: &Stack) {
        match stack.ecn {
            EcnMode::Off => {}
            EcnMode::Classic => {
                if arrival.flags.contains(Flags::CWR) {
                    self.congestion = false;
                }
                if arrival.marked && !self.congestion {
                    self.congestion = true;
                    self.quick_acks = self.quick_acks.max(2);
                }
            }
            EcnMode::Exact | EcnMode::L4s => {
                if arrival.marked != self.congestion {
                    if self.pending != Pending::Nothing && self.reports.waiting == 0 {
                        self.before_change = Some((self.next, self.congestion));
                    }
                    self.congestion = arrival.marked;
                    self.pending = Pending::Now;
                }
            }
        }
    }

    #[inline(always)]
    fn schedule(&mut self, now: Time, at_once: bool, stack: &Stack) {
        if self.pending == Pending::Now {
            return;
        }
        let unacknowledged = self.next.since(self.acknowledged);
        let reorder_window = u64::from(stack.profile.ack_every.saturating_sub(1)) * stack.mss();
        if at_once || unacknowledged > reorder_window || self.quick_acks > 0 {
            self.quick_acks = self.quick_acks.saturating_sub(1);
            self.pending = Pending::Now;
        } else if self.pending == Pending::Nothing {
            self.pending = Pending::Delayed(now + stack.profile.delayed_ack);
        }
    }

    /// Something arrived beyond a hole: that is told at once, or after some more (Linux `__tcp_ack_snd_check`). Nothing waits
    /// if it `crowds_out` what was told in first or second place from there (Linux `tcp_sack_new_ofo_skb`).
    fn report(&mut self, now: Time, crowds_out: bool) {
        if self.pending == Pending::Now {
            return;
        }
        let wait = self.reports.wait;
        if wait == Span::ZERO {
            self.pending = Pending::Now;
            return;
        }
        if self.reports.hole != self.next {
            (self.reports.hole, self.reports.prompt) = (self.next, 0);
        }
        if self.quick_acks > 0 {
            self.quick_acks -= 1;
            self.pending = Pending::Now;
        } else if self.reports.prompt < PROMPT_REPORTS {
            self.reports.prompt += 1;
            self.pending = Pending::Now;
        } else if self.reports.waiting >= MAX_WAITING_REPORTS || (crowds_out && self.reports.waiting > 0) {
            self.pending = Pending::Now;
        } else {
            self.reports.waiting += 1;
            self.pending = match self.pending {
                Pending::Delayed(at) => Pending::Delayed(at.min(now + wait)),
                _ => Pending::Delayed(now + wait),
            };
        }
    }

    /// Notes what arrived beyond a hole; whether its range was not among the two told first.
    #[inline(never)]
    fn store(&mut self, start: Seq, end: Seq) -> bool {
        let place = self.beyond.partition_point(|&(_, to)| to < start);
        let (mut from, mut to) = (start, end);
        let mut overlap = 0;
        let mut touched = 0;
        while let Some(&(other_from, other_to)) = self.beyond.get(place + touched) {
            if other_from > to {
                break;
            }
            if other_from <= start && end <= other_to {
                self.duplicate = (start.wire(), end.wire());
            }
            overlap += other_to.since(other_from);
            from = from.min(other_from);
            to = to.max(other_to);
            touched += 1;
        }
        match touched {
            0 => self.beyond.insert(place, (from, to)),
            1 => self.beyond[place] = (from, to),
            _ => {
                self.beyond[place] = (from, to);
                self.beyond.drain(place + 1..place + touched);
            }
        }
        self.beyond_bytes += to.since(from) - overlap;
        let told = &self.recent[..usize::from(self.recent_count)];
        let place = told.iter().position(|&(start, end)| start <= to && from <= end).unwrap_or(told.len());
        // The range just touched goes to the front; those it swallowed leave the list [RFC 2018 §4].
        let mut kept = [(Seq::SYN, Seq::SYN); 4];
        kept[0] = (from, to);
        let mut count = 1_usize;
        for &(start, end) in &self.recent[..usize::from(self.recent_count)] {
            if (end < from || start > to) && count < kept.len() {
                kept[count] = (start, end);
                count += 1;
            }
        }
        self.recent = kept;
        self.recent_count = few(count);
        place >= TOLD_FIRST
    }

    fn advance_over_stored(&mut self) {
        while let Some(&(from, to)) = self.beyond.front() {
            if from > self.next {
                break;
            }
            self.next = self.next.max(to);
            self.beyond_bytes -= to.since(from);
            self.beyond.pop_front();
        }
        if self.recent_count > 0 {
            let mut count = 0;
            for index in 0..usize::from(self.recent_count) {
                if self.recent[index].0 > self.next {
                    self.recent[count] = self.recent[index];
                    count += 1;
                }
            }
            self.recent_count = few(count);
        }
    }

    fn complete_messages(&mut self) -> bool {
        let before = self.completed.len();
        while let Some(&(end, tag)) = self.message_ends.front() {
            if end > self.next {
                break;
            }
            self.message_ends.pop_front();
            self.completed.push_back(tag);
        }
        self.completed.len() > before
    }

    /// When the delayed acknowledgement is due; [`Time::NEVER`] if none is.
    pub(super) fn deadline(&self) -> Time {
        if let Pending::Delayed(at) = self.pending { at } else { Time::NEVER }
    }

    pub(super) fn handle_timeout(&mut self, now: Time) {
        if matches!(self.pending, Pending::Delayed(at) if at <= now) {
            self.pending = Pending::Now;
        }
    }

    /// Something other than data asks for an acknowledgement.
    pub(super) fn acknowledge_now(&mut self) {
        self.pending = Pending::Now;
    }

    /// An acknowledgement is due even if there is no data to carry it.
    pub(super) fn must_acknowledge(&self) -> bool {
        self.pending == Pending::Now
    }

    /// An acknowledgement for the marks before their last change is due.
    pub(super) fn reports_change(&self) -> bool {
        self.before_change.is_some()
    }

    /// Something arrived out of order or twice, and is to be reported.
    pub(super) fn has_reports(&self) -> bool {
        self.recent_count > 0 || self.duplicate != NO_RANGE
    }

    /// The acknowledgement for the marks before the last change, if one is due.
    #[inline]
    pub(super) fn take_before_change(&mut self, stack: &Stack) -> Option<AckFields> {
        let (ack, ece) = self.before_change.take()?;
        self.acknowledged = self.acknowledged.max(ack);
        Some(AckFields { ack, ece, timestamp_echo: self.timestamp, window: self.window(stack) })
    }

    /// What any segment sent now says beside the [reports](Self::take_reports); nothing is pending afterwards.
    #[inline(always)]
    pub(super) fn take_ack(&mut self, stack: &Stack) -> AckFields {
        self.pending = Pending::Nothing;
        self.reports.waiting = 0;
        self.acknowledged = self.next;
        let window = self.window(stack);
        if self.beyond_bytes > 0 {
            self.edge = self.edge().max(self.next.plus(u64::from(window) << self.window_scale)).wire();
        }
        let ece = self.congestion && stack.ecn != EcnMode::Off;
        AckFields { ack: self.next, ece, timestamp_echo: self.timestamp, window }
    }

    /// What arrived out of order or twice; of the latter nothing is left to report afterwards.
    #[inline(never)]
    pub(super) fn take_reports(&mut self) -> SackBlocks {
        let mut sack = SackBlocks::NONE;
        let duplicate = core::mem::replace(&mut self.duplicate, NO_RANGE);
        if duplicate != NO_RANGE {
            sack.push_wire(duplicate);
        }
        for &(start, end) in &self.recent[..usize::from(self.recent_count)] {
            sack.push(start, end);
        }
        sack
    }

    /// Bytes that the socket may hold.
    #[inline]
    fn capacity(&self, stack: &Stack) -> u64 {
        self.buffer.as_ref().map_or(stack.profile.receive_buffer, |buffer| buffer.size())
    }

    /// Whether so much more beyond a hole is too much.
    #[inline(never)]
    fn is_reassembly_full(&self, length: u64, stack: &Stack) -> bool {
        let most = u64::from(stack.profile.reassembly_segments) * stack.mss();
        most > 0 && self.beyond_bytes + length > most
    }

    /// The timestamp of a bare acknowledgement: by its echo the peer's receiver tells RTTs apart. Beyond a hole it is not taken
    /// [RFC 7323 §4.3].
    pub(super) fn note_timestamp(&mut self, segment: &Segment) {
        let older = segment.timestamp.wrapping_sub(self.timestamp) > u32::MAX / 2;
        if Seq::expand(segment.seq, self.next) <= self.acknowledged && !older {
            self.timestamp = segment.timestamp;
        }
    }

    /// A segment brought `bytes` in order and echoes our timestamp.
    #[inline]
    pub(super) fn note_echo(&mut self, bytes: u64, echo: u32, clock: u32) {
        if let Some(buffer) = &mut self.buffer {
            buffer.deliver(bytes, echo, clock);
        }
    }

    /// The window to offer, scaled.
    #[inline(always)]
    pub(super) fn window(&self, stack: &Stack) -> u16 {
        let window = self.capacity(stack) >> self.window_scale;
        let window = if self.beyond_bytes == 0 { window } else { self.window_above_hole(stack) };
        u16::try_from(window).unwrap_or(u16::MAX)
    }

    /// What lies beyond a hole takes room, but not what was offered before [RFC 9293 §3.8.6, Linux `tcp_select_window`]: else
    /// reports of a hole would differ in their windows, and be no duplicate acknowledgements [RFC 5681 §2].
    #[inline(never)]
    fn window_above_hole(&self, stack: &Stack) -> u64 {
        let free = self.capacity(stack).saturating_sub(self.beyond_bytes) >> self.window_scale;
        free.max(self.edge().since(self.next).div_ceil(1 << self.window_scale))
    }

    fn edge(&self) -> Seq {
        Seq::expand(self.edge, self.next)
    }
}

/// Of four ranges at most.
#[allow(clippy::cast_possible_truncation, reason = "at most four")]
const fn few(count: usize) -> u8 {
    count as u8
}

/// How long a report may wait after a handshake of this length; no time where none may.
fn wait(round_trip: Span, stack: &Stack) -> Span {
    match stack.profile.sack_compression {
        Span::ZERO => Span::ZERO,
        most => round_trip.div(REPORTS_PER_ROUND_TRIP).min(most) + REPORT_SLACK,
    }
}

/// By how much a window grows from its first size to its last, half of the buffer, where that is told segment by segment.
fn growth(stack: &Stack) -> u64 {
    let last = if stack.profile.acks_window_growth { stack.profile.receive_buffer / 2 } else { 0 };
    last.saturating_sub(FIRST_WINDOW)
}

/// An arrival of one segment; `None` for a number before the beginning of the stream.
#[inline]
pub(super) fn arrival(segment: &Segment, near: Seq) -> Option<Arrival> {
    let start = Seq::expand(segment.seq, near);
    // Less than 2³¹ ahead of `near`, unless the number lay before zero and wrapped.
    let begun = start >= Seq::FIRST && start.get() <= near.get().saturating_add(1 << 31);
    begun.then(|| Arrival {
        start,
        end: start.plus(u64::from(segment.length)),
        marked: segment.ecn == Ecn::Marked,
        flags: segment.flags,
        timestamp: segment.timestamp,
        tag: segment.tag,
    })
}

#[cfg(test)]
impl Receiver {
    /// The stream begins here.
    pub(super) fn begin_at(&mut self, seq: Seq) {
        self.next = seq;
        self.acknowledged = seq;
    }
}
