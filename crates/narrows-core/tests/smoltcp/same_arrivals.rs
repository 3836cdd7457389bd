//! Our receiver beside smoltcp's: the very same segments arrive at both.
//!
//! They may differ where RFCs let them. So this is not compared:
//! - when a segment in order is acknowledged: at once, after the second, or after a delay [RFC 5681 §4.2];
//! - blocks after the one with the segment that is answered, and which come first when it closed a hole: the newest of
//!   ours, the lowest of smoltcp's, which tells of one only [RFC 2018 §4];
//! - reports of duplicates, which RFC 2883 does not demand and smoltcp does not make;
//! - windows, which each sets as its buffer has room [RFC 9293 §3.8.6];
//! - timestamps: smoltcp echoes that of the segment that it answers, ours that of the last one in order, as RFC 7323
//!   §4.3 says.
//!
//! And this does not arrive: what begins within the window and ends beyond it, of which smoltcp keeps what is within,
//! and ours nothing, as RFC 9293 §3.10.7.4 says that one could trim it.

use narrows_core::packet::{Flags, Segment, Tag};
use narrows_core::tcp::profile::Profile;
use narrows_core::tcp::{EcnMode, Endpoint, Event, Stack};
use narrows_core::units::{Span, Time};
use proptest::prelude::*;

use crate::bytes::stream;
use crate::pair::{build, stack_for};
use crate::ranges::Ranges;
use crate::theirs::{Habits, Theirs};
use crate::wire::{Heard, Wire, extent};

const MSS: u64 = 1_448;
/// Of both receivers. smoltcp scales no window of so little; else it would scale its SYN's, too, and keep what is
/// beyond it [RFC 7323 §2.2].
const BUFFER: u64 = 63 << 10;
/// Ranges beyond a hole that smoltcp keeps track of; ours keeps track of any number.
const MAX_RANGES: usize = 32;
/// Longer than either waits with an acknowledgement.
const LONG: Span = Span::from_ms(100);

/// A segment, or a part of one, after some time.
#[derive(Clone, Copy, Debug)]
struct Arrival {
    after: Span,
    start: u64,
    end: u64,
}

/// Both receivers, and what must be there.
struct Receivers {
    now: Time,
    stack: Stack,
    ours: Endpoint,
    delivered: Vec<Tag>,
    theirs: Theirs,
    wire: Wire,
    here: Ranges,
    /// Length of the stream.
    bytes: u64,
    /// The last acknowledgement of ours, and of theirs.
    acknowledged: [u64; 2],
}

/// The last acknowledgement that each sent.
struct Answers {
    ours: Option<Segment>,
    theirs: Option<Heard>,
}

impl Receivers {
    fn new(stack: Stack, our_first: u32, habits: Habits, bytes: u64) -> Receivers {
        let mut receivers = Receivers {
            now: Time::ZERO,
            stack,
            ours: Endpoint::closed(build("newreno", &stack, 1), &stack),
            delivered: Vec::new(),
            theirs: Theirs::new(habits, 0),
            wire: Wire::new(our_first, &stack),
            here: Ranges::default(),
            bytes,
            acknowledged: [1; 2],
        };
        receivers.theirs.listen();
        for flags in [Flags::SYN, Flags::ACK] {
            let seq = u32::from(flags == Flags::ACK);
            receivers.hear(Segment { seq, ack: seq, flags, window: u16::MAX, ..Segment::default() });
        }
        assert!(receivers.ours.is_established());
        receivers
    }

    /// The same segment arrives at both.
    fn hear(&mut self, segment: Segment) -> Answers {
        let segment =
            Segment { timestamp: u32::try_from(self.now.as_ms()).expect("a test ends sooner") + 1, ..segment };
        self.ours.handle_segment(self.now, &segment, &self.stack);
        self.theirs.arrive(self.wire.encode(&segment));
        self.answers()
    }

    fn answers(&mut self) -> Answers {
        let mut answers = Answers { ours: None, theirs: None };
        while let Some(event) = self.ours.poll_event() {
            if let Event::Delivered(tag) = event {
                self.delivered.push(tag);
            }
        }
        while let Some(segment) = self.ours.poll_transmit(self.now, &self.stack) {
            self.acknowledged[0] = segment.ack.into();
            answers.ours = Some(segment);
        }
        for bytes in self.theirs.poll(self.now) {
            let heard = self.wire.decode(&bytes);
            self.acknowledged[1] = heard.ack();
            answers.theirs = Some(heard);
        }
        answers
    }

    /// Time passes.
    fn wait(&mut self, span: Span) {
        let until = self.now + span;
        loop {
            let due = self.ours.deadline().min(self.theirs.due(self.now));
            if due > until {
                break;
            }
            self.now = self.now.max(due);
            self.ours.handle_timeout(self.now, &self.stack);
            self.answers();
        }
        self.now = until;
        if span >= LONG {
            assert_eq!(self.acknowledged, [self.here.next(); 2], "nothing waits longer than {LONG:?}");
        }
    }

    fn arrive(&mut self, Arrival { after, start, end }: Arrival) {
        self.wait(after);
        let next = self.here.next();
        let is_outside = start >= next + BUFFER;
        let mut here = self.here.clone();
        here.add(start, end);
        if !is_outside {
            if here.beyond().len() > MAX_RANGES {
                return;
            }
            self.here = here;
        }
        let flags = Flags::ACK.with_if(Flags::END, end == self.bytes + 1);
        let seq = u32::try_from(start).expect("a short stream");
        let length = u16::try_from(end - start).expect("a segment");
        let segment = Segment { seq, length, ack: 1, flags, window: u16::MAX, tag: Tag(1), ..Segment::default() };
        assert_eq!(extent(&segment), (start, end));
        let had_hole = !self.here.beyond().is_empty() || self.here.next() > end.max(next);
        let Answers { ours, theirs } = self.hear(segment);
        if let (Some(ours), Some(theirs)) = (&ours, &theirs) {
            assert_eq!(ours.ack, theirs.segment.ack, "after {start}..{end}");
        }
        for ack in [ours.map(|ours| ours.ack), theirs.as_ref().map(|theirs| theirs.segment.ack)].into_iter().flatten() {
            assert_eq!(u64::from(ack), self.here.next(), "after {start}..{end}");
        }
        // Beyond a hole, in it, or again: both answer at once [RFC 5681 §4.2, RFC 9293 §3.10.7.4].
        let told_at_once = had_hole || start > next || end <= next;
        assert!(!told_at_once || ours.is_some() && theirs.is_some(), "{start}..{end} is answered at once");
        for (from, to) in
            ours.iter().chain(theirs.as_ref().map(|heard| &heard.segment)).flat_map(|told| told.sack.iter())
        {
            assert!(self.here.around(from.into(), to.into()).is_some(), "{from}..{to} did not come, or is outside");
        }
        if let (Some(ours), Some(theirs)) = (ours, theirs)
            && start > next
            && !is_outside
        {
            // The first block is that of the segment [RFC 2018 §4]; before it ours may report it as a duplicate [RFC
            // 2883 §4].
            let around = self.here.around(start, end).expect("it arrived");
            let block = |&(from, to): &(u32, u32)| (u64::from(from), u64::from(to)) == around;
            assert!(theirs.segment.sack.iter().next().as_ref().is_some_and(block), "{theirs:?}");
            assert!(ours.sack.iter().take(2).any(|told| block(&told)), "{ours:?}");
        }
    }
}

fn arrivals(segments: u64) -> impl Strategy<Value = Vec<Arrival>> {
    let bytes = segments * MSS;
    let extent = prop_oneof![
        6 => (0..segments).prop_map(|place| (place * MSS + 1, (place + 1) * MSS + 1)),
        3 => (1..=bytes, 1..=MSS).prop_map(move |(start, length)| (start, (start + length).min(bytes + 1))),
        1 => (0..BUFFER, 1..=MSS).prop_map(move |(more, length)| {
            let start = bytes + 1 + BUFFER + more;
            (start, start + length)
        }),
    ];
    let after =
        || prop_oneof![4 => 0u64..1_000, 2 => 1_000u64..50_000, 1 => Just(LONG.as_us())].prop_map(Span::from_us);
    let first = prop_oneof![Just(Vec::new()).boxed(), prop::collection::vec((after(), extent), 0..100).boxed()];
    // Whatever is missing then comes, in order or not.
    let rest = || Just((0..segments).map(|place| (place * MSS + 1, (place + 1) * MSS + 1)).collect::<Vec<_>>());
    (first, prop_oneof![rest(), rest().prop_shuffle()], after()).prop_map(|(first, rest, after)| {
        let rest = rest.into_iter().map(|extent| (after, extent));
        let all = first.into_iter().chain(rest);
        all.map(|(after, (start, end))| Arrival { after, start, end }).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_024, ..ProptestConfig::default() })]

    #[test]
    fn both_receivers_acknowledge_the_same(
        profile in 0usize..Profile::NAMED.len(),
        ack_every in 1u8..4,
        // Segments that ours acknowledges at once before it begins to wait for more.
        quick_acks in prop_oneof![Just(0u8), Just(16)],
        our_first in prop_oneof![Just(0), any::<u32>(), u32::MAX - 50_000..u32::MAX],
        seed in any::<u64>(),
        ack_delay_ms in prop::option::of(1u64..40),
        (segments, arrivals) in (1u64..30).prop_flat_map(|segments| (Just(segments), arrivals(segments))),
    ) {
        let profile = Profile {
            ack_every,
            quick_acks,
            acks_window_growth: false,
            receive_buffer: BUFFER,
            adaptive_buffers: None,
            // Linux 6 lets reports of a hole wait for each other, which RFC 5681 §4.2 does not provide for.
            sack_compression: Span::ZERO,
            ..Profile::NAMED[profile].1
        };
        let stack = stack_for("newreno", profile, EcnMode::Off);
        let habits = Habits {
            seed,
            receive_buffer: usize::try_from(BUFFER).unwrap(),
            send_buffer: 1_500,
            ack_delay: ack_delay_ms.map(Span::from_ms),
            reno: false,
            reads: None,
        };
        let bytes = segments * MSS;
        let mut receivers = Receivers::new(stack, our_first, habits, bytes);
        for arrival in arrivals {
            receivers.arrive(arrival);
        }
        receivers.wait(LONG);
        prop_assert_eq!(receivers.acknowledged, [bytes + 1; 2]);
        prop_assert_eq!(receivers.ours.tallies().delivered_bytes, bytes);
        prop_assert_eq!(&receivers.delivered, &[Tag(1)]);
        prop_assert!(receivers.theirs.received == stream(1, bytes + 1));
    }
}
