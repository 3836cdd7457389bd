//! Rows become Arrow columns, each declared here once: name, unit, description. `docs/reference/results.md` is made of it.
//!
//! Whoever made the run, simulator or testbed, the tables are the same.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, Float64Array, RecordBatch, StringArray, UInt32Array, UInt64Array};
use arrow_schema::{Field, Schema, SchemaRef};
use narrows_plan::{Plan, Role};

use crate::{FlowRow, Results, SeriesRow};

/// The tables, and what one row of each is.
pub const TABLES: [(&str, &str); 5] = [
    ("flows", "One flow: one transfer of a known size, or one that goes on until it is stopped."),
    ("requests", "One request of a client that asks several servers and waits for all of them."),
    (
        "ports",
        "One port, that is one direction of a link. Counters cover `measured_ns`; the warm-up is not in them. Of a link with a `bridge`, what goes ahead of its queue is not in them either: repairs, and what the routers tell each other, which `bridges.parquet` counts.",
    ),
    ("series", "One sample. The table is long: `quantity` says what `value` is."),
    (
        "bridges",
        "One end of a bridge between two routers, over the whole run. Without bridges there is none. Of a direction of traffic, what its near edge does (marked, repaired) stands in the row of the link that it sends over; what its far edge does (received, held, holes) in the row of the way back.",
    ),
];

/// Of names, and of numbers without a dimension.
const NONE: &str = "–";

/// The table of this name; `None` if there is none. A field's metadata are its `unit` and `description`.
pub fn table(name: &str, plan: &Plan, results: &Results) -> Option<RecordBatch> {
    let columns = match name {
        "flows" => flows(plan, results),
        "requests" => requests(plan, results),
        "ports" => ports(plan, results),
        "series" => series(plan, results),
        "bridges" => bridges(plan, results),
        _ => return None,
    };
    let (fields, arrays): (Vec<Field>, Vec<ArrayRef>) = columns.into_iter().unzip();
    let batch = RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays);
    Some(batch.expect("columns are of equal length by construction, and only optional ones have holes"))
}

/// The columns of the table of this name, whatever the run; `None` if there is none.
pub fn columns(name: &str) -> Option<SchemaRef> {
    Some(table(name, &Plan::default(), &Results::default())?.schema())
}

type Columns = Vec<(Field, ArrayRef)>;

/// A column that every row has.
fn column(name: &str, unit: &str, description: &str, values: ArrayRef) -> (Field, ArrayRef) {
    let metadata: BTreeMap<String, String> =
        [("unit", unit), ("description", description)].map(|(key, text)| (key.to_owned(), text.to_owned())).into();
    (Field::new(name, values.data_type().clone(), false).with_metadata(metadata), values)
}

/// A column that a row may lack.
fn optional(name: &str, unit: &str, description: &str, values: ArrayRef) -> (Field, ArrayRef) {
    let (field, values) = column(name, unit, description, values);
    (field.with_nullable(true), values)
}

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
        column(
            "flow",
            NONE,
            "Number of the flow within its run, in the order of its start.",
            identifiers(rows, |row| row.flow),
        ),
        column(
            "connection",
            NONE,
            "The connection that carried it; persistent ones carry many flows.",
            identifiers(rows, |row| row.connection),
        ),
        optional(
            "request",
            NONE,
            "The request (row of `requests`) it answers, if it is part of one.",
            Arc::new(rows.iter().map(|row| row.request).collect::<UInt32Array>()),
        ),
        column("source", NONE, "Node that sends the flow's bytes.", texts(rows, |row| node(row.source))),
        column("destination", NONE, "Node that receives them.", texts(rows, |row| node(row.destination))),
        column(
            "class",
            NONE,
            "`intra`: both ends in one datacenter; `inter`: the flow crosses the WAN.",
            texts(rows, |row| if row.inter { "inter" } else { "intra" }),
        ),
        column(
            "workload",
            NONE,
            "Name of the traffic entry that it belongs to.",
            texts(rows, |row| traffic(row.traffic).name.as_str()),
        ),
        column(
            "controller",
            NONE,
            "Congestion controller of the sender.",
            texts(rows, |row| traffic(row.traffic).controller.name.as_str()),
        ),
        column(
            "size_bytes",
            "bytes",
            "Application bytes to deliver; for a flow without a size, those delivered.",
            numbers(rows, |row| row.size_bytes),
        ),
        column(
            "start_ns",
            "ns",
            "Simulated time at which its first byte was offered, or its request sent.",
            numbers(rows, |row| row.start_ns),
        ),
        optional(
            "fct_ns",
            "ns",
            "Flow completion time: from `start_ns` to the last byte delivered in order. Null if unfinished.",
            optional_numbers(rows, |row| row.fct_ns),
        ),
        column(
            "ideal_fct_ns",
            "ns",
            "The same transfer on an empty network: store-and-forward, framing, request leg included.",
            numbers(rows, |row| row.ideal_fct_ns),
        ),
        optional(
            "slowdown",
            NONE,
            "`fct_ns / ideal_fct_ns`, at least 1. Null if unfinished.",
            Arc::new(rows.iter().map(slowdown).collect::<Float64Array>()),
        ),
        optional(
            "rtt_mean_ns",
            "ns",
            "Mean of the sender's round-trip samples. Null if it took none.",
            optional_numbers(rows, |row| row.rtt_mean_ns),
        ),
        column(
            "retransmitted_bytes",
            "bytes",
            "Application bytes that were sent again.",
            numbers(rows, |row| row.retransmitted_bytes),
        ),
        column(
            "timeouts",
            NONE,
            "Retransmission timeouts that fired during the flow.",
            identifiers(rows, |row| row.timeouts),
        ),
        optional(
            "handshake_ns",
            "ns",
            "From `start_ns` until its connection was established. Null of a connection that was open already, and if it never was.",
            optional_numbers(rows, |row| row.handshake_ns),
        ),
        optional(
            "syn_retransmits",
            NONE,
            "SYNs of its connection that were retransmitted during the flow. Null in a live run if the connection was not established.",
            Arc::new(rows.iter().map(|row| row.syn_retransmits).collect::<UInt32Array>()),
        ),
        optional(
            "rto_wait_ns",
            "ns",
            "How long the retransmission timers had run that expired during the flow: the sender's, and the opener's of its SYN and request. One may expire after the last byte, where an acknowledgement was lost. Null in a live run: no kernel tells.",
            optional_numbers(rows, |row| row.rto_wait_ns),
        ),
        optional(
            "first_byte_ns",
            "ns",
            "From `start_ns` until its first byte was at the destination. Null if none came.",
            optional_numbers(rows, |row| row.first_byte_ns),
        ),
        column(
            "marked_bytes",
            "bytes",
            "Payload bytes that arrived with a congestion mark, duplicates included.",
            numbers(rows, |row| row.marked_bytes),
        ),
        optional(
            "dropped_bytes",
            "bytes",
            "Payload of the flow, or of its request, in packets that the network dropped, each as often as it was. Null in a live run.",
            optional_numbers(rows, |row| row.dropped_bytes),
        ),
        column(
            "near_source_cuts",
            NONE,
            "Notifications of congested switches near by that its sender took, each a cut of its near-source rate.",
            numbers(rows, |row| row.near_source_cuts),
        ),
        column(
            "delivered_after_warmup_bytes",
            "bytes",
            "Payload delivered in order between the end of the warm-up and the end of arrivals (`end`).",
            numbers(rows, |row| row.delivered_after_warmup_bytes),
        ),
        column(
            "finished",
            NONE,
            "Whether the last byte was delivered before the run stopped.",
            Arc::new(BooleanArray::from_iter(rows.iter().map(|row| Some(row.fct_ns.is_some())))),
        ),
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
        column("request", NONE, "Number of the request within its run.", identifiers(rows, |row| row.request)),
        column(
            "client",
            NONE,
            "Node that asked.",
            texts(rows, |row| plan.network.nodes[row.client as usize].name.as_str()),
        ),
        column("start_ns", "ns", "Simulated time at which the client asked.", numbers(rows, |row| row.start_ns)),
        optional(
            "completion_ns",
            "ns",
            "From `start_ns` to the last byte of the last response. Null if unfinished.",
            optional_numbers(rows, |row| row.completion_ns),
        ),
        column("responses", NONE, "Answers received.", identifiers(rows, |row| row.responses)),
        column(
            "timeouts",
            NONE,
            "Retransmission timeouts on any of its flows.",
            identifiers(rows, |row| timeouts[row.request as usize]),
        ),
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
        column("port", NONE, "Index of the link in the plan.", identifiers(rows, |row| row.port)),
        column("name", NONE, "`from->to`.", texts(rows, |row| link(row.port).name.as_str())),
        column(
            "node",
            NONE,
            "Node that the port belongs to.",
            texts(rows, |row| plan.network.nodes[link(row.port).from as usize].name.as_str()),
        ),
        column(
            "role",
            NONE,
            "`host`: a host's own port; `edge`: a switch's port towards a host; `fabric`: between its switches; `wan`: between datacenters.",
            texts(rows, |row| role(link(row.port).role)),
        ),
        column("sent_packets", "packets", "Packets transmitted, of every kind.", numbers(rows, |row| row.sent_packets)),
        column(
            "sent_bytes",
            "bytes",
            "IP bytes transmitted; framing is not counted.",
            numbers(rows, |row| row.sent_bytes),
        ),
        column(
            "dropped_packets",
            "packets",
            "Packets refused: the sum of the three reasons that follow.",
            numbers(rows, |row| row.dropped_limit_packets + row.dropped_pool_packets + row.dropped_aqm_packets),
        ),
        column(
            "dropped_limit_packets",
            "packets",
            "Refused because the port's own limit was reached.",
            numbers(rows, |row| row.dropped_limit_packets),
        ),
        column(
            "dropped_pool_packets",
            "packets",
            "Refused by the switch's shared memory.",
            numbers(rows, |row| row.dropped_pool_packets),
        ),
        column(
            "dropped_aqm_packets",
            "packets",
            "Refused by the marking law.",
            numbers(rows, |row| row.dropped_aqm_packets),
        ),
        column(
            "lost_on_wire_packets",
            "packets",
            "Lost on the wire after the port, where the experiment asks for it.",
            numbers(rows, |row| row.dropped_impairment_packets),
        ),
        column(
            "marked_packets",
            "packets",
            "Packets that left with a congestion mark set here.",
            numbers(rows, |row| row.marked_packets),
        ),
        column(
            "congestion_samples",
            NONE,
            "Samples of the port's congestion point that told of congestion; senders in its scope were notified.",
            numbers(rows, |row| row.congestion_samples),
        ),
        column(
            "queue_mean_bytes",
            "bytes",
            "Backlog, IP bytes, weighted by time; the packet in service counts.",
            reals(rows, |row| row.queue_mean_bytes),
        ),
        optional(
            "queue_p50_bytes",
            "bytes",
            "Backlog that half of the samples do not exceed. Null where the port is not sampled.",
            optional_numbers(rows, |row| row.queue_p50_bytes),
        ),
        optional(
            "queue_p99_bytes",
            "bytes",
            "Backlog that 99 % of the samples do not exceed. Null where the port is not sampled.",
            optional_numbers(rows, |row| row.queue_p99_bytes),
        ),
        column("queue_max_bytes", "bytes", "Largest backlog.", numbers(rows, |row| row.queue_max_bytes)),
        column("rate_bps", "bit/s", "Line rate.", numbers(rows, |row| link(row.port).rate.as_bps())),
        column(
            "utilisation",
            NONE,
            "Wire bits sent, framing included, over `rate_bps × measured_ns`: 0 to 1.",
            reals(rows, |row| row.utilisation),
        ),
        column(
            "measured_ns",
            "ns",
            "Length of the time that the counters cover.",
            numbers(rows, |row| row.measured_ns),
        ),
    ]
}

fn bridges(plan: &Plan, results: &Results) -> Columns {
    let rows = &results.bridges;
    let link = |bridge: u32| &plan.network.links[bridge as usize];
    let node = |index: u32| plan.network.nodes[index as usize].name.as_str();
    vec![
        column(
            "bridge",
            NONE,
            "The link that it sends over, `from->to`.",
            texts(rows, |row| link(row.bridge).name.as_str()),
        ),
        column("node", NONE, "The router that it is.", texts(rows, |row| node(link(row.bridge).from))),
        column(
            "data_packets",
            "packets",
            "With data, from its own site.",
            numbers(rows, |row| row.transmitted.data_packets),
        ),
        column(
            "marked_packets",
            "packets",
            "Of these, those that may be lost: a copy was kept.",
            numbers(rows, |row| row.transmitted.marked_packets),
        ),
        column(
            "marked_bytes",
            "bytes",
            "Their IP bytes, as they came.",
            numbers(rows, |row| row.transmitted.marked_bytes.get()),
        ),
        column(
            "unmarked_store_full_packets",
            "packets",
            "Chosen and not marked: no room for a copy.",
            numbers(rows, |row| row.transmitted.store_full),
        ),
        column(
            "unmarked_far_silent_packets",
            "packets",
            "Chosen and not marked: the other end was not heard of.",
            numbers(rows, |row| row.transmitted.far_silent),
        ),
        column(
            "unmarked_severe_packets",
            "packets",
            "Chosen and not marked: most of the last thousand marked ones were lost.",
            numbers(rows, |row| row.transmitted.severe),
        ),
        column(
            "fast_repairs",
            "packets",
            "Sent again as later ones were acknowledged.",
            numbers(rows, |row| row.transmitted.fast_repairs),
        ),
        column(
            "late_repairs",
            "packets",
            "Sent again as their time was over.",
            numbers(rows, |row| row.transmitted.late_repairs),
        ),
        column(
            "needless_repairs",
            "packets",
            "Of both, those whose first try arrived.",
            numbers(rows, |row| row.transmitted.needless_repairs),
        ),
        column(
            "repaired_packets",
            "packets",
            "Marked packets of which a repair arrived first.",
            numbers(rows, |row| row.transmitted.repaired),
        ),
        column(
            "given_up_packets",
            "packets",
            "Marked packets that were never acknowledged.",
            numbers(rows, |row| row.transmitted.given_up),
        ),
        column(
            "store_max_bytes",
            "bytes",
            "Most bytes of copies at once.",
            numbers(rows, |row| row.transmitted.store_max.get()),
        ),
        column(
            "sessions",
            NONE,
            "How often the two ends agreed on a session; 1 where neither fell silent.",
            numbers(rows, |row| row.transmitted.sessions),
        ),
        column(
            "round_trip_ns",
            "ns",
            "Smoothed round trip to the other end when the run ended.",
            numbers(rows, |row| row.round_trip_ns),
        ),
        column(
            "received_marked_packets",
            "packets",
            "Marked packets from the other end, each once.",
            numbers(rows, |row| row.received.marked_packets),
        ),
        column(
            "duplicate_packets",
            "packets",
            "Marked packets from there that had come before: dropped.",
            numbers(rows, |row| row.received.duplicates),
        ),
        column(
            "cleared_marks",
            "packets",
            "Congestion marks taken off packets of hosts without ECN.",
            numbers(rows, |row| row.received.cleared_marks),
        ),
        column(
            "held_packets",
            "packets",
            "Held back as one before them was missing.",
            numbers(rows, |row| row.received.held_packets),
        ),
        column(
            "held_max_bytes",
            "bytes",
            "Most bytes held back at once.",
            numbers(rows, |row| row.received.held_max.get()),
        ),
        column(
            "filled_holes",
            NONE,
            "Holes that were filled while they were hidden.",
            numbers(rows, |row| row.received.filled_holes),
        ),
        column(
            "late_holes",
            NONE,
            "Holes that the host was shown when their time was over.",
            numbers(rows, |row| row.received.late_holes),
        ),
        column(
            "plain_holes",
            NONE,
            "Holes that the host was shown as nobody would fill them.",
            numbers(rows, |row| row.received.plain_holes),
        ),
        column(
            "overflows",
            NONE,
            "Times that a connection's held packets were let go for want of room.",
            numbers(rows, |row| row.received.overflows),
        ),
        column(
            "hushed_packets",
            "packets",
            "Duplicate acknowledgements from the other end, not passed on.",
            numbers(rows, |row| row.hushed_packets),
        ),
    ]
}

fn series(plan: &Plan, results: &Results) -> Columns {
    let rows = &results.series;
    let entity = |row: &SeriesRow| match row.quantity.is_of_port() {
        true => plan.network.links[row.entity as usize].name.clone(),
        false => format!("flow-{}", row.entity),
    };
    vec![
        column(
            "time_ns",
            "ns",
            "Simulated time of the sample; for rates, the end of the bin.",
            numbers(rows, |row| row.time_ns),
        ),
        column(
            "entity",
            NONE,
            "What was sampled: a port's name, or a flow.",
            Arc::new(StringArray::from_iter_values(rows.iter().map(entity))),
        ),
        column(
            "quantity",
            NONE,
            "`queue_bytes` (backlog of a port), `window_packets` (congestion window), `pacing_bps` (IP bits, of senders that pace), `near_source_bps` (IP bits, of senders that a switch near by holds), `goodput_bps` (of a bin), `sent_bps` (IP bits that left a port in a bin).",
            texts(rows, |row| row.quantity.name()),
        ),
        column(
            "value",
            "see quantity",
            "The value, in the unit that ends the quantity's name.",
            reals(rows, |row| row.value),
        ),
    ]
}
