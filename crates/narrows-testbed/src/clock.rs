//! The real clock as the network's time.

use narrows_core::units::{Span, Time};
use rustix::time::{ClockId, Timespec, clock_gettime};

const NANOS_PER_SECOND: u64 = 1_000_000_000;

/// `CLOCK_MONOTONIC`, counted from a moment of one's own. Copies agree, on every thread and in every namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clock {
    /// Monotonic nanoseconds at [`Time::ZERO`].
    zero_ns: u64,
}

impl Clock {
    /// A clock that shows [`Time::ZERO`] now.
    pub fn start() -> Clock {
        Clock { zero_ns: monotonic_ns() }
    }

    /// A clock that shows zero when this one shows `at`.
    pub const fn from(self, at: Time) -> Clock {
        Clock { zero_ns: self.zero_ns + at.as_ns() }
    }

    /// What it shows, in whole nanoseconds; [`Time::ZERO`] before its zero.
    pub fn now(self) -> Time {
        Time::from_ns(monotonic_ns().saturating_sub(self.zero_ns))
    }

    /// How long from now until it shows at least `at`; zero if it does.
    pub fn until(self, at: Time) -> Span {
        let at_ns = self.zero_ns.saturating_add(at.as_ps().div_ceil(1_000));
        Span::from_ns(at_ns.saturating_sub(monotonic_ns()).min(u64::MAX / 1_000))
    }
}

/// A span as the kernel takes it, rounded up to a nanosecond.
pub(crate) fn timespec(span: Span) -> Timespec {
    let ns = span.as_ps().div_ceil(1_000);
    // Both fit: a span is at most 2⁶⁴ ps, 213 days.
    #[allow(clippy::cast_possible_wrap, reason = "213 days are few seconds")]
    Timespec { tv_sec: (ns / NANOS_PER_SECOND) as i64, tv_nsec: (ns % NANOS_PER_SECOND) as i64 }
}

#[allow(clippy::cast_sign_loss, reason = "time since boot is positive")]
fn monotonic_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * NANOS_PER_SECOND + now.tv_nsec as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_begins_later_stands_at_zero_until_then() {
        let clock = Clock::start();
        let later = clock.from(Time::from_ns(3_600_000_000_000));
        assert_eq!(later.now(), Time::ZERO);
        let hour = Span::from_secs(3_600);
        assert!(later.until(Time::ZERO) <= hour && later.until(Time::ZERO) > hour - Span::from_secs(60));
    }

    #[test]
    fn waiting_rounds_up_so_that_nothing_happens_too_early() {
        assert_eq!(timespec(Span::from_ps(1)), Timespec { tv_sec: 0, tv_nsec: 1 });
        assert_eq!(timespec(Span::from_ps(1_500_000_000_001)), Timespec { tv_sec: 1, tv_nsec: 500_000_001 });
        assert_eq!(Clock::start().until(Time::ZERO), Span::ZERO);
    }
}
