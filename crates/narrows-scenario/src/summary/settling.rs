//! How long the work that waits for the network takes to forget how it began: what can be said before a run.
//!
//! The link at which it takes longest stands for the network, as an M/G/1 queue in heavy traffic: its unfinished work is
//! close to a reflected Brownian motion, whatever the order of service \[Whitt 2006\]. A network takes longer: see
//! [`offered::correlations`].

use narrows_core::units::{Span, Time};
use narrows_plan::Plan;
use serde::Serialize;

use crate::offered;
use crate::route::Routes;

/// The link whose unfinished work takes longest to settle.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Settling {
    /// Its name.
    pub link: String,
    /// Share of its rate that is offered at random times.
    pub load: f64,
    /// Over how long its work is correlated, seconds; `None`: as much is offered as it carries, or more, so that work grows
    /// as long as flows arrive.
    pub correlation_seconds: Option<f64>,
    /// Share of its mean that work has at the end of the warm-up, expected.
    pub filled: f64,
    /// Standard deviation of a run's mean work over the time that counts, relative to the mean.
    pub spread: f64,
}

impl Settling {
    /// Of a plan with traffic at random times, whose links are offered these loads; `None` without any.
    ///
    /// # Panics
    /// If traffic of the plan has no path: a plan made by this crate has.
    pub(crate) fn of(plan: &Plan, routes: &Routes<'_>, loads: &[f64]) -> Option<Settling> {
        let times = offered::correlations(plan, routes, loads).expect("a plan's traffic has paths");
        let rank = |link: &usize| if loads[*link] < 1.0 { times[*link].unwrap_or(0.0) } else { f64::INFINITY };
        let links = (0..loads.len()).filter(|link| loads[*link] > 0.0);
        // The first of equal ones.
        let link = links.rev().max_by(|one, other| rank(one).total_cmp(&rank(other)))?;
        let correlation = times[link].filter(|time| *time > 0.0);
        let warmup = seconds(plan.schedule.warmup);
        let counted = seconds(plan.schedule.end.since(Time::ZERO)) - warmup;
        Some(Settling {
            link: plan.network.links[link].name.clone(),
            load: loads[link],
            correlation_seconds: correlation,
            filled: correlation.map_or(0.0, |time| filled(warmup / time)),
            spread: correlation.map_or(0.0, |time| spread(counted / time)),
        })
    }
}

#[expect(clippy::cast_precision_loss, reason = "runs last a day at most")]
fn seconds(span: Span) -> f64 {
    span.as_ps() as f64 / 1e12
}

/// The mean of a reflected Brownian motion that began at 0, relative to what it becomes, after so many times over which it
/// is correlated: 1 − 2(1 + t)(1 − Φ(√t)) + 2√t·φ(√t) \[Abate 1987\].
fn filled(times: f64) -> f64 {
    let root = libm::sqrt(times);
    let beyond = 0.5 * libm::erfc(root / std::f64::consts::SQRT_2);
    let density = libm::exp(-0.5 * times) / libm::sqrt(2.0 * std::f64::consts::PI);
    1.0 - 2.0 * (1.0 + times) * beyond + 2.0 * root * density
}

/// Standard deviation of the mean over so many times of what is exponentially distributed, as work is in heavy traffic, and
/// taken to forget exponentially.
fn spread(times: f64) -> f64 {
    if times <= 0.0 {
        return 1.0;
    }
    libm::sqrt(2.0 / times * (1.0 + libm::expm1(-times) / times))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The integral of 1 − `filled` is a half: the bias of canonical reflected Brownian motion, a quarter, over its mean, a
    /// half [Whitt 2006, §4].
    #[test]
    fn the_work_that_is_missing_after_an_empty_start_is_that_of_reflected_brownian_motion() {
        let step = 1e-3;
        let missing: f64 = (0..60_000).map(|place| (1.0 - filled((f64::from(place) + 0.5) * step)) * step).sum();
        assert!((missing - 0.5).abs() < 1e-4, "{missing}");
        assert!(filled(0.0).abs() < 1e-12);
    }

    #[test]
    fn a_mean_over_no_time_varies_as_work_does_and_over_long_by_the_root_of_twice_its_inverse() {
        assert!((spread(1e-6) - 1.0).abs() < 1e-3);
        assert!((spread(1e6) / libm::sqrt(2e-6) - 1.0).abs() < 1e-3);
    }
}
