//! Vivace on a path that is a formula: one bottleneck, one first-in-first-out queue, losses where a test wants them.
#![allow(clippy::float_arithmetic, clippy::cast_precision_loss, reason = "the paper's equations, as a reference")]

use super::interval::Slope;
use super::power::UTILITY_BITS;
use super::*;
use crate::cc::Phase;
use crate::cc::harness::{MSS, build, path};
use crate::cc::{Limit, RttSample};
use crate::packet::Seq;
use std::collections::VecDeque;
use std::vec::Vec;

const RTT: Span = Span::from_ms(20);
const LINK: Rate = Rate::from_mbps(100);
/// The paper's coefficients.
const UTILITY: Utility = Utility { latency: 900 * ONE, loss: (ONE * 1_135).div_ceil(100), rewards_falling: false };

fn float(utility: i128) -> f64 {
    utility as f64 / f64::from(1u32 << UTILITY_BITS)
}

/// A path and its sender. Every packet is 1500 bytes and acknowledged by itself.
struct World {
    cc: Vivace,
    path: Path,
    now: Time,
    /// When the bottleneck has sent all that it has.
    link_free: Time,
    paced: Time,
    /// Arrival of the acknowledgement, and departure, of what is out; without an arrival it is lost.
    out: VecDeque<(Option<Time>, Time)>,
    sent: u64,
    delivered: u64,
    /// Every so many packets one is lost.
    loses_every: u64,
    limited_by: Limit,
    /// The longest queue, in time.
    longest: Span,
}

impl World {
    fn new(changes: &[(&str, Value)]) -> World {
        let path = Path { srtt: Some(RTT), min_rtt: Some(RTT), ..path() };
        World {
            cc: build(&SPEC, Vivace::new, &path, changes),
            path,
            now: Time::ZERO,
            link_free: Time::ZERO,
            paced: Time::ZERO,
            out: VecDeque::new(),
            sent: 0,
            delivered: 0,
            loses_every: u64::MAX,
            limited_by: Limit::Pacing,
            longest: Span::ZERO,
        }
    }

    fn send(&mut self) {
        let size = self.path.packet;
        let waits = self.link_free.since(self.now);
        self.longest = self.longest.max(waits);
        self.link_free = self.link_free.max(self.now) + LINK.time_for(size);
        self.sent += 1;
        let arrives = (!self.sent.is_multiple_of(self.loses_every)).then_some(self.link_free + RTT);
        self.out.push_back((arrives, self.now));
        self.path.nxt = self.path.nxt.plus(MSS);
        self.paced = self.now + self.cc.pacing().expect("it always paces").time_for(size);
        self.path.in_flight = Packets::new(self.out.len() as u64);
        self.cc.on_sent(self.now, &Sent { size, idle: None, starts: false }, &self.path);
    }

    /// The first acknowledgement to come; what is lost is told with the one after it.
    fn acknowledge(&mut self, at: Time) {
        self.now = at;
        let mut lost = 0;
        if self.out.front().is_some_and(|first| first.0.is_none()) {
            let (_, sent_at) = self.out.pop_front().expect("there is a first");
            self.tell_lost(sent_at);
            lost = 1;
        }
        let (_, left) = self.out.pop_front().expect("something is acknowledged");
        let span = at.since(left);
        self.delivered += 1;
        self.path.srtt = Some((self.path.srtt.unwrap_or(span) * 7 + span).div(8));
        let prior_in_flight = self.path.in_flight;
        self.path.in_flight = Packets::new(self.out.len() as u64);
        let ack = Ack {
            now: at,
            acked: Packets::new(1),
            marked: Packets::ZERO,
            lost: Packets::new(lost),
            ece: false,
            rtt: Some(RttSample { span, seq: Seq::FIRST }),
            delivery: None,
            delivered: Packets::new(self.delivered),
            una: self.path.una,
            nxt: self.path.nxt,
            in_flight: self.path.in_flight,
            prior_in_flight,
            max_in_flight: prior_in_flight,
            phase: Phase::Open,
            limited_by: self.limited_by,
            timestamps: (0, 0),
            in_order: true,
        };
        self.cc.on_ack(&ack, &self.path);
    }

    fn tell_lost(&mut self, sent_at: Time) {
        let lost = Lost {
            now: self.now,
            segment: 0,
            sent_at,
            in_flight_at_send: self.path.in_flight,
            lost_since_send: Packets::new(1),
            app_limited: false,
            delivered: Packets::new(self.delivered),
        };
        self.cc.on_lost(&lost, &self.path);
    }

    /// One event: an acknowledgement or a transmission.
    fn step(&mut self) {
        let arrival = self.out.iter().find_map(|packet| packet.0);
        let may_send = (self.out.len() as u64) < self.cc.window().get();
        let departs = if may_send { self.paced.max(self.now) } else { Time::NEVER };
        match arrival {
            Some(at) if at <= departs => self.acknowledge(at),
            _ => {
                self.now = departs;
                self.send();
            }
        }
    }

    fn run(&mut self, span: Span) {
        let end = self.now + span;
        while self.now < end {
            self.step();
        }
    }
}

#[test]
fn utilities_are_the_hand_computed() {
    // 100 Mbit/s is worth 63.0957; an RTT that rises by 2 % costs 900·100·0.02 = 1800; 3 % of losses 11.35·100·0.03 = 34.05.
    let bps = 100_000_000;
    let share = |percent: u64| ONE * percent / 100;
    let of = |gradient: i128, lost| float(UTILITY.of(bps, gradient, lost));
    // Gradients are held to 2^-20, of which 900·100 is 0.09.
    let close = |value: f64, exact: f64| assert!((value - exact).abs() < 0.09, "{value} for {exact}");
    close(of(0, 0), 63.095_734);
    close(of(i128::from(share(2)), 0), 63.095_734 - 1_800.0);
    close(of(0, share(3)), 63.095_734 - 34.05);
    close(of(i128::from(share(2)), share(3)), 63.095_734 - 1_834.05);
    // A falling RTT is worth nothing, and less than 0.01 is none.
    assert_eq!(of(-i128::from(share(50)), 0), of(0, 0));
    assert_eq!(of(i128::from(ONE / 101), 0), of(0, 0));
    let loss = Utility { latency: 0, ..UTILITY };
    close(float(loss.of(bps, i128::from(share(2)), share(3))), 63.095_734 - 34.05);
}

#[test]
fn slopes_are_those_of_least_squares() {
    let mut slope = Slope::default();
    assert_eq!(slope.get(), 0);
    slope.add(Span::from_ms(1), RTT);
    assert_eq!(slope.get(), 0, "one packet has no slope");
    // RTTs of 20, 21, 20 and 25 ms at 1, 2, 3 and 4 ms.
    let points = [(2, 21), (3, 20), (4, 25)];
    for (after, rtt) in points {
        slope.add(Span::from_ms(after), Span::from_ms(rtt));
    }
    // Means 2.5 and 21.5; deviations' products 2.25 + 0.25 - 0.75 + 5.25 = 7, squares 2.25 + 0.25 + 0.25 + 2.25 = 5.
    assert_eq!(slope.get(), i128::from(ONE) * 7 / 5);
}

/// Beyond the link's rate a packet's RTT exceeds that of one sent t before it by t·(x-C)/C.
#[test]
fn the_slope_of_an_interval_is_the_excess_of_its_rate() {
    let mut world = World::new(&[]);
    world.cc.mode = Mode::Learning;
    world.cc.rate = LINK.scaled(110, 100);
    world.cc.plan();
    world.path.line_rate = Rate::from_gbps(1);
    let mut seen = Vec::new();
    while seen.len() < 2 {
        world.step();
        if world.cc.judging == 1 && world.cc.intervals[1].ended.is_some() {
            seen = world.cc.intervals.to_vec();
        }
    }
    let interval = seen[0];
    let excess = interval.rate.as_bps() as f64 / 1e8 - 1.0;
    let x = interval.rate.as_bps() as f64 / 1e6;
    let exact = x.powf(0.9) - 900.0 * x * excess;
    let utility = float(interval.utility(&UTILITY));
    assert!((utility / exact - 1.0).abs() < 0.01, "{utility} for {exact}");
}

/// With one packet in twenty lost, both intervals tell of 5 %, within a packet.
#[test]
fn losses_count_for_the_interval_in_which_they_left() {
    let mut world = World::new(&[("utility", Value::Choice(1))]);
    world.loses_every = 20;
    world.run(Span::from_ms(200));
    let mut shares = Vec::new();
    for _ in 0..20_000 {
        let judged = world.cc.judging;
        let interval = world.cc.intervals[judged.min(1)];
        world.step();
        if world.cc.judging != judged {
            shares.push((interval.lost() as f64 / ONE as f64, interval.rate.as_bps() as f64 * 0.02 / 12_000.0));
        }
    }
    assert!(shares.len() > 10);
    for (share, packets) in shares {
        assert!((share - 0.05).abs() <= 1.5 / packets.max(10.0), "{share} of {packets}");
    }
}

/// An empty flight between two pieces begins no interval anew; what is longer than an RTT does.
#[test]
fn a_gap_between_pieces_is_no_idle_time() {
    let mut world = World::new(&[]);
    world.cc.plan();
    let size = world.path.packet;
    let mut began_after = |gap: Span| {
        world.now += gap;
        world.cc.on_sent(world.now, &Sent { size, idle: Some(gap), starts: true }, &world.path);
        (world.cc.intervals[0].began, world.now)
    };
    let (began, first) = began_after(RTT.div(2));
    assert_eq!(began, Some(first));
    assert_eq!(began_after(RTT.div(2)).0, Some(first));
    let (began, now) = began_after(RTT * 2);
    assert_eq!(began, Some(now));
}

/// The moment at which a lost packet left decides, to the picosecond: an interval has its first packet, and not the next's.
#[test]
fn a_loss_is_of_the_interval_in_which_it_left() {
    let mut world = World::new(&[]);
    world.cc.mode = Mode::Learning;
    world.cc.plan();
    let at = |us| Time::ZERO + Span::from_us(us);
    for (interval, [began, ended]) in world.cc.intervals.iter_mut().zip([[0, 1_000], [1_000, 2_000]]) {
        (interval.began, interval.ended) = (Some(at(began)), Some(at(ended)));
    }
    for left in [999, 1_000, 1_000, 2_000] {
        world.tell_lost(at(left));
    }
    let lost = world.cc.intervals.map(|interval| interval.lost());
    assert_eq!(lost, [ONE, ONE], "all that is known of each is lost");
    world.cc.intervals.iter_mut().for_each(|interval| interval.take_delivered(interval.began.unwrap(), 6));
    let lost = world.cc.intervals.map(|interval| interval.lost());
    assert_eq!(lost, [ONE / 7, 2 * ONE / 8], "what left later is of none");
}

/// γ = (u(r(1+ε)) - u(r(1-ε)))/(2·ε·r): on an idle path about 0.9·x^-0.1, and the first step is θ₀·γ.
#[test]
fn steps_follow_the_gradient() {
    let mut world = World::new(&[]);
    world.cc.mode = Mode::Learning;
    world.cc.rate = Rate::from_mbps(50);
    world.cc.plan();
    let mut rates = std::vec![50e6];
    while rates.len() < 5 {
        world.step();
        let rate = world.cc.rate.as_bps() as f64;
        if rates.last() != Some(&rate) {
            rates.push(rate);
        }
    }
    for (i, pair) in rates.windows(2).enumerate() {
        let x = pair[0] / 1e6;
        let gamma = ((x * 1.05).powf(0.9) - (x * 0.95).powf(0.9)) / (0.1 * x);
        let amplifier = [1.0, 2.0, 3.0, 5.0][i];
        let exact = (gamma * amplifier).min(x * if i == 3 { 0.05 } else { 1.0 });
        let step = (pair[1] - pair[0]) / 1e6;
        assert!((step / exact - 1.0).abs() < 1e-3, "step {i}: {step} for {exact}");
    }
}

#[test]
fn slow_start_doubles_until_the_utility_falls_and_goes_back() {
    let mut world = World::new(&[]);
    let first = world.cc.rate.as_bps();
    let mut rates = std::vec![first];
    while world.cc.mode != Mode::Learning {
        world.step();
        if rates.last() != Some(&world.cc.rate.as_bps()) {
            rates.push(world.cc.rate.as_bps());
        }
    }
    // 10 packets of 1500 bytes per 20 ms are 6 Mbit/s: 6, 12, 24, 48, 96 fit, 192 does not.
    assert_eq!(first, 6_000_000);
    assert_eq!(rates, [1, 2, 4, 8, 16, 32, 16].map(|times| first * times));
}

#[test]
fn alone_it_fills_the_link_and_leaves_the_queue_short() {
    let mut world = World::new(&[]);
    world.run(Span::from_secs(20));
    (world.longest, world.delivered) = (Span::ZERO, 0);
    world.run(Span::from_secs(20));
    let share = (world.delivered * 12_000) as f64 / 20.0 / 1e8;
    assert!(share > 0.9, "{share}");
    // An interval of 20 ms at 5 % beyond the link leaves 1 ms of queue; the rate before it may be the link's and a step.
    assert!(world.longest < Span::from_ms(3), "{:?}", world.longest);
}

#[test]
fn intervals_say_nothing_while_something_else_limits() {
    let mut world = World::new(&[]);
    world.limited_by = Limit::Application;
    let before = world.cc.rate;
    world.run(Span::from_secs(1));
    assert_eq!((world.cc.rate, world.cc.mode), (before, Mode::SlowStart(None)));
    world.limited_by = Limit::Pacing;
    world.run(Span::from_secs(1));
    assert!(world.cc.rate > before);
}

#[test]
fn a_timeout_halves_the_rate_and_its_undo_gives_it_back() {
    let mut world = World::new(&[]);
    world.run(Span::from_secs(5));
    let (rate, window) = (world.cc.rate, world.cc.window());
    world.cc.on_timeout(world.now, false, &world.path);
    assert_eq!((world.cc.rate, world.cc.window()), (rate.scaled(1, 2), Packets::new(1)));
    world.cc.on_undo();
    assert_eq!((world.cc.rate, world.cc.window()), (rate, window));
}

#[test]
fn an_undo_gives_slow_start_back_also_after_acknowledgements() {
    let mut world = World::new(&[]);
    world.run(Span::from_ms(100));
    let before = (world.cc.mode, world.cc.rate, world.cc.step);
    assert!(matches!(before.0, Mode::SlowStart(_)));
    world.cc.on_timeout(world.now, false, &world.path);
    assert_eq!(world.cc.mode, Mode::Learning);
    world.run(Span::from_ms(1));
    world.cc.on_undo();
    assert_eq!((world.cc.mode, world.cc.rate, world.cc.step), before);
    // What an earlier timeout took is not given back to a later episode.
    world.cc.on_timeout(world.now, false, &world.path);
    let halved = world.cc.rate;
    world.cc.on_congestion(world.now, Cause::Loss, &world.path);
    world.cc.on_undo();
    assert_eq!(world.cc.rate, halved);
}

/// A millisecond's worth and 64 KB, which each 512 µs of the minimum RTT halve; at least two packets, at most what hosts take.
#[test]
fn pieces_are_longer_on_short_paths() {
    for (rtt_us, burst, packets) in [(100, 64, 44), (600, 64, 22), (2_100, 64, 3), (100_000, 64, 2), (100, 16, 16)] {
        let path = Path { min_rtt: Some(Span::from_us(rtt_us)), burst, ..path() };
        let piece = Vivace::piece(Rate::from_mbps(8), &path);
        assert_eq!(piece, Bytes::new(packets * 1_500), "{rtt_us} µs");
    }
}

#[test]
fn the_window_leaves_room_for_twice_the_rate() {
    let mut world = World::new(&[]);
    world.run(Span::from_secs(5));
    let product = world.cc.rate.bytes_in(RTT).get() / 1_500;
    assert!(world.cc.window().get() >= 2 * product, "{:?} for {product}", world.cc.window());
}
