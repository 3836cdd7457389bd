//! Reordering: a share of packets, drawn independently, takes longer on the wire, and what was sent behind them overtakes
//! them. All other packets keep their order.
//!
//! The extra time is fixed, or uniform over a range. A packet that is late by `d` is overtaken by all that leave within `d`
//! after it: its reorder extent [RFC 4737 §4.2] is at most their number. `tc netem … reorder` states the same the other way
//! round: there the share is of those that are *not* delayed.

use alloc::vec;
use alloc::vec::Vec;

use super::{Context, Fate};
use crate::component::{Kind, Settings, Spec, Value, parameters};
use crate::rng::SmallStream;
use crate::units::Span;

/// What experiments may choose.
pub const SPEC: Spec = Spec {
    name: "late",
    about: "Delays a share of packets by extra time, so that later ones overtake them.",
    source: "[RFC 4737]",
    parameters: parameters! {
        "share": Kind::Real { bits: 32 }, Value::Required, (0, 1 << 32), "probability that a packet is delayed";
        "delay": Kind::Span, Value::Required, (1, 60_000_000_000_000), "extra time that it takes, at least";
        "delay-max": Kind::Span, Value::Auto, (1, 60_000_000_000_000), "extra time at most: uniform from `delay` up to this; auto: `delay`";
    },
};

/// Its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub struct Config {
    /// Probability that a packet is delayed, in units of 2⁻³².
    pub share: u64,
    /// Least extra time.
    pub delay: Span,
    /// Greatest extra time.
    pub delay_max: Span,
}

impl Config {
    pub(super) fn new(settings: &Settings<'_>) -> Result<Config, &'static str> {
        let delay = settings.span("delay");
        let delay_max = settings.span_or_auto("delay-max").unwrap_or(delay);
        if delay_max < delay {
            return Err("`delay-max` is below `delay`");
        }
        Ok(Config { share: settings.real("share"), delay, delay_max })
    }

    pub(super) fn values(&self) -> Vec<Value> {
        vec![Value::Real(self.share), Value::Span(self.delay), Value::Span(self.delay_max)]
    }
}

/// See the [module](self).
#[derive(Clone, Copy, Debug)]
pub struct Reorder {
    config: Config,
    stream: SmallStream,
}

impl Reorder {
    pub(super) fn build(config: &Config, context: Context) -> Reorder {
        Reorder { config: *config, stream: context.stream }
    }

    pub(super) fn decide(&mut self) -> Fate {
        let Config { share, delay, delay_max } = self.config;
        if self.stream.below(1 << 32) >= share {
            return Fate::Arrives;
        }
        let range = delay_max.as_ps() - delay.as_ps() + 1;
        Fate::Late(delay + Span::from_ps(self.stream.below(range)))
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

    #[test]
    fn the_share_is_late_by_a_time_that_is_uniform_over_the_range() {
        let (delay, delay_max) = (Span::from_us(10), Span::from_us(30));
        let config = Config { share: 1 << 30, delay, delay_max };
        let mut reorder = Reorder::build(&config, Context { stream: SmallStream::new(3) });
        let late: Vec<Span> = (0..40_000)
            .filter_map(|_| match reorder.decide() {
                Fate::Late(extra) => Some(extra),
                _ => None,
            })
            .collect();
        // A quarter; the standard deviation is 87.
        assert!(late.len().abs_diff(10_000) < 390, "{}", late.len());
        assert!(late.iter().all(|extra| (delay..=delay_max).contains(extra)));
        let mut quarters = [0_i64; 4];
        for extra in &late {
            quarters[(((*extra - delay).as_ps() - 1) / 5_000_000).min(3) as usize] += 1;
        }
        let expected = late.len() as f64 / 4.0;
        let chi_squared: f64 = quarters.iter().map(|&seen| (seen as f64 - expected).powi(2) / expected).sum();
        assert!(chi_squared < 21.1, "{quarters:?}: 3 degrees of freedom, 99.99 %");
    }
}
