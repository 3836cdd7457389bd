//! What a plan offers to each link.

use crate::plan::{Graph, Open, Pattern, Plan};
use crate::route::{NoPath, Routes};
use crate::traffic::arrivals::load_of;

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
    let routes = Routes::new(&plan.network);
    let mut load = vec![0.0; plan.network.links.len()];
    for traffic in &plan.traffic {
        let Pattern::Open(open) = &traffic.pattern else { continue };
        add(open, &routes.crossing(&open.pairs)?, &plan.network, &mut load);
    }
    Ok(load)
}

/// Adds what one process puts on each link.
pub(crate) fn add(open: &Open, shares: &[f64], graph: &Graph, load: &mut [f64]) {
    let (rate, mean) = (flows_per_second(open), open.sizes.mean());
    for ((link, share), load) in graph.links.iter().zip(shares).zip(load) {
        *load += load_of(rate, link.rate, mean, *share);
    }
}
