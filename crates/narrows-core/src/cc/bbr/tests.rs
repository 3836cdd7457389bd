//! BBR on a path that is a formula: one bottleneck, one first-in-first-out queue, no randomness but the controller's.

use super::*;
use crate::cc::harness::{MSS, build, path};
use crate::cc::{Limit, RttSample};
use crate::packet::Seq;
use std::collections::VecDeque;
use std::vec::Vec;

const RTT: Span = Span::from_ms(10);
/// 100 Mbit/s: one packet in 120 µs, 83.3 packets per base RTT.
const PACKET_TIME: Span = Span::from_us(120);
const LINK: Rate = Rate::from_mbps(100);

fn bbr(version: u8) -> Bbr {
    build(&SPEC, Bbr::new, &path(), &[("version", Value::Choice(version))])
}

#[derive(Clone, Copy, Debug)]
struct Packet {
    sent: Time,
    arrives: Time,
    prior_delivered: u64,
    prior_delivered_at: Time,
    first_sent: Time,
    lost: bool,
}

/// A sender, a bottleneck, a receiver that acknowledges each packet.
struct World {
    cc: Bbr,
    path: Path,
    now: Time,
    next_send: Time,
    bottleneck_free: Time,
    flying: VecDeque<Packet>,
    sent: u64,
    delivered: u64,
    delivered_at: Time,
    first_sent: Time,
    /// Recovery ends when a packet sent at or after this is delivered.
    recovery_until: Option<Time>,
    /// Of 256 packets so many are lost, evenly spread, instead of delivered.
    loss: u64,
    modes: Vec<&'static str>,
}

impl World {
    fn new(cc: Bbr) -> World {
        World {
            cc,
            path: path(),
            now: Time::ZERO,
            next_send: Time::ZERO,
            bottleneck_free: Time::ZERO,
            flying: VecDeque::new(),
            sent: 0,
            delivered: 0,
            delivered_at: Time::ZERO,
            first_sent: Time::ZERO,
            recovery_until: None,
            loss: 0,
            modes: Vec::new(),
        }
    }

    fn run(&mut self, span: Span) {
        let end = self.now + span;
        while self.now < end {
            let arrival = self.flying.front().map_or(Time::NEVER, |packet| packet.arrives);
            let may_send = (self.flying.len() as u64) < self.cc.window().get();
            if may_send && self.next_send <= arrival {
                self.now = self.now.max(self.next_send);
                self.send();
            } else {
                self.now = arrival;
                self.acknowledge();
            }
            let mode = match self.cc.mode {
                Mode::Startup => "startup",
                Mode::Drain => "drain",
                Mode::ProbeBandwidth { .. } => "probe-bandwidth",
                Mode::ProbeRtt(_) => "probe-rtt",
            };
            if self.modes.last() != Some(&mode) {
                self.modes.push(mode);
            }
        }
    }

    fn send(&mut self) {
        if self.flying.is_empty() {
            self.delivered_at = self.now;
            self.first_sent = self.now;
        }
        let arrives = (self.now + RTT).max(self.bottleneck_free + PACKET_TIME);
        self.bottleneck_free = arrives;
        self.sent += 1;
        let lost = (self.sent * self.loss) / 256 != ((self.sent - 1) * self.loss) / 256;
        self.flying.push_back(Packet {
            sent: self.now,
            arrives,
            prior_delivered: self.delivered,
            prior_delivered_at: self.delivered_at,
            first_sent: self.first_sent,
            lost,
        });
        self.path.nxt = self.path.nxt.plus(MSS);
        self.path.in_flight = Packets::new(self.flying.len() as u64);
        self.cc.on_sent(self.now, &Sent { size: self.path.packet, idle: None, starts: false }, &self.path);
        self.next_send = self.now + self.cc.pacing().unwrap().time_for(self.path.packet);
    }

    /// The next packet that arrives; lost ones before it are found out by it.
    fn acknowledge(&mut self) {
        let prior_in_flight = Packets::new(self.flying.len() as u64);
        let mut lost = 0;
        let packet = loop {
            match self.flying.pop_front() {
                Some(packet) if packet.lost => lost += 1,
                Some(packet) => break packet,
                None => return,
            }
        };
        self.now = self.now.max(packet.arrives);
        self.delivered += 1;
        let interval = packet.sent.since(packet.first_sent).max(self.now.since(packet.prior_delivered_at));
        self.delivered_at = self.now;
        self.first_sent = packet.sent;
        let rtt = self.now.since(packet.sent);
        self.path.una = self.path.una.plus(MSS * (1 + lost));
        self.path.srtt = Some(rtt);
        self.path.in_flight = Packets::new(self.flying.len() as u64);
        if self.recovery_until.is_some_and(|until| packet.sent >= until) {
            self.recovery_until = None;
        }
        let episode = lost > 0 && self.recovery_until.is_none();
        if lost > 0 {
            // What is lost is repaired in the RTT after it was found. Episodes that overlap follow each other
            // without a moment in between, as in Linux, where an acknowledgement may end one and begin the next.
            self.recovery_until = Some(self.now + RTT);
        }
        let ack = Ack {
            lost: Packets::new(lost),
            rtt: Some(RttSample { span: rtt, seq: Seq::FIRST }),
            delivery: Some(RateSample {
                delivered: Packets::new(self.delivered - packet.prior_delivered),
                interval,
                prior_delivered: Packets::new(packet.prior_delivered),
                app_limited: false,
                in_flight_at_send: Packets::new(1),
                lost_since_send: Packets::ZERO,
            }),
            delivered: Packets::new(self.delivered),
            in_flight: self.path.in_flight,
            prior_in_flight,
            phase: if self.recovery_until.is_some() { Phase::Recovery } else { Phase::Open },
            ..ack(self.now)
        };
        self.cc.on_ack(&ack, &self.path);
        if episode {
            self.cc.on_congestion(self.now, Cause::Loss, &self.path);
        }
    }

    fn delivery_rate(&mut self, span: Span) -> Rate {
        let before = self.delivered;
        self.run(span);
        Rate::of(Packets::new(self.delivered - before).bytes(self.path.packet), span)
    }
}

/// An acknowledgement of one packet with nothing else to say.
fn ack(now: Time) -> Ack {
    Ack {
        now,
        acked: Packets::new(1),
        marked: Packets::ZERO,
        lost: Packets::ZERO,
        ece: false,
        rtt: None,
        delivery: None,
        delivered: Packets::new(1),
        una: Seq::FIRST,
        nxt: Seq::FIRST,
        in_flight: Packets::new(20),
        prior_in_flight: Packets::new(21),
        max_in_flight: Packets::new(21),
        phase: Phase::Open,
        limited_by: Limit::Pacing,
        timestamps: (0, 0),
        in_order: true,
    }
}

#[test]
fn gains_are_the_kernels() {
    assert_eq!((HIGH_GAIN, DRAIN_GAIN, CYCLE[0], CYCLE[1]), (739, 88, 320, 192));
    assert_eq!(rate_of(BANDWIDTH_ONE, GAIN_ONE, Bytes::new(1_500)), Rate::from_gbps(12));
    assert_eq!(rate_of(BANDWIDTH_ONE / 2, 320, Bytes::new(1_500)), Rate::from_mbps(7_500));
}

#[test]
fn it_fills_the_pipe_drains_and_cruises() {
    let mut world = World::new(bbr(0));
    world.run(Span::from_secs(2));
    assert_eq!(world.modes, ["startup", "drain", "probe-bandwidth"]);
    let measured = rate_of(world.cc.bandwidth(), GAIN_ONE, world.path.packet);
    assert!(measured <= LINK.scaled(101, 100) && measured >= LINK.scaled(99, 100), "{measured}");
    assert_eq!(world.cc.round_trip_us, Some(10_000));
    // 2·83.4 packets and three segments of one packet, made even.
    assert!((168..=172).contains(&world.cc.target()), "{}", world.cc.target());
    assert!(world.cc.window <= world.cc.target());
    assert!(world.delivery_rate(Span::from_secs(2)) >= LINK.scaled(98, 100));
}

#[test]
fn the_round_trip_is_measured_anew_every_ten_seconds() {
    let mut world = World::new(bbr(0));
    world.run(Span::from_secs(9));
    assert!(!world.modes.contains(&"probe-rtt"));
    let before = world.cc.window;
    world.modes.clear();
    let (mut dip, mut bottom) = (Span::ZERO, u64::MAX);
    while world.now < Time::ZERO + Span::from_secs(12) {
        let before = world.now;
        world.run(Span::from_ms(1));
        if matches!(world.cc.mode, Mode::ProbeRtt(Dip::Holding { .. })) {
            dip += world.now - before;
            bottom = bottom.min(world.cc.window);
        }
    }
    assert_eq!(world.modes, ["probe-bandwidth", "probe-rtt", "probe-bandwidth"]);
    // 200 ms and up to a round or two, seen in steps of an RTT.
    assert!(dip >= Span::from_ms(185) && dip <= Span::from_ms(230), "{dip}");
    assert_eq!(bottom, 4);
    assert!(world.cc.window + 8 >= before, "restored to {}, it was {before}", world.cc.window);
    let measured = rate_of(world.cc.bandwidth(), GAIN_ONE, world.path.packet);
    assert!(measured >= LINK.scaled(97, 100), "the dip's own samples do not count: {measured}");
}

#[test]
fn probing_starts_anywhere_but_in_the_emptying_phase() {
    let mut cc = bbr(0);
    let mut seen = [0; 8];
    for _ in 0..1_000 {
        cc.probe_bandwidth(Time::ZERO);
        if let Mode::ProbeBandwidth { index, .. } = cc.mode {
            seen[usize::from(index)] += 1;
        }
    }
    assert_eq!(seen[1], 0);
    assert!(seen.iter().filter(|&&count| count > 0).count() == 7, "{seen:?}");
}

/// Probing the bandwidth of one packet per 100 µs at 10 ms: a product of 100 packets.
fn cruising(index: u8) -> Bbr {
    let mut cc = bbr(0);
    cc.pipe_is_full = true;
    cc.bandwidth.reset(0, BANDWIDTH_ONE / 100);
    cc.round_trip_us = Some(10_000);
    cc.mode = Mode::ProbeBandwidth { index, since: Time::ZERO };
    cc
}

#[test]
fn a_phase_lasts_a_round_trip_and_until_it_has_worked() {
    let index = |index, ms: u64, in_flight, lost| {
        let mut cc = cruising(index);
        let facts = Ack {
            prior_in_flight: Packets::new(in_flight),
            lost: Packets::new(lost),
            ..ack(Time::from_ns(ms * 1_000_000))
        };
        cc.advance_cycle(&facts, &path());
        if let Mode::ProbeBandwidth { index, .. } = cc.mode { index } else { 99 }
    };
    // 5/4 of 100 packets and the quanta: 128.
    assert_eq!((index(0, 11, 127, 0), index(0, 11, 128, 0), index(0, 10, 128, 0), index(0, 11, 10, 1)), (0, 1, 0, 1));
    // Emptied down to the product and the quanta, 104.
    assert_eq!((index(1, 1, 105, 0), index(1, 1, 104, 0), index(1, 11, 200, 0)), (1, 2, 2));
    assert_eq!((index(7, 10, 104, 0), index(7, 11, 104, 0)), (7, 0));
}

#[test]
fn later_kernels_count_what_is_in_flight_when_the_next_piece_leaves() {
    let now = Time::ZERO + Span::from_ms(5);
    // A packet per 100 us, for 1 ms; a piece of eight segments while more is to be in flight.
    let path = Path { departs_at: now + Span::from_ms(1), ..path() };
    let counted = |version, index| {
        let cc = Bbr { version, burst: 8, ..cruising(index) };
        cc.in_network_at_departure(Packets::new(50), cc.pacing_gain(), now, &path)
    };
    assert_eq!((counted(Version::Linux6, 0), counted(Version::Linux6, 2)), (50 - 9 + 8, 50 - 9));
    assert_eq!((counted(Version::Linux49, 0), counted(Version::Linux49, 2)), (50, 50));
    let late = Path { departs_at: Time::ZERO, ..path };
    let cc = Bbr { version: Version::Linux6, ..cruising(2) };
    assert_eq!(cc.in_network_at_departure(Packets::new(50), GAIN_ONE, now, &late), 50);
}

#[test]
fn the_handshake_is_the_first_round_trip() {
    let mut cc = bbr(0);
    let path = Path { srtt: Some(Span::from_us(700)), min_rtt: Some(Span::from_us(250)), ..path() };
    cc.on_sent(Time::ZERO, &Sent { size: path.packet, idle: None, starts: false }, &path);
    assert_eq!(cc.round_trip_us, Some(250));
    // A segment of data takes longer where it has to be put on the line.
    let sample = Some(RttSample { span: Span::from_us(600), seq: Seq::FIRST });
    cc.on_ack(&Ack { rtt: sample, ..ack(Time::ZERO + Span::from_ms(1)) }, &path);
    assert_eq!(cc.round_trip_us, Some(250));
}

/// Ten seconds old, the minimum RTT is measured anew with four packets in flight; but a pause has emptied the queue already.
#[test]
fn a_pause_measures_the_round_trip_without_a_dip() {
    let after = |idle| {
        let mut cc = cruising(2);
        let now = Time::ZERO + ROUND_TRIP_WINDOW + Span::from_ms(1);
        (cc.round_trip_us, cc.round_trip_at) = (Some(1_000), Some(Time::ZERO));
        cc.on_sent(now, &Sent { size: path().packet, idle, starts: idle.is_some() }, &path());
        let rtt = Some(RttSample { span: Span::from_us(1_300), seq: Seq::FIRST });
        cc.on_ack(&Ack { rtt, ..ack(now) }, &path());
        assert_eq!(cc.round_trip_us, Some(1_300), "the old one has expired");
        matches!(cc.mode, Mode::ProbeRtt(_))
    };
    assert!(after(None));
    assert!(!after(Some(Span::from_secs(9))));
}

fn sample(delivered: u64, us: u64, prior: u64, app_limited: bool) -> RateSample {
    RateSample {
        delivered: Packets::new(delivered),
        interval: Span::from_us(us),
        prior_delivered: Packets::new(prior),
        app_limited,
        in_flight_at_send: Packets::new(1),
        lost_since_send: Packets::ZERO,
    }
}

#[test]
fn application_limited_samples_only_raise_the_bandwidth() {
    let mut cc = cruising(2);
    cc.round_end = u64::MAX;
    let facts = ack(Time::ZERO);
    let before = cc.bandwidth();
    cc.update_bandwidth(&facts, &sample(1, 200, 0, true));
    assert_eq!(cc.bandwidth(), before);
    cc.update_bandwidth(&facts, &sample(1, 50, 0, true));
    assert_eq!(cc.bandwidth(), BANDWIDTH_ONE / 50);
}

/// What the application did not ask for says nothing of the path, however long that goes on.
#[test]
fn application_limited_rounds_forget_nothing() {
    let mut cc = cruising(2);
    let before = cc.bandwidth();
    for round in 1..=30 {
        let facts = Ack { delivered: Packets::new(round), ..ack(Time::ZERO) };
        cc.update_bandwidth(&facts, &sample(1, 200, round - 1, true));
        assert_eq!((cc.rounds, cc.bandwidth()), (round, before));
    }
}

#[test]
fn the_bandwidth_is_forgotten_after_ten_rounds() {
    let mut cc = cruising(2);
    for round in 1..=11 {
        let facts = Ack { delivered: Packets::new(round), ..ack(Time::ZERO) };
        cc.update_bandwidth(&facts, &sample(1, 200, round - 1, false));
        assert_eq!(cc.rounds, round);
        assert_eq!(cc.bandwidth(), BANDWIDTH_ONE / if round <= 10 { 100 } else { 200 });
    }
}

#[test]
fn three_rounds_without_a_quarter_more_fill_the_pipe() {
    let mut cc = bbr(0);
    for (bandwidth, full) in [(100, false), (125, false), (150, false), (155, false), (155, true)] {
        cc.bandwidth.reset(0, bandwidth);
        cc.round_started = true;
        cc.check_full_pipe(false);
        // 156 would be a quarter more than 125.
        assert_eq!(cc.pipe_is_full, full, "{bandwidth}");
    }
    let mut idle = bbr(0);
    for _ in 0..10 {
        idle.round_started = true;
        idle.check_full_pipe(true);
    }
    assert!(!idle.pipe_is_full, "an application that sends little fills nothing");
}

#[test]
fn recovery_conserves_packets_for_a_round_and_restores_the_window() {
    let mut cc = cruising(2);
    cc.window = 150;
    let facts = |phase, delivered, lost, in_flight| Ack {
        phase,
        delivered: Packets::new(delivered),
        lost: Packets::new(lost),
        in_flight: Packets::new(in_flight),
        ..ack(Time::ZERO)
    };
    cc.on_congestion(Time::ZERO, Cause::Loss, &path());
    assert_eq!(cc.window, 150, "no multiplicative decrease");
    cc.on_ack(&facts(Phase::Recovery, 100, 10, 80), &path());
    assert_eq!(cc.window, 81);
    cc.on_ack(&facts(Phase::Recovery, 101, 0, 80), &path());
    assert_eq!(cc.window, 81);
    cc.update_bandwidth(&facts(Phase::Recovery, 181, 0, 80), &sample(81, 8_100, 100, false));
    cc.on_ack(&facts(Phase::Recovery, 182, 0, 80), &path());
    assert_eq!(cc.window, 82, "from the second round on it grows towards the target");
    cc.on_ack(&facts(Phase::Open, 183, 0, 80), &path());
    assert_eq!(cc.window, 151);
}

#[test]
fn a_timeout_leaves_one_packet_and_its_repair_restores_the_window() {
    let mut cc = cruising(2);
    cc.window = 150;
    cc.on_timeout(Time::ZERO, false, &path());
    assert_eq!(cc.window, 1);
    cc.on_ack(&Ack { phase: Phase::Loss, ..ack(Time::ZERO) }, &path());
    assert_eq!(cc.window, 4);
    cc.on_ack(&Ack { phase: Phase::Open, delivered: Packets::new(2), ..ack(Time::ZERO) }, &path());
    assert_eq!(cc.window, 151);
}

#[test]
fn losses_matter_from_a_fifth_on() {
    for (loss, policed) in [(0, false), (26, false), (46, true)] {
        let mut world = World::new(bbr(0));
        world.loss = loss;
        world.run(Span::from_secs(1));
        let mut seen = false;
        for _ in 0..200 {
            world.run(Span::from_ms(10));
            seen |= world.cc.long_term.rate().is_some();
        }
        // 46/256 lost are 46/210 = 56/256 of those delivered, more than 50/256; 26 are 29.
        assert_eq!(seen, policed, "{loss} of 256 lost");
        if !policed {
            // Losses in the first flight end Startup early; probing then needs a few seconds to fill the pipe.
            world.run(Span::from_secs(4));
            // Probing finds (1−p)·C, for what is lost counts in no sample; the other phases lose p of that again.
            let expected = LINK.scaled((256 - loss) * (256 - loss), 1 << 16).scaled(98, 100);
            let rate = world.delivery_rate(Span::from_secs(1));
            assert!(rate >= expected, "{rate} {:?}", world.cc);
        }
    }
}

#[test]
fn later_kernels_pace_one_percent_below_and_allow_for_aggregation() {
    let mut world = World::new(bbr(1));
    world.run(Span::from_secs(2));
    assert_eq!(world.modes, ["startup", "drain", "probe-bandwidth"]);
    let mut cc = world.cc.clone();
    cc.mode = Mode::ProbeBandwidth { index: 3, since: world.now };
    cc.pace(BANDWIDTH_ONE / 100, cc.pacing_gain(), &world.path);
    assert_eq!(cc.pacing(), Some(rate_of(BANDWIDTH_ONE / 100, GAIN_ONE, Bytes::new(1_500)).scaled(99, 100)));
    let plain = cc.target();
    for burst in 1..20 {
        let now = world.now + Span::from_us(5_300) * burst;
        cc.aggregation.update(now, 44, true, cc.bandwidth(), cc.window);
    }
    assert!(cc.target() >= plain + 30 && cc.target() <= plain + 46, "{} {plain}", cc.target());
}

#[test]
fn bursts_are_a_millisecond_at_the_rate() {
    let mut cc = bbr(0);
    let path = Path { burst: 44, ..path() };
    for (rate, burst) in [(Rate::from_mbps(1), 1), (Rate::from_mbps(10), 2), (LINK, 8), (Rate::from_gbps(10), 44)] {
        cc.pacing = Some(rate);
        cc.size_bursts(&path);
        assert_eq!(cc.burst(), Some(Packets::new(burst)), "{rate}");
    }
}

#[test]
fn the_first_rate_is_the_initial_window_per_round_trip() {
    let mut cc = bbr(0);
    // Ten packets in 1 ms, times 739/256.
    let first = cc.pacing().unwrap();
    assert!(first > Rate::from_mbps(346) && first < Rate::from_mbps(347), "{first}");
    let path = Path { srtt: Some(RTT), ..path() };
    cc.on_sent(Time::ZERO, &Sent { size: path.packet, idle: None, starts: false }, &path);
    assert_eq!(cc.pacing().unwrap().as_bps() / 1_000_000, 34);
}

#[test]
fn the_integers_hold_400_gigabits_times_one_second() {
    let mut cc = bbr(1);
    // 33.3 packets per microsecond, 33.3 million in flight.
    cc.bandwidth.reset(0, BANDWIDTH_ONE * 100 / 3);
    cc.round_trip_us = Some(1_000_000);
    cc.pipe_is_full = true;
    let rate = rate_of(cc.bandwidth(), GAIN_ONE, Bytes::new(1_500));
    assert!(rate.as_bps().abs_diff(400_000_000_000) < 100_000, "{rate}");
    assert!(cc.product(cc.bandwidth(), HIGH_GAIN).abs_diff(33_333_333 * 739 / 256) < 100);
    assert!(cc.target() > 33_333_333);
}
