//! What was sent and not yet acknowledged: one record per segment, and which of them are delivered, lost or retransmitted.
//!
//! Work per acknowledgement does not grow with the window: records leave from the front, a report touches only what it newly
//! delivers and finds the rest as runs, and each loss detector keeps a place from which it goes on. Finding a run costs the
//! logarithm of the number of holes; an undo and a timeout visit every record, once per episode.

use alloc::collections::VecDeque;
use core::ops::Range;

use super::rate::Stamp;
use crate::packet::Seq;
use crate::ring::Ring;
use crate::units::{Span, Time};

/// Delivered out of order, as the receiver reported.
const SACKED: u8 = 1;
/// Thought lost.
const LOST: u8 = 2;
/// Retransmitted, and that transmission is thought to be in the network.
const RESENT: u8 = 4;
/// Was retransmitted at least once: its acknowledgement gives no RTT [Karn 1987].
const EVER_RESENT: u8 = 8;

/// One segment: 16 bytes.
#[derive(Clone, Copy, Debug)]
struct Record {
    /// First byte, low 32 bits.
    start: u32,
    length: u16,
    state: u8,
    /// Of its last transmission.
    sent_at: Time,
}

impl Record {
    const fn is(self, state: u8) -> bool {
        self.state & state != 0
    }

    /// First byte after it, low 32 bits.
    const fn end(self) -> u32 {
        self.start.wrapping_add(self.length as u32)
    }
}

/// What one acknowledgement delivered.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Delivered {
    pub(super) packets: u32,
    /// Number after the highest record reported delivered before the acknowledgement: only what arrives below that is late.
    known_end: u64,
    /// Those acknowledged in order that were sent only once.
    in_order: Option<Left>,
    /// Those reported out of order that were sent only once.
    out_of_order: Option<Left>,
    /// A segment acknowledged in order was retransmitted.
    resent_in_order: bool,
    /// The latest transmission among the delivered: its time, end, and whether it was a retransmission [RFC 8985 §6.2].
    pub(super) latest: Option<(Time, Seq, bool)>,
    /// The rate stamp of the latest transmission.
    pub(super) stamp: Option<(Stamp, Time)>,
    /// A segment sent once arrived after a later one, by so many segments.
    pub(super) reordered_by: u32,
    /// The same of any segment, retransmitted or not.
    pub(super) reach: u32,
}

/// Segments newly found lost.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Losses {
    pub(super) found: u32,
    /// How many of them were retransmissions.
    pub(super) resent: u32,
}

/// When the oldest and the newest of some segments left, and the newest one's first byte.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Left {
    oldest: Time,
    newest: (Time, Seq),
}

impl Delivered {
    /// When the segment left that the timeout's sample is taken on, and when the one that the controller's is, with its
    /// first byte. With a retransmission among those acknowledged in order, these say nothing: some may have arrived long
    /// before it, their reports lost (Linux FLAG_RETRANS_DATA_ACKED).
    pub(super) fn round_trip(&self) -> Option<(Time, (Time, Seq))> {
        let in_order = self.in_order.filter(|_| !self.resent_in_order);
        match (in_order, self.out_of_order) {
            (Some(first), Some(other)) => Some((first.oldest, first.newest.max(other.newest))),
            (Some(only), None) | (None, Some(only)) => Some((only.oldest, only.newest)),
            (None, None) => None,
        }
    }
}

/// The outstanding segments of one sender.
#[derive(Clone, Debug, Default)]
// What each packet needs comes first, lest it lie in many cache lines.
#[repr(C)]
pub(super) struct Scoreboard {
    records: Ring<Record>,
    /// Number of the first record; segments are numbered from the connection's beginning.
    first: u64,
    sacked: u32,
    lost: u32,
    resent: u32,
    sacked_below_scan: u32,
    /// One per record where delivery rates are wanted, else empty.
    stamps: VecDeque<Stamp>,
    /// Number after the highest record that was ever retransmitted.
    resent_below: u64,
    /// Runs of records delivered out of order, `[from, to)` by number, ascending, apart from each other.
    runs: VecDeque<(u64, u64)>,
    /// Where the duplicate-count detector goes on, unless the first record is further, and how many delivered records lie below.
    scan: u64,
    /// Where the detector by time goes on among segments sent once, unless the first record is further.
    time_scan: u64,
    /// The ranges of the last report, as they travel: a range that is seen again brings nothing new. Valid only while `sacked > 0`, as
    /// what is reported is forgotten all at once or not at all.
    reported: [(u32, u32); 3],
    /// Lost and to be retransmitted, in order.
    to_resend: VecDeque<u64>,
    /// Retransmitted, in the order of sending, with that time.
    resends: VecDeque<(u64, Time)>,
    /// Records and runs looked at: what the claim about work is tested by.
    #[cfg(test)]
    pub(super) visits: u64,
}

impl Scoreboard {
    /// Segments outstanding, whatever became of them.
    #[inline]
    #[allow(clippy::cast_possible_truncation, reason = "a window is far below 2³² segments")]
    pub(super) fn outstanding(&self) -> u32 {
        self.records.len() as u32
    }

    /// Segments thought to be in the network [RFC 6675 §4, Linux `tcp_packets_in_flight`].
    #[inline]
    pub(super) fn in_flight(&self) -> u32 {
        self.outstanding() - self.sacked - self.lost + self.resent
    }

    /// Segments delivered out of order.
    pub(super) fn sacked(&self) -> u32 {
        self.sacked
    }

    /// Segments thought lost, retransmitted or not.
    pub(super) fn lost(&self) -> u32 {
        self.lost
    }

    /// Segments retransmitted whose retransmission is thought to be in the network.
    pub(super) fn resent(&self) -> u32 {
        self.resent
    }

    /// Of what is out nothing is reported, thought lost or was ever retransmitted.
    #[inline]
    pub(super) fn is_untouched(&self) -> bool {
        self.sacked | self.lost | self.resent == 0 && self.resent_below <= self.first
    }

    /// Whether a lost segment waits to be retransmitted.
    #[inline]
    pub(super) fn wants_resend(&mut self) -> bool {
        !self.to_resend.is_empty() && self.next_to_resend().is_some()
    }

    /// Whether the segment's last retransmission left then and is thought to be in the network.
    fn is_resent_at(&self, number: u64, sent_at: Time) -> bool {
        number >= self.first && {
            let record = self.records[self.index(number)];
            record.is(RESENT) && record.sent_at == sent_at
        }
    }

    /// When the oldest outstanding segment was last sent.
    pub(super) fn oldest_sent_at(&self) -> Option<Time> {
        self.records.front().map(|record| record.sent_at)
    }

    /// Takes note of a new segment.
    #[inline(always)]
    pub(super) fn push(&mut self, now: Time, start: Seq, length: u16, stamp: Option<Stamp>) {
        let record = Record { start: start.wire(), length, state: 0, sent_at: now };
        if self.records.is_full() {
            self.grow(record);
        }
        self.records.push_back(record);
        if let Some(stamp) = stamp {
            self.stamps.push_back(stamp);
        }
    }

    /// An eighth more room: a ring uses all of its memory in turn, and a window of 10⁵ segments would waste up to as much
    /// again if it doubled.
    #[cold]
    fn grow(&mut self, any: Record) {
        self.records.reserve_exact((self.records.len() / 8).max(16), any);
    }

    fn end(&self) -> u64 {
        self.first + self.records.len() as u64
    }

    /// Number after the highest record reported delivered; `first` if there is none.
    fn sacked_end(&self) -> u64 {
        self.runs.back().map_or(self.first, |&(_, to)| to)
    }

    #[inline]
    fn visit(&mut self) {
        #[cfg(test)]
        {
            self.visits += 1;
        }
    }

    fn index(&self, number: u64) -> usize {
        usize::try_from(number - self.first).expect("numbers at or after the first record")
    }

    /// An acknowledgement is about to be read.
    pub(super) fn begin_acknowledgement(&self) -> Delivered {
        Delivered { known_end: self.sacked_end(), ..Delivered::default() }
    }

    /// Everything up to `ack` is delivered.
    pub(super) fn acknowledge(&mut self, una: Seq, ack: Seq, delivered: &mut Delivered) {
        // Reports of the same acknowledgement come first, and may tell of later segments.
        if delivered.packets == 0 && self.is_untouched() {
            let known_end = delivered.known_end;
            *delivered = Delivered { known_end, ..self.acknowledge_untouched(una, ack).unwrap_or_default() };
        } else {
            self.acknowledge_touched(una, ack, delivered);
        }
    }

    #[inline(never)]
    fn acknowledge_touched(&mut self, una: Seq, ack: Seq, delivered: &mut Delivered) {
        while let Some(&record) = self.records.front() {
            let start = Seq::expand(record.start, una);
            let end = start.plus(u64::from(record.length));
            if end > ack {
                break;
            }
            self.visit();
            self.records.pop_front();
            let stamp = self.stamps.pop_front();
            if record.is(SACKED) {
                self.sacked -= 1;
                if self.first < self.scan {
                    self.sacked_below_scan -= 1;
                }
            } else {
                self.count_delivery(record, start, stamp, self.first, true, delivered);
            }
            self.forget_loss(record);
            self.first += 1;
        }
        while let Some(run) = self.runs.front_mut() {
            if run.1 > self.first {
                run.0 = run.0.max(self.first);
                break;
            }
            self.runs.pop_front();
        }
    }

    /// The same while nothing is [touched](Self::is_untouched): segments left in their order, so that the first is the oldest
    /// and the last the newest. `None`, and nothing is changed, if no whole segment is acknowledged.
    #[inline(always)]
    pub(super) fn acknowledge_untouched(&mut self, una: Seq, ack: Seq) -> Option<Delivered> {
        let ack = ack.wire();
        // Whatever is out lies within 2³¹ bytes.
        let is_whole = |record: &Record| ack.wrapping_sub(record.end()) < 1 << 31;
        let oldest = *self.records.front().filter(|&record| is_whole(record))?;
        let (mut newest, mut packets) = (oldest, 1);
        self.visit();
        self.records.pop_front();
        while let Some(&record) = self.records.front()
            && is_whole(&record)
        {
            self.visit();
            self.records.pop_front();
            self.stamps.pop_front();
            newest = record;
            packets += 1;
        }
        self.first += u64::from(packets);
        let start = Seq::expand(newest.start, una);
        Some(Delivered {
            packets,
            in_order: Some(Left { oldest: oldest.sent_at, newest: (newest.sent_at, start) }),
            latest: Some((newest.sent_at, start.plus(u64::from(newest.length)), false)),
            stamp: self.stamps.pop_front().map(|stamp| (stamp, newest.sent_at)),
            ..Delivered::default()
        })
    }

    /// These ranges were delivered out of order, each `[start, end)`; an empty one says nothing. Of those that the report before had,
    /// nothing is new: what was reported stays so, until all of it [is forgotten](Self::lose_all) or acknowledged.
    pub(super) fn sack_all(&mut self, ranges: [(Seq, Seq); 3], una: Seq, delivered: &mut Delivered) {
        let before = if self.sacked > 0 { self.reported } else { [(0, 0); 3] };
        self.reported = ranges.map(|(start, end)| (start.wire(), end.wire()));
        for ((start, end), range) in ranges.into_iter().zip(self.reported) {
            if start < end && !before.contains(&range) {
                self.sack(start, end, una, delivered);
            }
        }
    }

    /// `[start, end)` was delivered out of order. A segment counts only if all of it was.
    pub(super) fn sack(&mut self, start: Seq, end: Seq, una: Seq, delivered: &mut Delivered) {
        let from = self.first_at_or_after(start, una);
        let mut to = self.first_at_or_after(end, una);
        if to > from {
            let last = self.records[self.index(to - 1)];
            if Seq::expand(last.start, una).plus(u64::from(last.length)) > end {
                to -= 1;
            }
        }
        if from >= to {
            return;
        }
        let place = self.runs.partition_point(|&(_, known_to)| known_to < from);
        let (mut merged, mut next, mut touched) = ((from, to), from, 0);
        while let Some(&(known_from, known_to)) = self.runs.get(place + touched)
            && known_from <= to
        {
            self.visit();
            self.deliver(next..known_from.max(next), una, delivered);
            next = next.max(known_to);
            merged = (merged.0.min(known_from), merged.1.max(known_to));
            touched += 1;
        }
        self.deliver(next..to.max(next), una, delivered);
        match touched {
            0 => self.runs.insert(place, merged),
            1 => self.runs[place] = merged,
            _ => {
                self.runs[place] = merged;
                self.runs.drain(place + 1..place + touched);
            }
        }
    }

    /// These records were delivered, and not known to be.
    fn deliver(&mut self, numbers: Range<u64>, una: Seq, delivered: &mut Delivered) {
        for number in numbers {
            self.visit();
            let index = self.index(number);
            let record = self.records[index];
            debug_assert!(!record.is(SACKED));
            let stamp = self.stamps.get(index).copied();
            self.count_delivery(record, Seq::expand(record.start, una), stamp, number, false, delivered);
            self.forget_loss(record);
            self.records[index].state = (record.state | SACKED) & !(LOST | RESENT);
            self.sacked += 1;
            if number < self.scan {
                self.sacked_below_scan += 1;
            }
        }
    }

    /// Number of the first record that starts at or after `seq`.
    fn first_at_or_after(&self, seq: Seq, una: Seq) -> u64 {
        let before = |record: &Record| Seq::expand(record.start, una) < seq;
        // Nearly all segments are full: guess the place, and search only if the guess is off.
        let full = self.records.front().map_or(1, |record| u64::from(record.length.max(1)));
        let guess = usize::try_from(seq.since(una) / full).unwrap_or(usize::MAX);
        for index in [guess, guess.saturating_sub(1), guess.saturating_add(1)] {
            let here = self.records.get(index).is_some_and(|record| !before(record));
            let below = index == 0 || self.records.get(index - 1).is_some_and(before);
            if here && below {
                return self.first + index as u64;
            }
        }
        self.first + self.records.partition_point(before) as u64
    }

    fn count_delivery(
        &self,
        record: Record,
        start: Seq,
        stamp: Option<Stamp>,
        number: u64,
        in_order: bool,
        delivered: &mut Delivered,
    ) {
        delivered.packets += 1;
        let once = !record.is(EVER_RESENT);
        // An acknowledgement that advances and reports ranges says nothing of their order (Linux `prior_fack`).
        let distance = u32::try_from(delivered.known_end.saturating_sub(number + 1)).unwrap_or(u32::MAX);
        delivered.reach = delivered.reach.max(distance);
        let end = start.plus(u64::from(record.length));
        if once {
            let left = if in_order { &mut delivered.in_order } else { &mut delivered.out_of_order };
            let here = (record.sent_at, start);
            *left = Some(left.map_or(Left { oldest: record.sent_at, newest: here }, |left| Left {
                oldest: left.oldest.min(record.sent_at),
                newest: left.newest.max(here),
            }));
            delivered.reordered_by = delivered.reordered_by.max(distance);
        } else {
            delivered.resent_in_order |= in_order;
        }
        if delivered.latest.is_none_or(|(sent, last, _)| (record.sent_at, end) > (sent, last)) {
            delivered.latest = Some((record.sent_at, end, !once));
        }
        if let Some(stamp) = stamp
            && delivered.stamp.is_none_or(|(best, _)| stamp.delivered >= best.delivered)
        {
            delivered.stamp = Some((stamp, record.sent_at));
        }
    }

    fn forget_loss(&mut self, record: Record) {
        if record.is(LOST) {
            self.lost -= 1;
        }
        if record.is(RESENT) {
            self.resent -= 1;
        }
    }

    /// A segment is lost if at least `threshold` segments above it are delivered [RFC 6675 §4 IsLost]; with `forward`, if
    /// a delivered one lies that far above it (Linux's FACK). Returns how many were found.
    pub(super) fn lose_by_count(
        &mut self,
        threshold: u32,
        forward: bool,
        tell: &mut dyn FnMut(u64, Stamp, Time),
    ) -> u32 {
        let mut found = 0;
        if self.scan < self.first {
            self.scan = self.first;
            self.sacked_below_scan = 0;
        }
        while self.scan < self.end() {
            self.visit();
            let index = self.index(self.scan);
            if self.records[index].is(SACKED) {
                self.sacked_below_scan += 1;
            } else if self.above_scan(forward) < u64::from(threshold) {
                break;
            } else if !self.records[index].is(LOST) {
                self.mark_lost(self.scan, tell);
                found += 1;
            }
            self.scan += 1;
        }
        found
    }

    /// Segments delivered above `scan`, or with `forward` the distance to the highest of them.
    fn above_scan(&self, forward: bool) -> u64 {
        if forward {
            self.sacked_end().saturating_sub(self.scan + 1)
        } else {
            u64::from(self.sacked - self.sacked_below_scan)
        }
    }

    /// A segment sent at least `wait` ago and before `latest`, the latest transmission known delivered, is lost
    /// [RFC 8985 §6.2 step 5]; with `only_resent`, only retransmissions are judged. Returns what was found, and when the
    /// next one may be. As of all detectors, `tell` hears of each transmission found lost, where stamps are kept.
    pub(super) fn lose_by_time(
        &mut self,
        now: Time,
        latest: (Time, Seq),
        wait: Span,
        only_resent: bool,
        una: Seq,
        tell: &mut dyn FnMut(u64, Stamp, Time),
    ) -> (Losses, Option<Time>) {
        let mut found = 0;
        let mut next = None;
        while let Some(&(number, sent_at)) = self.resends.front() {
            self.visit();
            if self.is_resent_at(number, sent_at) {
                let record = self.records[self.index(number)];
                let end = Seq::expand(record.start, una).plus(u64::from(record.length));
                if (sent_at, end) >= latest {
                    break;
                }
                if sent_at + wait > now {
                    next = Some(sent_at + wait);
                    break;
                }
                let index = self.index(number);
                self.records[index].state &= !RESENT;
                self.resent -= 1;
                if !self.records[index].is(LOST) {
                    // A probe, or retransmitted in an episode that was undone.
                    self.records[index].state |= LOST;
                    self.lost += 1;
                }
                self.to_resend.push_front(number);
                self.tell_of(number, tell);
                found += 1;
            }
            self.resends.pop_front();
        }
        // The lowest first, as they were sent.
        for place in 0..found as usize / 2 {
            self.to_resend.swap(place, found as usize - 1 - place);
        }
        let resent = found;
        if only_resent {
            return (Losses { found, resent }, next);
        }
        self.time_scan = self.time_scan.max(self.first);
        while self.time_scan < self.end() {
            self.visit();
            let record = self.records[self.index(self.time_scan)];
            if record.state & (SACKED | LOST | RESENT) == 0 {
                let end = Seq::expand(record.start, una).plus(u64::from(record.length));
                if (record.sent_at, end) >= latest {
                    break;
                }
                if record.sent_at + wait > now {
                    next = Some(next.map_or(record.sent_at + wait, |time: Time| time.min(record.sent_at + wait)));
                    break;
                }
                self.mark_lost(self.time_scan, tell);
                found += 1;
            }
            self.time_scan += 1;
        }
        (Losses { found, resent }, next)
    }

    /// Tells of a transmission found lost, where delivery rates are wanted.
    fn tell_of(&self, number: u64, tell: &mut dyn FnMut(u64, Stamp, Time)) {
        let index = self.index(number);
        if let Some(&stamp) = self.stamps.get(index) {
            tell(number, stamp, self.records[index].sent_at);
        }
    }

    fn mark_lost(&mut self, number: u64, tell: &mut dyn FnMut(u64, Stamp, Time)) {
        let index = self.index(number);
        let record = &mut self.records[index];
        debug_assert!(!record.is(SACKED) && !record.is(LOST));
        record.state |= LOST;
        self.lost += 1;
        self.to_resend.push_back(number);
        self.tell_of(number, tell);
    }

    /// The timer expired: the first segment is lost, and every one not known delivered that left at least `age` ago,
    /// earlier retransmissions too [RFC 5681 §3.1, RFC 6298 §5, RFC 8985 §6.3].
    pub(super) fn lose_all(&mut self, now: Time, age: Span, tell: &mut dyn FnMut(u64, Stamp, Time)) {
        if self.records.front().is_some_and(|record| record.is(SACKED)) {
            // The receiver has forgotten what it reported [RFC 2018 §8].
            for record in self.records.iter_mut() {
                record.state &= !SACKED;
            }
            self.sacked = 0;
            self.runs.clear();
        }
        self.to_resend.clear();
        for (index, record) in self.records.iter_mut().enumerate() {
            if record.is(SACKED) || index > 0 && record.sent_at + age > now {
                continue;
            }
            let was_in_flight = record.state & (LOST | RESENT) != LOST;
            if record.is(RESENT) {
                record.state &= !RESENT;
                self.resent -= 1;
            }
            if !record.is(LOST) {
                record.state |= LOST;
                self.lost += 1;
            }
            if was_in_flight && let Some(&stamp) = self.stamps.get(index) {
                tell(self.first + index as u64, stamp, record.sent_at);
            }
        }
        for (index, record) in self.records.iter().enumerate() {
            if record.state & (LOST | RESENT) == LOST {
                self.to_resend.push_back(self.first + index as u64);
            }
        }
        self.scan = self.end();
        self.sacked_below_scan = self.sacked;
        self.time_scan = self.first;
    }

    /// The losses were not: nothing waits to be retransmitted any more. What was retransmitted stays in the network.
    pub(super) fn forget_losses(&mut self) {
        self.to_resend.clear();
        for record in self.records.iter_mut() {
            record.state &= !LOST;
        }
        self.lost = 0;
        self.scan = self.first;
        self.sacked_below_scan = 0;
        self.time_scan = self.first;
    }

    #[inline(never)]
    fn next_to_resend(&mut self) -> Option<u64> {
        while let Some(&number) = self.to_resend.front() {
            self.visit();
            if number >= self.first {
                let record = self.records[self.index(number)];
                if record.is(LOST) && !record.is(RESENT) {
                    return Some(number);
                }
            }
            self.to_resend.pop_front();
        }
        None
    }

    /// Takes the next lost segment to send again now: its first byte and length.
    pub(super) fn resend(&mut self, now: Time, una: Seq, stamp: Option<Stamp>) -> Option<(Seq, u16)> {
        let number = self.next_to_resend()?;
        self.to_resend.pop_front();
        Some(self.sent_again(number, now, una, stamp))
    }

    /// Sends the last segment again as a probe of the tail [RFC 8985 §7.3], lost or not.
    pub(super) fn resend_last(&mut self, now: Time, una: Seq, stamp: Option<Stamp>) -> Option<(Seq, u16)> {
        let number = self.end().checked_sub(1).filter(|&number| number >= self.first)?;
        if self.records[self.index(number)].is(SACKED) {
            return None;
        }
        Some(self.sent_again(number, now, una, stamp))
    }

    fn sent_again(&mut self, number: u64, now: Time, una: Seq, stamp: Option<Stamp>) -> (Seq, u16) {
        let index = self.index(number);
        let record = &mut self.records[index];
        if !record.is(RESENT) {
            self.resent += 1;
        }
        record.state |= RESENT | EVER_RESENT;
        self.resent_below = self.resent_below.max(number + 1);
        record.sent_at = now;
        let segment = (Seq::expand(record.start, una), record.length);
        if let Some(stamp) = stamp {
            self.stamps[index] = stamp;
        }
        self.resends.push_back((number, now));
        segment
    }
}

#[cfg(test)]
mod tests;
