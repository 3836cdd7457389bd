//! Our sender, and smoltcp's receiver.

use std::collections::{BTreeMap, VecDeque};

use narrows_core::cc::SPECS;
use narrows_core::packet::{Flags, Segment};
use narrows_core::tcp::profile::Profile;
use narrows_core::tcp::{EcnMode, Endpoint, Stack};
use narrows_core::units::{Span, Time};
use proptest::prelude::*;

use crate::bytes::{firsts, lengths, stream};
use crate::link::{Link, all_but_one, fates};
use crate::meeting::{Meeting, Watch};
use crate::pair::stack_for;
use crate::ranges::Ranges;
use crate::theirs::{Habits, Theirs};
use crate::wire::{Heard, extent};

/// Ranges beyond a hole that smoltcp keeps track of: more is dropped.
const MAX_THEIR_RANGES: usize = 32;
const MSS: u64 = 1_448;

/// A segment that is out.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Out {
    end: u64,
    /// Reported delivered.
    is_told: bool,
}

/// What a sender knows by RFCs from what it sent and heard, beside what ours does and believes.
struct Sending {
    una: u64,
    nxt: u64,
    /// By first byte.
    out: BTreeMap<u64, Out>,
    /// End of the largest window that was heard of.
    edge: u64,
    /// What smoltcp must have.
    there: Ranges,
    stack: Stack,
    timeouts: u32,
    /// Something was retransmitted at this moment.
    retransmits: bool,
}

impl Sending {
    fn new(stack: Stack) -> Sending {
        Sending {
            una: 1,
            nxt: 1,
            out: BTreeMap::new(),
            edge: 0,
            there: Ranges::default(),
            stack,
            timeouts: 0,
            retransmits: false,
        }
    }
}

/// First byte, end, and whether it is reported delivered, of each record of our scoreboard. Only its `Debug` tells.
fn scoreboard(ours: &Endpoint) -> BTreeMap<u64, Out> {
    const SACKED: u64 = 1;
    let text = format!("{ours:?}");
    let (_, records) = text.split_once("Scoreboard { records: [").expect("a scoreboard");
    let (records, _) = records.split_once(']').expect("the end of its records");
    let read = |record: &str| {
        let numbers = record.split(|c: char| !c.is_ascii_digit()).filter(|number| !number.is_empty());
        let numbers: Vec<u64> = numbers.take(3).map(|number| number.parse().expect("digits")).collect();
        let [start, length, state] = numbers[..] else {
            panic!("a record is start, length, state: {record}");
        };
        (start, Out { end: start + length, is_told: state & SACKED != 0 })
    };
    records.split("Record").skip(1).map(read).collect()
}

impl Watch for Sending {
    fn we_sent(&mut self, now: Time, segment: &Segment, _: u64) {
        if segment.flags.contains(Flags::SYN) {
            return;
        }
        assert!(segment.flags.contains(Flags::ACK) && segment.ack == 1 && segment.sack.is_empty());
        let (start, end) = extent(segment);
        if start == end {
            return;
        }
        assert!(end - start <= MSS);
        if start == self.nxt {
            // One byte may go beyond the window, to ask for more of it [RFC 9293 §3.8.6.1].
            let asks = end - start == 1 && start <= self.edge;
            assert!(end <= self.edge || asks, "{start}..{end} beyond the window's end {} at {now}", self.edge);
            self.out.insert(start, Out { end, is_told: false });
            self.nxt = end;
        } else {
            // What is retransmitted is what was sent, and not what is known to be there [RFC 2018 §5.1].
            let sent = self.out.get(&start);
            assert_eq!(sent, Some(&Out { end, is_told: false }), "{start}..{end} retransmitted at {now}");
            self.retransmits = true;
        }
    }

    fn we_heard(&mut self, now: Time, heard: &Heard, ours: &Endpoint) {
        if !ours.is_established() {
            return;
        }
        self.edge = self.edge.max(heard.edge);
        let before = self.una;
        for (start, end) in heard.segment.sack.iter().map(|(start, end)| (u64::from(start), u64::from(end))) {
            // Of an acknowledgement that others overtook it may tell what is known.
            if before <= start && end <= self.nxt {
                let told = self.out.range_mut(start..end).filter(|(_, out)| out.end <= end);
                told.for_each(|(_, out)| out.is_told = true);
            }
        }
        assert!(heard.ack() <= self.nxt, "they acknowledge what was not sent");
        self.una = before.max(heard.ack());
        self.out.retain(|_, out| out.end > self.una);
        let snapshot = ours.snapshot(now, &self.stack);
        assert_eq!((snapshot.una.get(), snapshot.nxt.get()), (self.una, self.nxt), "at {now}");
        assert_eq!(scoreboard(ours), self.out, "after ack {} at {now}", heard.ack());
        // What is not delivered may be in the network twice: as it was sent, and as it was retransmitted [RFC 6675 §4].
        let untold = self.out.values().filter(|out| !out.is_told).count();
        assert!(u64::from(ours.in_flight()) <= 2 * untold as u64);
    }

    fn we_are_silent(&mut self, now: Time, ours: &Endpoint) {
        // [RFC 6298 §5.4]
        let timeouts = ours.tallies().timeouts;
        assert!(timeouts == self.timeouts || self.retransmits, "a timeout and no retransmission at {now}");
        (self.timeouts, self.retransmits) = (timeouts, false);
    }

    fn they_got(&mut self, (start, end): (u64, u64), edge: u64, next: u64) {
        // smoltcp cuts off what lies beyond the window that it told last, and drops what makes too many holes.
        let mut there = self.there.clone();
        there.add(start.max(1), end.min(edge));
        if there.beyond().len() <= MAX_THEIR_RANGES {
            self.there = there;
        }
        assert_eq!(next, self.there.next(), "of {start}..{end}");
    }
}

fn habits() -> impl Strategy<Value = Habits> {
    let ack_delay = prop_oneof![Just(None), (1u64..40).prop_map(|ms| Some(Span::from_ms(ms)))];
    let reads = prop_oneof![
        2 => Just(None),
        1 => (500usize..20_000, 1u64..50).prop_map(|(most, ms)| Some((most, Span::from_ms(ms)))),
        // So slowly that we ask whether the window has opened.
        1 => (1_000usize..20_000, 200u64..2_000).prop_map(|(most, ms)| Some((most, Span::from_ms(ms)))),
    ];
    let receive_buffer = prop_oneof![3_000usize..20_000, 20_000usize..300_000];
    (any::<u64>(), receive_buffer, ack_delay, reads).prop_map(|(seed, receive_buffer, ack_delay, reads)| Habits {
        seed,
        receive_buffer,
        send_buffer: 1_500,
        ack_delay,
        reno: false,
        reads,
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn what_we_send_arrives_and_we_believe_what_they_report(
        profile in 0usize..Profile::NAMED.len(),
        spec in 0usize..SPECS.len(),
        offload in prop::bool::ANY,
        our_first in firsts(),
        habits in habits(),
        bytes in lengths(),
        delay_us in 20u64..20_000,
        to_us in fates(),
        to_them in fates(),
    ) {
        let mut profile = Profile::NAMED[profile].1;
        if !offload {
            profile.offload_segments = 1;
        }
        let stack = stack_for(SPECS[spec].name, profile, EcnMode::Off);
        // Where the application reads slowly, hundreds of bytes may each ask for more of the window.
        let bytes = habits.reads.map_or(bytes, |(most, _)| bytes.min(20 * most as u64));
        let link = Link::new(Span::from_us(delay_us), to_us, to_them);
        let us = (SPECS[spec].name, stack);
        let mut meeting = Meeting::new(us, our_first, (Theirs::new(habits, 0), 0), link, Sending::new(stack));
        meeting.we_open(bytes);
        meeting.run();
        prop_assert_eq!(meeting.theirs.next(), bytes + 1);
        prop_assert!(meeting.theirs.received == stream(1, bytes + 1));
        prop_assert_eq!(meeting.ours.outstanding(), 0);
    }
}

/// smoltcp reports it, and neither a timer nor anything but the segment itself is needed.
#[test]
fn a_lone_loss_costs_one_retransmission_and_no_timeout() {
    for (name, profile) in Profile::NAMED {
        let stack = stack_for("newreno", *profile, EcnMode::Off);
        let habits =
            Habits { seed: 1, receive_buffer: 300_000, send_buffer: 1_500, ack_delay: None, reno: false, reads: None };
        // SYN, acknowledgement, and seven segments come before it.
        let link = Link::new(Span::from_us(100), VecDeque::new(), all_but_one(9));
        let theirs = (Theirs::new(habits, 0), 0);
        let mut meeting = Meeting::new(("newreno", stack), 7, theirs, link, Sending::new(stack));
        meeting.we_open(100_000);
        meeting.run();
        let tallies = meeting.ours.tallies();
        assert_eq!((tallies.retransmitted_bytes, tallies.timeouts), (MSS, 0), "{name}");
    }
}
