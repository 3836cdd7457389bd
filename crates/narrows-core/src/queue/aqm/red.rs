//! Random early detection [Floyd and Jacobson 1993; RFC 2309 §3], with the "gentle" slope [Floyd 2000], in fixed point.
//!
//! On each arrival the average moves towards the instantaneous queue by `w = 2^−weight_shift`; an arrival at an empty
//! port instead lets it decay as if one small queue sample of zero had come per packet time of idleness. Between `min`
//! and `max` a packet is chosen with probability `p_b = max_p · (avg − min) / (max − min)`, spaced by the number of
//! packets since the last choice: `p_a = p_b / (1 − count · p_b)`, which makes the distance between two choices uniform
//! over `1 ..= 1/p_b` [Floyd and Jacobson 1993 §7]. (The pseudo-code of their figure 2 increments `count` first, which
//! shortens every distance by one; we keep the derived distribution.) A chosen packet is marked if it is ECN-capable
//! and the AQM may mark, else dropped, unless the AQM only marks.
//!
//! With `w = 1` the average is the queue itself, at an empty port too: DCQCN's switches [DCQCN §3.1].
//!
//! Invariants: `average` lies between the smallest and the largest queue seen; `count · p_b < 1` before each draw, or the
//! packet is chosen without one.

use alloc::vec;
use alloc::vec::Vec;

use super::{Arrival, Context, Onset, Size, Verdict};
use crate::component::{Kind, Settings, Spec, Value, parameters};
use crate::queue::Backlog;
use crate::rng::SmallStream;
use crate::units::{Bytes, Span, Time};

/// Fraction bits of queue sizes.
const QUEUE_BITS: u32 = 16;
/// Fraction bits of probabilities.
const PROBABILITY_BITS: u32 = 32;
const ONE: u64 = 1 << PROBABILITY_BITS;
/// The line's time for this much stands for one arrival while the port is idle: a full frame with its framing.
const TYPICAL_FRAME: Bytes = Bytes::new(1_538);

/// What experiments may choose.
pub const SPEC: Spec = Spec {
    name: "red",
    about: "Random early detection: marks or drops at random by the averaged queue.",
    source: "[Floyd and Jacobson 1993; RFC 2309]",
    parameters: parameters! {
        "min": Kind::Size, Value::Required, "below this average nothing happens";
        "max": Kind::Size, Value::Required, "above this average every packet is marked or dropped";
        "max-probability": Kind::Real { bits: 16 }, Value::Required, (0, 1 << 16), "probability at `max`";
        "weight-shift": Kind::Count, Value::Count(9), (0, 16),
            "the average's weight is 2^−this; 0 judges by the queue itself";
        "gentle": Kind::Switch, Value::Switch(false), "from `max` to twice `max` the probability rises to 1 gradually";
        "ecn": Kind::Switch, Value::Switch(true), "marks ECN-capable packets instead of dropping them";
        "marks-only": Kind::Switch, Value::Switch(false), "never drops: packets that are not ECN-capable pass";
    },
};

/// Its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Config {
    /// Below this average nothing happens.
    pub min: Size,
    /// Above this average every packet is marked or dropped (from `max` to twice `max` gradually, if `gentle`).
    pub max: Size,
    /// Probability at `max`, in units of 2⁻¹⁶.
    pub max_probability: u32,
    /// The average's weight is 2^−`weight_shift`.
    pub weight_shift: u8,
    /// Rises from `max_probability` to 1 between `max` and twice `max`.
    pub gentle: bool,
    /// Marks ECN-capable packets instead of dropping them.
    pub ecn: bool,
    /// Never drops: what does not understand ECN passes, as it does at a threshold.
    pub marks_only: bool,
}

impl Config {
    pub(super) fn new(settings: &Settings<'_>) -> Result<Config, &'static str> {
        let (min, max) = (settings.size("min"), settings.size("max"));
        if core::mem::discriminant(&min) != core::mem::discriminant(&max) || min.get() >= max.get() {
            return Err("RED needs `min` below `max`, both in packets or both in bytes");
        }
        Ok(Config {
            min,
            max,
            max_probability: u32::try_from(settings.real("max-probability")).unwrap_or(u32::MAX),
            weight_shift: u8::try_from(settings.count("weight-shift")).unwrap_or(u8::MAX),
            gentle: settings.switch("gentle"),
            ecn: settings.switch("ecn"),
            marks_only: settings.switch("marks-only"),
        })
    }
    pub(super) fn values(&self) -> Vec<Value> {
        let Config { min, max, max_probability, weight_shift, gentle, ecn, marks_only } = *self;
        vec![
            min.value(),
            max.value(),
            Value::Real(max_probability.into()),
            Value::Count(weight_shift.into()),
            Value::Switch(gentle),
            Value::Switch(ecn),
            Value::Switch(marks_only),
        ]
    }
    pub(super) const fn marks(&self) -> bool {
        self.ecn
    }
    pub(super) const fn draws(&self) -> bool {
        true
    }
    pub(super) const fn judges_departures(&self) -> bool {
        false
    }
    pub(super) const fn onset(&self) -> Onset {
        Onset::Queue(self.min)
    }
}

/// See the [module](self).
#[derive(Clone, Debug)]
pub struct Red {
    /// Tells packets from bytes; thresholds and average are in that unit with [`QUEUE_BITS`] fraction bits.
    unit: Size,
    min: u128,
    max: u128,
    /// `max_p`, [`PROBABILITY_BITS`] fraction bits, at most [`ONE`].
    max_probability: u64,
    weight_shift: u32,
    gentle: bool,
    ecn: bool,
    marks_only: bool,
    /// The average, times 2^`weight_shift`: the recurrence then loses nothing that its next step would need.
    average: u128,
    /// The average already accounts for idleness until here.
    decayed_until: Time,
    slot: Span,
    /// Packets that passed since the last one chosen, or since the average came above `min`.
    count: u64,
    stream: SmallStream,
}

impl super::JudgesArrivals for Red {}

impl Red {
    pub(super) fn build(config: &Config, context: &Context) -> Red {
        let Config { min, max, max_probability, weight_shift, gentle, ecn, marks_only } = *config;
        assert!(
            matches!((min, max), (Size::Packets(_), Size::Packets(_)) | (Size::Bytes(_), Size::Bytes(_))),
            "RED's thresholds count in one unit"
        );
        assert!(weight_shift <= 32, "RED's weight is at least 2⁻³²");
        Red {
            unit: min,
            min: u128::from(min.get()) << QUEUE_BITS,
            max: u128::from(max.get()) << QUEUE_BITS,
            max_probability: (u64::from(max_probability) << (PROBABILITY_BITS - 16)).min(ONE),
            weight_shift: u32::from(weight_shift),
            gentle,
            ecn,
            marks_only,
            average: 0,
            decayed_until: Time::ZERO,
            slot: context.rate.time_for(TYPICAL_FRAME),
            count: 0,
            stream: context.stream,
        }
    }

    pub(super) fn decide(&mut self, arrival: &Arrival) -> Verdict {
        self.update_average(arrival);
        if !self.chooses() {
            return Verdict::Pass;
        }
        if self.ecn && arrival.ecn_capable {
            Verdict::Mark
        } else if self.marks_only {
            Verdict::Pass
        } else {
            Verdict::Drop
        }
    }

    /// Never: every arrival moves the average.
    pub(super) fn indifferent_up_to(&self) -> Option<Backlog> {
        None
    }

    /// The average queue in packets or bytes, rounded down.
    pub fn average(&self) -> u128 {
        self.average >> (self.weight_shift + QUEUE_BITS)
    }

    fn update_average(&mut self, arrival: &Arrival) {
        if arrival.backlog == Backlog::EMPTY && self.weight_shift > 0 {
            // A packet that is dropped leaves the port idle: do not count the same idleness twice.
            let from = arrival.idle_since.max(self.decayed_until);
            let slots = arrival.now.since(from).as_ps() / self.slot.as_ps().max(1);
            let kept = power(ONE - (ONE >> self.weight_shift), slots);
            self.average = (self.average * u128::from(kept)) >> PROBABILITY_BITS;
            self.decayed_until = from + self.slot * slots;
        } else {
            let queue = u128::from(self.unit.counted(arrival.backlog)) << QUEUE_BITS;
            self.average = self.average + queue - (self.average >> self.weight_shift);
        }
    }

    /// Draws whether this packet is the one to be marked or dropped.
    fn chooses(&mut self) -> bool {
        let average = self.average >> self.weight_shift;
        let p = self.probability(average);
        if p == 0 {
            // Below `min`, a new count begins; at `min` exactly nothing is chosen either.
            self.count = 0;
            return false;
        }
        // r < p / (1 − count·p), without the division.
        let remaining = u128::from(ONE).saturating_sub(u128::from(self.count) * u128::from(p));
        let draw = u128::from(self.stream.next_u64() >> PROBABILITY_BITS);
        let chosen = draw * remaining < u128::from(p) << PROBABILITY_BITS;
        self.count = if chosen { 0 } else { self.count + 1 };
        chosen
    }

    /// `p_b` at this average, [`PROBABILITY_BITS`] fraction bits, rounded down.
    fn probability(&self, average: u128) -> u64 {
        let p = u128::from(self.max_probability);
        let one = u128::from(ONE);
        let p_b = if average < self.min {
            0
        } else if average < self.max {
            p * (average - self.min) / (self.max - self.min)
        } else if self.gentle && average < 2 * self.max {
            p + (one - p) * (average - self.max) / self.max
        } else {
            one
        };
        u64::try_from(p_b).expect("a probability is at most one")
    }
}

/// `base` to the `exponent`, for a `base` of at most one with [`PROBABILITY_BITS`] fraction bits. Rounded down at each
/// squaring, so that the relative error stays below `exponent` · 2⁻³².
fn power(base: u64, mut exponent: u64) -> u64 {
    let times = |a: u64, b: u64| {
        u64::try_from((u128::from(a) * u128::from(b)) >> PROBABILITY_BITS).expect("both are at most one")
    };
    let (mut square, mut result) = (base, ONE);
    while exponent > 0 && result > 0 {
        if exponent & 1 == 1 {
            result = times(result, square);
        }
        square = times(square, square);
        exponent >>= 1;
    }
    result
}

#[cfg(test)]
#[allow(clippy::float_arithmetic, clippy::cast_possible_truncation, reason = "the papers' equations, as a reference")]
mod tests {
    use super::*;
    use crate::units::{Packets, Rate};
    use proptest::prelude::*;

    fn red(min: u64, max: u64, max_p: f64, weight_shift: u8, gentle: bool, ecn: bool) -> Red {
        let config = Config {
            min: Size::Packets(Packets::new(min)),
            max: Size::Packets(Packets::new(max)),
            max_probability: (max_p * 65_536.0) as u32,
            weight_shift,
            gentle,
            ecn,
            marks_only: false,
        };
        let context = Context { rate: Rate::from_gbps(1), stream: SmallStream::new(1) };
        Red::build(&config, &context)
    }

    fn arrival(packets: u64, ecn_capable: bool) -> Arrival {
        let backlog = Backlog { bytes: Bytes::new(1_500 * packets), packets: Packets::new(packets) };
        Arrival { now: Time::ZERO, size: Bytes::new(1_500), backlog, idle_since: Time::ZERO, ecn_capable }
    }

    /// An arrival at an empty port, idle since `since` packet times, at `now` packet times.
    fn idle(red: &Red, since: u64, now: u64) -> Arrival {
        let at = |slots| Time::ZERO + red.slot * slots;
        Arrival {
            now: at(now),
            size: Bytes::new(1_500),
            backlog: Backlog::EMPTY,
            idle_since: at(since),
            ecn_capable: true,
        }
    }

    fn average(red: &Red) -> f64 {
        red.average as f64 / f64::from(1u32 << (red.weight_shift + QUEUE_BITS))
    }

    /// Distances between chosen packets at a constant queue, the average settled there.
    fn distances(red: &mut Red, packets: u64, number: usize) -> std::vec::Vec<u64> {
        red.average = u128::from(packets) << (QUEUE_BITS + red.weight_shift);
        let mut distances = std::vec::Vec::new();
        let mut distance = 0;
        while distances.len() < number {
            distance += 1;
            if red.decide(&arrival(packets, true)) != Verdict::Pass {
                distances.push(distance);
                distance = 0;
            }
        }
        distances
    }

    #[test]
    fn distances_between_marks_are_uniform() {
        // avg halfway, max_p = 1/10: p_b = 1/20, distances uniform over 1 ..= 20 with mean 10.5
        // [Floyd and Jacobson 1993 §7].
        let mut red = red(10, 30, 0.1, 9, false, true);
        let number = 40_000;
        let mut histogram = [0u32; 22];
        for distance in distances(&mut red, 20, number) {
            histogram[distance as usize] += 1;
        }
        // max_p is floored to 2⁻¹⁶, hence a rare 21.
        assert!(histogram[21] < 100, "{histogram:?}");
        for (distance, &n) in histogram.iter().enumerate().take(21).skip(1) {
            assert!((1_750..2_250).contains(&n), "{n} times {distance}");
        }
    }

    #[test]
    fn the_slope_is_that_of_the_papers() {
        let red = red(10, 30, 0.1, 9, true, true);
        let p = |packets: f64| red.probability((packets * 65_536.0) as u128) as f64 / ONE as f64;
        for (packets, expected) in
            [(9.9, 0.0), (10.0, 0.0), (20.0, 0.05), (29.9, 0.0995), (30.0, 0.1), (45.0, 0.55), (60.0, 1.0), (99.0, 1.0)]
        {
            assert!((p(packets) - expected).abs() < 2e-5, "p({packets}) = {}", p(packets));
        }
        let hard = super::tests::red(10, 30, 0.1, 9, false, true);
        assert_eq!(hard.probability(30 << 16), ONE);
    }

    #[test]
    fn nothing_is_chosen_below_min_and_everything_beyond_the_slope() {
        let mut red = red(10, 30, 0.1, 0, false, true);
        assert!((0..1_000).all(|_| red.decide(&arrival(9, true)) == Verdict::Pass));
        assert!((0..1_000).all(|_| red.decide(&arrival(30, true)) == Verdict::Mark));
    }

    #[test]
    fn it_marks_only_what_understands_ecn_and_only_if_told_to() {
        for (ecn, capable, expected) in
            [(true, true, Verdict::Mark), (true, false, Verdict::Drop), (false, true, Verdict::Drop)]
        {
            assert_eq!(red(1, 2, 1.0, 0, false, ecn).decide(&arrival(9, capable)), expected);
        }
    }

    #[test]
    fn a_law_that_only_marks_lets_pass_what_does_not_understand() {
        let red = Red { marks_only: true, ..red(1, 2, 1.0, 0, false, true) };
        assert_eq!(red.clone().decide(&arrival(9, true)), Verdict::Mark);
        assert_eq!(red.clone().decide(&arrival(9, false)), Verdict::Pass);
        assert_eq!(Red { ecn: false, ..red }.decide(&arrival(9, true)), Verdict::Pass, "it may not mark, either");
    }

    #[test]
    fn with_the_whole_weight_the_average_is_the_queue_itself() {
        let mut red = red(3, 5, 0.5, 0, false, true);
        for packets in [9, 1, 4, 7] {
            red.decide(&arrival(packets, true));
            assert_eq!(red.average(), u128::from(packets));
        }
        // The port has only just run empty.
        assert_eq!(red.decide(&idle(&red.clone(), 0, 0)), Verdict::Pass);
        assert_eq!(red.average(), 0);
    }

    #[test]
    fn idleness_lets_the_average_decay() {
        let mut red = red(1_000, 2_000, 0.1, 9, false, true);
        red.average = 100 << (QUEUE_BITS + red.weight_shift);
        red.decide(&idle(&red, 0, 700));
        let expected = 100.0 * (1.0 - 1.0 / 512.0_f64).powi(700);
        assert!((average(&red) - expected).abs() < 1e-3, "{} instead of {expected}", average(&red));
    }

    #[test]
    fn the_same_idleness_counts_once() {
        let mut twice = red(1_000, 2_000, 0.1, 9, false, true);
        twice.average = 100 << (QUEUE_BITS + twice.weight_shift);
        let mut once = twice.clone();
        twice.decide(&idle(&twice, 0, 300));
        twice.decide(&idle(&twice, 0, 700));
        once.decide(&idle(&once, 0, 700));
        assert!((average(&twice) - average(&once)).abs() < 1e-3);
    }

    proptest! {
        #[test]
        fn the_average_follows_its_recurrence(queues in prop::collection::vec(1u64..10_000, 1..300), shift in 0u8..13) {
            let mut red = red(1, 2, 0.1, shift, false, true);
            let (mut reference, weight) = (0.0, 0.5f64.powi(i32::from(shift)));
            for queue in queues {
                red.decide(&arrival(queue, true));
                reference += weight * (queue as f64 - reference);
                prop_assert!((average(&red) - reference).abs() < 1e-2, "{} {reference}", average(&red));
            }
        }

        #[test]
        fn powers_are_within_their_stated_error(base in 0u64..=ONE, exponent in 0u64..100_000) {
            let exact = (base as f64 / ONE as f64).powf(exponent as f64);
            let ours = power(base, exponent) as f64 / ONE as f64;
            prop_assert!(ours <= exact + 1e-9);
            prop_assert!(ours >= exact * (1.0 - 2.0 * exponent as f64 / ONE as f64) - 64.0 / ONE as f64);
        }
    }
}
