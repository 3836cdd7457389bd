//! Flows without a size: what a plan states of each, for those who read them in results.

use narrows_plan::{Pattern, Plan};
use serde::Serialize;

use crate::route::{NoPath, Routes};

/// A flow without a size. Its traffic, its ends and its start name it in the table of flows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LongFlow<'a> {
    /// Name of its traffic.
    pub workload: &'a str,
    /// Name of the node that sends.
    pub source: &'a str,
    /// Name of the node that receives.
    pub destination: &'a str,
    /// When it begins at the earliest.
    pub from_ns: u64,
    /// When it begins at the latest.
    pub to_ns: u64,
    /// When it is stopped; at the run's end where there is none.
    pub stop_ns: Option<u64>,
    /// RTT of its ends without queues.
    pub base_rtt_ns: u64,
}

impl LongFlow<'_> {
    /// All of a plan, in its order.
    ///
    /// # Errors
    /// If the ends of one have no path between them; those of a plan made by this crate have.
    pub fn all(plan: &Plan) -> Result<Vec<LongFlow<'_>>, NoPath> {
        let name = |node: u32| plan.network.nodes[node as usize].name.as_str();
        let mut found = vec![];
        let mut pairs = vec![];
        for traffic in &plan.traffic {
            let Pattern::List(list) = &traffic.pattern else { continue };
            for flow in list.iter().filter(|flow| flow.size.is_none()) {
                pairs.push((flow.source, flow.destination));
                found.push(LongFlow {
                    workload: &traffic.name,
                    source: name(flow.source),
                    destination: name(flow.destination),
                    from_ns: flow.at.as_ns(),
                    to_ns: (flow.at + flow.spread).as_ns(),
                    stop_ns: flow.stop.map(|stop| stop.as_ns()),
                    base_rtt_ns: 0,
                });
            }
        }
        if !found.is_empty() {
            let rtts = Routes::new(&plan.network).base_rtts(&pairs)?;
            found.iter_mut().zip(rtts).for_each(|(flow, rtt)| flow.base_rtt_ns = rtt.as_ns());
        }
        Ok(found)
    }
}
