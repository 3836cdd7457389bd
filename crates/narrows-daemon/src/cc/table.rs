//! Flows as a table for people: the unit stands in the head of the column, and a column that says nothing is left out.

use narrows_kernel::Flow;

use super::state::State;
use crate::namespaces::{Namespace, label};

/// Flows shown; `--json` has all of them.
const MOST: usize = 100;
/// What a controller does not have, or not yet.
const NOTHING: &str = "-";

/// A fixed-point number with `bits` binary digits after the point.
#[allow(clippy::cast_precision_loss, reason = "for reading")]
pub(super) fn scaled(integer: u64, bits: i32) -> f64 {
    integer as f64 / 2_f64.powi(bits)
}

/// The flows of a controller, nothing if it has none.
pub(super) fn text(state: &State, all: &[Namespace]) -> String {
    if state.flows.is_empty() {
        return String::new();
    }
    let rows: Vec<Vec<String>> = state.flows.iter().take(MOST).map(|flow| row(state, flow, all)).collect();
    let mut lines = vec![String::new(); rows.len() + 1];
    for (at, head) in HEADS.iter().enumerate() {
        if rows.iter().all(|row| row[at] == NOTHING) {
            continue;
        }
        let width = rows.iter().map(|row| row[at].len()).chain([head.len()]).max().unwrap_or(0);
        let cells = std::iter::once(*head).chain(rows.iter().map(|row| row[at].as_str()));
        lines.iter_mut().zip(cells).for_each(|(line, cell)| line.push_str(&format!("  {cell:>width$}")));
    }
    let rest = state.flows.len().saturating_sub(MOST);
    if rest > 0 {
        lines.push(format!("  and {rest} more: --json shows all"));
    }
    lines.into_iter().map(|line| line + "\n").collect()
}

const HEADS: [&str; 20] = [
    "cookie",
    "netns",
    "local",
    "remote",
    "ECN",
    "window_pkt",
    "threshold_pkt",
    "pacing_Mbps",
    "alpha",
    "F",
    "h_pkt/rtt",
    "rtt_base_us",
    "acked_pkt",
    "marked_pkt",
    "cuts:ecn",
    "delay",
    "both",
    "loss",
    "timeout",
    "undone",
];

fn row(state: &State, flow: &Flow, all: &[Namespace]) -> Vec<String> {
    let controller = state.controller;
    let some = |value: Option<String>| value.unwrap_or_else(|| NOTHING.to_owned());
    let only = |has: bool, text: String| some(has.then_some(text));
    vec![
        some(flow.cookie.map(|cookie| format!("{cookie:x}"))),
        label(all, flow.namespace),
        flow.local.to_string(),
        flow.remote.to_string(),
        if flow.ecn { "yes" } else { "no" }.to_owned(),
        format!("{:.1}", scaled(flow.window_q10, 10)),
        some(flow.threshold.map(|packets| packets.get().to_string())),
        some(flow.pacing.map(|rate| format!("{:.1}", scaled(rate.as_bps(), 0) / 1e6))),
        only(controller.has_alpha, format!("{:.4}", scaled(flow.alpha_q20, 20))),
        only(controller.has_scale, format!("{:.3}", scaled(flow.factor_q10, 10))),
        only(controller.has_scale, format!("{:.3}", scaled(flow.step_q10, 10))),
        some(flow.rtt_base.map(|span| span.as_us().to_string())),
        flow.acked.get().to_string(),
        flow.marked.get().to_string(),
        flow.cuts.ecn.to_string(),
        only(controller.has_scale, flow.cuts.delay.to_string()),
        only(controller.has_scale, flow.cuts.both.to_string()),
        flow.cuts.loss.to_string(),
        flow.cuts.timeout.to_string(),
        flow.undone.to_string(),
    ]
}
