//! No loss-based sender beats the throughput that random loss allows.
//!
//! Additive increase of `a` packets per RTT and a cut by the fraction `b` once per window of data with losses settle at
//! `√(a(2−b)/(2b)/p)` packets per RTT where each packet is lost with probability `p` [Mathis 1997 §2]: 1.22/√p for Reno.
//! Losses at random rather than at equal distances make it 1.31/√p [Mathis 1997 §2, after Ott, Kemperman, Mathis].
//! Timeouts only take from it. BBR and DCQCN are exempt: they do not answer a loss with their window, or not before there are many.
#![allow(missing_docs, reason = "tests")]
#![allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "statistics")]

#[allow(dead_code, unreachable_pub, clippy::cast_possible_truncation, reason = "a test uses the part it needs")]
mod pair;

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use narrows_core::cc::SPECS;
use narrows_core::rng::Stream;
use narrows_core::tcp::EcnMode;
use narrows_core::tcp::profile::{LossDetection, Profile};
use narrows_core::units::{Span, Time};
use pair::{Pair, stack_for};

/// Losses after which a measurement may end, and by how much the mean of so many scatters: three standard deviations.
const LOSSES: f64 = 300.0;
const SCATTER: f64 = 1.18;
/// Minimum RTOs that it lasts at least: while a retransmission that was lost waits for the timer, the window stays as it was.
const TIMEOUTS: u64 = 30;
/// The smallest window after a cut, packets: where losses ask for less, it is what is sent per RTT.
const MIN_WINDOW: f64 = 2.0;

#[derive(Clone, Copy, Debug)]
struct Point {
    profile: &'static str,
    detection: LossDetection,
    controller: &'static str,
    /// Probability of loss on each hop, and their number.
    loss: f64,
    hops: u8,
    /// Acknowledgements are lost as data is.
    both_ways: bool,
    rtt_us: u64,
    min_rto_us: u64,
    seed: u64,
}

impl Point {
    /// Probability that a packet is lost on the way.
    fn lost(&self) -> f64 {
        1.0 - (1.0 - self.loss).powi(i32::from(self.hops))
    }

    /// Most packets per RTT.
    fn bound(&self) -> f64 {
        let aimd = |increase: f64, cut: f64| 1.31 * (increase * (2.0 - cut) / (3.0 * cut) / self.lost()).sqrt();
        let rtt = self.rtt_us as f64 / 1e6;
        let bound = match self.controller {
            // Up to a packet per RTT in its Reno-friendly region, whose pace Linux computes but once per millisecond; and
            // the cubic's own mean [RFC 9438 §5.1 eq. 6].
            "cubic" => aimd(1.0, 0.3).max((0.4 * 3.7 / 1.2_f64).powf(0.25) * (rtt / self.lost()).powf(0.75)),
            // h = H·C·RTT at 1 Gbit/s [GEMINI §III-B].
            "gemini" => aimd((120.0 * rtt).clamp(0.1, 5.0), 0.5),
            _ => aimd(1.0, 0.5),
        };
        SCATTER * bound.max(MIN_WINDOW)
    }

    /// Data segments sent per RTT.
    fn measure(&self) -> f64 {
        let profile = Profile::NAMED.iter().find(|(name, _)| *name == self.profile).expect("a named profile").1;
        let profile = Profile { min_rto: Span::from_us(self.min_rto_us), loss_detection: self.detection, ..profile };
        let stack = stack_for(self.controller, profile, EcnMode::Off);
        let mut pair = Pair::new(self.controller, stack, Span::from_us(self.rtt_us).div(2), self.seed);
        pair.watchful = false;
        let random = RefCell::new(Stream::named(self.seed, "loss"));
        let sent = Rc::new(Cell::new(0));
        let (count, point, per_million) = (Rc::clone(&sent), *self, (self.loss * 1e6) as u64);
        pair.drop_if = Some(Box::new(move |end, _, segment| {
            count.set(count.get() + u64::from(end == 0 && segment.length > 0));
            let exposed = if end == 0 { segment.length > 0 } else { point.both_ways };
            exposed && (0..point.hops).any(|_| random.borrow_mut().below(1_000_000) < per_million)
        }));
        pair.open();
        pair.offer(0, 1 << 40, 1);
        let enough = (LOSSES / self.lost()) as u64;
        let least = Time::ZERO + Span::from_us(self.min_rto_us) * TIMEOUTS;
        let end = Time::ZERO + Span::from_secs(400);
        while (sent.get() < enough || pair.now < least) && pair.step(end) {}
        // A long timeout may lie behind the end; a sender that has stalled waits for nothing.
        let stalled = sent.get() < enough && !pair.step(Time::ZERO + Span::from_secs(400_000));
        assert!(!stalled, "nothing is due after {} of {enough} segments: {self:?}", sent.get());
        sent.get() as f64 / (pair.now.as_ps() as f64 / Span::from_us(self.rtt_us).as_ps() as f64)
    }
}

const DETECTIONS: [LossDetection; 3] =
    [LossDetection::DuplicateAcks, LossDetection::DuplicateAcksThenTime, LossDetection::Rack];

fn loss_based() -> Vec<&'static str> {
    SPECS
        .iter()
        .map(|spec| spec.name)
        .filter(|name| !["bbr", "bbr-v3", "copa", "dcqcn", "hpcc", "swift", "timely", "uno", "vivace"].contains(name))
        .collect()
}

#[test]
fn no_profile_beats_the_bound_of_random_loss() {
    let mut points = Vec::new();
    for &(profile, _) in Profile::NAMED {
        for detection in DETECTIONS {
            for controller in loss_based() {
                for (loss, hops) in [(0.003, 1), (0.01, 3), (0.05, 1), (0.05, 3), (0.1, 1), (0.2, 1), (0.4, 1)] {
                    for (rtt_us, min_rto_us) in [(200, 40_000), (1_000, 10_000), (1_000, 200_000), (40_000, 200_000)] {
                        let seed = points.len() as u64;
                        // Another for each loss rate, with all of these paths.
                        let both_ways = seed / 4 % 2 == 1;
                        let path =
                            Point { profile, detection, controller, loss, hops, both_ways, rtt_us, min_rto_us, seed };
                        points.push(path);
                    }
                }
            }
        }
    }
    // As many off the grid, each order of magnitude as likely as the next.
    let mut random = Stream::named(1, "points");
    let controllers = loss_based();
    for seed in 0..points.len() as u64 {
        let mut between =
            |least: f64, most: f64| least * (most / least).powf(random.below(1 << 20) as f64 / (1u64 << 20) as f64);
        let (loss, rtt, timeouts) = (between(0.002, 0.4), between(50.0, 2e5), between(1.0, 200.0));
        let (rtt_us, min_rto_us) = (rtt as u64, (rtt * timeouts).max(1e3) as u64);
        let mut pick = |count: usize| random.below(count as u64) as usize;
        let profile = Profile::NAMED[pick(Profile::NAMED.len())].0;
        let (detection, controller) = (DETECTIONS[pick(3)], controllers[pick(controllers.len())]);
        let (hops, both_ways) = (pick(3) as u8 + 1, pick(2) == 1);
        points.push(Point { profile, detection, controller, loss, hops, both_ways, rtt_us, min_rto_us, seed });
    }
    let beyond: Vec<_> = points
        .iter()
        .map(|point| (point.measure(), point.bound(), point))
        .filter(|(measured, bound, _)| measured > bound)
        .map(|(measured, bound, point)| {
            format!("{measured:.1} packets per RTT where {bound:.1} are allowed: {point:?}")
        })
        .collect();
    assert!(beyond.is_empty(), "{} of {} points:\n{}", beyond.len(), points.len(), beyond.join("\n"));
}
