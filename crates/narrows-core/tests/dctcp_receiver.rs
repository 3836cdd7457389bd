//! The two-state acknowledgement machine of [RFC 8257 §3.2].
#![allow(missing_docs, reason = "tests")]

#[allow(dead_code, unreachable_pub, clippy::cast_possible_truncation, reason = "a test uses the part it needs")]
mod pair;

use narrows_core::packet::{Ecn, Flags, Segment, Seq, Tag};
use narrows_core::tcp::profile::Profile;
use narrows_core::tcp::{EcnMode, Endpoint};
use narrows_core::units::{Span, Time};
use pair::{build, stack_for};

/// Feeds full segments with these marks to a receiver that acknowledges every second one; returns each acknowledgement
/// as (segments covered so far, echo).
fn acknowledgements(marks: &[bool]) -> Vec<(u64, bool)> {
    let mut profile = Profile::LINUX_4_9;
    profile.quick_acks = 0;
    profile.receive_offload = None;
    let stack = stack_for("newreno", profile, EcnMode::Exact);
    let mut end = Endpoint::established(build("newreno", &stack, 1), Span::from_us(200), &stack);
    let mut seen = Vec::new();
    for (index, &marked) in marks.iter().enumerate() {
        let now = Time::ZERO + Span::from_us(12 * index as u64);
        let segment = Segment {
            seq: Seq::FIRST.plus(1448 * index as u64).wire(),
            ack: Seq::FIRST.wire(),
            length: 1448,
            flags: Flags::ACK,
            ecn: if marked { Ecn::Marked } else { Ecn::Capable },
            tag: Tag(1),
            ..Segment::default()
        };
        end.handle_segment(now, &segment, &stack);
        while let Some(ack) = end.poll_transmit(now, &stack) {
            seen.push(((u64::from(ack.ack) - 1) / 1448, ack.flags.contains(Flags::ECE)));
        }
    }
    seen
}

#[test]
fn the_runs_of_marks_can_be_read_off_the_acknowledgements() {
    // Packets 1–2 clean, 3–5 marked, 6 clean.
    let seen = acknowledgements(&[false, false, true, true, true, false]);
    assert_eq!(seen, [(2, false), (3, true), (5, true), (6, false)]);
    let mut before = 0;
    let mut marked = 0;
    for (covered, echo) in seen {
        marked += if echo { covered - before } else { 0 };
        before = covered;
    }
    assert_eq!((before, marked), (6, 3));
}

#[test]
fn a_change_with_an_acknowledgement_pending_first_answers_for_the_old_state() {
    assert_eq!(acknowledgements(&[false, true, true, false]), [(1, false), (2, true), (3, true), (4, false)]);
}
