//! The proportional-integral controller of Hollot, Misra, Towsley and Gong [Hollot 2001], in fixed point.
//!
//! At the instants `k·T` the probability moves by what the queue is away from its reference, and by how that changed:
//!
//! ```text
//! p(k) = p(k−1) + a·(q(k) − q_ref) − b·(q(k−1) − q_ref),    0 ≤ p ≤ 1
//! ```
//!
//! [Hollot 2001 §IV], the controller as it is implemented; a stays above b. An arriving packet is chosen with probability
//! `p`, independently: it is marked if it is ECN-capable and the AQM may mark, else dropped. (PIE, RFC 8033, is another
//! AQM: it controls the delay and scales its gains.)
//!
//! A port asks at arrivals only, so the AQM makes up for the instants since the last one. Between two arrivals the queue
//! only drains: looking back from what the next arrival finds, one full frame of the line's time was there for each that fits
//! in between; of an empty port it is known since when it has been idle. On a port that carries full frames this is the queue
//! itself, in packets; what an instant reads never depends on how often the AQM was asked.
//!
//! Invariant: after `decide`, `next` lies after the arrival, and all instants before it have been accounted for.

use alloc::vec;
use alloc::vec::Vec;

use super::{Arrival, Context, Onset, Size, Verdict};
use crate::component::{Kind, Settings, Spec, Value, parameters};
use crate::queue::Backlog;
use crate::rng::SmallStream;
use crate::units::{Bytes, Span, Time};

/// Fraction bits of the probability and of the gains.
const BITS: u32 = 32;
const ONE: i128 = 1 << BITS;
/// What drains between two arrivals is counted in these: a full IP packet, and its bytes on the wire.
const PACKET: u64 = 1_500;
const FRAME: Bytes = Bytes::new(1_538);

/// What experiments may choose.
pub const SPEC: Spec = Spec {
    name: "pi",
    about: "Proportional-integral control of the queue: p ← p + a·(q − reference) − b·(q a period ago − reference) at each period.",
    source: "[Hollot 2001]",
    parameters: parameters! {
        "reference": Kind::Size, Value::Required, "where the queue is held";
        "a": Kind::Real { bits: 32 }, Value::Required, (1, u32::MAX as u64),
            "weight of the queue's distance from `reference` now, per packet, or per byte of a `reference` in bytes";
        "b": Kind::Real { bits: 32 }, Value::Required, (0, u32::MAX as u64),
            "weight of that of a period ago, at most `a`";
        "period": Kind::Span, Value::Required, (Span::from_us(1).as_ps(), Span::from_secs(60).as_ps()),
            "between two computations of the probability";
        "ecn": Kind::Switch, Value::Switch(true), "marks ECN-capable packets instead of dropping them";
    },
};

/// Its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Config {
    /// q_ref: where the queue is held.
    pub reference: Size,
    /// Weight of the queue's distance from `reference` now, per packet or byte, in units of 2⁻³².
    pub a: u32,
    /// Weight of that of a period ago, at most `a`; the same units.
    pub b: u32,
    /// Between two computations of the probability.
    pub period: Span,
    /// Marks ECN-capable packets instead of dropping them.
    pub ecn: bool,
}

impl Config {
    pub(super) fn new(settings: &Settings<'_>) -> Result<Config, &'static str> {
        let gain = |name| u32::try_from(settings.real(name)).unwrap_or(u32::MAX);
        let (a, b) = (gain("a"), gain("b"));
        if b > a {
            return Err("PI needs `b` of at most `a`: else a queue above its reference takes the probability down");
        }
        let (period, ecn) = (settings.span("period"), settings.switch("ecn"));
        Ok(Config { reference: settings.size("reference"), a, b, period, ecn })
    }
    pub(super) fn values(&self) -> Vec<Value> {
        let Config { reference, a, b, period, ecn } = *self;
        vec![reference.value(), Value::Real(a.into()), Value::Real(b.into()), Value::Span(period), Value::Switch(ecn)]
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
        Onset::Queue(self.reference)
    }
}

/// See the [module](self).
#[derive(Clone, Debug)]
pub struct Pi {
    /// q_ref; tells packets from bytes.
    reference: Size,
    a: i128,
    b: i128,
    period: Span,
    ecn: bool,
    /// The line's time for a full frame.
    slot: Span,
    /// p, 0 to [`ONE`].
    probability: i128,
    /// q(k−1).
    queue: u64,
    /// When p is computed next.
    next: Time,
    stream: SmallStream,
}

impl super::JudgesArrivals for Pi {}

impl Pi {
    pub(super) fn build(config: &Config, context: &Context) -> Pi {
        let Config { reference, a, b, period, ecn } = *config;
        assert!(period > Span::ZERO, "PI samples at a period");
        assert!(b <= a, "PI's integral gain is not negative");
        Pi {
            reference,
            a: i128::from(a),
            b: i128::from(b),
            period,
            ecn,
            slot: context.rate.time_for(FRAME),
            probability: 0,
            queue: 0,
            next: Time::ZERO + period,
            stream: context.stream,
        }
    }

    pub(super) fn decide(&mut self, arrival: &Arrival) -> Verdict {
        self.catch_up(arrival);
        let draw = i128::from(self.stream.next_u64() >> BITS);
        if draw >= self.probability {
            return Verdict::Pass;
        }
        if self.ecn && arrival.ecn_capable { Verdict::Mark } else { Verdict::Drop }
    }

    /// Never: every arrival draws.
    pub(super) fn indifferent_up_to(&self) -> Option<Backlog> {
        None
    }

    /// All instants up to the arrival; one that falls on it reads what the arrival finds.
    fn catch_up(&mut self, arrival: &Arrival) {
        let (found, since) = if arrival.backlog == Backlog::EMPTY {
            (0, arrival.idle_since.min(arrival.now))
        } else {
            (self.reference.counted(arrival.backlog), arrival.now)
        };
        while self.next <= since {
            let (drained, slot) = (since.since(self.next).as_ps(), self.slot.as_ps().max(1));
            // Nothing was left at `since`, so that a frame half sent before it was still there.
            let frames = if found == 0 { drained.div_ceil(slot) } else { drained / slot };
            self.sample(found + frames * self.reference_unit());
        }
        if self.next <= arrival.now {
            // Idle from here on: the first of these instants may still follow a queue, after it p falls in equal steps.
            self.sample(0);
        }
        if self.next <= arrival.now {
            let instants = arrival.now.since(self.next).as_ps() / self.period.as_ps() + 1;
            let fall = (self.a - self.b) * i128::from(self.reference.get());
            self.probability = (self.probability - fall.saturating_mul(i128::from(instants))).clamp(0, ONE);
            self.next += self.period * instants;
        }
    }

    /// A full packet, in the unit of the reference.
    fn reference_unit(&self) -> u64 {
        match self.reference {
            Size::Packets(_) => 1,
            Size::Bytes(_) => PACKET,
        }
    }

    /// One instant at which the queue is `queue`.
    fn sample(&mut self, queue: u64) {
        let reference = i128::from(self.reference.get());
        let (now, before) = (i128::from(queue) - reference, i128::from(self.queue) - reference);
        self.probability = (self.probability + self.a * now - self.b * before).clamp(0, ONE);
        self.queue = queue;
        self.next += self.period;
    }
}

#[cfg(test)]
#[allow(clippy::float_arithmetic, clippy::cast_precision_loss, reason = "the paper's equation, as a reference")]
mod tests {
    use super::*;
    use crate::units::{Packets, Rate};
    use proptest::prelude::*;

    /// Gains in units of 2⁻³².
    const A: u32 = 33_554_432; // 2^−7
    const B: u32 = 27_000_000;
    /// A full frame at 1 Gbit/s.
    const SLOT_NS: u64 = 12_304;

    fn pi(reference: u64, period_us: u64, ecn: bool) -> Pi {
        let reference = Size::Packets(Packets::new(reference));
        let config = Config { reference, a: A, b: B, period: Span::from_us(period_us), ecn };
        Pi::build(&config, &Context { rate: Rate::from_gbps(1), stream: SmallStream::new(1) })
    }

    fn at(ns: u64, packets: u64, idle_ns: u64) -> Arrival {
        let backlog = Backlog { bytes: Bytes::new(PACKET * packets), packets: Packets::new(packets) };
        Arrival {
            now: Time::from_ns(ns),
            size: Bytes::new(1_500),
            backlog,
            idle_since: Time::from_ns(idle_ns),
            ecn_capable: true,
        }
    }

    fn probability(pi: &Pi) -> f64 {
        pi.probability as f64 / ONE as f64
    }

    /// p by the difference equation, from queues at successive instants.
    fn reference(queues: &[u64], q_ref: f64) -> f64 {
        let (a, b) = (f64::from(A) / ONE as f64, f64::from(B) / ONE as f64);
        let mut before = 0.0;
        queues.iter().fold(0.0, |p: f64, &queue| {
            let moved = p + a * (queue as f64 - q_ref) - b * (before - q_ref);
            before = queue as f64;
            moved.clamp(0.0, 1.0)
        })
    }

    #[test]
    fn an_idle_port_takes_the_probability_down_in_equal_steps() {
        let mut pi = pi(20, 100, true);
        pi.probability = ONE / 2;
        pi.queue = 0;
        pi.decide(&at(1_050_000, 0, 0));
        let step = 20.0 * f64::from(A - B) / ONE as f64;
        assert!((probability(&pi) - (0.5 - 10.0 * step)).abs() < 1e-9, "{}", probability(&pi));
        pi.decide(&at(1_000_000_000, 0, 0));
        assert_eq!(pi.probability, 0);
        assert_eq!(pi.next, Time::from_ns(1_000_100_000));
    }

    #[test]
    fn the_queue_between_two_arrivals_is_that_of_a_draining_line() {
        // The arrival at 400 us finds 5 packets; a period earlier there were ⌊100 us / 12.304 us⌋ = 8 more, and so on.
        let mut pi = pi(20, 100, true);
        pi.decide(&at(400_000, 5, 0));
        assert!((probability(&pi) - reference(&[29, 21, 13, 5], 20.0)).abs() < 1e-9);
        // It ran empty at 150 us: a packet and a part of one were left at 130 us, none at 260 us.
        let mut pi = super::tests::pi(20, 130, true);
        pi.decide(&at(300_000, 0, 150_000));
        assert!((probability(&pi) - reference(&[2, 0], 20.0)).abs() < 1e-9);
    }

    #[test]
    fn it_chooses_with_its_probability_and_marks_only_what_understands_ecn() {
        let mut pi = pi(20, 1_000_000_000, true);
        pi.probability = ONE / 4;
        let chosen = (0..40_000).filter(|_| pi.decide(&at(1, 20, 0)) == Verdict::Mark).count();
        assert!((9_700..10_300).contains(&chosen), "{chosen}");
        pi.probability = ONE;
        assert_eq!(pi.decide(&Arrival { ecn_capable: false, ..at(1, 20, 0) }), Verdict::Drop);
        pi.ecn = false;
        assert_eq!(pi.decide(&at(1, 20, 0)), Verdict::Drop);
    }

    proptest! {
        /// Queues at the instants themselves: an arrival at each.
        #[test]
        fn the_probability_follows_the_difference_equation(queues in prop::collection::vec(1u64..200, 1..100)) {
            let mut pi = pi(20, 100, true);
            for (k, &queue) in queues.iter().enumerate() {
                pi.decide(&at((k as u64 + 1) * 100_000, queue, 0));
            }
            prop_assert!((probability(&pi) - reference(&queues, 20.0)).abs() < 1e-9);
        }

        /// A queue that drains without a break: further arrivals that find what is left of it change nothing.
        #[test]
        fn what_an_instant_reads_does_not_depend_on_when_the_law_is_asked(
            left in 1u64..50, asked in prop::collection::btree_set(1u64..400, 0..20)
        ) {
            let end = 400 * SLOT_NS;
            let (mut once, mut often) = (pi(20, 150, true), pi(20, 150, true));
            for slot in asked {
                often.decide(&at(slot * SLOT_NS, left + 400 - slot, 0));
            }
            often.decide(&at(end, left, 0));
            once.decide(&at(end, left, 0));
            prop_assert_eq!(once.probability, often.probability);
            prop_assert_eq!(once.next, often.next);
        }
    }
}
