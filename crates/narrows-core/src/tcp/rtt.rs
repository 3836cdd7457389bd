//! Round-trip estimation and the retransmission timeout.

use super::profile::Profile;
use crate::units::{Span, Time};

/// Linux's estimator [RFC 6298; Linux `tcp_rtt_estimator`]: mean and mean deviation with gains 1/8 and 1/4, a deviation
/// that falls slowly when the RTT shrinks, and its maximum over a round held for that round.
#[derive(Clone, Copy, Debug)]
pub(super) struct RttEstimator {
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
    pub(super) const fn new(timeout: Span) -> RttEstimator {
        RttEstimator { srtt8: 0, deviation4: 0, round_deviation4: 0, variance4: 0, timeout, min: WindowedMin::new() }
    }

    /// Takes a sample for the timeout. `round_ended` says that the data outstanding at the last call with it set has
    /// been acknowledged: the variance term may then fall.
    #[inline]
    pub(super) fn sample(&mut self, span: Span, round_ended: bool, profile: &Profile) {
        self.estimate(span, round_ended, profile);
        let timeout = Span::from_ps((self.srtt8 >> 3) + self.variance4.max(1));
        let timeout = if profile.min_rto_is_total { timeout.max(profile.min_rto) } else { timeout };
        self.timeout = timeout.min(profile.max_rto);
    }

    #[inline]
    fn estimate(&mut self, span: Span, round_ended: bool, profile: &Profile) {
        let sample = span.as_ps().max(1);
        // The floor of the variance term, times 4 like the term itself.
        let floor4 = if profile.min_rto_is_total { 0 } else { profile.min_rto.as_ps() };
        if self.srtt8 == 0 {
            self.srtt8 = sample << 3;
            self.deviation4 = sample << 1;
            self.round_deviation4 = self.deviation4.max(floor4);
            self.variance4 = self.round_deviation4;
            return;
        }
        let smoothed = self.srtt8 >> 3;
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

    /// Takes a sample for the minimum; see [`RttEstimator::min`].
    pub(super) fn sample_min(&mut self, now: Time, span: Span) {
        self.min.sample(now, span, MIN_RTT_WINDOW);
    }

    /// The smoothed RTT.
    pub(super) fn smoothed(&self) -> Option<Span> {
        (self.srtt8 != 0).then(|| Span::from_ps(self.srtt8 >> 3))
    }

    /// Least sample of the last 300 s.
    pub(super) fn min(&self) -> Option<Span> {
        self.min.value()
    }

    /// The timeout without back-off.
    pub(super) fn timeout(&self) -> Span {
        self.timeout
    }
}

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

    #[inline]
    fn sample(&mut self, now: Time, span: Span, window: Span) {
        if span > self.best[2].1 && now <= self.stands_until {
            return;
        }
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

    #[inline(never)]
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
    fn a_total_floor_bounds_the_whole_timeout() {
        let mut rtt = RttEstimator::new(Span::from_secs(1));
        for _ in 0..400 {
            rtt.sample(Span::from_us(100), true, &Profile::DCTCP_2010);
        }
        assert_eq!(rtt.timeout(), Span::from_ms(300));
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
