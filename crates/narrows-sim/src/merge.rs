//! What the parts of a run have noted becomes one set of rows, numbered and ordered by the plan alone.
//!
//! Flows are numbered in the order of (start, traffic entry, sequence), queries in that of (start, traffic entry), and
//! samples stand in that of (time, sampler, entity), so that the rows are the same however the run was split.

use std::cell::LazyCell;
use std::collections::{BTreeMap, BTreeSet};

use narrows_core::packet::Tag;
use narrows_core::units::{Bytes, Time};
use narrows_network::Partition;
use narrows_plan::{Plan, RoutingConfig};
use narrows_results::trace::Trace;
use narrows_results::{BridgeRow, EventRow, FlowRow, PortRow, RankRow, RequestRow, Results, SeriesRow};

use crate::flows::{Flow, Flows};
use crate::simulation::Survey;

/// A query, where its client is.
#[derive(Clone, Debug)]
pub(crate) struct Query {
    pub(crate) traffic: u32,
    /// Among the application's.
    pub(crate) number: u32,
    pub(crate) start: Time,
    /// Answers that complete it.
    pub(crate) awaited: u32,
    /// Its number is the part's own.
    pub(crate) row: RequestRow,
}

impl Query {
    /// An answer is whole.
    pub(crate) fn answer(&mut self, now: Time) {
        self.row.responses += 1;
        if self.row.responses == self.awaited {
            self.row.completion_ns = Some(now.since(self.start).as_ns());
        }
    }
}

/// What one part has noted. Numbers of flows and queries are the part's own.
#[derive(Clone, Debug)]
pub(crate) struct Notes {
    pub(crate) flows: Flows,
    /// By tag: links on the paths of flows that were opened in the part; empty where no link changes.
    pub(crate) paths: BTreeMap<u32, BTreeSet<u32>>,
    /// By tag: payload and packets of flows that have no end in the part.
    pub(crate) dropped_in_passing: BTreeMap<u32, (u64, u32)>,
    pub(crate) queries: Vec<Query>,
    /// By link. A part counts what leaves its own ports, and what the wires into it lose.
    pub(crate) ports: Vec<PortRow>,
    pub(crate) series: Vec<SeriesRow>,
    /// Of every bridge; what ends in another part has done nothing.
    pub(crate) bridges: Vec<BridgeRow>,
    /// Of a run of one part that is traced; its flows are the part's own places.
    pub(crate) trace: Trace,
    /// Of the part's own hosts.
    pub(crate) ranks: Vec<RankRow>,
    pub(crate) packet_hops: u64,
    pub(crate) events: u64,
    pub(crate) ended: Time,
}

/// The rows of a run, from the notes of all its parts by number.
pub(crate) fn merge(plan: &Plan, survey: &Survey, partition: &Partition, mut parts: Vec<Notes>) -> Results {
    let ended = parts[0].ended;
    assert!(parts.iter().all(|part| part.ended == ended), "the parts of a run end together");
    let (mut queries, query_numbers) = number_queries(&parts);
    let (mut flows, flow_numbers) = number_flows(plan, survey, partition, &parts, &query_numbers, &mut queries);
    let mut events_at_links = EventRow::all(&plan.network);
    for (notes, numbers) in parts.iter().zip(&flow_numbers) {
        for (&tag, links) in &notes.paths {
            let place = notes.flows.place(survey.names.name(Tag(tag))).expect("it was opened here");
            EventRow::meet(&mut events_at_links, links, &mut flows[numbers[place as usize] as usize], ended);
        }
    }
    let (mut packet_hops, mut events, mut series) = (0, 0, Vec::new());
    for (part, numbers) in parts.iter().zip(&flow_numbers) {
        packet_hops += part.packet_hops;
        events += part.events;
        series.extend(part.series.iter().map(|row| {
            let entity = if row.quantity.is_of_port() { row.entity } else { numbers[row.entity as usize] };
            SeriesRow { entity, ..*row }
        }));
    }
    SeriesRow::sort(&mut series);
    let trace = match &mut parts[..] {
        [only] => numbered(std::mem::take(&mut only.trace), &flow_numbers[0]),
        _ => Trace::default(),
    };
    let ports = merge_ports(plan, partition, &parts);
    let own =
        |bridge: &BridgeRow, part: u32| partition.part_of(plan.network.links[bridge.bridge as usize].from) == part;
    let mut bridges: Vec<BridgeRow> = (0..)
        .zip(&parts)
        .flat_map(|(part, notes)| notes.bridges.iter().filter(move |bridge| own(bridge, part)).cloned())
        .collect();
    bridges.sort_by_key(|row| row.bridge);
    let mut ranks: Vec<RankRow> = parts.iter().flat_map(|notes| &notes.ranks).cloned().collect();
    RankRow::sort(&mut ranks);
    Results {
        flows,
        requests: queries,
        ports,
        series,
        events_at_links,
        bridges,
        ranks,
        trace,
        packet_hops,
        events,
        ended_ns: ended.as_ns(),
    }
}

/// The trace with flows by their numbers.
fn numbered(mut trace: Trace, numbers: &[u32]) -> Trace {
    let number = |flow: &mut u32| *flow = numbers[*flow as usize];
    trace.hops.iter_mut().for_each(|row| number(&mut row.flow));
    trace.senders.iter_mut().for_each(|row| number(&mut row.flow));
    trace.times.iter_mut().for_each(|row| number(&mut row.flow));
    trace.times.sort_by_key(|row| (row.flow, row.from_ns));
    trace
}

/// All queries, and the number of each by part and place.
fn number_queries(parts: &[Notes]) -> (Vec<RequestRow>, Vec<Vec<u32>>) {
    let mut order: Vec<(usize, &Query)> = parts
        .iter()
        .enumerate()
        .flat_map(|(part, notes)| notes.queries.iter().map(move |query| (part, query)))
        .collect();
    order.sort_by_key(|(_, query)| (query.start, query.traffic));
    let mut numbers: Vec<Vec<u32>> = parts.iter().map(|notes| vec![0; notes.queries.len()]).collect();
    let mut rows = Vec::with_capacity(order.len());
    for (number, (part, query)) in (0..).zip(order) {
        numbers[part][query.row.request as usize] = number;
        rows.push(RequestRow { request: number, ..query.row.clone() });
    }
    (rows, numbers)
}

/// The number of each query by its traffic entry and its number there.
fn by_name(parts: &[Notes], query_numbers: &[Vec<u32>]) -> BTreeMap<(u32, u32), u32> {
    let of_part = |(notes, numbers): (&Notes, &Vec<u32>)| {
        let names = notes.queries.iter().map(|query| (query.traffic, query.number));
        names.zip(numbers.clone()).collect::<Vec<_>>()
    };
    parts.iter().zip(query_numbers).flat_map(of_part).collect()
}

/// All flows, and the number of each by part and place. A flow is whole where it was opened, with what another part knows
/// of its other end. Its retransmission timeouts count for the request that waits for it.
fn number_flows(
    plan: &Plan,
    Survey { names, numbering }: &Survey,
    partition: &Partition,
    parts: &[Notes],
    query_numbers: &[Vec<u32>],
    queries: &mut [RequestRow],
) -> (Vec<FlowRow>, Vec<Vec<u32>>) {
    let by_name = LazyCell::new(|| by_name(parts, query_numbers));
    let awaited = |flow: &Flow| {
        let number = plan.traffic[flow.name.traffic as usize].pattern.awaited_by(flow.name.sequence)?;
        by_name.get(&(flow.name.traffic, number)).copied()
    };
    let opened_in = |flow: &Flow| Some(partition.part_of(numbering.opener(flow.connection?)) as usize);
    let mut order: Vec<(usize, &Flow)> = Vec::new();
    for (part, notes) in parts.iter().enumerate() {
        order.extend(notes.flows.iter().filter(|flow| opened_in(flow) == Some(part)).map(|flow| (part, flow)));
    }
    order.sort_by_key(|(_, flow)| (flow.start, names.tag(flow.name)));
    let mut numbers: Vec<Vec<u32>> = parts.iter().map(|notes| vec![0; notes.flows.iter().len()]).collect();
    let mut rows = Vec::with_capacity(order.len());
    for (number, (part, flow)) in (0..).zip(order) {
        let mut flow = flow.clone();
        for (other, notes) in parts.iter().enumerate() {
            flow.note_dropped(notes.dropped_in_passing.get(&names.tag(flow.name).0).copied().unwrap_or_default());
            let Some(place) = notes.flows.place(flow.name) else { continue };
            numbers[other][place as usize] = number;
            if other != part {
                let has_source = partition.part_of(flow.source) as usize == other;
                flow.merge(&notes.flows[place], has_source);
            }
        }
        let query = flow.query.map(|query| query_numbers[part][query as usize]);
        if flow.timeouts > 0
            && let Some(waits) = query.or_else(|| awaited(&flow))
        {
            queries[waits as usize].timeouts += flow.timeouts;
        }
        rows.push(flow_row(plan, number, query, &flow));
    }
    (rows, numbers)
}

fn flow_row(plan: &Plan, number: u32, query: Option<u32>, flow: &Flow) -> FlowRow {
    let since_start = |at: Time| (at < Time::NEVER).then(|| at.since(flow.start).as_ns());
    let arrived = if flow.arrived_at_end < u64::MAX { flow.arrived_at_end } else { flow.delivered };
    FlowRow {
        flow: number,
        connection: flow.connection.expect("a flow that was opened has a connection"),
        request: query,
        source: flow.source,
        destination: flow.destination,
        inter: plan.network.crosses(flow.source, flow.destination),
        traffic: flow.name.traffic,
        size_bytes: flow.size.map_or(flow.delivered, Bytes::get),
        start_ns: flow.start.as_ns(),
        fct_ns: since_start(flow.done),
        ideal_fct_ns: flow.ideal.as_ns(),
        rtt_mean_ns: (flow.rtt_count > 0).then(|| flow.rtt_sum.div(flow.rtt_count).as_ns()),
        retransmitted_bytes: flow.retransmitted_bytes,
        timeouts: flow.timeouts,
        handshake_ns: since_start(flow.established),
        syn_retransmits: Some(flow.syn_retransmits.into()),
        rto_wait_ns: Some(flow.rto_wait.as_ns()),
        first_byte_ns: since_start(flow.first_byte),
        marked_bytes: flow.marked_bytes,
        dropped_bytes: Some(flow.dropped_bytes),
        dropped_packets: Some(flow.dropped_packets.into()),
        near_source_cuts: flow.near_source_cuts.into(),
        path_changes: matches!(plan.network.routing, Some(RoutingConfig::Rehash(_))).then_some(flow.path_changes),
        received_bytes: flow.delivered,
        delivered_after_warmup_bytes: arrived - flow.arrived_at_warmup,
        events_met: None,
    }
}

fn merge_ports(plan: &Plan, partition: &Partition, parts: &[Notes]) -> Vec<PortRow> {
    let row = |(port, link): (usize, &narrows_plan::Link)| {
        let of = |node: u32| &parts[partition.part_of(node) as usize].ports[port];
        let PortRow { dropped_impairment_packets, lost_in_outage_packets, late_packets, .. } = *of(link.to);
        PortRow { dropped_impairment_packets, lost_in_outage_packets, late_packets, ..of(link.from).clone() }
    };
    plan.network.links.iter().enumerate().map(row).collect()
}
