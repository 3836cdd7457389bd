//! The QCN congestion point: samples what a queue takes in and says how far, and how fast, it is above its set point
//! [802.1Qau; Annulus]. It stands beside a port's AQM, not in its place.
//!
//! Its driver counts the bytes that the queue takes in. With the packet that makes them more than
//! [`CongestionPoint::interval`] a sample is due, and only then must the driver know the exact backlog
//! ([`CongestionPoint::sample`]).

use crate::component::{Kind, Spec, Value, parameters};
use crate::rng::SmallStream;
use crate::units::Bytes;

/// Largest quantised feedback: six bits.
pub const MAX_FEEDBACK: u8 = 63;

/// Bytes between samples by the eighth of the feedback's range, in units of 1/300 of the base: 150, 75, 50, 37.5, 30, 25,
/// 21.5 and 18.5 KB for a base of 150 KB [802.1Qau].
const INTERVALS: [u64; 8] = [300, 150, 100, 75, 60, 50, 43, 37];
/// What [`INTERVALS`] are parts of.
const PARTS: u64 = 300;
/// An interval is drawn uniformly within so many percent around the table's.
const JITTER_PERCENT: u64 = 15;

/// What experiments may choose.
pub const SPEC: Spec = Spec {
    name: "qcn",
    about: "Samples a port's queue and tells the senders of the sampled packets how congested it is.",
    source: "[802.1Qau; Annulus]",
    parameters: parameters! {
        "set-point": Kind::Bytes, Value::Auto, (1_500, 500_000_000_000),
            "where the queue is to be held, IP bytes; auto: 33 KB per 10 Gbit/s, at most half of the port's marking threshold";
        "weight": Kind::Count, Value::Count(2), (0, 64), "what growth weighs beside the distance from the set point";
        "sample-base": Kind::Bytes, Value::Bytes(Bytes::new(150_000)), (1_500, 500_000_000_000),
            "bytes between two samples without congestion";
        "notify": Kind::Choice(&["tor", "source-datacenter"]), Value::Choice(0),
            "who is told: hosts on the same switch, or of the same datacenter";
    },
};

/// Every congestion point's [`Spec`].
pub const SPECS: &[Spec] = &[SPEC];

/// Parameters of a congestion point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub struct CongestionPointConfig {
    /// Where the queue is to be held, `Q_eq`: IP bytes, at least 1 and below 2⁴⁰.
    pub set_point: Bytes,
    /// What growth since the last sample weighs beside the distance from the set point, `w`: 2 in the standard, at most 64.
    pub weight: u8,
    /// Bytes between samples while there is no congestion: 150 000 in the standard, at least 300 and below 2⁴⁰.
    pub sample_base: Bytes,
}

/// What a congestion point tells of one sampled packet's queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Feedback {
    /// How congested it is: 1 to [`MAX_FEEDBACK`].
    pub quantized: u8,
    /// Backlog less set point, bytes.
    pub offset: i64,
    /// Backlog less what it was at the sample before, bytes.
    pub growth: i64,
}

/// The state of one queue's congestion point.
#[derive(Clone, Debug)]
pub struct CongestionPoint {
    config: CongestionPointConfig,
    /// Backlog at the last sample.
    backlog: u64,
    /// Bytes between it and the next.
    interval: u64,
    stream: SmallStream,
}

impl CongestionPoint {
    /// An empty queue's. The first sample comes a base's length from now, jittered.
    pub fn new(config: CongestionPointConfig, stream: SmallStream) -> CongestionPoint {
        let mut point = CongestionPoint { config, backlog: 0, interval: 0, stream };
        point.interval = point.draw_interval(0);
        point
    }

    /// Once more than so many bytes have come in since the last sample, the next is due.
    pub const fn interval(&self) -> u64 {
        self.interval
    }

    /// A sample that is due: the queue holds `backlog`, the sampled packet included. `None` without congestion.
    pub fn sample(&mut self, backlog: Bytes) -> Option<Feedback> {
        let backlog = backlog.get();
        let offset = difference(backlog, self.config.set_point.get());
        let growth = difference(backlog, self.backlog);
        let quantized = self.quantize(offset, growth);
        self.backlog = backlog;
        self.interval = self.draw_interval(quantized);
        (quantized > 0).then_some(Feedback { quantized, offset, growth })
    }

    /// −Fb within 0 and `Q_eq · (2w + 1)`, as a part of 63, rounded down.
    fn quantize(&self, offset: i64, growth: i64) -> u8 {
        let weight = i128::from(self.config.weight);
        let most = i128::from(self.config.set_point.get()) * (2 * weight + 1);
        let congestion = (i128::from(offset) + weight * i128::from(growth)).clamp(0, most);
        u8::try_from(congestion * i128::from(MAX_FEEDBACK) / most.max(1)).unwrap_or(MAX_FEEDBACK)
    }

    /// Bytes until the next sample after one with this feedback.
    fn draw_interval(&mut self, quantized: u8) -> u64 {
        let mean = self.config.sample_base.get() * INTERVALS[usize::from(quantized >> 3)] / PARTS;
        let least = mean * (100 - JITTER_PERCENT) / 100;
        let width = mean * 2 * JITTER_PERCENT / 100;
        least + self.stream.below(width + 1)
    }
}

fn difference(one: u64, other: u64) -> i64 {
    let magnitude = i64::try_from(one.abs_diff(other)).unwrap_or(i64::MAX);
    if one < other { -magnitude } else { magnitude }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::vec::Vec;

    fn point(set_point: u64) -> CongestionPoint {
        let config =
            CongestionPointConfig { set_point: Bytes::new(set_point), weight: 2, sample_base: Bytes::new(150_000) };
        CongestionPoint::new(config, SmallStream::new(1))
    }

    /// What a sample says after one at `before`.
    fn after(set_point: u64, before: u64, backlog: u64) -> (u8, u64) {
        let mut point = point(set_point);
        point.sample(Bytes::new(before));
        let told = point.sample(Bytes::new(backlog));
        (told.map_or(0, |feedback| feedback.quantized), point.interval())
    }

    #[test]
    fn a_queue_at_its_set_point_hears_nothing() {
        assert_eq!(after(20_000, 20_000, 20_000).0, 0);
        assert_eq!(after(20_000, 20_000, 10_000).0, 0);
        // Falling fast enough outweighs standing above it.
        assert_eq!(after(20_000, 60_000, 40_000).0, 0);
    }

    #[test]
    fn feedback_is_quantised_as_published() {
        // Constant at Q_eq · (2w + 2): −Fb is Q_eq · (2w + 1), the most.
        assert_eq!(after(20_000, 120_000, 120_000).0, 63);
        assert_eq!(after(20_000, 0, 10_000_000).0, 63);
        // 20 000 + 2 · 10 000 = 40 000, and 40 000 · 63 / 100 000 = 25.2, and the next sample comes 37.5 KB later.
        let (feedback, interval) = after(20_000, 30_000, 40_000);
        assert_eq!(feedback, 25);
        assert!((31_875..=43_125).contains(&interval), "{interval}");
    }

    #[test]
    fn a_sample_tells_offset_and_growth() {
        let mut point = point(20_000);
        point.sample(Bytes::new(30_000));
        let told = point.sample(Bytes::new(25_000));
        assert_eq!(told, None, "5 000 above, but falling by 5 000: {told:?}");
        let told = point.sample(Bytes::new(45_000)).expect("far above and growing");
        assert_eq!((told.offset, told.growth), (25_000, 20_000));
    }

    #[test]
    fn intervals_are_the_standards_within_their_jitter() {
        let published = [150_000.0, 75_000.0, 50_000.0, 37_500.0, 30_000.0, 25_000.0, 21_500.0, 18_500.0];
        for (eighth, interval) in (0..).zip(published) {
            let mut point = point(20_000);
            let drawn: Vec<u64> = (0..10_000).map(|_| point.draw_interval(eighth * 8 + 7)).collect();
            let (least, most) = (*drawn.iter().min().unwrap() as f64, *drawn.iter().max().unwrap() as f64);
            let mean = drawn.iter().sum::<u64>() as f64 / drawn.len() as f64;
            assert!(least >= 0.85 * interval - 1.0 && most <= 1.15 * interval + 1.0, "{least} to {most} of {interval}");
            // The drawn ones fill the range, and their mean has a standard error of 0.0009.
            assert!(least < 0.851 * interval && most > 1.149 * interval, "{least} to {most} of {interval}");
            assert!((mean / interval - 1.0).abs() < 0.004, "{mean} of {interval}");
        }
    }

    #[test]
    fn one_full_packet_in_a_hundred_is_sampled_without_congestion_and_eight_with_most() {
        for (backlog, expected) in [(0, 0.01), (1_000_000, 0.081)] {
            let (mut point, mut bytes) = (point(20_000), 0);
            let samples = (0..100_000).filter(|_| {
                bytes += 1_500;
                let due = bytes > point.interval();
                if due {
                    point.sample(Bytes::new(backlog));
                    bytes = 0;
                }
                due
            });
            let share = samples.count() as f64 / 100_000.0;
            // A sample waits for the first whole packet beyond its countdown: up to a packet late.
            assert!(share <= expected * 1.02 && share > expected * 0.9, "{share} of {expected}");
        }
    }

    proptest! {
        #[test]
        fn feedback_follows_from_the_two_differences(set_point in 1u64..1 << 40, weight in 0u8..=64, before in 0u64..1 << 42,
            backlog in 0u64..1 << 42)
        {
            let config = CongestionPointConfig {
                set_point: Bytes::new(set_point), weight, sample_base: Bytes::new(150_000)
            };
            let mut point = CongestionPoint::new(config, SmallStream::new(2));
            point.sample(Bytes::new(before));
            let told = point.sample(Bytes::new(backlog)).map_or(0, |feedback| feedback.quantized);
            let (weight, set_point) = (i128::from(weight), i128::from(set_point));
            let growth = i128::from(backlog) - i128::from(before);
            let most = set_point * (2 * weight + 1);
            let congestion = (i128::from(backlog) - set_point + weight * growth).clamp(0, most);
            let (least, beyond) = (i128::from(told) * most, (i128::from(told) + 1) * most);
            prop_assert!((least..beyond).contains(&(63 * congestion)), "{} for {} of {}", told, congestion, most);
        }
    }
}
