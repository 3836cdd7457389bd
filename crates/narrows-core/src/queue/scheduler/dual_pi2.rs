//! DualPI2: two queues whose AQMs are coupled [RFC 9332 App. A].
//!
//! What has the codepoint ECT(1), or is marked already, waits in the *L4S* queue, which has priority; all else waits in the
//! *classic* one. A proportional-integral law moves a base probability p′ by the delay of the queue that waits longer, at
//! the instants `k·T`:
//!
//! ```text
//! p′(k) = p′(k−1) + 0.1·T/R²·(d(k) − target) + 0.3/R·(d(k) − d(k−1)),    0 ≤ p′ ≤ 1,   T = min(target, R/3)
//! ```
//!
//! with R the longest RTT expected. A classic packet that leaves is marked, or dropped if it is not ECN-capable, with
//! probability p′²; an L4S packet is marked with the greater of k·p′ and a ramp of its own over what it has waited, unless
//! nothing waits behind it. As a classic window goes with 1/√p and a scalable one with 1/p, flows of both kinds get about
//! the same rate at k = 2 [RFC 9332 §2.1]. Once k·p′ is 1, p′² drops L4S packets and ECN-capable classic ones, too
//! [RFC 9332 App. A.2]. Marks are spaced evenly, not drawn (`recur` there).
//!
//! Whose turn it is decides [deficit round robin](super::drr) of weight 15 to 1, which bounds the priority
//! [RFC 9332 §4.2.2].
//!
//! A port asks when a packet leaves, so the control law makes up for the instants since the last one. The packets that were first in
//! the queues at those instants are first still, so that the delays are known exactly.

use alloc::vec;
use alloc::vec::Vec;

use super::drr::DeficitRoundRobin;
use super::{Aqms, Arriving, Discipline, Queues};
use crate::component::{Kind, Settings, Spec, Value, parameters};
use crate::queue::aqm::{Departure, Onset, Verdict};
use crate::units::{Bytes, Span, Time};

/// The queue of L4S packets.
pub const L4S: usize = 0;
/// The queue of all others.
pub const CLASSIC: usize = 1;
/// Turns of the two queues while both wait [RFC 9332 §4.2.2].
const WEIGHTS: [u16; 2] = [15, 1];
/// Fraction bits of probabilities.
const BITS: u32 = 48;
const ONE: i128 = 1 << BITS;

/// Least and greatest delay.
pub const RANGE: (Span, Span) = (Span::from_us(1), Span::from_secs(60));
/// Greatest coupling factor.
pub const MAX_COUPLING: u64 = 16;

/// What experiments may choose.
pub const SPEC: Spec = Spec {
    name: "dual-pi2",
    about: "A queue with priority for L4S packets, ECT(1) or marked, and one for all others, with coupled AQMs.",
    source: "[RFC 9332]",
    parameters: parameters! {
        "target": Kind::Span, Value::Span(Span::from_ms(15)), (RANGE.0.as_ps(), RANGE.1.as_ps()),
            "where the delay of the classic queue is held";
        "rtt-max": Kind::Span, Value::Span(Span::from_ms(100)), (RANGE.0.as_ps(), RANGE.1.as_ps()),
            "RTT up to which the control law is stable, from which its gains follow";
        "coupling": Kind::Count, Value::Count(2), (1, MAX_COUPLING), "k, the coupling factor";
        "threshold": Kind::Span, Value::Span(Span::from_us(800)), (0, RANGE.1.as_ps()),
            "from this delay on the L4S queue marks by itself";
        "range": Kind::Span, Value::Span(Span::from_us(400)), (0, RANGE.1.as_ps()),
            "how much later it marks every packet; 0 for a step";
    },
};

/// Its parameters, by default the RFC's [RFC 9332 App. A].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub struct Config {
    /// Where the delay of the classic queue is held.
    pub target: Span,
    /// RTT up to which the control law is stable; not 0.
    pub rtt_max: Span,
    /// k, the coupling factor.
    pub coupling: u64,
    /// From this delay on the L4S queue marks by itself.
    pub threshold: Span,
    /// How much later it marks every packet.
    pub range: Span,
}

impl Default for Config {
    fn default() -> Config {
        Config::new(&Settings::new(SPEC.parameters, &SPEC.defaults())).expect("the defaults go together")
    }
}

impl Config {
    /// These values, each within its range.
    ///
    /// # Errors
    /// If they do not go together: below a thousandth of `rtt_max` a target's steps would be too small to count.
    pub fn checked(self) -> Result<Config, &'static str> {
        if self.target.saturating_mul(1_000) < self.rtt_max {
            return Err("DualPI2 needs a `target` of at least a thousandth of its `rtt-max`");
        }
        Ok(self)
    }

    pub(super) fn new(settings: &Settings<'_>) -> Result<Config, &'static str> {
        Config {
            target: settings.span("target"),
            rtt_max: settings.span("rtt-max"),
            coupling: settings.count("coupling"),
            threshold: settings.span("threshold"),
            range: settings.span("range"),
        }
        .checked()
    }
    pub(super) fn values(&self) -> Vec<Value> {
        let Config { target, rtt_max, coupling, threshold, range } = *self;
        let [target, rtt_max, threshold, range] = [target, rtt_max, threshold, range].map(Value::Span);
        vec![target, rtt_max, Value::Count(coupling), threshold, range]
    }
    pub(super) const fn queues(&self) -> Queues {
        Queues::Kinds
    }
    pub(super) fn aqm(&self) -> Aqms {
        Aqms::Own(Onset::Delay(self.target.min(self.threshold)))
    }
    pub(super) fn build(&self, _seed: u64) -> DualPi2 {
        DualPi2::new(*self)
    }

    /// T, between two computations of the probability.
    pub fn period(&self) -> Span {
        self.target.min(Span::from_ps((self.rtt_max.as_ps() / 3).max(1)))
    }
}

/// See the [module](self).
#[derive(Clone, Debug)]
pub struct DualPi2 {
    config: Config,
    /// Whose turn it is.
    turns: DeficitRoundRobin,
    period: Span,
    /// p′.
    base: i128,
    /// d(k−1), ps.
    delay: i128,
    /// The next instant.
    next: Time,
    /// By queue: likelihoods since the last mark, at most one after each.
    counts: [i128; 2],
}

impl DualPi2 {
    /// Two queues that have been empty.
    pub fn new(config: Config) -> DualPi2 {
        let period = config.period();
        let turns = DeficitRoundRobin::new(&WEIGHTS);
        DualPi2 { config, turns, period, base: 0, delay: 0, next: Time::ZERO + period, counts: [0; 2] }
    }

    /// Takes the steps that were due by `now`, while the packet that waits longest came at `first`, if one does; nothing has
    /// left since the last call.
    fn take_steps(&mut self, now: Time, first: Option<Time>) {
        while self.next <= now {
            let delay = first.map_or(0, |first| i128::from(self.next.since(first.min(self.next)).as_ps()));
            let step = self.step(delay);
            let mut steps = 1;
            if delay == 0 && self.delay == 0 {
                // While nothing waits all steps are the same.
                let until = first.unwrap_or(now).min(now);
                steps += until.since(self.next.min(until)).as_ps() / self.period.as_ps();
            }
            self.base = (self.base + step * i128::from(steps)).clamp(0, ONE);
            self.delay = delay;
            self.next += Span::from_ps(steps * self.period.as_ps());
        }
    }

    /// What a step adds to p′ at this delay.
    fn step(&self, delay: i128) -> i128 {
        let max = i128::from(self.config.rtt_max.as_ps());
        let error = ONE * (delay - i128::from(self.config.target.as_ps())) / max;
        let change = ONE * (delay - self.delay) / max;
        error * i128::from(self.period.as_ps()) / max / 10 + change * 3 / 10
    }

    /// The L4S queue's own probability of a mark.
    fn ramp(&self, sojourn: Span) -> i128 {
        let Config { threshold, range, .. } = self.config;
        if sojourn >= threshold + range {
            return ONE;
        }
        let above = sojourn.as_ps().saturating_sub(threshold.as_ps());
        ONE * i128::from(above) / i128::from(range.as_ps().max(1))
    }

    /// Whether it is this packet's turn, where such a share of all has one.
    fn recurs(&mut self, queue: usize, likelihood: i128) -> bool {
        let count = &mut self.counts[queue];
        *count += likelihood;
        let is_due = *count > ONE;
        *count -= if is_due { ONE } else { 0 };
        is_due
    }
}

impl Discipline for DualPi2 {
    fn queues(&self) -> usize {
        WEIGHTS.len()
    }
    fn queue_of(&mut self, packet: &Arriving) -> usize {
        if packet.is_l4s { L4S } else { CLASSIC }
    }
    fn wake(&mut self, queue: usize) {
        self.turns.wake(queue);
    }
    fn choose(&mut self, first: impl Fn(usize) -> Bytes) -> Option<usize> {
        self.turns.choose(first)
    }
    fn rest(&mut self) {
        self.turns.rest();
    }
    fn refund(&mut self, size: Bytes) {
        self.turns.refund(size);
    }
    fn leave(&mut self, queue: usize) {
        self.turns.leave(queue);
    }
    fn advance(&mut self, now: Time, waits_since: impl Fn(usize) -> Option<Time>) {
        if self.next <= now {
            let first = [L4S, CLASSIC].into_iter().filter_map(waits_since).min();
            self.take_steps(now, first);
        }
    }
    fn leaves(&mut self, queue: usize, departure: &Departure) -> Verdict {
        let coupled = self.base * i128::from(self.config.coupling);
        let squared = (self.base * self.base) >> BITS;
        let is_overloaded = coupled >= ONE;
        if queue == CLASSIC {
            return match self.recurs(queue, squared) {
                true if departure.ecn_capable && !is_overloaded => Verdict::Mark,
                true => Verdict::Drop,
                false => Verdict::Pass,
            };
        }
        if is_overloaded && self.recurs(queue, squared) {
            return Verdict::Drop;
        }
        let is_alone = departure.backlog.packets.get() == 0;
        let own = if is_alone || is_overloaded { 0 } else { self.ramp(departure.sojourn) };
        if self.recurs(queue, own.max(coupled.min(ONE))) { Verdict::Mark } else { Verdict::Pass }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::Backlog;
    use crate::units::{Bytes, Packets};
    use proptest::prelude::*;

    fn at(ms: u64) -> Time {
        Time::ZERO + Span::from_ms(ms)
    }

    /// When what waits first came, by queue.
    fn by_queue(waits: [Option<Time>; 2]) -> impl Fn(usize) -> Option<Time> {
        move |queue| waits[queue]
    }

    fn departure(sojourn: Span, ecn_capable: bool) -> Departure {
        let backlog = Backlog { bytes: Bytes::new(1_500), packets: Packets::new(1) };
        Departure { now: at(0), sojourn, size: Bytes::new(1_500), backlog, ecn_capable }
    }

    /// A scheduler whose base probability is this, in percent.
    fn with_base(percent: i128) -> DualPi2 {
        DualPi2 { base: ONE * percent / 100, ..DualPi2::new(Config::default()) }
    }

    fn share(scheduler: &mut DualPi2, queue: usize, departure: &Departure, of: Verdict) -> usize {
        (0..1_000).filter(|_| scheduler.leaves(queue, departure) == of).count()
    }

    #[test]
    fn a_step_moves_the_base_by_the_gains_of_the_rfc() {
        // T = min(15 ms, 100 ms/3); at the first instant the first packet has waited 10 ms, at the second 25.
        let mut scheduler = DualPi2::new(Config::default());
        scheduler.advance(at(30), by_queue([None, Some(at(5))]));
        let (alpha, beta) = (0.1 * 0.015 / 0.1 / 0.1, 0.3 / 0.1);
        let first: f64 = alpha * (0.010 - 0.015) + beta * 0.010;
        let expected = first + alpha * (0.025 - 0.015) + beta * 0.015;
        assert!((scheduler.base as f64 / ONE as f64 - expected).abs() < 1e-12);
        assert_eq!(scheduler.next, at(45));
    }

    /// At the bounds of what is accepted an empty queue takes the probability down as well.
    #[test]
    fn steps_count_at_the_least_target_and_an_hour_without_packets_takes_no_time() {
        let least = Config { target: Span::from_ms(60), rtt_max: Span::from_secs(60), ..Config::default() };
        for config in [least, Config { target: Span::from_us(1), rtt_max: Span::from_ms(1), ..Config::default() }] {
            let mut scheduler = DualPi2 { base: ONE, ..DualPi2::new(config.checked().unwrap()) };
            scheduler.advance(at(100), by_queue([None; 2]));
            assert!(scheduler.base < ONE);
            scheduler.advance(at(1_000_000_000), by_queue([None; 2]));
            assert_eq!(scheduler.base, 0);
        }
        let finer = Config { target: Span::from_ms(59), ..least };
        assert!(finer.checked().is_err());
    }

    #[test]
    fn the_queue_that_waits_longer_drives_it() {
        let base = |waits| {
            let mut scheduler = DualPi2::new(Config::default());
            scheduler.advance(at(100), by_queue(waits));
            scheduler.base
        };
        assert_eq!(base([Some(at(1)), Some(at(40))]), base([None, Some(at(1))]));
        assert_eq!(base([Some(at(40)), Some(at(1))]), base([Some(at(1)), None]));
    }

    #[test]
    fn classic_packets_are_marked_by_the_square_and_l4s_packets_by_twice_the_base() {
        for percent in [1, 10, 30, 49] {
            let expected = usize::try_from(percent * percent / 10).unwrap();
            let ect0 = departure(Span::from_ms(20), true);
            assert!(share(&mut with_base(percent), CLASSIC, &ect0, Verdict::Mark).abs_diff(expected) <= 1);
            let other = departure(Span::from_ms(20), false);
            assert!(share(&mut with_base(percent), CLASSIC, &other, Verdict::Drop).abs_diff(expected) <= 1);
            let l4s = departure(Span::from_us(100), true);
            let expected = usize::try_from(percent * 20).unwrap();
            assert!(share(&mut with_base(percent), L4S, &l4s, Verdict::Mark).abs_diff(expected) <= 1);
        }
    }

    #[test]
    fn l4s_packets_are_marked_by_what_they_waited_unless_nothing_is_behind_them() {
        let waited = |us| departure(Span::from_us(us), true);
        for (us, expected) in [(800, 0), (900, 250), (1_000, 500), (1_100, 750), (1_300, 999)] {
            let marked = share(&mut with_base(0), L4S, &waited(us), Verdict::Mark);
            assert!(marked.abs_diff(expected) <= 1, "{us} µs: {marked}");
        }
        let alone = Departure { backlog: Backlog::EMPTY, ..waited(5_000) };
        assert_eq!(share(&mut with_base(0), L4S, &alone, Verdict::Mark), 0);
        assert!(share(&mut with_base(25), L4S, &alone, Verdict::Mark).abs_diff(500) <= 1);
    }

    #[test]
    fn overload_drops_what_is_ecn_capable_and_marks_the_rest_of_the_l4s_queue() {
        let packet = departure(Span::from_ms(20), true);
        assert!(share(&mut with_base(60), CLASSIC, &packet, Verdict::Drop).abs_diff(360) <= 1);
        assert_eq!(share(&mut with_base(60), CLASSIC, &packet, Verdict::Mark), 0);
        let mut scheduler = with_base(60);
        let verdicts: alloc::vec::Vec<Verdict> = (0..1_000).map(|_| scheduler.leaves(L4S, &packet)).collect();
        let dropped = verdicts.iter().filter(|&&verdict| verdict == Verdict::Drop).count();
        assert!(dropped.abs_diff(360) <= 1, "{dropped}");
        assert!(verdicts.iter().filter(|&&verdict| verdict == Verdict::Pass).count() <= 1);
    }

    /// Figures 7 and 8 of the RFC in floating point, told of each instant [RFC 9332 App. A.2].
    struct Published {
        base: f64,
        delay: f64,
        counts: [f64; 2],
    }

    #[allow(clippy::float_arithmetic, reason = "the control law as it is published")]
    impl Published {
        /// Line 2a to 3 of Figure 8, with the default parameters: the queues' delays in seconds.
        fn update(&mut self, delays: [f64; 2]) {
            let delay = delays[0].max(delays[1]);
            let (alpha, beta) = (0.1 * 0.015 / (0.1 * 0.1), 0.3 / 0.1);
            self.base = (self.base + alpha * (delay - 0.015) + beta * (delay - self.delay)).clamp(0.0, 1.0);
            self.delay = delay;
        }

        fn recurs(&mut self, queue: usize, likelihood: f64) -> bool {
            self.counts[queue] += likelihood;
            let is_due = self.counts[queue] > 1.0;
            self.counts[queue] -= if is_due { 1.0 } else { 0.0 };
            is_due
        }

        fn leaves(&mut self, queue: usize, waited: f64, behind: u64, ecn_capable: bool) -> Verdict {
            let (coupled, squared) = (2.0 * self.base, self.base * self.base);
            if queue == CLASSIC {
                let chosen = self.recurs(queue, squared);
                return match (chosen, ecn_capable && squared < 0.25) {
                    (false, _) => Verdict::Pass,
                    (true, true) => Verdict::Mark,
                    (true, false) => Verdict::Drop,
                };
            }
            if coupled >= 1.0 && self.recurs(queue, squared) {
                return Verdict::Drop;
            }
            let ramp = if behind > 0 { ((waited - 0.0008) / 0.0004).clamp(0.0, 1.0) } else { 0.0 };
            let likelihood = if coupled >= 1.0 { 1.0 } else { ramp.max(coupled) };
            if self.recurs(queue, likelihood) { Verdict::Mark } else { Verdict::Pass }
        }
    }

    /// Two queues to which packets come at random and which are served in turn, and what becomes of each packet by both.
    #[test]
    #[allow(clippy::float_arithmetic, reason = "the control law as it is published")]
    fn packets_fare_as_by_the_published_law() {
        let mut random = crate::rng::SmallStream::new(7);
        for load in [90, 110, 140] {
            let mut scheduler = DualPi2::new(Config::default());
            let mut published = Published { base: 0.0, delay: 0.0, counts: [0.0; 2] };
            let mut waiting: [alloc::collections::VecDeque<Time>; 2] =
                [const { alloc::collections::VecDeque::new() }; 2];
            let (mut told, mut expected) = ([0_u64; 3], [0_u64; 3]);
            let mut tick = at(15);
            let seconds = |since: Time, until: Time| until.since(since.min(until)).as_ps() as f64 / 1e12;
            // A service takes 100 µs; now and then the sources pause, so that queues drain.
            for service in 0..200_000_u64 {
                let now = Time::ZERO + Span::from_us(100 * service);
                while tick <= now {
                    // What has come since is later than the instant.
                    let delays =
                        [L4S, CLASSIC].map(|queue| waiting[queue].front().map_or(0.0, |&came| seconds(came, tick)));
                    published.update(delays);
                    tick += Span::from_ms(15);
                }
                let turn = usize::from(service % 2 == 1);
                if let Some(queue) = [turn, 1 - turn].into_iter().find(|&queue| !waiting[queue].is_empty()) {
                    scheduler.advance(now, |queue| waiting[queue].front().copied());
                    let came = waiting[queue].pop_front().unwrap();
                    let behind = waiting[queue].len() as u64;
                    let ecn_capable = queue == L4S || service % 3 == 0;
                    let backlog = Backlog { bytes: Bytes::new(behind * 1_500), packets: Packets::new(behind) };
                    let departure =
                        Departure { now, sojourn: now.since(came), size: Bytes::new(1_500), backlog, ecn_capable };
                    let index = |verdict| match verdict {
                        Verdict::Pass => 0,
                        Verdict::Mark => 1,
                        Verdict::Drop => 2,
                    };
                    told[index(scheduler.leaves(queue, &departure))] += 1;
                    expected[index(published.leaves(queue, seconds(came, now), behind, ecn_capable))] += 1;
                }
                let is_paused = service / 5_000 % 4 == 3;
                if !is_paused && random.below(100) < load - 50 {
                    waiting[usize::from(random.below(2) == 1)].push_back(now + Span::from_us(random.below(100)));
                }
                if random.below(2) == 0 && !is_paused {
                    waiting[CLASSIC].push_back(now + Span::from_us(99));
                }
            }
            for (told, expected) in told.into_iter().zip(expected) {
                assert!(told.abs_diff(expected) <= 3 + expected / 1_000, "{load}: {told}, {expected} as published");
            }
            assert!(load < 100 || told[1] > 100 && told[2] > 100, "{load}: {told:?}");
        }
    }

    proptest! {
        /// However long nothing waits, what is skipped is what steps would have done one by one.
        #[test]
        fn idle_steps_are_skipped_without_a_trace(base in 0i128..100, gap in 0u64..100_000, waits in 0u64..200, more in 0u64..50) {
            let mut skips = with_base(base);
            let mut steps = with_base(base);
            let came = at(gap);
            let until = came + Span::from_ms(waits);
            skips.advance(until, by_queue([None, Some(came)]));
            let mut now = at(0);
            while now < until {
                now = (now + Span::from_ms(15)).min(until);
                steps.advance(now, by_queue([None, Some(came).filter(|&came| came <= now)]));
            }
            prop_assert_eq!((skips.base, skips.delay, skips.next), (steps.base, steps.delay, steps.next));
            skips.advance(until + Span::from_ms(more), by_queue([None, Some(came)]));
            prop_assert!(skips.base >= 0 && skips.base <= ONE && skips.next > until + Span::from_ms(more));
        }
    }
}
