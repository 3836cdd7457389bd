//! Against the paper's formulas, by hand, and within bounds under random telemetry.

#![allow(clippy::float_arithmetic, clippy::cast_precision_loss, reason = "the paper's equations, as a reference")]

use super::*;
use crate::cc::harness::{Drive, build, path};
use proptest::prelude::*;

const LINE: Rate = Rate::from_gbps(100);
const BASE: Span = Span::from_us(12);
/// `W_init`: 150 000 bytes, 100 packets of 1500.
const LINE_WINDOW: u64 = 100;

fn hpcc(changes: &[(&str, Value)]) -> Drive<Hpcc> {
    let path = Path { line_rate: LINE, ..path() };
    let mut all = std::vec![("base-rtt", Value::Span(BASE))];
    all.extend_from_slice(changes);
    let mut drive = Drive::new(build(&SPEC, Hpcc::new, &path, &all), path);
    drive.cc.on_sent(Time::ZERO, &Sent { size: Bytes::new(1_500), idle: None, starts: false }, &drive.path);
    drive
}

fn at(us: u64) -> Time {
    Time::ZERO + Span::from_us(us)
}

/// A stamp of a port of 100 Gbit/s: 12 500 bytes are a microsecond.
fn hop(us: u64, queue: u64, sent: u64) -> Hop {
    Hop { at: at(us), queue: Bytes::new(queue), sent: Bytes::new(sent), rate: LINE }
}

fn of_one(share: u64) -> f64 {
    share as f64 / ONE as f64
}

impl Drive<Hpcc> {
    /// An acknowledgement of one packet with these stamps.
    fn tell(&mut self, hops: &[Hop]) {
        self.cc.on_telemetry(hops);
        self.ack(1, Some(BASE), false);
    }

    /// W, packets.
    fn exact(&self) -> f64 {
        of_one(self.cc.window)
    }
}

#[test]
fn a_flow_begins_at_the_rate_of_its_line() {
    let drive = hpcc(&[]);
    assert_eq!((drive.window(), drive.cc.pacing()), (LINE_WINDOW, Some(LINE)));
}

/// Half of the line was sent in half of T, and 15 kB waited both times: U = 1/2·(0.5 + 0.1) + 1/2·1 = 0.8.
#[test]
fn utilisation_is_the_papers_and_smoothed_over_the_base_rtt() {
    let mut drive = hpcc(&[]);
    drive.tell(&[hop(100, 15_000, 0)]);
    assert_eq!((drive.cc.utilisation(), drive.window()), (ONE, LINE_WINDOW), "one stamp tells no rate");
    drive.tell(&[hop(106, 90_000, 37_500)]);
    assert!((of_one(drive.cc.utilisation()) - 0.8).abs() < 1e-5, "{}", of_one(drive.cc.utilisation()));
    // Beyond T nothing is left of what was before: an idle link.
    drive.tell(&[hop(206, 0, 37_500)]);
    assert_eq!(drive.cc.utilisation(), 0);
}

#[test]
fn the_busiest_link_counts() {
    let mut drive = hpcc(&[]);
    drive.tell(&[hop(0, 0, 0), hop(1, 0, 0), hop(2, 0, 0)]);
    drive.tell(&[hop(20, 0, 0), hop(21, 0, 225_000), hop(22, 0, 25_000)]);
    assert!((of_one(drive.cc.utilisation()) - 0.9).abs() < 1e-5);
}

/// Above η the window is the reference by U/η, and a step of (1 − η)/N of the line's window.
#[test]
fn above_the_target_the_window_is_the_references_share() {
    let mut drive = hpcc(&[]);
    drive.tell(&[hop(0, 225_000, 0)]);
    // A whole line, and a queue of one and a half of its windows: U = 2.5.
    drive.tell(&[hop(20, 225_000, 250_000)]);
    let expected = 100.0 * 0.95 / 2.5 + 100.0 * 0.05 / 100.0;
    assert!((drive.exact() - expected).abs() < 1e-3, "{} {expected}", drive.exact());
    assert_eq!(drive.window(), 39);
    let rate = drive.cc.pacing().expect("it paces").as_bps() as f64;
    assert!((rate / 1e9 - expected).abs() < 1e-2, "a window per T: {rate}");
}

/// The reference is set once per window of data, and for the first time by what was sent after the first telemetry: until then the same
/// telemetry gives the same window.
#[test]
fn within_an_rtt_acknowledgements_answer_from_the_same_reference() {
    let mut drive = hpcc(&[]);
    drive.tell(&[hop(0, 225_000, 0)]);
    let mut times = 0;
    let mut tell = |drive: &mut Drive<Hpcc>| {
        times += 1;
        drive.tell(&[hop(20 * times, 225_000, 250_000 * times)]);
        drive.exact()
    };
    let answer = |reference: f64| reference * 0.95 / 2.5 + 0.05;
    for reference in [100.0, answer(100.0)] {
        for _ in 0..10 {
            let window = tell(&mut drive);
            assert!((window - answer(reference)).abs() < 1e-3, "{window} {reference}");
            assert!((of_one(drive.cc.reference) - reference).abs() < 1e-3);
        }
        drive.path.una = drive.cc.last_update;
        drive.fill();
        tell(&mut drive);
        assert!((of_one(drive.cc.reference) - answer(reference)).abs() < 1e-3);
    }
}

#[test]
fn below_the_target_five_steps_add_and_the_sixth_multiplies() {
    let mut drive = hpcc(&[]);
    drive.cc.reference = 10 * ONE;
    let mut sent = 0;
    drive.tell(&[hop(0, 0, 0)]);
    for round in 1..=7 {
        // A quarter of the line for 20 µs.
        sent += 62_500;
        drive.path.una = drive.path.nxt;
        let before = of_one(drive.cc.reference);
        drive.tell(&[hop(20 * round, 0, sent)]);
        let grown = if round == 6 { before * 0.95 / 0.25 } else { before };
        assert!((drive.exact() - (grown + 0.05)).abs() < 1e-3, "round {round}: {} {grown}", drive.exact());
    }
}

#[test]
fn telemetry_of_another_path_or_of_the_same_packet_changes_nothing() {
    let mut drive = hpcc(&[]);
    drive.tell(&[hop(0, 225_000, 0)]);
    drive.tell(&[hop(20, 225_000, 250_000)]);
    let before = (drive.exact(), drive.cc.utilisation());
    drive.tell(&[hop(20, 225_000, 250_000)]);
    assert_eq!((drive.exact(), drive.cc.utilisation()), before, "the same packet");
    drive.tell(&[hop(40, 0, 250_000), hop(41, 0, 0)]);
    assert_eq!((drive.exact(), drive.cc.utilisation()), before, "another number of ports");
    drive.tell(&[hop(60, 0, 100), hop(61, 0, 0)]);
    assert_eq!((drive.exact(), drive.cc.utilisation()), before, "a port that has sent less is another one");
}

#[test]
fn a_loss_changes_no_window_and_a_timeout_leaves_one_packet_until_there_is_an_acknowledgement() {
    let mut drive = hpcc(&[]);
    drive.congestion(Cause::Loss);
    assert_eq!(drive.window(), LINE_WINDOW);
    drive.timeout();
    assert_eq!(drive.window(), 1);
    drive.ack(1, Some(BASE), false);
    assert_eq!(drive.window(), LINE_WINDOW);
}

/// Without `base-rtt` T is the handshake's RTT, and what 1 500 bytes take longer than 60 on the host's line and on two more.
#[test]
fn the_base_rtt_is_measured_where_none_is_given() {
    let path = Path { line_rate: LINE, min_rtt: Some(Span::from_us(10)), ..path() };
    let mut drive = Drive::new(build(&SPEC, Hpcc::new, &path, &[]), path);
    drive.cc.on_sent(Time::ZERO, &Sent { size: Bytes::new(1_500), idle: None, starts: false }, &drive.path);
    let longer = LINE.time_for(Bytes::new(1_440));
    assert_eq!(drive.cc.base, Some(Span::from_us(10) + longer));
    drive.tell(&[hop(0, 0, 0), hop(1, 0, 0)]);
    assert_eq!(drive.cc.base, Some(Span::from_us(10) + longer * 3));
}

proptest! {
    /// Whatever telemetry says, the window is between a step and the line's, and the rate is at most the line's.
    #[test]
    fn the_window_keeps_its_bounds(stamps in prop::collection::vec((0u64..400, 0u64..10_000_000, 0u64..10_000_000), 1..200)) {
        let mut drive = hpcc(&[]);
        let (mut now, mut sent) = (0, 0);
        for (gap, queue, more) in stamps {
            now += gap;
            sent += more;
            drive.tell(&[hop(now, queue, sent)]);
            prop_assert!((1..=LINE_WINDOW).contains(&drive.window()));
            prop_assert!(drive.cc.pacing().is_some_and(|rate| rate <= LINE && rate.as_bps() > 0));
            prop_assert!(drive.cc.utilisation() <= MAX_UTILISATION);
        }
    }
}
