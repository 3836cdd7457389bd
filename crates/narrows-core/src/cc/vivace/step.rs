//! From a gradient to a change of the rate: the confidence amplifier and the dynamic change boundary [PCC Vivace].

/// ω₀ and δ of the change boundary, thousandths of the rate [WebRTC pcc].
const BOUNDARY: u64 = 50;
const BOUNDARY_STEP: u64 = 100;
/// Up to so many decisions in one direction the amplifier counts them [WebRTC pcc].
const PLAIN: u64 = 3;
/// Keeps products in range; a rate changes by more than all of itself long before.
const MAX_REPEATS: u64 = 1 << 10;

/// Decisions so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Step {
    /// Of the last one: -1, 0 or 1.
    direction: i128,
    /// τ, how many have gone that way.
    repeats: u64,
    /// k, by how many δ the boundary is wider than ω₀.
    widenings: u64,
}

impl Step {
    /// m(τ) = τ for τ ≤ 3, then 2τ - 3.
    const fn amplifier(&self) -> u64 {
        if self.repeats <= PLAIN { self.repeats } else { 2 * self.repeats - PLAIN }
    }

    /// ω·r with ω = ω₀ + k·δ.
    fn boundary(widenings: u64, rate: u64) -> i128 {
        i128::from(rate) * i128::from(BOUNDARY + widenings * BOUNDARY_STEP) / 1_000
    }

    /// How much `rate` is to change, bit/s, where θ₀·γ is `raw`: by m(τ)·θ₀·γ, at most ω·r.
    pub(super) fn change(&mut self, raw: i128, rate: u64) -> i128 {
        if raw.signum() != self.direction {
            *self = Step { direction: raw.signum(), ..Step::default() };
        }
        if raw == 0 {
            return 0;
        }
        self.repeats = (self.repeats + 1).min(MAX_REPEATS);
        let change = raw.saturating_mul(i128::from(self.amplifier()));
        let boundary = Step::boundary(self.widenings, rate);
        if change.abs() > boundary {
            self.widenings += 1;
            return boundary * self.direction;
        }
        // The smallest k that allows it.
        while self.widenings > 0 && change.abs() <= Step::boundary(self.widenings - 1, rate) {
            self.widenings -= 1;
        }
        change
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    const RATE: u64 = 100_000_000;

    #[test]
    fn the_amplifier_counts_to_three_and_then_by_twos() {
        let mut step = Step::default();
        let changes: Vec<i128> = (0..7).map(|_| step.change(1_000, RATE)).collect();
        assert_eq!(changes, [1_000, 2_000, 3_000, 5_000, 7_000, 9_000, 11_000]);
    }

    #[test]
    fn another_direction_begins_anew() {
        let mut step = Step::default();
        for _ in 0..5 {
            step.change(1_000, RATE);
        }
        assert_eq!(step.change(-1_000, RATE), -1_000);
        assert_eq!(step.change(-1_000, RATE), -2_000);
        assert_eq!(step.change(0, RATE), 0);
        assert_eq!(step.change(-1_000, RATE), -1_000);
    }

    /// ω₀ = 5 %, then δ = 10 % more each time that the boundary is what limits.
    #[test]
    fn the_boundary_widens_while_it_limits() {
        let mut step = Step::default();
        let huge = 1 << 70;
        let percent: Vec<i128> = (0..4).map(|_| step.change(huge, RATE) * 100 / i128::from(RATE)).collect();
        assert_eq!(percent, [5, 15, 25, 35]);
        assert_eq!(step.change(-huge, RATE) * 100 / i128::from(RATE), -5);
    }

    #[test]
    fn the_boundary_narrows_to_the_least_that_allows_the_change() {
        let mut step = Step::default();
        for _ in 0..3 {
            step.change(1 << 70, RATE);
        }
        assert_eq!(step.widenings, 3);
        // The fourth is amplified by 5, to 12 %: that needs ω₀ + δ. The fifth, by 7, to 3.5 %: ω₀.
        assert_eq!(step.change(2_400_000, RATE), 12_000_000);
        assert_eq!(step.widenings, 1);
        assert_eq!(step.change(500_000, RATE), 3_500_000);
        assert_eq!(step.widenings, 0);
    }
}
