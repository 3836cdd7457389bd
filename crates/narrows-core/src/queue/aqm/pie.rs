//! PIE, the proportional-integral controller "enhanced" [RFC 8033], in fixed point.
//!
//! At the instants `k·T` the probability moves by what the queueing delay is away from its target, and by how that changed;
//! the step is the smaller, the smaller the probability is:
//!
//! ```text
//! p(k) = p(k−1) + (α·(d(k) − target) + β·(d(k) − d(k−1))) / s(p(k−1)),    0 ≤ p ≤ 1
//! ```
//!
//! with s from 2048 below 10⁻⁶ to 1 from 0.1 on [RFC 8033 §4.2]. From 0.1 on it rises by at most 0.02 a step
//! [RFC 8033 §5.5], and at an idle port it falls by a further 2 % a step [RFC 8033 §4.2]. An arriving packet is chosen with
//! probability `p`, but not while a burst is allowed [RFC 8033 §4.4], nor while two packets or fewer are queued, nor while
//! p < 0.2 and the delay was below half the target at the last instant [RFC 8033 §4.1]. A chosen packet is marked if it is
//! ECN-capable, the AQM may mark and p is at most a threshold, else dropped [RFC 8033 §5.1].
//!
//! The delay is the queue's time on the line by Little's law [RFC 8033 §4.3]. The departure rate of §5.2 is not estimated: a
//! port's rate is constant, and it is the line's. (A class of a port with several gets less than the line while others send;
//! its delay is then longer than the AQM takes it to be.) Of the optional elements, turning on and off with the buffer's
//! occupancy [RFC 8033 §5.3] and probabilities scaled by packet size [RFC 8033 §4.1] are left out.
//!
//! A port asks at arrivals only, so the AQM makes up for the instants since the last one. Between two arrivals the queue
//! only drains, so that the delay falls by one second a second: at an instant before an arrival it was what the arrival finds
//! and the time in between, and before an idle period the time until it began. A timer would have read a backlog in which
//! the packet in service counts whole: at most one packet's time more or less.
//!
//! Invariants: after `decide`, `next` lies after the arrival, and all instants before it have been accounted for; one call
//! takes as many steps as instants fell into the time in which the queue it finds drained, and at most 1,700 for idleness of
//! any length: from there on p and d are 0, which a step leaves as they are.

use alloc::vec;
use alloc::vec::Vec;

use super::{Arrival, Context, Onset, Verdict};
use crate::component::{Kind, Settings, Spec, Value, parameters};
use crate::packet::FRAMING_BYTES;
use crate::queue::Backlog;
use crate::rng::SmallStream;
use crate::units::{Bytes, Rate, Span, Time};

/// Fraction bits of the probability: one step of α = 0.125/s at a delay 1 µs off the target is 17,000 units, divided by 2048
/// still 8.
const BITS: u32 = 48;
const ONE: i128 = 1 << BITS;
/// Fraction bits of α and β, per second.
const GAIN_BITS: u8 = 24;
/// Fraction bits of the threshold of marking.
const THRESHOLD_BITS: u8 = 32;
const PS_PER_SECOND: i128 = 1_000_000_000_000;
/// Below a probability, the divisor of a step [RFC 8033 §4.2]; from the last one on it is 1.
const DIVISORS: [(i128, i128); 6] = [
    (ONE / 1_000_000, 2048),
    (ONE / 100_000, 512),
    (ONE / 10_000, 128),
    (ONE / 1_000, 32),
    (ONE / 100, 8),
    (ONE / 10, 2),
];
/// Two packets of MEAN_PKTSIZE [RFC 8033 §4.1]: full ones, as Linux takes its MTU.
const FEW: Bytes = Bytes::new(2 * 1_500);

/// What experiments may choose.
pub const SPEC: Spec = Spec {
    name: "pie",
    about: "Proportional-integral control of the queueing delay, with steps scaled by the probability and bursts allowed.",
    source: "[RFC 8033]",
    parameters: parameters! {
        "target": Kind::Span, Value::Span(Span::from_ms(15)), (Span::from_us(1).as_ps(), Span::from_secs(60).as_ps()),
            "QDELAY_REF: where the queueing delay is held; 15 ms [RFC 8033 App. A]";
        "period": Kind::Span, Value::Span(Span::from_ms(15)), (Span::from_us(10).as_ps(), Span::from_secs(60).as_ps()),
            "T_UPDATE, the time between two computations of the probability; 15 ms. To halve it, also halve `alpha` \
             and raise `beta` by a quarter of `alpha` [RFC 8033 §4.2]";
        "alpha": Kind::Real { bits: GAIN_BITS }, Value::Real(1 << (GAIN_BITS - 3)), (1, 1024 << GAIN_BITS),
            "weight of the delay's distance from `target`, per second; 0.125 [RFC 8033 §4.2]";
        "beta": Kind::Real { bits: GAIN_BITS }, Value::Real(5 << (GAIN_BITS - 2)), (0, 1024 << GAIN_BITS),
            "weight of the delay's change in a `period`, per second; 1.25 [RFC 8033 §4.2]";
        "max-burst": Kind::Span, Value::Span(Span::from_ms(150)), (0, Span::from_secs(60).as_ps()),
            "MAX_BURST: how long a burst after an idle period passes without drops or marks; 150 ms [RFC 8033 §4.4]";
        "ecn": Kind::Switch, Value::Switch(true),
            "marks ECN-capable packets instead of dropping them, up to `mark-ecn-threshold`";
        // To the nearest.
        "mark-ecn-threshold": Kind::Real { bits: THRESHOLD_BITS }, Value::Real(((1 << THRESHOLD_BITS) + 5) / 10),
            (0, 1 << THRESHOLD_BITS),
            "mark_ecnth: the probability above which ECN-capable packets are dropped too; 0.1 [RFC 8033 §5.1]";
        "derandomize": Kind::Switch, Value::Switch(false),
            "spaces drops evenly: none before the probabilities since the last one add up to 0.85, one at 8.5 \
             [RFC 8033 §5.4]; optional there, always on in Linux";
    },
};

/// Its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Config {
    /// QDELAY_REF: where the queueing delay is held.
    pub target: Span,
    /// T_UPDATE: between two computations of the probability.
    pub period: Span,
    /// Weight of the delay's distance from `target`, per second, in units of 2⁻²⁴.
    pub alpha: u64,
    /// Weight of the delay's change in a period; the same units.
    pub beta: u64,
    /// MAX_BURST: how long a burst after an idle period passes without drops or marks.
    pub max_burst: Span,
    /// Marks ECN-capable packets instead of dropping them, up to `mark_ecn_threshold`.
    pub ecn: bool,
    /// mark_ecnth: the greatest probability at which packets are marked, in units of 2⁻³².
    pub mark_ecn_threshold: u64,
    /// Spaces drops evenly.
    pub derandomize: bool,
}

impl Config {
    #[allow(clippy::unnecessary_wraps, reason = "each of its parameters goes with each")]
    pub(super) fn new(settings: &Settings<'_>) -> Result<Config, &'static str> {
        Ok(Config {
            target: settings.span("target"),
            period: settings.span("period"),
            alpha: settings.real("alpha"),
            beta: settings.real("beta"),
            max_burst: settings.span("max-burst"),
            ecn: settings.switch("ecn"),
            mark_ecn_threshold: settings.real("mark-ecn-threshold"),
            derandomize: settings.switch("derandomize"),
        })
    }
    pub(super) fn values(&self) -> Vec<Value> {
        let Config { target, period, alpha, beta, max_burst, ecn, mark_ecn_threshold, derandomize } = *self;
        vec![
            Value::Span(target),
            Value::Span(period),
            Value::Real(alpha),
            Value::Real(beta),
            Value::Span(max_burst),
            Value::Switch(ecn),
            Value::Real(mark_ecn_threshold),
            Value::Switch(derandomize),
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
        Onset::Delay(self.target)
    }
}

/// See the [module](self).
#[derive(Clone, Debug)]
pub struct Pie {
    target: Span,
    period: Span,
    alpha: i128,
    beta: i128,
    max_burst: Span,
    ecn: bool,
    /// mark_ecnth, as the probability.
    mark_up_to: i128,
    derandomize: bool,
    /// The line's.
    rate: Rate,
    /// p, 0 to [`ONE`].
    probability: i128,
    /// d(k−1).
    delay: Span,
    /// Everything passes while this is left.
    burst_allowance: Span,
    /// What the probabilities since the last drop or mark add up to.
    accumulated: i128,
    /// When p is computed next.
    next: Time,
    stream: SmallStream,
}

impl super::JudgesArrivals for Pie {}

impl Pie {
    pub(super) fn build(config: &Config, context: &Context) -> Pie {
        let Config { target, period, alpha, beta, max_burst, ecn, mark_ecn_threshold, derandomize } = *config;
        assert!(period > Span::ZERO, "PIE samples at a period");
        Pie {
            target,
            period,
            alpha: i128::from(alpha),
            beta: i128::from(beta),
            max_burst,
            ecn,
            mark_up_to: i128::from(mark_ecn_threshold) << (BITS - u32::from(THRESHOLD_BITS)),
            derandomize,
            rate: context.rate,
            probability: 0,
            delay: Span::ZERO,
            burst_allowance: max_burst,
            accumulated: 0,
            next: Time::ZERO + period,
            stream: context.stream,
        }
    }

    pub(super) fn decide(&mut self, arrival: &Arrival) -> Verdict {
        self.catch_up(arrival);
        let half = self.target.div(2);
        if self.probability == 0 && self.delay < half && self.delay_of(arrival.backlog) < half {
            self.burst_allowance = self.max_burst;
        }
        if !self.burst_allowance.is_zero() || !self.chooses(arrival.backlog.bytes) {
            return Verdict::Pass;
        }
        let marks = self.ecn && arrival.ecn_capable && self.probability <= self.mark_up_to;
        if marks { Verdict::Mark } else { Verdict::Drop }
    }

    /// Never: every arrival draws.
    pub(super) fn indifferent_up_to(&self) -> Option<Backlog> {
        None
    }

    /// The line's time for a queue, framing included; short packets that the line pads take a little more.
    fn delay_of(&self, backlog: Backlog) -> Span {
        self.rate.time_for(backlog.bytes + backlog.packets.bytes(Bytes::new(FRAMING_BYTES)))
    }

    /// All instants up to the arrival; one that falls on it reads what the arrival finds.
    fn catch_up(&mut self, arrival: &Arrival) {
        if self.next > arrival.now {
            return;
        }
        let (found, since) = if arrival.backlog == Backlog::EMPTY {
            (Span::ZERO, arrival.idle_since.min(arrival.now))
        } else {
            (self.delay_of(arrival.backlog), arrival.now)
        };
        while self.next <= since {
            self.update(found + since.since(self.next));
        }
        while self.next <= arrival.now && (self.probability > 0 || !self.delay.is_zero()) {
            self.update(Span::ZERO);
        }
        if self.next <= arrival.now {
            let instants = arrival.now.since(self.next).as_ps() / self.period.as_ps() + 1;
            self.burst_allowance = self.burst_allowance.saturating_sub(self.period.saturating_mul(instants));
            self.next += self.period * instants;
        }
    }

    /// One instant, at which the queueing delay is `delay` [RFC 8033 §4.2].
    fn update(&mut self, delay: Span) {
        let beyond = |other: Span| i128::from(delay.as_ps()) - i128::from(other.as_ps());
        // At most 2 · 2⁶⁴ ps · 2³⁴ before the shift.
        let moved = self.alpha * beyond(self.target) + self.beta * beyond(self.delay);
        let divisor = DIVISORS.iter().find(|(below, _)| self.probability < *below).map_or(1, |&(_, divisor)| divisor);
        let mut step = (moved << (BITS - u32::from(GAIN_BITS))) / (PS_PER_SECOND * divisor);
        if self.probability >= ONE / 10 {
            // [RFC 8033 §5.5]
            step = step.min(ONE / 50);
        }
        self.probability += step;
        if delay.is_zero() && self.delay.is_zero() {
            self.probability = self.probability * 49 / 50;
        }
        self.probability = self.probability.clamp(0, ONE);
        self.delay = delay;
        self.burst_allowance = self.burst_allowance.saturating_sub(self.period);
        self.next += self.period;
    }

    /// Draws whether this packet is dropped, or marked.
    fn chooses(&mut self, queued: Bytes) -> bool {
        // [RFC 8033 §4.1]
        if queued <= FEW || self.delay < self.target.div(2) && self.probability < ONE / 5 {
            return false;
        }
        let chosen = i128::from(self.stream.next_u64() >> (64 - BITS)) < self.probability;
        if !self.derandomize {
            return chosen;
        }
        // [RFC 8033 §5.4]
        self.accumulated = if self.probability == 0 { 0 } else { self.accumulated + self.probability };
        let chosen = self.accumulated >= ONE * 17 / 2 || self.accumulated >= ONE * 17 / 20 && chosen;
        if chosen {
            self.accumulated = 0;
        }
        chosen
    }
}

#[cfg(test)]
#[allow(clippy::float_arithmetic, clippy::cast_precision_loss, reason = "the RFC's equations, as a reference")]
mod tests {
    use super::*;
    use crate::units::Packets;
    use proptest::prelude::*;

    /// A full frame at 1 Gbit/s.
    const SLOT: Span = Span::from_ns(12_304);

    /// The defaults, and what a test changes of them.
    fn config() -> Config {
        let defaults = SPEC.defaults();
        Config::new(&Settings::new(SPEC.parameters, &defaults)).expect("each of its parameters goes with each")
    }

    fn pie(config: &Config) -> Pie {
        Pie::build(config, &Context { rate: Rate::from_gbps(1), stream: SmallStream::new(1) })
    }

    /// An arrival that finds so many full packets.
    fn finds(now: Time, packets: u64, idle_since: Time) -> Arrival {
        let backlog = Backlog { bytes: Bytes::new(1_500 * packets), packets: Packets::new(packets) };
        Arrival { now, size: Bytes::new(1_500), backlog, idle_since, ecn_capable: true }
    }

    fn at(span: Span) -> Time {
        Time::ZERO + span
    }

    fn seconds(span: Span) -> f64 {
        span.as_ps() as f64 / 1e12
    }

    fn probability(pie: &Pie) -> f64 {
        pie.probability as f64 / ONE as f64
    }

    /// The pseudo-code of [RFC 8033 §4.2, §4.4, §5.5] in seconds and double precision.
    struct Reference {
        target: f64,
        period: f64,
        drop_prob: f64,
        qdelay_old: f64,
        burst_allowance: f64,
    }

    impl Reference {
        fn new(config: &Config) -> Reference {
            let (target, period, burst_allowance) =
                (seconds(config.target), seconds(config.period), seconds(config.max_burst));
            Reference { target, period, drop_prob: 0.0, qdelay_old: 0.0, burst_allowance }
        }
        fn update(&mut self, qdelay: f64) {
            let mut p = 0.125 * (qdelay - self.target) + 1.25 * (qdelay - self.qdelay_old);
            p /= match self.drop_prob {
                p if p < 0.000001 => 2048.0,
                p if p < 0.00001 => 512.0,
                p if p < 0.0001 => 128.0,
                p if p < 0.001 => 32.0,
                p if p < 0.01 => 8.0,
                p if p < 0.1 => 2.0,
                _ => 1.0,
            };
            if self.drop_prob >= 0.1 && p > 0.02 {
                p = 0.02;
            }
            self.drop_prob += p;
            if qdelay == 0.0 && self.qdelay_old == 0.0 {
                self.drop_prob *= 0.98;
            }
            self.drop_prob = self.drop_prob.clamp(0.0, 1.0);
            self.qdelay_old = qdelay;
            self.burst_allowance = (self.burst_allowance - self.period).max(0.0);
        }
        fn arrival(&mut self, qdelay: f64, max_burst: f64) {
            if self.drop_prob == 0.0 && qdelay < self.target / 2.0 && self.qdelay_old < self.target / 2.0 {
                self.burst_allowance = max_burst;
            }
        }
    }

    #[test]
    fn the_defaults_are_those_of_the_rfc() {
        let config = config();
        assert_eq!((config.target, config.period), (Span::from_ms(15), Span::from_ms(15)));
        assert_eq!(config.max_burst, Span::from_ms(150));
        let gain = |gain: u64| gain as f64 / f64::from(1u32 << GAIN_BITS);
        assert_eq!((gain(config.alpha), gain(config.beta)), (0.125, 1.25));
        assert!((config.mark_ecn_threshold as f64 / 2f64.powi(32) - 0.1).abs() < 1e-9);
    }

    #[test]
    fn everything_passes_while_a_burst_is_allowed() {
        // From the start on 100 ms of queue: the allowance of 150 ms ends with the tenth update.
        let mut pie = pie(&config());
        let queue = 100_000_000 / 12_304;
        for ms in 1..150 {
            pie.probability = ONE;
            assert_eq!(pie.decide(&finds(at(Span::from_ms(ms)), queue, Time::ZERO)), Verdict::Pass, "{ms} ms");
        }
        pie.probability = ONE;
        assert_eq!(pie.decide(&finds(at(Span::from_ms(150)), queue, Time::ZERO)), Verdict::Drop);
    }

    #[test]
    fn a_burst_is_allowed_again_once_the_delays_are_below_half_the_target_and_the_probability_is_0() {
        let half = 7_500_000 / 12_304;
        let allows_again = |probability, delay, packets| {
            let mut pie = pie(&config());
            (pie.burst_allowance, pie.probability, pie.delay) = (Span::ZERO, probability, delay);
            pie.decide(&finds(at(Span::from_ms(1)), packets, Time::ZERO));
            pie.burst_allowance == Span::from_ms(150)
        };
        assert!(allows_again(0, Span::from_us(7_499), half));
        assert!(!allows_again(1, Span::from_us(7_499), half));
        assert!(!allows_again(0, Span::from_us(7_500), half));
        assert!(!allows_again(0, Span::from_us(7_499), half + 1));
    }

    /// One whose burst is over, at this probability and this delay of its last instant, its next far away.
    fn at_work(change: impl Fn(&mut Config), probability: i128, delay: Span) -> Pie {
        let mut config = Config { period: Span::from_secs(60), ..config() };
        change(&mut config);
        Pie { burst_allowance: Span::ZERO, probability, delay, ..pie(&config) }
    }

    fn verdicts(pie: &mut Pie, packets: u64, of: Verdict) -> usize {
        (0..40_000).filter(|_| pie.decide(&finds(at(SLOT), packets, Time::ZERO)) == of).count()
    }

    #[test]
    fn nothing_is_chosen_below_the_safeguards() {
        let below = Span::from_us(7_499);
        assert_eq!(verdicts(&mut at_work(|_| (), ONE / 5 - 1, below), 1_000, Verdict::Pass), 40_000);
        assert!(verdicts(&mut at_work(|_| (), ONE / 5, below), 1_000, Verdict::Pass) < 33_000);
        assert!(verdicts(&mut at_work(|_| (), ONE / 10, Span::from_us(7_500)), 1_000, Verdict::Pass) < 37_000);
        assert_eq!(verdicts(&mut at_work(|_| (), ONE, Span::from_ms(100)), 2, Verdict::Pass), 40_000);
        assert_eq!(verdicts(&mut at_work(|_| (), ONE, Span::from_ms(100)), 3, Verdict::Pass), 0);
    }

    #[test]
    fn it_chooses_with_its_probability() {
        // Binomial: 40,000/20 ± 4·√(40,000·0.05·0.95).
        let chosen = verdicts(&mut at_work(|_| (), ONE / 20, Span::from_ms(15)), 1_000, Verdict::Mark);
        assert!((1_826..2_174).contains(&chosen), "{chosen}");
    }

    #[test]
    fn spaced_drops_are_as_far_apart_as_the_rfc_says() {
        // p = 1/16: 13 packets pass, since 13/16 < 0.85; then one is chosen with p each, for certain the 136th, since 136/16 = 8.5.
        let mut pie = at_work(|config| config.derandomize = true, ONE / 16, Span::from_ms(15));
        let (mut distances, mut distance) = (std::vec![], 0);
        while distances.len() < 20_000 {
            distance += 1;
            if pie.decide(&finds(at(SLOT), 1_000, Time::ZERO)) == Verdict::Mark {
                distances.push(distance);
                distance = 0;
            }
        }
        assert_eq!(distances.iter().min(), Some(&14));
        assert!(distances.iter().max() <= Some(&136));
        // 13 + Σ (1 − p)^i over i < 123; the deviation of a geometric distribution is 15.5, of the mean of 20,000 0.11.
        let mean = f64::from(distances.iter().sum::<u32>()) / 20_000.0;
        let expected = 13.0 + 16.0 * (1.0 - (15.0f64 / 16.0).powi(123));
        assert!((mean - expected).abs() < 0.44, "{mean} {expected}");
    }

    #[test]
    fn ecn_capable_packets_are_marked_up_to_the_threshold_and_dropped_above() {
        let (few, many) = (ONE * 99 / 1000, ONE * 101 / 1000);
        let chosen =
            |probability, verdict| verdicts(&mut at_work(|_| (), probability, Span::from_ms(15)), 1_000, verdict);
        assert!(chosen(few, Verdict::Mark) > 3_000);
        assert_eq!((chosen(few, Verdict::Drop), chosen(many, Verdict::Mark)), (0, 0));
        assert!(chosen(many, Verdict::Drop) > 3_000);
        // It may not mark, or the packet may not be marked.
        let mut never = at_work(|config| config.ecn = false, few, Span::from_ms(15));
        assert_eq!(verdicts(&mut never, 1_000, Verdict::Mark), 0);
        let mut pie = at_work(|_| (), few, Span::from_ms(15));
        let incapable = Arrival { ecn_capable: false, ..finds(at(SLOT), 1_000, Time::ZERO) };
        assert!((0..40_000).all(|_| pie.decide(&incapable) != Verdict::Mark));
    }

    #[test]
    fn idleness_of_any_length_takes_few_steps() {
        let mut config = Config { period: Span::from_us(10), ..config() };
        let mut pie = pie(&config);
        // The slowest fall: α has no share in it.
        (pie.probability, pie.alpha) = (ONE, 0);
        let mut steps = 0;
        while pie.probability > 0 {
            pie.update(Span::ZERO);
            steps += 1;
        }
        assert!(steps <= 1_700, "{steps}");
        // 100 days in steps of 10 µs would not come to an end.
        config.alpha = 1;
        let mut pie = Pie { probability: ONE, ..super::tests::pie(&config) };
        let now = at(Span::from_secs(100 * 86_400));
        pie.decide(&finds(now, 0, Time::ZERO));
        assert_eq!((pie.probability, pie.next), (0, now + config.period));
        assert_eq!(pie.burst_allowance, config.max_burst);
    }

    proptest! {
        /// Delays at the instants themselves: any, or none for a while. From any probability, in each range of the auto-tuning.
        #[test]
        fn the_probability_follows_the_rfc(
            from in 0u64..=1 << BITS, shift in 0u32..30, delays in prop::collection::vec((0u64..100, 0usize..10), 1..50)
        ) {
            let (mut pie, mut reference) = (pie(&config()), Reference::new(&config()));
            pie.probability = i128::from(from >> shift);
            reference.drop_prob = probability(&pie);
            let steps = delays.iter().flat_map(|&(ms, none)| core::iter::repeat_n(0, none).chain([ms]));
            for delay in steps.map(Span::from_ms) {
                pie.update(delay);
                reference.update(seconds(delay));
                prop_assert!((probability(&pie) - reference.drop_prob).abs() < 1e-9);
                prop_assert!((seconds(pie.burst_allowance) - reference.burst_allowance).abs() < 1e-9);
            }
        }

        /// A line with a timer of its own beside it: bursts of full packets, and silence between them.
        #[test]
        fn arrivals_find_what_a_timer_would_have_made(
            bursts in prop::collection::vec((1u64..3_000, 1u64..6_000), 1..100), period_us in 100u64..20_000
        ) {
            let config = Config { period: Span::from_us(period_us), ..config() };
            let (mut pie, mut reference) = (pie(&config), Reference::new(&config));
            // In slots of the line: an arrival at the end of a slot finds whole packets.
            let (mut now, mut queue, mut empty_from) = (Time::ZERO, 0, Time::ZERO);
            let mut timer = at(config.period);
            for (burst, gap) in bursts {
                let before = now;
                now += SLOT * gap;
                while timer <= now {
                    let left = (SLOT * queue).saturating_sub(timer.since(before));
                    reference.update(seconds(left));
                    timer += config.period;
                }
                if queue > 0 && queue <= gap {
                    empty_from = before + SLOT * queue;
                }
                queue = queue.saturating_sub(gap);
                reference.arrival(seconds(SLOT * queue), seconds(config.max_burst));
                pie.decide(&finds(now, queue, empty_from));
                queue += burst;
                prop_assert!((probability(&pie) - reference.drop_prob).abs() < 1e-9);
                prop_assert!((seconds(pie.burst_allowance) - reference.burst_allowance).abs() < 1e-9);
                prop_assert_eq!(pie.next, timer);
            }
        }
    }
}
