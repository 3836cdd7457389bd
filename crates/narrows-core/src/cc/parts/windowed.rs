//! Greatest and least value over a sliding window, in constant memory.
//!
//! Kathleen Nichols' estimator as in Linux `lib/win_minmax.c`: the three best samples, each newer than the one before
//! it, so that a successor stands ready when the best grows too old. Exact while samples improve; otherwise the answer
//! is a sample of the window, at worst one of its later quarters'. The clock is any number that never falls: a round
//! count, microseconds.

/// A value and when it was seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Sample {
    at: u64,
    value: u64,
}

/// The greatest value of the last `window` ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowedMax {
    window: u64,
    /// Best, second best seen after it, third best seen after that.
    best: [Sample; 3],
}

impl WindowedMax {
    /// No value yet, which reads as 0.
    pub const fn new(window: u64) -> WindowedMax {
        WindowedMax { window, best: [Sample { at: 0, value: 0 }; 3] }
    }

    /// From now on the values of so many ticks count.
    pub const fn set_window(&mut self, window: u64) {
        self.window = window;
    }

    /// The greatest value; 0 before the first.
    pub const fn value(&self) -> u64 {
        self.best[0].value
    }

    /// Forgets everything but this value.
    pub fn reset(&mut self, at: u64, value: u64) {
        self.best = [Sample { at, value }; 3];
    }

    /// Takes a value into account.
    pub fn update(&mut self, at: u64, value: u64) {
        let newest = Sample { at, value };
        if value >= self.best[0].value || at.saturating_sub(self.best[2].at) > self.window {
            return self.reset(at, value);
        }
        if value >= self.best[1].value {
            self.best[1] = newest;
            self.best[2] = newest;
        } else if value >= self.best[2].value {
            self.best[2] = newest;
        }
        self.expire(newest);
    }

    /// Drops what left the window and spreads the successors over its second quarter and second half.
    fn expire(&mut self, newest: Sample) {
        let age = newest.at.saturating_sub(self.best[0].at);
        if age > self.window {
            self.best = [self.best[1], self.best[2], newest];
            if newest.at.saturating_sub(self.best[0].at) > self.window {
                self.best = [self.best[1], self.best[2], newest];
            }
        } else if self.best[1].at == self.best[0].at && age > self.window / 4 {
            self.best[1] = newest;
            self.best[2] = newest;
        } else if self.best[2].at == self.best[1].at && age > self.window / 2 {
            self.best[2] = newest;
        }
    }
}

/// The least value of the last `window` ticks: the greatest of the complements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowedMin(WindowedMax);

impl WindowedMin {
    /// No value yet.
    pub const fn new(window: u64) -> WindowedMin {
        WindowedMin(WindowedMax::new(window))
    }

    /// From now on the values of so many ticks count.
    pub const fn set_window(&mut self, window: u64) {
        self.0.set_window(window);
    }

    /// The least value, once there is one.
    pub const fn value(&self) -> Option<u64> {
        match !self.0.value() {
            u64::MAX => None,
            value => Some(value),
        }
    }

    /// Forgets everything but this value.
    pub fn reset(&mut self, at: u64, value: u64) {
        self.0.reset(at, !value);
    }

    /// Takes a value into account.
    pub fn update(&mut self, at: u64, value: u64) {
        self.0.update(at, !value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::vec::Vec;

    #[test]
    fn the_second_best_takes_over_when_the_best_leaves_the_window() {
        let mut greatest = WindowedMax::new(10);
        for (at, value) in [(0, 9), (3, 7), (6, 5), (10, 1)] {
            greatest.update(at, value);
        }
        assert_eq!(greatest.value(), 9);
        greatest.update(11, 1);
        assert_eq!(greatest.value(), 7);
    }

    #[test]
    fn a_pause_longer_than_the_window_forgets_all() {
        let mut least = WindowedMin::new(10);
        assert_eq!(least.value(), None);
        least.update(0, 5);
        least.update(11, 8);
        assert_eq!(least.value(), Some(8));
    }

    proptest! {
        /// Never above the true greatest value, and always a value of the window.
        #[test]
        fn the_answer_is_a_sample_of_the_window(steps in prop::collection::vec((0u64..5, 0u64..100), 1..200)) {
            let mut greatest = WindowedMax::new(20);
            let mut seen = Vec::new();
            let mut at = 0;
            for (step, value) in steps {
                at += step;
                seen.push((at, value));
                greatest.update(at, value);
                let inside = || seen.iter().filter(|(then, _)| at - then <= 20).map(|&(_, value)| value);
                prop_assert!(inside().any(|value| value == greatest.value()));
                prop_assert!(greatest.value() >= value);
            }
        }
    }
}
