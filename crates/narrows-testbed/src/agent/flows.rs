//! Which flows a host opens or answers, by name: what the plan and the seed draw, looked up.

use std::collections::BTreeMap;

use narrows_core::app::{App, Application, FlowStart};
use narrows_plan::flows::Name;
use narrows_plan::{Plan, Traffic};

/// The flows of all hosts.
pub struct Drawn<'a> {
    /// By traffic entry: the application without a host, and the flows that begin by themselves.
    entries: Vec<(App<'a>, Vec<FlowStart>)>,
}

impl<'a> Drawn<'a> {
    /// Those of a run of this seed.
    pub fn new(plan: &'a Plan, seed: u64) -> Drawn<'a> {
        let entry = |traffic: &'a Traffic| {
            let flows = traffic.flows(seed, &plan.schedule).collect();
            (traffic.application(seed, &plan.schedule, |_| false, |_| false), flows)
        };
        Drawn { entries: plan.traffic.iter().map(entry).collect() }
    }

    /// The flow of this name, if there is one. One that follows a message begins then: its start is zero.
    pub fn flow(&self, name: Name) -> Option<FlowStart> {
        let (app, flows) = self.entries.get(name.traffic as usize)?;
        app.flow(name.sequence).or_else(|| flows.get(name.sequence as usize).copied())
    }
}

/// The flows that one host has an end of.
pub(crate) struct Flows<'a> {
    host: u32,
    /// Those that begin by themselves.
    drawn: BTreeMap<Name, FlowStart>,
    /// By traffic entry.
    pub(crate) apps: Vec<App<'a>>,
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
        let opens = move |flow: &FlowStart| flow.ends().0 == host;
        let app = |entry: &'a Traffic| entry.application(seed, &plan.schedule, |node| node == host, opens);
        Flows { host, drawn, apps: plan.traffic.iter().map(app).collect() }
    }

    /// A flow that has an end here; `None` for all others, and for names that mean nothing.
    pub(crate) fn get(&self, name: Name) -> Option<FlowStart> {
        let flow = self.apps.get(name.traffic as usize)?.flow(name.sequence);
        flow.filter(|flow| flow.source == self.host || flow.destination == self.host)
            .or_else(|| self.drawn.get(&name).copied())
    }

    /// The flows that this host opens by itself, by name.
    pub(crate) fn opened(&self) -> impl Iterator<Item = (Name, &FlowStart)> {
        self.drawn.iter().map(|(name, flow)| (*name, flow)).filter(|(_, flow)| flow.ends().0 == self.host)
    }
}
