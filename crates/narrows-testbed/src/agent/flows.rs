//! Which flows a host opens or answers, by name: what the plan and the seed draw, looked up.

use std::collections::BTreeMap;

use narrows_core::units::{Span, Time};
use narrows_scenario::plan::{FlowStart, Pattern, Plan};
use narrows_scenario::traffic::asks::Waits;
use narrows_scenario::traffic::flows::Name;

/// The flows of all hosts.
#[derive(Debug)]
pub struct Drawn<'a> {
    plan: &'a Plan,
    /// By traffic entry.
    flows: Vec<Vec<FlowStart>>,
}

impl<'a> Drawn<'a> {
    /// Those of a run of this seed.
    pub fn new(plan: &'a Plan, seed: u64) -> Drawn<'a> {
        let flows = plan.traffic.iter().map(|traffic| traffic.flows(seed, &plan.schedule).collect());
        Drawn { plan, flows: flows.collect() }
    }

    /// The flow of this name, if there is one. One of a client's begins when it asks: its start is zero.
    pub fn flow(&self, name: Name) -> Option<FlowStart> {
        match &self.plan.traffic.get(name.traffic as usize)?.pattern {
            Pattern::Incast(incast) => Some(incast.asked(name.sequence, Time::ZERO)),
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
    /// Waits before answers, by traffic entry.
    waits: Vec<Waits>,
}

impl<'a> Flows<'a> {
    pub(crate) fn draw(plan: &'a Plan, seed: u64, host: u32) -> Flows<'a> {
        let mut drawn = BTreeMap::new();
        for (traffic, entry) in (0..).zip(&plan.traffic) {
            for (sequence, flow) in (0..).zip(entry.flows(seed, &plan.schedule)) {
                if flow.source == host || flow.destination == host {
                    drawn.insert(Name { traffic, sequence }, flow);
                }
            }
        }
        let waits = plan.traffic.iter().map(|entry| Waits::new(seed, &entry.name)).collect();
        Flows { plan, host, drawn, waits }
    }

    /// A flow that has an end here; `None` for all others, and for names that mean nothing.
    pub(crate) fn get(&self, name: Name) -> Option<FlowStart> {
        if let Pattern::Incast(incast) = &self.plan.traffic.get(name.traffic as usize)?.pattern {
            let flow = incast.asked(name.sequence, Time::ZERO);
            return (flow.source == self.host || flow.destination == self.host).then_some(flow);
        }
        self.drawn.get(&name).copied()
    }

    /// The flows that this host opens by itself, by name.
    pub(crate) fn opened(&self) -> impl Iterator<Item = (Name, &FlowStart)> {
        self.drawn.iter().map(|(name, flow)| (*name, flow)).filter(|(_, flow)| flow.ends().0 == self.host)
    }

    /// How long this host waits before it answers a request; `None` if it does not.
    pub(crate) fn wait(&self, name: Name) -> Option<Span> {
        match &self.plan.traffic[name.traffic as usize].pattern {
            Pattern::Incast(incast) => self.waits[name.traffic as usize].of(incast, name.sequence),
            _ => None,
        }
    }
}
