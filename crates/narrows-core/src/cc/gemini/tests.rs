//! The paper's numbers, and each decision that the paper leaves open.

use super::arithmetic::*;
use super::*;
use crate::cc::harness::{Drive, build, path};
use std::vec::Vec;

const MS: Span = Span::from_ms(1);
const RTT: Span = Span::from_ms(10);
const PACKET_BITS: u64 = 12_000;

fn gemini(changes: &[(&str, Value)]) -> Drive<Gemini> {
    let path = path();
    Drive::new(build(&SPEC, Gemini::new, &path, changes), path)
}

/// In congestion avoidance with this window, α and base RTT.
fn steady(window: u64, alpha: u64, rtt: Span, changes: &[(&str, Value)]) -> Drive<Gemini> {
    let mut drive = gemini(changes);
    drive.ack(1, Some(rtt), false);
    drive.cc.window = window * ONE_Q10;
    drive.cc.threshold = drive.cc.window;
    drive.cc.credit = 0;
    drive.cc.alpha = alpha;
    drive.cc.window_end = Seq::new(u64::MAX);
    drive.path.nxt = drive.path.una;
    drive.fill();
    drive
}

#[test]
fn h_is_1_2e_minus_7_packets_per_bit_within_its_limits() {
    let h = |mbps: u64, rtt_us| additive_step(8_246, bandwidth_delay_bits(mbps * 1_000_000, rtt_us), 102, 5_120);
    assert_eq!([h(1_000, 200), h(1_000, 10_000), h(10_000, 10_000)], [102, 1_228, 5_120]);
    let bare = |bits| additive_step(8_246, bits, 0, u64::MAX);
    assert_eq!((bare(200_000), bare(10_000_000), bare(100_000_000)), (24, 1_228, 12_287));
    // The limits act from 833 kbit and from 41.7 Mbit on.
    assert_eq!((bare(833_000), bare(834_000)), (102, 102));
    assert!(bare(820_000) < 102 && bare(41_650_000) < 5_120 && bare(41_700_000) >= 5_120);
}

#[test]
fn f_depends_on_the_round_trip_as_the_theorem_says() {
    let f = |mbps: u64, rtt_us, k| scale_factor(k, bandwidth_delay_bits(mbps * 1_000_000, rtt_us), PACKET_BITS);
    assert_eq!([f(1_000, 200, 50), f(1_000, 10_000, 50), f(10_000, 10_000, 500)], [3_072, 231, 231]);
    // K = C·RTT/7 is DCTCP's guideline and gives DCTCP's one half.
    assert_eq!(scale_factor(50, 7 * 50 * PACKET_BITS, PACKET_BITS), ONE_Q10 / 2);
}

#[test]
fn arithmetic_survives_400_gigabits_times_one_second() {
    let bits = bandwidth_delay_bits(400_000_000_000, 1_000_000);
    assert_eq!(bits, 400_000_000_000);
    assert_eq!(scale_factor(20_000, bits, PACKET_BITS), 2);
    assert_eq!(additive_step(8_246, bits, 102, 5_120), 5_120);
    assert_eq!(reduce(MAX_WINDOW, ONE_Q20 / 2), MAX_WINDOW / 2);
    assert_eq!(increase(MAX_WINDOW, 0, 44, 5_120), (MAX_WINDOW, 44 * 5_120 * ONE_Q10));
}

#[test]
#[allow(clippy::float_arithmetic, clippy::cast_precision_loss, reason = "the equation, as a reference")]
fn all_marked_windows_raise_alpha_geometrically() {
    let mut alpha = 0;
    for n in 1..=300 {
        alpha = average(alpha, marked_fraction(7, 7), 4);
        let expected = 1.0 - (15.0_f64 / 16.0).powi(n);
        // Two roundings of less than one unit per window, damped by 15/16 each, stay below 32 units.
        assert!((alpha as f64 / ONE_Q20 as f64 - expected).abs() < 32.0 / ONE_Q20 as f64, "window {n}");
    }
    assert_eq!(alpha, ONE_Q20, "it reaches 1");
    for _ in 0..1_000 {
        alpha = average(alpha, 0, 4);
    }
    assert_eq!(alpha, 15, "without marks it stalls at 15/2^20");
}

#[test]
#[allow(clippy::float_arithmetic, clippy::cast_precision_loss, reason = "the equation, as a reference")]
fn cuts_follow_the_stronger_signal() {
    let alpha = ONE_Q20 * 2 / 5;
    let after = |mut drive: Drive<Gemini>, rtt, ece| {
        let before = drive.cc.window;
        drive.ack(1, Some(rtt), ece);
        drive.cc.window as f64 / before as f64
    };
    let ecn = after(steady(100, alpha, RTT, &[]), RTT, true);
    assert!((ecn - (1.0 - 0.4 * 0.226_415)).abs() < 0.000_5, "{ecn}");
    let both = || {
        let mut drive = steady(100, alpha, RTT, &[]);
        drive.cc.rtt_previous = Some(15_001);
        drive
    };
    assert!((after(both(), RTT, true) - 0.8).abs() < 0.000_1);
    assert!((after(both(), RTT, false) - 0.8).abs() < 0.000_1);
    let short = Span::from_us(200);
    assert!((after(steady(100, ONE_Q20, short, &[]), short, true) - 0.5).abs() < 0.000_1);
    let limited = steady(100, ONE_Q20, short, &[("f-max", Value::Real(ONE_Q10 / 4))]);
    assert!((after(limited, short, true) - 0.75).abs() < 0.000_1);
    let fixed = steady(100, ONE_Q20, RTT, &[("f", Value::Real(ONE_Q10 / 8))]);
    assert!((after(fixed, RTT, true) - 0.875).abs() < 0.000_1);
}

#[test]
fn one_cut_per_window_of_data() {
    let mut drive = steady(100, ONE_Q20, RTT, &[]);
    drive.ack(1, Some(RTT), true);
    let cut = drive.cc.window;
    let end = drive.cc.cut_end;
    while drive.path.una.plus(crate::cc::harness::MSS) < end {
        drive.ack(1, Some(RTT), true);
        assert_eq!(drive.cc.window, cut, "an echo neither cuts again nor grows");
    }
    drive.ack(1, Some(RTT), true);
    assert!(drive.cc.window < cut);
}

#[test]
fn the_timer_gate_waits_for_the_base_round_trip() {
    let mut drive = steady(100, ONE_Q20, RTT, &[("gate", Value::Choice(1))]);
    drive.ack(1, Some(RTT), true);
    let cut = drive.cc.window;
    drive.now += RTT;
    drive.ack(1, Some(RTT), true);
    assert_eq!(drive.cc.window, cut);
    drive.now += Span::from_ns(1);
    drive.ack(1, Some(RTT), true);
    assert!(drive.cc.window < cut);
}

#[test]
fn an_unmarked_window_grows_by_h() {
    for (window, rtt, step) in [(800, RTT, 1_228), (8, Span::from_us(200), 102), (100, Span::from_ms(100), 5_120)] {
        let mut drive = steady(window, 0, rtt, &[]);
        for _ in 0..window {
            drive.ack(1, Some(rtt), false);
        }
        let grown = drive.cc.window - window * ONE_Q10;
        // The window in the denominator grows meanwhile: h²/W less, and one unit of rounding.
        let slack = step * step / (window * ONE_Q10) + 2;
        assert!(grown <= step && grown + slack >= step, "grew {grown} of {step}");
    }
}

#[test]
fn stretched_acknowledgements_grow_the_same() {
    let (mut single, mut stretched) = (steady(88, 0, RTT, &[]), steady(88, 0, RTT, &[]));
    for _ in 0..88 {
        single.ack(1, Some(RTT), false);
    }
    for _ in 0..2 {
        stretched.ack(44, Some(RTT), false);
    }
    assert!(single.cc.window.abs_diff(stretched.cc.window) < 16);
}

#[test]
fn the_delay_signal_needs_more_than_t() {
    let mut drive = steady(100, 0, RTT, &[]);
    drive.cc.rtt_previous = Some(15_000);
    assert!(!drive.cc.delayed());
    drive.cc.rtt_previous = Some(15_001);
    assert!(drive.cc.delayed());
    drive.cc.config.delay = false;
    assert!(!drive.cc.delayed());
}

/// Windows after each round in which every packet is marked and delayed.
fn both_signals(rounds: usize, changes: &[(&str, Value)]) -> Vec<u64> {
    let mut drive = steady(2_000, 0, RTT, changes);
    drive.cc.window_end = drive.path.nxt;
    drive.cc.alpha = 0;
    let mut windows = Vec::new();
    for _ in 0..rounds {
        drive.round(RTT + MS * 6, true);
        windows.push(drive.cc.window);
    }
    windows
}

#[test]
fn ecn_cuts_never_starve_the_delay_cut() {
    let windows = both_signals(13, &[("f", Value::Real(64))]);
    let ratios: Vec<u64> = windows.windows(2).map(|pair| pair[1] * 1_000 / pair[0]).collect();
    for pair in ratios[1..].windows(2) {
        assert!(pair.iter().any(|&ratio| (799..=801).contains(&ratio)), "β at least every second round: {ratios:?}");
        assert!(pair.iter().any(|&ratio| ratio > 900), "and not in both: {ratios:?}");
    }
}

#[test]
fn literal_windows_cut_twice_for_one_queue() {
    let mut drives = [0_u8, 1].map(|choice| {
        let mut drive = steady(1_000, 0, RTT, &[("delay-window", Value::Choice(choice))]);
        drive.cc.window_end = drive.path.nxt;
        drive.round(RTT + MS * 6, false); // the queue is seen
        drive
    });
    for drive in &mut drives {
        drive.round(RTT + MS * 6, false); // the first cut; what it acknowledges was sent before
        drive.round(RTT, false); // what was sent after it
    }
    let [fresh, literal] = drives.map(|drive| drive.cc.window / ONE_Q10);
    assert!((790..=830).contains(&fresh), "{fresh}");
    assert!((630..=670).contains(&literal), "{literal}");
}

#[test]
fn growth_in_the_round_after_a_cut_is_a_switch() {
    for (grows, changes) in [(true, &[][..]), (false, &[("grow-during-cut-round", Value::Switch(false))][..])] {
        let mut drive = steady(100, 1 << 14, RTT, changes);
        drive.ack(1, Some(RTT), true);
        let cut = drive.cc.window;
        drive.ack(20, Some(RTT), false);
        assert_eq!(drive.cc.window > cut, grows);
        drive.ack(80, Some(RTT), false);
        drive.ack(20, Some(RTT), false);
        assert!(drive.cc.window > cut);
    }
}

#[test]
fn a_loss_halves_once_and_keeps_alpha() {
    let mut drive = steady(100, 1 << 18, RTT, &[]);
    drive.ack(1, Some(RTT), true);
    let cut = drive.cc.window;
    drive.congestion(Cause::Loss);
    assert_eq!(drive.cc.window, cut / 2, "a loss after an ECN cut in the same window still halves");
    drive.congestion(Cause::Loss);
    assert_eq!(drive.cc.window, cut / 2, "a second loss in that window does not");
    assert_eq!(drive.cc.alpha, 1 << 18);
    drive.cc.on_undo();
    assert_eq!(drive.cc.window, cut);
}

#[test]
fn linux_4_9_answers_a_loss_with_the_ecn_cut() {
    let mut drive = steady(100, ONE_Q20, RTT, &[("loss-response", Value::Choice(1))]);
    drive.congestion(Cause::Loss);
    assert_eq!(drive.cc.window, reduce(100 * ONE_Q10, ecn_cut(ONE_Q20, 231, ONE_Q20)));
}

#[test]
fn idling_halves_the_window_for_each_timeout_down_to_the_initial_one() {
    for (tenths, kept) in [(15, 50), (25, 25), (45, 10)] {
        let mut drive = steady(100, 0, RTT, &[]);
        let path = drive.path;
        drive.cc.on_idle_restart(drive.now, Span::from_ps(path.rto.as_ps() / 10 * tenths), &path);
        assert_eq!(drive.window(), kept, "after {tenths} tenths of a timeout");
        assert_eq!(drive.cc.slow_start_threshold(), Packets::new(100));
    }
}

#[test]
#[allow(clippy::float_arithmetic, clippy::cast_precision_loss, reason = "the mean, as a reference")]
fn a_carried_fraction_makes_the_mean_window_exact() {
    const WINDOW: u64 = 5 * ONE_Q10 + 717;
    let windows = |how| -> Vec<u64> {
        let mut drive = steady(100, 0, RTT, &[("window-fraction", Value::Choice(how))]);
        let ends = (0..1_000).map(|_| {
            (drive.cc.window, drive.cc.window_end) = (WINDOW, Seq::SYN);
            drive.ack(1, Some(RTT), false);
            drive.cc.window = WINDOW;
            drive.window()
        });
        ends.collect()
    };
    assert!(windows(0).iter().all(|&window| window == 5));
    let carried = windows(1);
    assert!(carried.iter().all(|window| (5..=6).contains(window)));
    let mean = carried.iter().sum::<u64>() as f64 / 1_000.0;
    assert!((mean - WINDOW as f64 / ONE_Q10 as f64).abs() < 0.001, "{mean}");
}

#[test]
fn a_timeout_leaves_one_packet_and_slow_start() {
    let mut drive = steady(100, 1 << 18, RTT, &[]);
    drive.timeout();
    assert_eq!((drive.window(), drive.cc.slow_start_threshold()), (1, Packets::new(50)));
    drive.phase = Phase::Loss;
    drive.ack(1, None, true);
    assert_eq!(drive.window(), 2, "repair is slow start");
    assert_eq!(drive.cc.alpha, 1 << 18);
}

#[test]
fn idle_senders_and_receivers_windows_do_not_grow() {
    let mut drive = steady(100, 0, RTT, &[]);
    for limit in [Limit::Application, Limit::Receiver, Limit::NearSource] {
        drive.limited_by = limit;
        drive.ack(50, Some(RTT), false);
        assert_eq!(drive.cc.window, 100 * ONE_Q10);
    }
    drive.limited_by = Limit::Pacing;
    drive.ack(50, Some(RTT), false);
    assert!(drive.cc.window > 100 * ONE_Q10);
}

#[test]
fn idle_timeouts_halve_the_window_down_to_the_initial_one() {
    for (timeouts, expected) in [(1, 50), (3, 12), (4, 10), (60, 10)] {
        let mut drive = steady(100, 0, RTT, &[]);
        let idle = drive.path.rto * timeouts + Span::from_ms(1);
        drive.cc.on_idle_restart(drive.now, idle, &drive.path);
        assert_eq!(drive.window(), expected, "{timeouts} timeouts");
    }
}

#[test]
fn without_ecn_alpha_rests() {
    let mut drive = gemini(&[("ecn", Value::Switch(false))]);
    for _ in 0..4 {
        drive.round(RTT, true);
    }
    assert_eq!(drive.cc.alpha, ONE_Q20);
    assert!(drive.cc.in_slow_start());
}

#[test]
fn a_standing_queue_of_others_leaves_rtt_base_alone() {
    let mut drive = steady(1_000, 0, RTT, &[]);
    drive.cc.window_end = drive.path.nxt;
    for _ in 0..2_000 {
        drive.round(RTT * 3, false);
    }
    assert_eq!(drive.cc.base_round_trip_us(), Some(10_000));
    // One cut of β in two rounds meets at most two rounds of growth: W·β ≤ 2h, 12 packets.
    assert!(drive.cc.window <= 12 * ONE_Q10, "{}", drive.cc.window);
    // The queue goes, and the window grows again.
    for _ in 0..100 {
        drive.round(RTT, false);
    }
    assert!(drive.cc.window > 50 * ONE_Q10);
}

#[test]
fn rtt_base_follows_a_longer_route_after_eight_futile_cuts_where_asked() {
    let mut drive = steady(1_000, 0, RTT, &[("route-change-after", Value::Count(8))]);
    drive.cc.window_end = drive.path.nxt;
    let mut rounds = 0;
    while drive.cc.base_round_trip_us() == Some(10_000) && rounds < 100 {
        drive.round(RTT * 3, false);
        rounds += 1;
    }
    assert_eq!(drive.cc.base_round_trip_us(), Some(30_000));
    assert!((16..=20).contains(&rounds), "a delay cut takes two rounds, it took {rounds}");
    assert!(!drive.cc.delayed());
}

#[test]
fn t_is_the_same_on_every_path_unless_a_share_of_the_base_rtt_is_asked_for() {
    assert_eq!(delay_threshold(5_000, 0, 100_000), 5_000);
    assert_eq!([2_000, 8_000, 100_000].map(|base| delay_threshold(1_000, ONE_Q20 / 8, base)), [1_000, 1_000, 12_500]);
    assert_eq!(delay_threshold(0, 16 * ONE_Q20, u64::MAX), u64::MAX >> 20, "no overflow");
    let share = [("t", Value::Span(MS)), ("t-share", Value::Real(ONE_Q20 / 2))];
    let mut drive = steady(1_000, 0, RTT, &share);
    drive.cc.rtt_previous = Some(15_000);
    assert!(!drive.cc.delayed(), "half of 10 ms above them");
    drive.cc.rtt_previous = Some(15_001);
    assert!(drive.cc.delayed());
}

#[test]
fn pacing_counts_ip_bytes_and_the_fraction_of_the_window() {
    let mut drive = steady(100, 0, RTT, &[("pacing-gain", Value::Real(ONE_Q10))]);
    drive.cc.window += ONE_Q10 / 2;
    drive.cc.threshold = drive.cc.window;
    drive.cc.pace(&drive.path);
    assert_eq!(drive.cc.pacing(), Some(Rate::from_bps(120_600_000)));
    assert_eq!(drive.cc.burst(), Some(Packets::new(1)));
    let bare = gemini(&[("pacing", Value::Switch(false))]);
    assert_eq!((bare.cc.pacing(), bare.cc.burst()), (None, None));
}

#[test]
fn k_and_capacity_are_derived_from_the_line_rate() {
    assert_eq!((gemini(&[]).cc.config.k, gemini(&[]).cc.config.capacity_bps), (50, 1_000_000_000));
    let told = gemini(&[("capacity", Value::Rate(Rate::from_gbps(10)))]);
    assert_eq!(told.cc.config.k, 500);
    assert_eq!(gemini(&[("k", Value::Packets(Packets::new(300)))]).cc.config.k, 300);
}
