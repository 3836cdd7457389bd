//! Every flow of a run, from its start to its row.

use std::iter::Peekable;

use narrows_core::units::{Bytes, Span, Time};
use narrows_scenario::plan::{FlowStart, Pattern, Plan, Schedule, Traffic};

/// Flows of one traffic entry, in the order of their starts.
pub(crate) type Arrivals<'a> = Peekable<Box<dyn Iterator<Item = FlowStart> + Send + 'a>>;

/// The flows that this entry begins by itself; a closed loop begins none.
pub(crate) fn arrivals<'a>(traffic: &'a Traffic, seed: u64, schedule: &'a Schedule) -> Arrivals<'a> {
    let flows: Box<dyn Iterator<Item = FlowStart> + Send + 'a> = match &traffic.pattern {
        Pattern::Open(open) => Box::new(open.flows(seed, &traffic.name, schedule)),
        Pattern::List(list) => {
            let mut list = list.clone();
            list.sort_by_key(|flow| flow.at);
            Box::new(list.into_iter())
        }
        Pattern::Incast(_) => Box::new(std::iter::empty()),
    };
    flows.peekable()
}

/// One flow while it goes on and after.
#[derive(Clone, Debug)]
pub(crate) struct Flow {
    pub(crate) connection: u32,
    pub(crate) traffic: u32,
    pub(crate) source: u32,
    pub(crate) destination: u32,
    /// `None` for a flow without an end of its own.
    pub(crate) size: Option<Bytes>,
    pub(crate) query: Option<u32>,
    pub(crate) start: Time,
    pub(crate) done: Option<Time>,
    pub(crate) ideal: Span,
    pub(crate) rtt_sum: Span,
    pub(crate) rtt_count: u64,
    pub(crate) retransmitted_bytes: u64,
    pub(crate) timeouts: u32,
    pub(crate) marked_bytes: u64,
    /// Delivered in order by the end of the warm-up, by the end of the arrivals, and in all.
    pub(crate) delivered_at_warmup: u64,
    pub(crate) delivered_at_end: Option<u64>,
    pub(crate) delivered: u64,
    /// Delivered by the last sample of goodput.
    pub(crate) reported: u64,
    /// A flow without a size that offers no more.
    pub(crate) stopped: bool,
}

/// Whether two nodes stand in different datacenters.
pub(crate) fn crosses(plan: &Plan, source: u32, destination: u32) -> bool {
    plan.network.nodes[source as usize].site != plan.network.nodes[destination as usize].site
}
