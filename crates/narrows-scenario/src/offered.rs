//! What a plan offers to each link.

use crate::plan::{Graph, Open, Pairs, Pattern, Plan};
use crate::route::{NoPath, Routes};
use crate::traffic::arrivals::GOODPUT_OVER_WIRE;

/// Flows per second of a process.
#[expect(clippy::cast_precision_loss, reason = "a mean time is known to 53 bits")]
pub(crate) fn flows_per_second(open: &Open) -> f64 {
    1e12 / open.mean_interarrival.as_ps() as f64
}

/// For every link, the share of its rate that flows arriving at random take, in wire bits of full packets, over shortest
/// paths and even splits. Acknowledgements, requests, long-lived flows and closed loops are not counted: the first two
/// are small, the others take what is left.
///
/// # Errors
/// If the plan's traffic has no path; a plan made by this crate has.
pub fn offered_load(plan: &Plan) -> Result<Vec<f64>, NoPath> {
    of(plan, &Routes::new(&plan.network))
}

/// The same, over known routes.
pub(crate) fn of(plan: &Plan, routes: &Routes<'_>) -> Result<Vec<f64>, NoPath> {
    let opens = plan.traffic.iter().filter_map(|traffic| match &traffic.pattern {
        Pattern::Open(open) => Some(open),
        _ => None,
    });
    let bytes: Vec<(&Pairs, f64)> =
        opens.map(|open| (&open.pairs, flows_per_second(open) * open.sizes.mean())).collect();
    Ok(shares_of_rates(&plan.network, &routes.carried(&bytes)?))
}

/// Application bytes per second as shares of the links' rates.
#[expect(clippy::cast_precision_loss, reason = "rates are far below 2^53 bit/s")]
fn shares_of_rates(graph: &Graph, bytes_per_second: &[f64]) -> Vec<f64> {
    let share =
        |(link, bytes): (&crate::plan::Link, &f64)| bytes * 8.0 / (link.rate.as_bps() as f64 * GOODPUT_OVER_WIRE);
    graph.links.iter().zip(bytes_per_second).map(share).collect()
}
