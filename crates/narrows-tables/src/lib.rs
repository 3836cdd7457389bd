//! Rows become Arrow columns. Names end in the unit; `docs/results.md` says what each means.
//!
//! Whoever made the run, simulator or testbed, the tables are the same.
#![forbid(unsafe_code)]

use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, Float64Array, RecordBatch, StringArray, UInt32Array, UInt64Array};
use narrows_results::{FlowRow, Results, SeriesRow};
use narrows_scenario::plan::{Plan, Role};

/// The names of the tables.
pub const NAMES: [&str; 5] = ["flows", "requests", "ports", "series", "bridges"];

/// The table of this name; `None` if there is none.
pub fn table(name: &str, plan: &Plan, results: &Results) -> Option<RecordBatch> {
    let columns = match name {
        "flows" => flows(plan, results),
        "requests" => requests(plan, results),
        "ports" => ports(plan, results),
        "series" => series(plan, results),
        "bridges" => bridges(plan, results),
        _ => return None,
    };
    // Every column is nullable: whether a value can be missing must not depend on whether one is missing in this run.
    let batch = RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, array)| (name, array, true)));
    Some(batch.expect("columns are of equal length by construction"))
}

type Columns = Vec<(&'static str, ArrayRef)>;

fn numbers<R>(rows: &[R], value: impl Fn(&R) -> u64) -> ArrayRef {
    Arc::new(UInt64Array::from_iter_values(rows.iter().map(value)))
}

fn optional_numbers<R>(rows: &[R], value: impl Fn(&R) -> Option<u64>) -> ArrayRef {
    Arc::new(rows.iter().map(value).collect::<UInt64Array>())
}

fn identifiers<R>(rows: &[R], value: impl Fn(&R) -> u32) -> ArrayRef {
    Arc::new(UInt32Array::from_iter_values(rows.iter().map(value)))
}

fn reals<R>(rows: &[R], value: impl Fn(&R) -> f64) -> ArrayRef {
    Arc::new(Float64Array::from_iter_values(rows.iter().map(value)))
}

fn texts<'a, R>(rows: &'a [R], value: impl Fn(&'a R) -> &'a str) -> ArrayRef {
    Arc::new(StringArray::from_iter_values(rows.iter().map(value)))
}

fn flows(plan: &Plan, results: &Results) -> Columns {
    let rows = &results.flows;
    let node = |index: u32| plan.network.nodes[index as usize].name.as_str();
    let traffic = |index: u32| &plan.traffic[index as usize];
    vec![
        ("flow", identifiers(rows, |row| row.flow)),
        ("connection", identifiers(rows, |row| row.connection)),
        ("request", Arc::new(rows.iter().map(|row| row.request).collect::<UInt32Array>())),
        ("source", texts(rows, |row| node(row.source))),
        ("destination", texts(rows, |row| node(row.destination))),
        ("class", texts(rows, |row| if row.inter { "inter" } else { "intra" })),
        ("workload", texts(rows, |row| traffic(row.traffic).name.as_str())),
        ("controller", texts(rows, |row| traffic(row.traffic).controller.name.as_str())),
        ("size_bytes", numbers(rows, |row| row.size_bytes)),
        ("start_ns", numbers(rows, |row| row.start_ns)),
        ("fct_ns", optional_numbers(rows, |row| row.fct_ns)),
        ("ideal_fct_ns", numbers(rows, |row| row.ideal_fct_ns)),
        ("slowdown", Arc::new(rows.iter().map(slowdown).collect::<Float64Array>())),
        ("rtt_mean_ns", optional_numbers(rows, |row| row.rtt_mean_ns)),
        ("retransmitted_bytes", numbers(rows, |row| row.retransmitted_bytes)),
        ("timeouts", identifiers(rows, |row| row.timeouts)),
        ("handshake_ns", optional_numbers(rows, |row| row.handshake_ns)),
        ("syn_retransmits", Arc::new(rows.iter().map(|row| row.syn_retransmits).collect::<UInt32Array>())),
        ("rto_wait_ns", optional_numbers(rows, |row| row.rto_wait_ns)),
        ("first_byte_ns", optional_numbers(rows, |row| row.first_byte_ns)),
        ("marked_bytes", numbers(rows, |row| row.marked_bytes)),
        ("dropped_bytes", optional_numbers(rows, |row| row.dropped_bytes)),
        ("near_source_cuts", numbers(rows, |row| row.near_source_cuts)),
        ("delivered_after_warmup_bytes", numbers(rows, |row| row.delivered_after_warmup_bytes)),
        ("finished", Arc::new(BooleanArray::from_iter(rows.iter().map(|row| Some(row.fct_ns.is_some()))))),
    ]
}

/// Completion time over ideal completion time, at least 1.
#[allow(clippy::cast_precision_loss, reason = "times stay below 2⁵³ ns, 104 days")]
fn slowdown(row: &FlowRow) -> Option<f64> {
    row.fct_ns.map(|fct| (fct as f64 / row.ideal_fct_ns.max(1) as f64).max(1.0))
}

fn requests(plan: &Plan, results: &Results) -> Columns {
    let rows = &results.requests;
    // Requests are numbered from 0 in the order of their rows.
    let mut timeouts = vec![0_u32; rows.len()];
    for flow in &results.flows {
        if let Some(request) = flow.request {
            timeouts[request as usize] += flow.timeouts;
        }
    }
    vec![
        ("request", identifiers(rows, |row| row.request)),
        ("client", texts(rows, |row| plan.network.nodes[row.client as usize].name.as_str())),
        ("start_ns", numbers(rows, |row| row.start_ns)),
        ("completion_ns", optional_numbers(rows, |row| row.completion_ns)),
        ("responses", identifiers(rows, |row| row.responses)),
        ("timeouts", identifiers(rows, |row| timeouts[row.request as usize])),
    ]
}

fn ports(plan: &Plan, results: &Results) -> Columns {
    let rows = &results.ports;
    let link = |port: u32| &plan.network.links[port as usize];
    let role = |role: Role| match role {
        Role::Host => "host",
        Role::Edge => "edge",
        Role::Fabric => "fabric",
        Role::Wan => "wan",
    };
    vec![
        ("port", identifiers(rows, |row| row.port)),
        ("name", texts(rows, |row| link(row.port).name.as_str())),
        ("node", texts(rows, |row| plan.network.nodes[link(row.port).from as usize].name.as_str())),
        ("role", texts(rows, |row| role(link(row.port).role))),
        ("rate_bps", numbers(rows, |row| link(row.port).rate.as_bps())),
        ("sent_packets", numbers(rows, |row| row.sent_packets)),
        ("sent_bytes", numbers(rows, |row| row.sent_bytes)),
        (
            "dropped_packets",
            numbers(rows, |row| row.dropped_limit_packets + row.dropped_pool_packets + row.dropped_aqm_packets),
        ),
        ("dropped_limit_packets", numbers(rows, |row| row.dropped_limit_packets)),
        ("dropped_pool_packets", numbers(rows, |row| row.dropped_pool_packets)),
        ("dropped_aqm_packets", numbers(rows, |row| row.dropped_aqm_packets)),
        ("lost_on_wire_packets", numbers(rows, |row| row.dropped_impairment_packets)),
        ("marked_packets", numbers(rows, |row| row.marked_packets)),
        ("congestion_samples", numbers(rows, |row| row.congestion_samples)),
        ("queue_mean_bytes", reals(rows, |row| row.queue_mean_bytes)),
        ("queue_p50_bytes", optional_numbers(rows, |row| row.queue_p50_bytes)),
        ("queue_p99_bytes", optional_numbers(rows, |row| row.queue_p99_bytes)),
        ("queue_max_bytes", numbers(rows, |row| row.queue_max_bytes)),
        ("utilisation", reals(rows, |row| row.utilisation)),
        ("measured_ns", numbers(rows, |row| row.measured_ns)),
    ]
}

fn bridges(plan: &Plan, results: &Results) -> Columns {
    let rows = &results.bridges;
    let link = |bridge: u32| &plan.network.links[bridge as usize];
    let node = |index: u32| plan.network.nodes[index as usize].name.as_str();
    vec![
        ("bridge", texts(rows, |row| link(row.bridge).name.as_str())),
        ("node", texts(rows, |row| node(link(row.bridge).from))),
        ("data_packets", numbers(rows, |row| row.transmitted.data_packets)),
        ("marked_packets", numbers(rows, |row| row.transmitted.marked_packets)),
        ("marked_bytes", numbers(rows, |row| row.transmitted.marked_bytes.get())),
        ("unmarked_store_full_packets", numbers(rows, |row| row.transmitted.store_full)),
        ("unmarked_far_silent_packets", numbers(rows, |row| row.transmitted.far_silent)),
        ("unmarked_severe_packets", numbers(rows, |row| row.transmitted.severe)),
        ("fast_repairs", numbers(rows, |row| row.transmitted.fast_repairs)),
        ("late_repairs", numbers(rows, |row| row.transmitted.late_repairs)),
        ("needless_repairs", numbers(rows, |row| row.transmitted.needless_repairs)),
        ("repaired_packets", numbers(rows, |row| row.transmitted.repaired)),
        ("given_up_packets", numbers(rows, |row| row.transmitted.given_up)),
        ("store_max_bytes", numbers(rows, |row| row.transmitted.store_max.get())),
        ("sessions", numbers(rows, |row| row.transmitted.sessions)),
        ("round_trip_ns", numbers(rows, |row| row.round_trip_ns)),
        ("received_marked_packets", numbers(rows, |row| row.received.marked_packets)),
        ("duplicate_packets", numbers(rows, |row| row.received.duplicates)),
        ("cleared_marks", numbers(rows, |row| row.received.cleared_marks)),
        ("held_packets", numbers(rows, |row| row.received.held_packets)),
        ("held_max_bytes", numbers(rows, |row| row.received.held_max.get())),
        ("filled_holes", numbers(rows, |row| row.received.filled_holes)),
        ("late_holes", numbers(rows, |row| row.received.late_holes)),
        ("plain_holes", numbers(rows, |row| row.received.plain_holes)),
        ("overflows", numbers(rows, |row| row.received.overflows)),
        ("hushed_packets", numbers(rows, |row| row.hushed_packets)),
    ]
}

fn series(plan: &Plan, results: &Results) -> Columns {
    let rows = &results.series;
    let entity = |row: &SeriesRow| match row.quantity.is_of_port() {
        true => plan.network.links[row.entity as usize].name.clone(),
        false => format!("flow-{}", row.entity),
    };
    vec![
        ("time_ns", numbers(rows, |row| row.time_ns)),
        ("entity", Arc::new(StringArray::from_iter_values(rows.iter().map(entity)))),
        ("quantity", texts(rows, |row| row.quantity.name())),
        ("value", reals(rows, |row| row.value)),
    ]
}
