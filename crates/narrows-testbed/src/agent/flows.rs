//! Which flows a host opens or answers: drawn from the plan and the seed, the same as in the simulator.

use std::collections::BTreeMap;

use narrows_core::rng::{SmallStream, Stream, mix};
use narrows_core::units::{Span, Time};
use narrows_scenario::plan::{FlowStart, Incast, Pattern, Plan, Schedule, Traffic};
use narrows_scenario::traffic::flows::started;

use super::message::Name;

/// The flows that an entry begins by itself, in the order of their starts; a client that asks begins none.
pub(crate) fn arrivals<'a>(
    traffic: &'a Traffic,
    seed: u64,
    schedule: &'a Schedule,
) -> Box<dyn Iterator<Item = FlowStart> + 'a> {
    match &traffic.pattern {
        Pattern::Open(open) => Box::new(open.flows(seed, &traffic.name, schedule)),
        Pattern::List(list) => Box::new(started(list, seed, &traffic.name).into_iter()),
        Pattern::Incast(_) => Box::new(std::iter::empty()),
    }
}

/// Who opens a flow's connection, and whom to.
pub(crate) const fn ends(flow: &FlowStart) -> (u32, u32) {
    match flow.request {
        Some(_) => (flow.destination, flow.source),
        None => (flow.source, flow.destination),
    }
}

/// The flow that a client asks for in its turn: its servers by turns, query after query.
pub(crate) fn asked(incast: &Incast, sequence: u32, at: Time) -> FlowStart {
    let source = incast.servers[sequence as usize % incast.servers.len()];
    let flow = FlowStart::new(at, source, incast.client, Some(incast.response));
    FlowStart { request: Some(incast.request), ..flow }
}

/// The flows of all hosts.
#[derive(Debug)]
pub struct Drawn<'a> {
    plan: &'a Plan,
    /// By traffic entry.
    flows: Vec<Vec<FlowStart>>,
}

impl<'a> Drawn<'a> {
    /// The same as the simulator draws.
    pub fn new(plan: &'a Plan, seed: u64) -> Drawn<'a> {
        let flows = plan.traffic.iter().map(|traffic| arrivals(traffic, seed, &plan.schedule).collect());
        Drawn { plan, flows: flows.collect() }
    }

    /// The flow of this name, if there is one. One of a client's begins when it asks: its start is zero.
    pub fn flow(&self, name: Name) -> Option<FlowStart> {
        match &self.plan.traffic.get(name.traffic as usize)?.pattern {
            Pattern::Incast(incast) => Some(asked(incast, name.sequence, Time::ZERO)),
            _ => self.flows[name.traffic as usize].get(name.sequence as usize).copied(),
        }
    }
}

/// The flows that one host has an end of.
#[derive(Debug)]
pub(crate) struct Flows<'a> {
    plan: &'a Plan,
    host: u32,
    /// All but those that clients ask for.
    drawn: BTreeMap<Name, FlowStart>,
    /// Keys of the waits before answers, by traffic entry.
    jitter: Vec<u64>,
}

impl<'a> Flows<'a> {
    pub(crate) fn draw(plan: &'a Plan, seed: u64, host: u32) -> Flows<'a> {
        let mut drawn = BTreeMap::new();
        for (traffic, entry) in (0..).zip(&plan.traffic) {
            for (sequence, flow) in (0..).zip(arrivals(entry, seed, &plan.schedule)) {
                if flow.at < plan.schedule.end && (flow.source == host || flow.destination == host) {
                    drawn.insert(Name { traffic, sequence }, flow);
                }
            }
        }
        let key = |traffic: &Traffic| Stream::named(seed, &format!("jitter/{}", traffic.name)).next_u64();
        Flows { plan, host, drawn, jitter: plan.traffic.iter().map(key).collect() }
    }

    /// A flow that has an end here; `None` for all others, and for names that mean nothing.
    pub(crate) fn get(&self, name: Name) -> Option<FlowStart> {
        if let Pattern::Incast(incast) = &self.plan.traffic.get(name.traffic as usize)?.pattern {
            let flow = asked(incast, name.sequence, Time::ZERO);
            return (flow.source == self.host || flow.destination == self.host).then_some(flow);
        }
        self.drawn.get(&name).copied()
    }

    /// The flows that this host opens by itself, by name.
    pub(crate) fn opened(&self) -> impl Iterator<Item = (Name, &FlowStart)> {
        self.drawn.iter().map(|(name, flow)| (*name, flow)).filter(|(_, flow)| ends(flow).0 == self.host)
    }

    /// How long this host waits before it answers a request.
    pub(crate) fn wait(&self, name: Name) -> Span {
        match &self.plan.traffic[name.traffic as usize].pattern {
            Pattern::Incast(incast) if incast.jitter > Span::ZERO => {
                let pair = u64::from(incast.client) << 32 | u64::from(self.host);
                let round = u64::from(name.sequence) / incast.servers.len() as u64;
                let mut random = SmallStream::new(mix(self.jitter[name.traffic as usize] ^ mix(pair)) ^ round);
                Span::from_ps(random.below(incast.jitter.as_ps()))
            }
            _ => Span::ZERO,
        }
    }
}
