//! Loaded controllers for Prometheus. The series are few: one for each controller, and for each namespace with
//! flows; of each flow only where that was asked for.

use std::collections::BTreeMap;

use narrows_core::units::Rate;
use narrows_kernel::{Controller, Flow};

use super::state::State;
use super::table::scaled;
use crate::metrics::{Metric, Metrics};
use crate::namespaces::{Namespace, label};

/// All metrics of these controllers; with `flows` also those of each flow.
pub(super) fn text(states: &[(&Controller, Option<State>)], all: &[Namespace], flows: bool) -> String {
    let mut metrics = Metrics::default();
    for (controller, state) in states {
        let labels = [("controller", controller.spec.name.to_owned())];
        metrics.add(&LOADED, &labels, if state.is_some() { 1.0 } else { 0.0 });
        let Some(state) = state else { continue };
        metrics.add(&FLOWS_TOTAL, &labels, scaled(state.counters.flows, 0));
        metrics.add(&REFUSED, &labels, scaled(state.counters.ecn_refused, 0));
        metrics.add(&UNPUBLISHED, &labels, scaled(state.counters.unpublished, 0));
        namespaces(&mut metrics, state, all);
        if flows {
            state.flows.iter().for_each(|flow| one(&mut metrics, controller, flow, all));
        }
    }
    metrics.text()
}

/// Sums over the flows of each namespace.
fn namespaces(metrics: &mut Metrics, state: &State, all: &[Namespace]) {
    let mut by_namespace: BTreeMap<u32, Vec<&Flow>> = BTreeMap::new();
    for flow in &state.flows {
        by_namespace.entry(flow.namespace).or_default().push(flow);
    }
    for (inode, flows) in by_namespace {
        let labels = [("controller", state.controller.spec.name.to_owned()), ("netns", label(all, inode))];
        let sum = |of: fn(&Flow) -> f64| flows.iter().map(|flow| of(flow)).sum::<f64>();
        metrics.add(&FLOWS, &labels, sum(|_| 1.0));
        metrics.add(&WINDOW, &labels, sum(|flow| scaled(flow.window_q10, 10)));
        metrics.add(&PACING, &labels, sum(|flow| scaled(flow.pacing.map_or(0, Rate::as_bps), 0)));
    }
}

const LOADED: Metric = Metric("narrows_loaded", "gauge", "Whether the controller is registered.");
const FLOWS_TOTAL: Metric = Metric("narrows_flows_total", "counter", "Flows that it controlled since it was loaded.");
const REFUSED: Metric =
    Metric("narrows_ecn_refused_total", "counter", "Connections whose other end refused the ECN that it needs.");
const UNPUBLISHED: Metric =
    Metric("narrows_unpublished_flows_total", "counter", "Flows that found no room in the list of flows.");
const FLOWS: Metric = Metric("narrows_flows", "gauge", "Flows that it controls now.");
const WINDOW: Metric = Metric("narrows_window_packets", "gauge", "Congestion windows of its flows, summed.");
const PACING: Metric =
    Metric("narrows_pacing_bits_per_second", "gauge", "Pacing rates of those of its flows that are paced, summed.");
const FLOW_WINDOW: Metric = Metric("narrows_flow_window_packets", "gauge", "Congestion window of a flow.");
const FLOW_THRESHOLD: Metric = Metric("narrows_flow_threshold_packets", "gauge", "Slow-start threshold of a flow.");
const FLOW_PACING: Metric = Metric("narrows_flow_pacing_bits_per_second", "gauge", "Pacing rate of a flow.");
const FLOW_ALPHA: Metric =
    Metric("narrows_flow_alpha_ratio", "gauge", "The marked fraction of a flow's packets, smoothed.");
const FLOW_BASE: Metric = Metric("narrows_flow_rtt_base_seconds", "gauge", "Base RTT of a flow.");
const FLOW_ACKED: Metric = Metric("narrows_flow_acked_packets_total", "counter", "Packets acknowledged.");
const FLOW_MARKED: Metric = Metric("narrows_flow_marked_packets_total", "counter", "Packets reported as marked.");
const FLOW_CUTS: Metric = Metric("narrows_flow_cuts_total", "counter", "Cuts of the window by cause.");
const FLOW_ECN: Metric = Metric("narrows_flow_ecn", "gauge", "Whether ECN was negotiated.");

/// One flow. Its entry's key tells apart flows that had the same ends one after the other.
fn one(metrics: &mut Metrics, controller: &Controller, flow: &Flow, all: &[Namespace]) {
    let labels = [
        ("controller", controller.spec.name.to_owned()),
        ("netns", label(all, flow.namespace)),
        ("key", format!("{:x}", flow.key)),
        ("local", flow.local.to_string()),
        ("remote", flow.remote.to_string()),
    ];
    metrics.add(&FLOW_ECN, &labels, f64::from(u8::from(flow.ecn)));
    metrics.add(&FLOW_WINDOW, &labels, scaled(flow.window_q10, 10));
    let threshold = flow.threshold.map(|packets| scaled(packets.get(), 0));
    let pacing = flow.pacing.map(|rate| scaled(rate.as_bps(), 0));
    let alpha = controller.has_alpha.then(|| scaled(flow.alpha_q20, 20));
    let base = flow.rtt_base.map(|span| scaled(span.as_us(), 0) / 1e6);
    let some = [(&FLOW_THRESHOLD, threshold), (&FLOW_PACING, pacing), (&FLOW_ALPHA, alpha), (&FLOW_BASE, base)];
    for (metric, value) in some {
        value.into_iter().for_each(|value| metrics.add(metric, &labels, value));
    }
    metrics.add(&FLOW_ACKED, &labels, scaled(flow.acked.get(), 0));
    metrics.add(&FLOW_MARKED, &labels, scaled(flow.marked.get(), 0));
    let cuts = flow.cuts;
    let causes =
        [("ecn", cuts.ecn), ("delay", cuts.delay), ("both", cuts.both), ("loss", cuts.loss), ("timeout", cuts.timeout)];
    for (cause, count) in causes {
        let labels = [&labels[..], &[("cause", cause.to_owned())]].concat();
        metrics.add(&FLOW_CUTS, &labels, scaled(count, 0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lines_of_a_metric_stand_together() {
        let mut metrics = Metrics::default();
        for name in ["a", "b\""] {
            metrics.add(&LOADED, &[("controller", name.to_owned())], 1.0);
            metrics.add(&WINDOW, &[("controller", name.to_owned()), ("netns", "host".to_owned())], 12.5);
        }
        insta::assert_snapshot!(metrics.text());
    }
}
