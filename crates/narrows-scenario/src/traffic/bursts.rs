//! Flows in bursts: each sender has a process of its own. A sender that stands in several groups has one in each, which
//! together have the stated mean.

use std::ops::{Range, RangeInclusive};

use narrows_core::units::Span;
use narrows_plan::arrivals::{per_second, thinned};
use narrows_plan::{OnOff as Planned, Open};

use super::{Group, MAX_FLOWS, Scene, few_enough, positive, sizes};
use crate::error::{Judged, Problem};
use crate::experiment::located::Located;
use crate::experiment::quantity::Fraction;
use crate::experiment::traffic::{LogNormal, OnOff, Traffic as Written};

/// Deviations of the logarithm of a log-normal time: below, flows come like a clock; beyond, no run is long enough to see
/// their mean.
const SIGMAS: RangeInclusive<f64> = 0.01..=4.0;
/// Most ON periods of one traffic: each takes time, whether it has flows or not.
const MAX_PERIODS: u64 = MAX_FLOWS;

/// Log-normal times between the flows of a sender.
pub(super) fn log_normal(
    written: &Located<Written>,
    times: &LogNormal,
    at: &Range<usize>,
    senders: &[Group],
    scene: &Scene<'_>,
) -> Judged<Vec<Open>> {
    not_exact(written, "with `log-normal`")?;
    let mean = times.mean.value.0;
    if mean == Span::ZERO {
        return Err(Problem::zero("the mean time between flows").at(&times.mean.span));
    }
    let sigma = deviation(&times.sigma)?;
    let process = |sender: &Group| (thinned(mean, sender.weight), Some(sigma), None);
    processes(written, at, senders, scene, process)
}

/// ON and OFF periods of a sender.
pub(super) fn on_off(
    written: &Located<Written>,
    lengths: &OnOff,
    at: &Range<usize>,
    senders: &[Group],
    scene: &Scene<'_>,
) -> Judged<Vec<Open>> {
    not_exact(written, "with `on-off`")?;
    for (what, length) in [
        ("the median of the ON periods", &lengths.on),
        ("the median of the OFF periods", &lengths.off),
        ("the median time between flows", &lengths.gap),
    ] {
        if length.value.0 == Span::ZERO {
            return Err(Problem::zero(what).at(&length.span));
        }
    }
    let [on, off, gap] = [&lengths.on, &lengths.off, &lengths.gap].map(|length| length.value.0);
    let all = Planned { on, off, gap, sigma: deviation(&lengths.sigma)? };
    #[expect(clippy::cast_precision_loss, reason = "numbers of hosts are far below 2^53")]
    let periods = all.periods_per_second() * senders.len() as f64;
    few_enough("ON periods", periods, MAX_PERIODS, at, scene)?;
    processes(written, at, senders, scene, |sender| {
        let thinned = Planned { gap: thinned(gap, sender.weight), ..all };
        (thinned.mean_interarrival(), None, Some(thinned))
    })
}

fn not_exact(written: &Written, place: &str) -> Judged<()> {
    match written.exact.as_ref().filter(|exact| exact.value) {
        Some(exact) => Err(Problem::not_here("exact", place).at(&exact.span)),
        None => Ok(()),
    }
}

fn deviation(sigma: &Located<Fraction>) -> Judged<f64> {
    if !SIGMAS.contains(&sigma.value.0) {
        return Err(Problem::out_of_range("sigma", sigma.value.0, SIGMAS.start(), SIGMAS.end()).at(&sigma.span));
    }
    Ok(sigma.value.0)
}

/// One process for each sender, of its mean time between flows and what else says when they come.
fn processes(
    written: &Located<Written>,
    at: &Range<usize>,
    senders: &[Group],
    scene: &Scene<'_>,
    of: impl Fn(&Group) -> (Span, Option<f64>, Option<Planned>),
) -> Judged<Vec<Open>> {
    few_enough("flows", senders.iter().map(|sender| per_second(of(sender).0)).sum(), MAX_FLOWS, at, scene)?;
    let sizes = sizes(written, written, scene)?;
    let request = written.request.as_ref().map(positive("a request")).transpose()?;
    let open = |sender: &Group| {
        let (mean_interarrival, sigma, on_off) = of(sender);
        let (sizes, pairs) = (sizes.clone(), sender.pairs.clone());
        Open { mean_interarrival, sigma, on_off, sizes, pairs, exact: false, request }
    };
    Ok(senders.iter().map(open).collect())
}
