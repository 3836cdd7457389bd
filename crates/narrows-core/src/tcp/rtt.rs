//! RTT estimation and the retransmission timeout.

use super::profile::{Profile, RtoVariance};
use crate::units::{Span, Time};

/// Linux's estimator [RFC 6298; Linux `tcp_rtt_estimator`]: mean and mean deviation with gains 1/8 and 1/4, a deviation
/// that falls slowly when the RTT shrinks, and its maximum over a round held for that round.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RttEstimator {
    /// Smoothed RTT, picoseconds times 8; zero before the first sample.
    srtt8: u64,
    /// Mean deviation, picoseconds times 4.
    deviation4: u64,
    /// Largest mean deviation of this round, picoseconds times 4.
    round_deviation4: u64,
    /// The variance term of the timeout, picoseconds times 4.
    variance4: u64,
    /// The timeout without back-off.
    timeout: Span,
    min: WindowedMin,
}

impl RttEstimator {
    /// No sample yet; until there is one, the timeout is `timeout`.
    pub(crate) const fn new(timeout: Span) -> RttEstimator {
        RttEstimator { srtt8: 0, deviation4: 0, round_deviation4: 0, variance4: 0, timeout, min: WindowedMin::new() }
    }

    /// Takes a sample for the timeout. `round_ended` says that the data outstanding at the last call with it set has
    /// been acknowledged: the variance term may then fall.
    #[inline]
    pub(crate) fn sample(&mut self, span: Span, round_ended: bool, profile: &Profile) {
        self.estimate(span, round_ended, profile);
        if profile.rto_variance == RtoVariance::Smoothed {
            self.variance4 = self.deviation4.max(CLOCK_TICK.as_ps());
        }
        self.compute_timeout(profile);
    }

    #[inline]
    fn compute_timeout(&mut self, profile: &Profile) {
        let timeout = Span::from_ps((self.srtt8 >> 3) + self.variance4.max(1));
        let timeout = if profile.min_rto_is_total { timeout.max(profile.min_rto) } else { timeout };
        self.timeout = timeout.min(profile.max_rto);
    }

    #[inline(always)]
    fn estimate(&mut self, span: Span, round_ended: bool, profile: &Profile) {
        let sample = span.as_ps().max(1);
        // The floor of the variance term, times 4 like the term itself.
        let floor4 = if profile.min_rto_is_total { 0 } else { profile.min_rto.as_ps() };
        if self.srtt8 == 0 {
            self.srtt8 = sample << 3;
            self.deviation4 = match profile.initial_rtt_variance {
                Span::ZERO => sample << 1,
                // The first sample deviates by nothing: smoothed once.
                initial => initial.as_ps() * 3,
            };
            self.round_deviation4 = self.deviation4.max(floor4);
            self.variance4 = self.round_deviation4;
            return;
        }
        let smoothed = self.srtt8 >> 3;
        if profile.rto_variance == RtoVariance::Smoothed {
            // [RFC 6298 §2.3]: RTTVAR ← 3/4·RTTVAR + 1/4·|SRTT − R|, then SRTT ← 7/8·SRTT + 1/8·R.
            self.deviation4 = self.deviation4 - (self.deviation4 >> 2) + smoothed.abs_diff(sample);
            self.srtt8 = self.srtt8 - smoothed + sample;
            return;
        }
        if sample >= smoothed {
            let error = sample - smoothed;
            self.srtt8 += error;
            self.deviation4 = (self.deviation4 + error).saturating_sub(self.deviation4 >> 2);
        } else {
            let error = smoothed - sample;
            self.srtt8 -= error;
            // A shrinking RTT widens the deviation only an eighth as fast, lest the timeout grow as the path
            // gets quicker.
            let deviation = self.deviation4 >> 2;
            if error > deviation {
                self.deviation4 += (error - deviation) >> 3;
            } else {
                self.deviation4 -= deviation - error;
            }
        }
        if self.deviation4 > self.round_deviation4 {
            self.round_deviation4 = self.deviation4;
            self.variance4 = self.variance4.max(self.round_deviation4);
        }
        if round_ended {
            if self.round_deviation4 < self.variance4 {
                self.variance4 -= (self.variance4 - self.round_deviation4) >> 2;
            }
            self.round_deviation4 = floor4;
        }
    }

    /// Begins with what is remembered of the path.
    pub(super) fn recall(&mut self, srtt: Span, variance: Span, profile: &Profile) {
        self.srtt8 = srtt.as_ps().max(1) << 3;
        self.deviation4 = variance.as_ps() << 2;
        (self.round_deviation4, self.variance4) = (self.deviation4, self.deviation4);
        self.compute_timeout(profile);
    }

    /// The smoothed deviation.
    pub(super) fn deviation(&self) -> Span {
        Span::from_ps(self.deviation4 >> 2)
    }

    /// Takes a sample for the minimum; see [`RttEstimator::min`].
    #[inline(always)]
    pub(crate) fn sample_min(&mut self, now: Time, span: Span) {
        self.min.sample(now, span, MIN_RTT_WINDOW);
    }

    /// The smoothed RTT.
    pub(crate) fn smoothed(&self) -> Option<Span> {
        (self.srtt8 != 0).then(|| Span::from_ps(self.srtt8 >> 3))
    }

    /// Least sample of the last 300 s.
    pub(crate) fn min(&self) -> Option<Span> {
        self.min.value()
    }

    /// The timeout without back-off.
    pub(super) fn timeout(&self) -> Span {
        self.timeout
    }
}

/// The granularity of the clock, G [RFC 6298 §2.3], where the variance is smoothed.
const CLOCK_TICK: Span = Span::from_us(1);
/// Linux's `tcp_min_rtt_wlen`.
const MIN_RTT_WINDOW: Span = Span::from_secs(300);

/// Least value of a sliding window, from the best three samples of its thirds: constant memory, never later than the
/// window [Linux `lib/win_minmax.c`].
#[derive(Clone, Copy, Debug)]
struct WindowedMin {
    best: [(Time, Span); 3],
    /// Until then only a sample that is one of the best three changes anything.
    stands_until: Time,
}

impl WindowedMin {
    const fn new() -> WindowedMin {
        WindowedMin { best: [(Time::ZERO, Span::MAX); 3], stands_until: Time::ZERO }
    }

    fn value(&self) -> Option<Span> {
        (self.best[0].1 != Span::MAX).then_some(self.best[0].1)
    }

    #[inline(always)]
    fn sample(&mut self, now: Time, span: Span, window: Span) {
        if span <= self.best[2].1 || now > self.stands_until {
            self.note(now, span, window);
        }
    }

    #[inline(never)]
    fn note(&mut self, now: Time, span: Span, window: Span) {
        self.take(now, span, window);
        // No age of the best has a meaning before a quarter of the window.
        let [first, second, third] = self.best.map(|(at, _)| at);
        self.stands_until = if second == first {
            first + window.div(4)
        } else if third == second {
            first + window.div(2)
        } else {
            first + window
        };
    }

    fn take(&mut self, now: Time, span: Span, window: Span) {
        let new = (now, span);
        if span <= self.best[0].1 || now.since(self.best[2].0) > window {
            self.best = [new; 3];
            return;
        }
        if span <= self.best[1].1 {
            self.best[1] = new;
            self.best[2] = new;
        } else if span <= self.best[2].1 {
            self.best[2] = new;
        }
        let age = now.since(self.best[0].0);
        if age > window {
            // The best fell out: the next best take its place, and the newest sample is the last of the three.
            self.best = [self.best[1], self.best[2], new];
            if now.since(self.best[0].0) > window {
                self.best = [self.best[1], self.best[2], new];
            }
        } else if self.best[1].0 == self.best[0].0 && age > window.div(4) {
            // A quarter without a second choice: take one from this part of the window.
            self.best[1] = new;
            self.best[2] = new;
        } else if self.best[2].0 == self.best[1].0 && age > window.div(2) {
            self.best[2] = new;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_steady_round_trip_gives_itself_plus_the_floor() {
        let mut rtt = RttEstimator::new(Span::from_secs(1));
        for i in 0..200 {
            rtt.sample(Span::from_ms(10), i % 4 == 0, &Profile::LINUX_4_9);
        }
        assert_eq!(rtt.smoothed(), Some(Span::from_ms(10)));
        assert_eq!(rtt.timeout(), Span::from_ms(210));
    }

    #[test]
    fn the_first_sample_sets_mean_and_half_of_it_as_deviation() {
        let mut rtt = RttEstimator::new(Span::from_secs(1));
        rtt.sample(Span::from_ms(400), true, &Profile::LINUX_4_9);
        // SRTT + 4 × R/2 [RFC 6298 §2.2].
        assert_eq!(rtt.timeout(), Span::from_ms(1_200));
    }

    #[test]
    fn after_a_spike_the_variance_falls_by_a_quarter_each_round() {
        let mut rtt = RttEstimator::new(Span::from_secs(1));
        let profile = Profile { min_rto: Span::ZERO, ..Profile::LINUX_4_9 };
        for _ in 0..400 {
            rtt.sample(Span::from_ms(10), true, &profile);
        }
        rtt.sample(Span::from_ms(250), true, &profile);
        let (mut variance, mut largest) = (rtt.timeout() - rtt.smoothed().expect("it has samples"), Span::ZERO);
        assert!(variance > Span::from_ms(239), "{variance}");
        for round in 0..40 {
            // The deviation of one sample near the mean is small beside what is left of the spike's.
            rtt.sample(rtt.smoothed().expect("it has samples"), true, &profile);
            let now = rtt.timeout() - rtt.smoothed().expect("it has samples");
            let deviation = Span::from_ps(rtt.deviation4);
            assert!(now <= variance && now >= deviation, "round {round}");
            // Linux: mdev_max falls from the round's deviation, which falls by a quarter itself.
            let least = variance - (variance.saturating_sub(deviation)).div(4) - Span::from_us(1);
            assert!(now >= least && (now < variance || variance <= deviation), "round {round}: {variance} to {now}");
            (variance, largest) = (now, largest.max(deviation));
        }
        assert!(variance < Span::from_ms(1) && largest < Span::from_ms(240), "{variance}, {largest}");
    }

    #[test]
    fn a_total_floor_bounds_the_whole_timeout() {
        let mut rtt = RttEstimator::new(Span::from_secs(1));
        for _ in 0..400 {
            rtt.sample(Span::from_us(100), true, &Profile::DCTCP_2010);
        }
        assert_eq!(rtt.timeout(), Span::from_ms(300));
    }

    #[test]
    fn a_smoothed_variance_follows_the_rfc() {
        // [RFC 6298 §2.2, §2.3] in microseconds; the floor of 2 ms is of the whole.
        let plain = Profile { initial_rtt_variance: Span::ZERO, ..Profile::FREEBSD_CEE };
        for (profile, initial) in [(plain, None), (Profile::FREEBSD_CEE, Some(20_000.0))] {
            let mut rtt = RttEstimator::new(Span::from_ms(10));
            let (mut srtt, mut variance) = (0.0, 0.0);
            for (index, us) in [4_000_u64, 4_000, 9_000, 3_000, 3_000, 20_000, 5_000].into_iter().enumerate() {
                let sample = us as f64;
                (srtt, variance) = match (index, initial) {
                    (0, None) => (sample, sample / 2.0),
                    (0, Some(initial)) => (sample, 0.75 * initial),
                    _ => (0.875 * srtt + 0.125 * sample, 0.75 * variance + 0.25 * (srtt - sample).abs()),
                };
                rtt.sample(Span::from_us(us), index % 2 == 0, &profile);
                let timeout = rtt.timeout().as_ps() as f64 / 1e6;
                assert!((timeout - (srtt + 4.0 * variance)).abs() < 0.01, "{timeout} {srtt} {variance}");
            }
        }
        let mut rtt = RttEstimator::new(Span::from_ms(10));
        (0..50).for_each(|_| rtt.sample(Span::from_us(80), true, &Profile::FREEBSD_CEE));
        assert_eq!(rtt.timeout(), Span::from_ms(2));
        (0..200).for_each(|_| rtt.sample(Span::from_ms(5), true, &Profile::FREEBSD_CEE));
        assert_eq!(rtt.timeout(), Span::from_us(5_001), "a tick above the mean");
    }

    #[test]
    fn before_any_sample_the_timeout_is_the_initial_one() {
        assert_eq!(RttEstimator::new(Span::from_secs(1)).timeout(), Span::from_secs(1));
    }

    #[test]
    fn the_minimum_forgets_after_its_window() {
        let mut min = WindowedMin::new();
        let window = Span::from_secs(10);
        let at = |s| Time::ZERO + Span::from_secs(s);
        min.sample(at(0), Span::from_ms(5), window);
        for s in 1..=10 {
            min.sample(at(s), Span::from_ms(20 + s), window);
            assert_eq!(min.value(), Some(Span::from_ms(5)));
        }
        min.sample(at(11), Span::from_ms(40), window);
        let value = min.value().unwrap();
        assert!(value > Span::from_ms(5) && value <= Span::from_ms(31), "{value}");
    }
}
