//! Losses in bursts [Gilbert 1960] [Elliott 1963]: a chain of two states, of which each packet sees one and then moves it on.
//!
//! A packet is lost with the probability of the state that it finds; then the state changes, from good to bad with
//! probability `p`, from bad to good with `r`. The parameters are those of `tc netem loss gemodel p r 1-h 1-k`. The first
//! state is drawn from the stationary distribution, where netem begins in the good one: a run has its mean from the first
//! packet on. Only packets that may be lost move the chain.

use alloc::vec::Vec;

use super::{Context, Fate};
use crate::component::{Kind, Settings, Spec, Value, parameters};
use crate::rng::SmallStream;

const ONE: u64 = 1 << 32;

/// What experiments may choose.
pub const SPEC: Spec = Spec {
    name: "gilbert-elliott",
    about: "Loses packets in bursts: a chain of a good and a bad state, each with a probability of loss.",
    source: "[Gilbert 1960] [Elliott 1963]",
    parameters: parameters! {
        "p": Kind::Real { bits: 32 }, Value::Required, (1, ONE), "probability, per packet, of going from the good to the bad state";
        "r": Kind::Real { bits: 32 }, Value::Required, (1, ONE), "probability, per packet, of going from the bad to the good state";
        "loss-bad": Kind::Real { bits: 32 }, Value::Real(ONE), (1, ONE), "probability that a packet is lost in the bad state: 1 − h";
        "loss-good": Kind::Real { bits: 32 }, Value::Real(0), (0, ONE - 1), "probability that a packet is lost in the good state: 1 − k";
    },
};

/// Its parameters, in units of 2⁻³².
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub struct Config {
    /// From good to bad.
    pub p: u64,
    /// From bad to good.
    pub r: u64,
    /// Of loss in the bad state.
    pub loss_bad: u64,
    /// Of loss in the good state.
    pub loss_good: u64,
}

impl Config {
    pub(super) fn new(settings: &Settings<'_>) -> Result<Config, &'static str> {
        let real = |name| settings.real(name);
        let config = Config { p: real("p"), r: real("r"), loss_bad: real("loss-bad"), loss_good: real("loss-good") };
        if config.loss_good > config.loss_bad {
            return Err("`loss-good` is above `loss-bad`: the good state is the one that loses less");
        }
        Ok(config)
    }

    pub(super) fn values(&self) -> Vec<Value> {
        [self.p, self.r, self.loss_bad, self.loss_good].map(Value::Real).to_vec()
    }

    /// Share of packets lost in the long run: (r · loss-good + p · loss-bad) / (p + r). In units of 2⁻³², rounded to nearest.
    pub fn mean_loss(&self) -> u64 {
        let [p, r, bad, good] = [self.p, self.r, self.loss_bad, self.loss_good].map(u128::from);
        divide(r * good + p * bad, p + r)
    }

    /// Mean number of packets lost in a row, in units of 2⁻³², rounded to nearest: the share of packets lost over the share
    /// that is lost and followed by one that is not. With `loss-bad` 1 and `loss-good` 0 it is 1 / r.
    pub fn mean_burst(&self) -> u64 {
        let [p, r, bad, good] = [self.p, self.r, self.loss_bad, self.loss_good].map(u128::from);
        let one = u128::from(ONE);
        // Loss in each state, weighted by its share times (p + r); and survival of the packet after one in that state.
        let (in_good, in_bad) = (r * good, p * bad);
        let after_good = ((one - p) * (one - good) + p * (one - bad)) >> 32;
        let after_bad = ((one - r) * (one - bad) + r * (one - good)) >> 32;
        divide((in_good + in_bad) << 32, (in_good * after_good + in_bad * after_bad) >> 32)
    }
}

/// Rounded to nearest; the most there is where it would not end.
fn divide(part: u128, whole: u128) -> u64 {
    (part + whole / 2).checked_div(whole).and_then(|ratio| u64::try_from(ratio).ok()).unwrap_or(u64::MAX)
}

/// See the [module](self).
#[derive(Clone, Copy, Debug)]
pub struct GilbertElliott {
    config: Config,
    is_bad: bool,
    stream: SmallStream,
}

impl GilbertElliott {
    pub(super) fn build(config: &Config, context: Context) -> GilbertElliott {
        let mut stream = context.stream;
        let is_bad = stream.below(config.p + config.r) < config.p;
        GilbertElliott { config: *config, is_bad, stream }
    }

    pub(super) fn decide(&mut self) -> Fate {
        let Config { p, r, loss_bad, loss_good } = self.config;
        let (loss, change) = if self.is_bad { (loss_bad, r) } else { (loss_good, p) };
        let lost = self.stream.below(ONE) < loss;
        self.is_bad ^= self.stream.below(ONE) < change;
        if lost { Fate::Lost } else { Fate::Arrives }
    }
}

#[cfg(test)]
#[allow(
    clippy::float_arithmetic,
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "statistics"
)]
mod tests {
    use super::*;

    fn config(p: f64, r: f64, loss_bad: f64, loss_good: f64) -> Config {
        let [p, r, loss_bad, loss_good] = [p, r, loss_bad, loss_good].map(|real| (real * 4_294_967_296.0) as u64);
        Config { p, r, loss_bad, loss_good }
    }

    fn real(scaled: u64) -> f64 {
        scaled as f64 / 4_294_967_296.0
    }

    /// Whether each of so many packets is lost.
    fn losses(config: &Config, seed: u64, packets: usize) -> Vec<bool> {
        let mut chain = GilbertElliott::build(config, Context { stream: SmallStream::new(seed) });
        (0..packets).map(|_| chain.decide() == Fate::Lost).collect()
    }

    /// Lengths of runs of losses.
    fn bursts(losses: &[bool]) -> Vec<usize> {
        losses.split(|lost| !lost).map(<[bool]>::len).filter(|&length| length > 0).collect()
    }

    #[test]
    fn means_are_those_of_the_chain() {
        for (p, r, bad, good) in
            [(0.01, 0.25, 1.0, 0.0), (0.3, 0.2, 1.0, 0.0), (0.05, 0.1, 0.6, 0.02), (0.5, 0.5, 0.9, 0.3)]
        {
            let config = config(p, r, bad, good);
            let lost = losses(&config, 11, 4_000_000);
            let share = lost.iter().filter(|&&lost| lost).count() as f64 / lost.len() as f64;
            let expected = (r * good + p * bad) / (p + r);
            // The variance of the mean of a chain whose memory decays by λ = 1 − p − r is at most (1 + λ) / (1 − λ) of
            // independent losses'.
            let memory = ((2.0 - p - r) / (p + r)).max(1.0);
            let sigma = (expected * (1.0 - expected) * memory / lost.len() as f64).sqrt();
            assert!((share - expected).abs() < 4.5 * sigma, "{share} {expected} {sigma}");
            assert!((real(config.mean_loss()) - expected).abs() < 1e-8);
            let bursts = bursts(&lost);
            let mean = bursts.iter().sum::<usize>() as f64 / bursts.len() as f64;
            assert!((mean / real(config.mean_burst()) - 1.0).abs() < 0.02, "{mean} {}", real(config.mean_burst()));
        }
        assert!((real(config(0.01, 0.25, 1.0, 0.0).mean_burst()) - 4.0).abs() < 1e-6);
    }

    /// Where the bad state loses all and the good one nothing, bursts are geometric: of length n with (1 − r)ⁿ⁻¹ r. Their
    /// χ² over 1 … 9 and more, 9 degrees of freedom, is below its 99.99 % quantile.
    #[test]
    fn bursts_are_geometric() {
        let (p, r) = (0.02, 0.3);
        let bursts = bursts(&losses(&config(p, r, 1.0, 0.0), 5, 3_000_000));
        let total = bursts.len() as f64;
        let (mut chi_squared, mut rest) = (0.0, 1.0);
        for length in 1..=10_usize {
            let share = if length < 10 { rest * r } else { rest };
            let seen = bursts.iter().filter(|&&burst| burst.min(10) == length).count() as f64;
            chi_squared += (seen - total * share).powi(2) / (total * share);
            rest -= share;
        }
        assert!(total > 50_000.0 && chi_squared < 33.7, "{total} {chi_squared}");
    }

    #[test]
    fn the_first_packet_already_sees_the_mean() {
        let config = config(0.1, 0.3, 1.0, 0.0);
        let lost = (0..40_000).filter(|&seed| losses(&config, crate::rng::mix(seed), 1)[0]).count();
        // A quarter of 40,000; the standard deviation is 87.
        assert!(lost.abs_diff(10_000) < 390, "{lost}");
    }
}
