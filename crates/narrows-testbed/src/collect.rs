//! What the agents and the emulator have seen becomes the rows that a simulated run leaves behind, with the same meaning.
//!
//! Two columns are made of what a kernel tells: `rtt_mean_ns` is the mean of the smoothed RTT, looked at every 10 ms
//! while the flow is sent; `timeouts` is counted from Linux 6.7 on. `rto_wait_ns` no kernel tells.

use std::collections::BTreeMap;

use narrows_core::transport::Transport;
use narrows_core::units::{Bytes, Rate, Span, Time};
use narrows_network::Network;
use narrows_plan::flows::Name;
use narrows_plan::{FlowStart, Plan};
use narrows_results::trace::Trace;
use narrows_results::{EventRow, FlowRow, Ideal, PortRow, Quantity, RankRow, RequestRow, Results, SeriesRow};

use crate::address;
use crate::agent::{self, Notes};
use crate::emulator::{Marked, Observed, wires};
use crate::near_source::Heard;
use crate::packet::Packet;
use crate::samples::Samples;

/// The rows of a run, from the notes of all hosts by number.
pub(crate) fn collect(
    plan: &Plan,
    seed: u64,
    notes: &[Notes],
    observed: &Observed,
    cuts: &Times,
    ended: Time,
) -> Results {
    let (mut requests, request_numbers) = queries(notes);
    let (flows, flow_numbers) = flows(plan, seed, notes, (observed, cuts), &request_numbers);
    count_timeouts(plan, notes, &request_numbers, (&flows, &flow_numbers), &mut requests);
    let looks = observed.samples.backlogs.iter();
    let mut series: Vec<SeriesRow> =
        looks.map(|look| SeriesRow::new(look.at, look.link, Quantity::QueueBytes, look.bytes.get())).collect();
    let width = plan.sampling.throughput;
    series.extend(
        observed
            .samples
            .sent
            .iter()
            .map(|sent| SeriesRow::new(sent.at, sent.link, Quantity::SentBps, Rate::of(sent.bytes, width).as_bps())),
    );
    let samples = notes.iter().flat_map(|notes| &notes.samples);
    series.extend(samples.filter_map(|sample| {
        Some(SeriesRow::new(sample.at, *flow_numbers.get(&sample.flow)?, sample.quantity, sample.value))
    }));
    SeriesRow::sort(&mut series);
    let mut ranks: Vec<RankRow> = notes.iter().flat_map(|notes| &notes.ranks).cloned().collect();
    RankRow::sort(&mut ranks);
    Results {
        flows,
        requests,
        ports: ports(plan, &observed.samples),
        series,
        events_at_links: EventRow::all(&plan.network),
        bridges: Vec::new(),
        ranks,
        trace: Trace::default(),
        packet_hops: observed.packet_hops,
        events: observed.packet_hops,
        ended_ns: ended.as_ns(),
    }
}

/// All queries, and the number of each by host and place.
fn queries(notes: &[Notes]) -> (Vec<RequestRow>, Vec<Vec<u32>>) {
    let mut order: Vec<(usize, usize)> = (notes.iter().enumerate())
        .flat_map(|(host, notes)| (0..notes.queries.len()).map(move |place| (host, place)))
        .collect();
    order.sort_by_key(|&(host, place)| {
        let query = &notes[host].queries[place];
        (query.start, query.traffic)
    });
    let mut numbers: Vec<Vec<u32>> = notes.iter().map(|notes| vec![0; notes.queries.len()]).collect();
    let mut rows = Vec::with_capacity(order.len());
    for (number, (host, place)) in (0..).zip(order) {
        let query = &notes[host].queries[place];
        numbers[host][place] = number;
        rows.push(RequestRow {
            request: number,
            client: query.client,
            start_ns: query.start.as_ns(),
            completion_ns: query.completion.map(Span::as_ns),
            responses: query.responses,
            timeouts: 0,
        });
    }
    (rows, numbers)
}

/// Adds each flow's retransmission timeouts to those of the request that waits for it.
fn count_timeouts(
    plan: &Plan,
    notes: &[Notes],
    request_numbers: &[Vec<u32>],
    (flows, flow_numbers): (&[FlowRow], &BTreeMap<Name, u32>),
    requests: &mut [RequestRow],
) {
    let names = notes.iter().flat_map(|notes| notes.queries.iter().map(|query| (query.traffic, query.number)));
    let by_name: BTreeMap<(u32, u32), u32> = names.zip(request_numbers.iter().flatten().copied()).collect();
    for (name, &number) in flow_numbers {
        let flow = &flows[number as usize];
        let awaited = || {
            let number = plan.traffic[name.traffic as usize].pattern.awaited_by(name.sequence)?;
            by_name.get(&(name.traffic, number)).copied()
        };
        if let Some(request) = flow.request.or_else(awaited) {
            requests[request as usize].timeouts += flow.timeouts;
        }
    }
}

/// All flows, in the order of the plan, and the number of each.
fn flows(
    plan: &Plan,
    seed: u64,
    notes: &[Notes],
    (observed, cuts): (&Observed, &Times),
    request_numbers: &[Vec<u32>],
) -> (Vec<FlowRow>, BTreeMap<Name, u32>) {
    let mut whole: BTreeMap<Name, agent::Flow> = BTreeMap::new();
    let mut requests: BTreeMap<Name, u32> = BTreeMap::new();
    for (host, notes) in notes.iter().enumerate() {
        for (&name, flow) in &notes.flows {
            let merged = whole.entry(name).or_default();
            merged.opened = merged.opened.or(flow.opened);
            merged.sent = merged.sent.or(flow.sent);
            merged.received = merged.received.or(flow.received);
            if let Some(query) = flow.opened.and_then(|opened| opened.query) {
                requests.insert(name, request_numbers[host][query as usize]);
            }
        }
    }
    let mut order: Vec<(Name, agent::Flow, agent::Opened)> =
        whole.into_iter().filter_map(|(name, flow)| Some((name, flow, flow.opened?))).collect();
    order.sort_by_key(|(name, _, opened)| (opened.planned, *name));
    let drawn = agent::Drawn::new(plan, seed);
    let marks = Times::of_marks(&observed.marked);
    // What is emulated, and nothing of the hosts: no flow can be faster.
    let graph = wires(&plan.network);
    let network: Network<Packet> = Network::new(&graph, seed).expect("it has been emulated");
    let mut ideal = Ideal::default();
    let mut numbers = BTreeMap::new();
    let mut rows = Vec::with_capacity(order.len());
    for (number, (name, flow, opened)) in (0..).zip(order) {
        let start = drawn.flow(name).expect("what was opened was drawn");
        numbers.insert(name, number);
        let ideal = ideal.completion(&graph, &network, &Transport::Tcp, &start);
        rows.push(row(
            plan,
            number,
            requests.get(&name).copied(),
            (name, &start),
            (&flow, &opened),
            (&marks, cuts),
            ideal,
        ));
    }
    (rows, numbers)
}

fn row(
    plan: &Plan,
    number: u32,
    request: Option<u32>,
    (name, start): (Name, &FlowStart),
    (flow, opened): (&agent::Flow, &agent::Opened),
    (marks, cuts): (&Times, &Times),
    ideal: Span,
) -> FlowRow {
    let (sent, received) = (flow.sent.unwrap_or_default(), flow.received.unwrap_or_default());
    let (source, destination) = (start.source, start.destination);
    let listener = agent::port(name.traffic);
    let ports = if start.request.is_some() { (listener, opened.port) } else { (opened.port, listener) };
    let until = received.done.unwrap_or(Time::NEVER);
    let since_start = |at: Option<Time>| at.map(|at| at.since(opened.start).as_ns());
    FlowRow {
        flow: number,
        connection: opened.connection,
        request,
        source,
        destination,
        inter: plan.network.crosses(source, destination),
        traffic: name.traffic,
        size_bytes: start.size.map_or(received.delivered, Bytes::get),
        start_ns: opened.start.as_ns(),
        fct_ns: since_start(received.done),
        ideal_fct_ns: ideal.as_ns(),
        rtt_mean_ns: (sent.rtt_count > 0).then(|| sent.rtt_sum.div(sent.rtt_count).as_ns()),
        retransmitted_bytes: sent.retransmitted_bytes,
        timeouts: sent.timeouts,
        handshake_ns: opened.handshake.map(Span::as_ns),
        syn_retransmits: opened.syn_retransmits,
        rto_wait_ns: None,
        first_byte_ns: since_start(received.first_byte),
        dropped_bytes: None,
        dropped_packets: None,
        near_source_cuts: cuts.between((source, destination), ports, opened.start, until),
        path_changes: None,
        marked_bytes: marks.between((source, destination), ports, opened.start, until),
        received_bytes: received.delivered,
        delivered_after_warmup_bytes: received.delivered_at_end.unwrap_or(received.delivered)
            - received.delivered_at_warmup,
        events_met: None,
    }
}

/// What happened to connections and when, by direction: times, and the sum of amounts up to each.
#[derive(Debug)]
pub(crate) struct Times(BTreeMap<Way, Vec<(Time, u64)>>);

/// Hosts, then ports: the sender's first.
type Way = ((u32, u32), (u16, u16));

impl Times {
    /// Marked payload, in the order of delivery.
    fn of_marks(marked: &[Marked]) -> Times {
        let mark = |mark: &Marked| (((mark.source, mark.destination), mark.ports), mark.at, u64::from(mark.payload));
        Times::new(marked.iter().map(mark))
    }

    /// Cuts of connections' rates near the source, each host's in order. The plan began when their clock showed `plan_begins`.
    pub(crate) fn of_cuts<'a>(heard: impl Iterator<Item = &'a Heard>, plan_begins: Span) -> Times {
        Times::new(heard.flat_map(|heard| &heard.cuts).filter_map(|cut| {
            let (from, to) = (cut.flow.source, cut.flow.destination);
            let way = ((address::host(from.ip())?, address::host(to.ip())?), (from.port(), to.port()));
            Some((way, Time::ZERO + cut.at.since(Time::ZERO + plan_begins), 1))
        }))
    }

    /// Each direction's come in order.
    fn new(amounts: impl Iterator<Item = (Way, Time, u64)>) -> Times {
        let mut ways: BTreeMap<Way, Vec<(Time, u64)>> = BTreeMap::new();
        for (way, at, amount) in amounts {
            let way = ways.entry(way).or_default();
            let sum = way.last().map_or(0, |(_, sum)| *sum);
            way.push((at, sum + amount));
        }
        Times(ways)
    }

    /// What came after `from`, up to and including `until`: flows of one connection follow each other.
    fn between(&self, hosts: (u32, u32), ports: (u16, u16), from: Time, until: Time) -> u64 {
        let Some(way) = self.0.get(&(hosts, ports)) else { return 0 };
        let by = |time: Time| match way.partition_point(|(at, _)| *at <= time) {
            0 => 0,
            place => way[place - 1].1,
        };
        by(until) - by(from)
    }
}

fn ports(plan: &Plan, samples: &Samples) -> Vec<PortRow> {
    let warmup = Time::ZERO + plan.schedule.warmup;
    let rows = (0..).zip(&plan.network.links).zip(&samples.counters).map(|((port, link), counters)| {
        let looks = samples.backlogs.iter().filter(|look| look.link == port && look.at >= warmup);
        PortRow::new(port, link, counters, looks.map(|look| look.bytes.get()).collect(), samples.read_at)
    });
    rows.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_belong_to_the_flow_that_was_on_the_connection_then() {
        let at = |ms: u64| Time::ZERO + Span::from_ms(ms);
        let mark =
            |ms, source, payload| Marked { at: at(ms), source, destination: 1, ports: (20_000, 10_000), payload };
        let marks = Times::of_marks(&[mark(1, 0, 100), mark(2, 3, 7), mark(5, 0, 10), mark(6, 0, 1)]);
        let of = |from, until| marks.between((0, 1), (20_000, 10_000), at(from), until);
        assert_eq!((of(0, at(5)), of(5, at(9)), of(0, Time::NEVER), of(6, at(9))), (110, 1, 111, 0));
        assert_eq!(marks.between((1, 0), (10_000, 20_000), at(0), at(9)), 0);
    }
}
