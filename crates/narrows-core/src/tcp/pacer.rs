//! Spreads transmissions over time at a rate.

use crate::units::{Bytes, Rate, Time};

/// The earliest moment for the next piece. A piece leaves whole; the wait for its whole length follows it (Linux's
/// internal pacing and fq alike).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pacer {
    next: Time,
}

impl Pacer {
    /// When the next piece may leave.
    pub(super) fn next(&self) -> Time {
        self.next
    }

    /// `size` left at `now`: what was missed while idle is not made up.
    pub(super) fn on_sent(&mut self, now: Time, size: Bytes, rate: Rate) {
        self.next = self.next.max(now) + rate.time_for(size);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Span;

    #[test]
    fn idle_time_grants_no_burst() {
        let mut pacer = Pacer::default();
        let (rate, packet) = (Rate::from_mbps(12), Bytes::new(1500));
        pacer.on_sent(Time::ZERO, packet, rate);
        assert_eq!(pacer.next(), Time::ZERO + Span::from_ms(1));
        let later = Time::ZERO + Span::from_ms(50);
        pacer.on_sent(later, packet, rate);
        assert_eq!(pacer.next(), later + Span::from_ms(1));
    }
}
