//! How long the far edge takes to acknowledge: smoothed, and with its variation [RFC 6298 §2].

use crate::units::Span;

/// A repair is not sent sooner than so much after an acknowledgement was due, though the time varied less.
const MIN_MARGIN: Span = Span::from_ms(1);

/// What the time is taken to vary by when it was measured once: an eighth. Between two edges less varies than between two hosts, and a first repair
/// is to come while the hole is hidden.
const FIRST_VARIATION: u64 = 8;

/// See the [module](self).
#[derive(Clone, Debug)]
pub(super) struct RoundTrip {
    smoothed: Span,
    variation: Span,
    measured: bool,
}

impl RoundTrip {
    /// Until it is measured, what was configured counts.
    pub(super) fn new(configured: Span) -> RoundTrip {
        RoundTrip { smoothed: configured, variation: configured.div(4), measured: false }
    }

    /// `SRTT_AB`.
    pub(super) fn smoothed(&self) -> Span {
        self.smoothed
    }

    /// The first try of a packet was acknowledged after so long.
    pub(super) fn measure(&mut self, sample: Span) {
        if !self.measured {
            *self = RoundTrip { smoothed: sample, variation: sample.div(FIRST_VARIATION), measured: true };
            return;
        }
        let apart = sample.saturating_sub(self.smoothed) + self.smoothed.saturating_sub(sample);
        self.variation = Span::from_ps(self.variation.as_ps() - self.variation.as_ps() / 4 + apart.as_ps() / 4);
        self.smoothed = Span::from_ps(self.smoothed.as_ps() - self.smoothed.as_ps() / 8 + sample.as_ps() / 8);
    }

    /// Two RTTs without a word while one is due are a silence.
    pub(super) fn silence(&self) -> Span {
        self.smoothed.saturating_mul(2) + MIN_MARGIN
    }

    /// `RTO_A`: what is not acknowledged by then is retransmitted. Before anything was measured, twice what was configured.
    pub(super) fn timeout(&self) -> Span {
        self.smoothed + self.variation.saturating_mul(4).max(MIN_MARGIN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_comes_to_a_steady_time_and_leaves_a_margin() {
        let mut time = RoundTrip::new(Span::from_ms(10));
        assert_eq!(time.timeout(), Span::from_ms(20));
        time.measure(Span::from_ms(8));
        assert_eq!((time.smoothed(), time.timeout()), (Span::from_ms(8), Span::from_ms(12)));
        for _ in 0..100 {
            time.measure(Span::from_ms(8));
        }
        assert_eq!((time.smoothed(), time.timeout()), (Span::from_ms(8), Span::from_ms(9)));
    }

    #[test]
    fn variation_makes_it_wait_longer() {
        let mut time = RoundTrip::new(Span::from_ms(10));
        for i in 0..1_000 {
            time.measure(Span::from_ms(if i % 2 == 0 { 10 } else { 20 }));
        }
        assert!(time.timeout() > Span::from_ms(30), "{}", time.timeout());
    }
}
