//! Samples while the run goes on: windows, and goodput in bins.

use narrows_core::cc::spec;
use narrows_core::units::{Bytes, Rate, Time};
use narrows_results::Quantity;

use super::Agent;
use super::notes::Sample;
use super::socket::{Info, most_rate};

impl<'a> Agent<'a> {
    pub(super) fn sample_windows(&mut self, at: Time) {
        let at = self.plan_time(at);
        for (&name, id) in &self.endless {
            let Some(connection) = self.connections.get(id).filter(|connection| connection.writing.is_some()) else {
                continue;
            };
            if connection.sending.is_none() {
                continue;
            }
            let Ok(info) = Info::of(&connection.socket) else { continue };
            let mut sample = |quantity, value| self.notes.samples.push(Sample { at, flow: name, quantity, value });
            sample(Quantity::WindowPackets, u64::from(info.window()));
            // Every sender has a rate; these controllers pace by it.
            let paces = spec(&self.run.plan.traffic[name.traffic as usize].controller.name)
                .is_some_and(|spec| spec.needs_delivery_rate);
            if paces {
                sample(Quantity::PacingBps, info.pacing().as_bps());
            }
            let listens = self.run.plan.traffic[name.traffic as usize].profile.near_source.is_some();
            if let Some(rate) = listens.then(|| most_rate(&connection.socket).ok()).flatten().flatten() {
                sample(Quantity::NearSourceBps, rate.as_bps());
            }
        }
    }

    pub(super) fn sample_goodput(&mut self, at: Time) {
        let (at, width) = (self.plan_time(at), self.run.plan.sampling.goodput);
        for &name in self.endless.keys() {
            let Some(received) = self.notes.flows.get(&name).and_then(|flow| flow.received) else { continue };
            let before = self.reported.insert(name, received.delivered).unwrap_or(0);
            let value = Rate::of(Bytes::new(received.delivered - before), width).as_bps();
            self.notes.samples.push(Sample { at, flow: name, quantity: Quantity::GoodputBps, value });
        }
    }
}
