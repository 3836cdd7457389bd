//! smoltcp's sender, and our receiver.

use std::collections::VecDeque;

use narrows_core::packet::{Flags, Segment, Tag};
use narrows_core::tcp::profile::Profile;
use narrows_core::tcp::{EcnMode, Endpoint};
use narrows_core::units::{Span, Time};
use proptest::prelude::*;

use crate::bytes::{firsts, lengths};
use crate::link::{Link, all_but_one, fates};
use crate::meeting::{Meeting, Watch};
use crate::pair::stack_for;
use crate::ranges::Ranges;
use crate::theirs::{Habits, Theirs};
use crate::wire::{Heard, extent};

const MSS: u64 = 1_448;
/// No acknowledgement waits longer [RFC 1122 §4.2.3.2].
const MAX_DELAY: Span = Span::from_ms(500);
/// Blocks beside timestamps [RFC 2018 §3].
const MAX_BLOCKS: usize = 3;
/// Ranges that ours knows the order of.
const MAX_REMEMBERED: usize = 4;

/// What a receiver has to say by RFCs of what came, beside what ours says.
#[derive(Default)]
struct Receiving {
    /// Reports of holes wait for each other (Linux), which RFC 5681 §4.2 does not provide for.
    compresses: bool,
    /// RFC 7323 §4.3 takes the timestamps of segments without data, too; ours does so only where buffers grow.
    /// Elsewhere it echoes an older one in reports of a hole, from which no sender measures: they do not advance [RFC
    /// 7323 §4.1].
    takes_bare_timestamps: bool,
    /// The handshake is over: SYNs that still come are old.
    is_open: bool,
    here: Ranges,
    /// What came more than once.
    twice: Ranges,
    /// Most ranges at once since nothing was beyond a hole.
    most_ranges: usize,
    /// The last segment that came beyond a hole.
    newest: Option<(u64, u64)>,
    acknowledged: u64,
    /// TS.Recent, since a SYN came.
    recent: Option<u32>,
    edge: u64,
    /// An acknowledgement is to go before anything else happens.
    owes: bool,
    /// Since when one may wait.
    waits: Option<Time>,
}

impl Receiving {
    fn new(profile: &Profile) -> Receiving {
        Receiving {
            compresses: profile.sack_compression > Span::ZERO,
            takes_bare_timestamps: profile.adaptive_buffers.is_some(),
            ..Receiving::default()
        }
    }

    /// [RFC 7323 §4.3]
    fn note_timestamp(&mut self, segment: &Segment) {
        let ahead = |recent: u32| segment.timestamp.wrapping_sub(recent) < 1 << 31;
        let is_due = u64::from(segment.seq) <= self.acknowledged && self.recent.is_none_or(ahead);
        if is_due {
            self.recent = Some(segment.timestamp);
        }
    }

    /// [RFC 2018 §4], [RFC 2883 §4]
    fn judge_reports(&self, segment: &Segment) {
        let mut blocks: Vec<_> = segment.sack.iter().map(|(from, to)| (u64::from(from), u64::from(to))).collect();
        let beyond = self.here.beyond();
        // The duplicate's own range comes second. Where reports wait for each other it may be told later (Linux).
        let is_within = |first: (u64, u64), range: &(u64, u64)| range.0 <= first.0 && first.1 <= range.1;
        let is_duplicate = |first: (u64, u64)| {
            let near = if self.compresses { MAX_BLOCKS } else { 2 };
            first.1 <= segment.ack.into()
                || blocks.iter().take(near).skip(1).any(|range| is_within(first, range))
                || (self.compresses && !beyond.contains(&first))
        };
        if let Some(&first) = blocks.first()
            && is_duplicate(first)
        {
            assert!(self.twice.around(first.0, first.1).is_some(), "{first:?} came once");
            blocks.remove(0);
        }
        for (place, block) in blocks.iter().enumerate() {
            assert!(beyond.contains(block), "{block:?} is no range of {beyond:?}");
            assert!(!blocks[..place].contains(block), "{block:?} is told twice");
        }
        // As many as there is room for [RFC 2018 §4]; but ours remembers four, and not those that were there before
        // them (Linux `selective_acks`).
        let room = MAX_BLOCKS - (segment.sack.len() - blocks.len());
        let is_all = blocks.len() == beyond.len().min(room);
        assert!(is_all || self.most_ranges > MAX_REMEMBERED, "of {beyond:?} only {blocks:?} are told");
        let newest =
            self.newest.and_then(|(start, end)| beyond.iter().find(|range| range.0 <= start && end <= range.1));
        assert!(newest.is_none_or(|newest| blocks.first() == Some(newest)), "{blocks:?} do not begin with {newest:?}");
    }
}

impl Watch for Receiving {
    fn we_hear(&mut self, now: Time, heard: &Heard) {
        if heard.segment.flags.contains(Flags::SYN) {
            if !self.is_open {
                self.note_timestamp(&heard.segment);
            }
            return;
        }
        self.is_open = true;
        let (start, end) = extent(&heard.segment);
        if start < end || self.takes_bare_timestamps {
            self.note_timestamp(&heard.segment);
        }
        if start == end {
            return;
        }
        let next = self.here.next();
        let came_before = end <= next || self.here.around(start, end).is_some();
        let fills = start <= next && !self.here.beyond().is_empty();
        let (mut from, before) = (start, self.here.clone());
        // Byte ranges that were here already.
        while from < end {
            let known = before.around(from, from + 1);
            let to = known.map_or(from + 1, |range| range.1.min(end));
            if known.is_some() {
                self.twice.add(from, to);
            }
            from = to;
        }
        self.here.add(start, end);
        let ranges = self.here.beyond().len();
        self.most_ranges = if ranges == 0 { 0 } else { self.most_ranges.max(ranges) };
        if start > next {
            self.newest = Some((start, end));
        }
        // What fills a hole, or lies beyond one, is answered at once [RFC 5681 §4.2]; so is what came before [RFC 9293
        // §3.10.7.4].
        self.owes |= (end <= next) || fills || (start > next && !self.compresses);
        if !came_before {
            self.waits.get_or_insert(now);
        }
    }

    fn we_sent(&mut self, now: Time, segment: &Segment, edge: u64) {
        assert_eq!(segment.length, 0);
        if segment.flags.contains(Flags::SYN) {
            self.acknowledged = 1;
            return;
        }
        assert_eq!(u64::from(segment.ack), self.here.next(), "at {now}");
        assert_eq!(Some(segment.timestamp_echo), self.recent, "[RFC 7323 §4.3] at {now}");
        self.judge_reports(segment);
        // A window does not shrink [RFC 9293 §3.8.6].
        assert!(edge >= self.edge, "the window ended at {} and ends at {edge} at {now}", self.edge);
        self.edge = edge;
        self.acknowledged = segment.ack.into();
        (self.owes, self.waits) = (false, None);
    }

    fn we_are_silent(&mut self, now: Time, _: &Endpoint) {
        assert!(!self.owes, "no acknowledgement at {now}");
        // At least every second full segment [RFC 5681 §4.2].
        let owed = self.here.next() - self.acknowledged.max(1);
        assert!(owed < 2 * MSS, "{owed} bytes are not acknowledged at {now}");
        assert!(self.waits.is_none_or(|since| now.since(since) <= MAX_DELAY), "since {:?} at {now}", self.waits);
    }
}

fn habits() -> impl Strategy<Value = Habits> {
    (any::<u64>(), 1_500usize..100_000, prop::bool::ANY).prop_map(|(seed, send_buffer, reno)| Habits {
        seed,
        receive_buffer: 1_500,
        send_buffer,
        ack_delay: None,
        reno,
        reads: None,
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_024, ..ProptestConfig::default() })]

    #[test]
    fn what_they_send_arrives_and_we_acknowledge_no_more_and_no_less(
        profile in 0usize..Profile::NAMED.len(),
        ack_every in 1u8..3,
        buffer_kib in prop_oneof![4u64..64, Just(64 << 10)],
        our_first in firsts(),
        habits in habits(),
        bytes in lengths(),
        delay_us in 20u64..20_000,
        to_us in fates(),
        to_them in fates(),
    ) {
        let profile = Profile { ack_every, receive_buffer: buffer_kib << 10, ..Profile::NAMED[profile].1 };
        let stack = stack_for("newreno", profile, EcnMode::Off);
        let link = Link::new(Span::from_us(delay_us), to_us, to_them);
        let theirs = (Theirs::new(habits, bytes), bytes);
        let mut meeting = Meeting::new(("newreno", stack), our_first, theirs, link, Receiving::new(&profile));
        meeting.they_open();
        meeting.run();
        prop_assert_eq!(&meeting.delivered, &[Tag(1)]);
        prop_assert_eq!(meeting.ours.tallies().delivered_bytes, bytes);
        prop_assert_eq!(meeting.watch.acknowledged, bytes + 1);
    }
}

/// Three duplicate acknowledgements of ours are what smoltcp waits for, which ignores our reports: the same number, and
/// the same window [RFC 5681 §2]. Else it waits for its timer, a second at least.
#[test]
fn they_retransmit_a_lone_loss_before_their_timer_expires() {
    for (name, profile) in Profile::NAMED {
        let stack = stack_for("newreno", *profile, EcnMode::Off);
        let habits =
            Habits { seed: 1, receive_buffer: 1_500, send_buffer: 30_000, ack_delay: None, reno: true, reads: None };
        // SYN, acknowledgement, and seven segments come before it.
        let link = Link::new(Span::from_us(100), all_but_one(9), VecDeque::new());
        let theirs = (Theirs::new(habits, 100_000), 100_000);
        let mut meeting = Meeting::new(("newreno", stack), 7, theirs, link, Receiving::new(profile));
        meeting.they_open();
        meeting.run();
        assert_eq!(meeting.ours.tallies().delivered_bytes, 100_000);
        let whole = meeting.whole_at.expect("all of it arrived");
        assert!(whole < Time::ZERO + Span::from_secs(1), "{name}: {whole}");
    }
}
