//! What `narrows check` prints: how large a plan is, what it offers where, and what running it costs. Estimates, not
//! promises.

use std::borrow::Cow;

use narrows_core::queue::Limit;
use narrows_core::units::{Bytes, Span, Time};
use serde::Serialize;

use crate::offered;
use crate::plan::{Connections, FlowStart, Graph, NodeKind, Pairs, Pattern, Plan, Role, Sampling, Traffic};
use crate::route::Routes;
use crate::select::role_name;

/// Payload of a full packet, bytes.
const PAYLOAD: f64 = 1_448.0;
/// Bytes on the wire of a full packet.
const WIRE: f64 = 1_538.0;
/// One acknowledgement for so many packets of data where the receiver merges bursts: measured 2 (all paced) to 10.
const PACKETS_PER_ACK_MERGED: f64 = 4.0;
/// Memory of one packet in a port or on a wire, bytes.
const MEMORY_OF_A_PACKET: u64 = 40;
/// Memory of one connection: two ends and a controller, bytes.
const MEMORY_OF_A_CONNECTION: u64 = 2_048;
/// Memory of one packet of a connection's largest window, which a persistent connection keeps, bytes. Measured on traffic
/// of mean size between datacenters: 35 (CUBIC) to 90 (BBR).
const MEMORY_OF_A_WINDOW_PACKET: f64 = 96.0;
/// Memory of one sample, bytes: 24 of its row, and as much again with its name for the copy that becomes a file.
const MEMORY_OF_A_SAMPLE: f64 = 64.0;
/// Memory of one flow while it goes on and as a row, and of the row's copy that becomes a file, bytes.
const MEMORY_OF_A_FLOW: u64 = 350;
/// Memory of a host or a switch, bytes.
const MEMORY_OF_A_NODE: u64 = 512;
/// Memory of a link and its counters, bytes.
const MEMORY_OF_A_LINK: u64 = 512;

/// A plan in numbers.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// Hosts.
    pub hosts: usize,
    /// Switches.
    pub switches: usize,
    /// Links, each direction counted.
    pub links: usize,
    /// Each kind of traffic.
    pub traffic: Vec<TrafficSummary>,
    /// Offered load by what ports are for.
    pub roles: Vec<RoleSummary>,
    /// The most loaded links, most loaded first: of flows at random by offered load, and where long-lived flows meet.
    pub bottlenecks: Vec<Bottleneck>,
    /// Packets of data and acknowledgements, whole run.
    pub packets: f64,
    /// The same, each counted on every link it crosses.
    pub packet_hops: f64,
    /// Memory of a run, bytes.
    pub memory: Bytes,
    /// Time that a run takes on one core, if a packet-hop costs what the caller says.
    pub cpu_time: Span,
}

/// A kind of traffic in numbers.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TrafficSummary {
    /// Its name.
    pub name: String,
    /// Its controller.
    pub controller: String,
    /// Where its sizes come from, if they are random.
    pub sizes: Option<String>,
    /// Mean size of a flow, bytes; none if it is long-lived.
    pub mean_size_bytes: Option<f64>,
    /// Flows per second, if they arrive at random.
    pub flows_per_second: Option<f64>,
    /// Flows expected, or listed; responses of a closed loop.
    pub flows: f64,
}

/// Offered load of the ports of one role.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RoleSummary {
    /// `host`, `edge`, `fabric` or `wan`.
    pub role: &'static str,
    /// How many ports.
    pub ports: usize,
    /// Mean share of the rate that is offered.
    pub mean_load: f64,
    /// Largest.
    pub max_load: f64,
}

/// A link that will be busy.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Bottleneck {
    /// Its name.
    pub link: String,
    /// Share of its rate that flows at random offer.
    pub load: f64,
    /// Long-lived flows that cross it, expected.
    pub long_flows: f64,
}

/// Long-lived flows of a traffic, for the estimate of what they carry.
struct Lasting {
    pairs: Pairs,
    count: f64,
    /// When they begin and end, means, seconds.
    begin: f64,
    end: f64,
    /// Packets for each packet with data.
    with_acks: f64,
}

impl Lasting {
    /// The part of another's time that this one is there.
    fn share_of(&self, other: &Lasting) -> f64 {
        let both = (self.end.min(other.end) - self.begin.max(other.begin)).max(0.0);
        if both > 0.0 { both / (other.end - other.begin) } else { 0.0 }
    }
}

/// How many bottlenecks are listed.
const BOTTLENECKS: usize = 5;

impl Summary {
    /// The plan in numbers; a packet-hop costs `ns_per_hop` nanoseconds of one core.
    ///
    /// # Panics
    /// If traffic of the plan has no path: a plan made by this crate has.
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "estimates: positive, and saturating"
    )]
    pub fn of(plan: &Plan, ns_per_hop: u64) -> Summary {
        let graph = &plan.network;
        let routes = Routes::new(graph);
        let crossing = |pairs: &Pairs| routes.crossing(pairs).expect("a plan's traffic has paths");
        let seconds = plan.schedule.end.as_ps() as f64 / 1e12;
        let offered = offered::of(plan, &routes).expect("a plan's traffic has paths");
        let mut long = vec![0.0; graph.links.len()];
        let mut traffic = vec![];
        let (mut connections, mut rows, mut windows) = (0.0, 0.0, 0.0);
        // Packets of data and acknowledgements, and who exchanges them.
        let mut data: Vec<(Cow<'_, Pairs>, f64)> = vec![];
        let mut elastic: Vec<Lasting> = vec![];
        for kind in &plan.traffic {
            let (flows, mean, rate, sizes);
            let with_acks = 1.0 + 1.0 / packets_per_ack(kind);
            match &kind.pattern {
                Pattern::Open(open) => {
                    let per_second = offered::flows_per_second(open);
                    (flows, mean, rate, sizes) = (
                        per_second * seconds,
                        Some(open.sizes.mean()),
                        Some(per_second),
                        Some(open.sizes.name.clone()),
                    );
                    let packets = (open.sizes.mean() / PAYLOAD).max(1.0);
                    data.push((Cow::Borrowed(&open.pairs), flows * packets * with_acks));
                    if let Connections::Persistent { pool } = kind.connections {
                        let kept = f64::from(pool) * pairs_of(&open.pairs);
                        connections += kept;
                        windows += kept.min(flows) * packets;
                    }
                    // Little's law: a flow lives about 200 ms and twenty times its time on the slowest link.
                    let slowest = graph.links.iter().map(|link| link.rate.as_bps()).min().unwrap_or(1) as f64;
                    connections += per_second * (0.2 + 20.0 * 8.0 * open.sizes.mean() / slowest).min(seconds);
                }
                Pattern::List(list) => {
                    (flows, rate, sizes) = (list.len() as f64, None, None);
                    let sized: Vec<u64> = list.iter().filter_map(|flow| flow.size).map(Bytes::get).collect();
                    mean = (!sized.is_empty()).then(|| sized.iter().sum::<u64>() as f64 / sized.len() as f64);
                    connections += flows;
                    let pairs = |long: bool| -> Vec<(u32, u32)> {
                        let wanted = list.iter().filter(|flow| flow.size.is_none() == long);
                        wanted.map(|flow| (flow.source, flow.destination)).collect()
                    };
                    if !sized.is_empty() {
                        let packets: f64 = sized.iter().map(|size| (*size as f64 / PAYLOAD).max(1.0)).sum();
                        data.push((Cow::Owned(Pairs::Listed(pairs(false))), packets * with_acks));
                    }
                    let lasting = pairs(true);
                    if !lasting.is_empty() {
                        let until = |stop: Option<Time>| stop.unwrap_or(plan.schedule.end).min(plan.schedule.end);
                        let count = lasting.len() as f64;
                        let mean = |moment: &dyn Fn(&FlowStart) -> Time| {
                            let moments = list.iter().filter(|flow| flow.size.is_none()).map(moment);
                            moments.map(|at| at.as_ps() as f64 / 1e12).sum::<f64>() / count
                        };
                        let (begin, end) = (mean(&|flow| flow.at), mean(&|flow| until(flow.stop).max(flow.at)));
                        elastic.push(Lasting { pairs: Pairs::Listed(lasting), count, begin, end, with_acks });
                    }
                }
                Pattern::Incast(incast) => {
                    let responses = offered::queries(incast, plan.schedule.end) * incast.servers.len() as f64;
                    (flows, mean, sizes) = (responses, Some(incast.response.get() as f64), None);
                    rate = incast.mean_interarrival.map(|_| responses / seconds);
                    let listed = incast.servers.iter().map(|server| (*server, incast.client)).collect();
                    let packets = responses * (incast.response.get() as f64 / PAYLOAD).max(1.0);
                    data.push((Cow::Owned(Pairs::Listed(listed)), packets * with_acks));
                    connections += incast.servers.len() as f64;
                }
            }
            rows += flows;
            traffic.push(TrafficSummary {
                name: kind.name.clone(),
                controller: kind.controller.name.clone(),
                sizes,
                mean_size_bytes: mean,
                flows_per_second: rate,
                flows,
            });
        }
        let shares: Vec<Vec<f64>> = elastic.iter().map(|lasting| crossing(&lasting.pairs)).collect();
        for (lasting, shares) in elastic.iter().zip(&shares) {
            long.iter_mut().zip(shares).for_each(|(long, share)| *long += lasting.count * share);
        }
        // A long-lived flow gets what the most contended link on its way leaves; all of a list are taken to be alike, and
        // share with others while these are there.
        for (lasting, own) in elastic.iter().zip(&shares) {
            let with = |link: usize| -> f64 {
                let others = elastic.iter().zip(&shares);
                others.map(|(other, shares)| other.count * shares[link] * other.share_of(lasting)).sum()
            };
            let per_flow = (0..graph.links.len())
                .filter(|link| own[*link] > 0.0)
                .map(|link| {
                    graph.links[link].rate.as_bps() as f64 * (1.0 - offered[link]).max(0.05) / with(link).max(1.0)
                })
                .fold(f64::INFINITY, f64::min);
            let bits = lasting.count * (lasting.end - lasting.begin) * per_flow;
            data.push((Cow::Borrowed(&lasting.pairs), bits / (8.0 * WIRE) * lasting.with_acks));
        }
        let amounts: Vec<(&Pairs, f64)> = data.iter().map(|(pairs, packets)| (&**pairs, *packets)).collect();
        let packets: f64 = amounts.iter().map(|(_, packets)| packets).sum();
        let packet_hops: f64 = routes.carried(&amounts).expect("a plan's traffic has paths").iter().sum();
        let kept = windows * MEMORY_OF_A_WINDOW_PACKET + samples(plan) * MEMORY_OF_A_SAMPLE;
        let memory = memory(graph, connections, rows, kept);
        Summary {
            hosts: graph.nodes.iter().filter(|node| node.kind == NodeKind::Host).count(),
            switches: graph.nodes.iter().filter(|node| node.kind == NodeKind::Switch).count(),
            links: graph.links.len(),
            traffic,
            roles: roles(graph, &offered),
            bottlenecks: bottlenecks(graph, &offered, &long),
            packets,
            packet_hops,
            memory,
            cpu_time: Span::from_ps((packet_hops * ns_per_hop as f64 * 1_000.0) as u64),
        }
    }
}

/// Packets of data that one acknowledgement answers.
fn packets_per_ack(kind: &Traffic) -> f64 {
    let every = f64::from(kind.profile.ack_every.max(1));
    if kind.profile.receive_offload_segments > 1 { every.max(PACKETS_PER_ACK_MERGED) } else { every }
}

/// Samples of watched ports, and of the windows and the goodput of long-lived flows, whole run.
#[expect(clippy::cast_precision_loss, reason = "estimates")]
fn samples(plan: &Plan) -> f64 {
    let watched = plan.network.links.iter().filter(|link| link.watched).count() as f64;
    let long_of = |pattern: &Pattern| match pattern {
        Pattern::List(list) => list.iter().filter(|flow| flow.size.is_none()).count(),
        Pattern::Open(_) | Pattern::Incast(_) => 0,
    };
    let long = plan.traffic.iter().map(|traffic| long_of(&traffic.pattern)).sum::<usize>() as f64;
    let times = |every: Span| match every.as_ps() {
        0 => 0.0,
        every => plan.schedule.end.as_ps() as f64 / every as f64,
    };
    let Sampling { queues, windows, goodput, throughput } = plan.sampling;
    watched * (times(queues) + times(throughput)) + long * (times(windows) + times(goodput))
}

#[expect(clippy::cast_precision_loss, reason = "numbers of hosts are far below 2^53")]
fn pairs_of(pairs: &Pairs) -> f64 {
    match pairs {
        Pairs::Listed(listed) => listed.len() as f64,
        Pairs::Between { sources, destinations } => sources.len() as f64 * destinations.len() as f64,
    }
}

/// Memory of a run: full buffers and wires, nodes, links, connections, rows of results, and what else is kept.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "estimates: positive, and saturating")]
fn memory(graph: &Graph, connections: f64, rows: f64, kept: f64) -> Bytes {
    let packets_in = |bytes: u64| bytes / 1_500 + 1;
    let buffers: u64 = graph
        .links
        .iter()
        .map(|link| {
            let on_wire = packets_in(link.rate.bytes_in(link.delay).get());
            let pool = graph.nodes[link.from as usize].pool.filter(|_| link.pooled);
            let queued = match (link.limit, pool) {
                (Limit::Packets(packets), _) => packets.get(),
                (Limit::Bytes(bytes), _) => packets_in(bytes.get()),
                // A hot port of a pool tops out at its own share of what is free.
                (Limit::Unlimited, Some(pool)) => packets_in(pool.size.get()) / 2,
                (Limit::Unlimited, None) => 1_000,
            };
            (on_wire.saturating_add(queued)).saturating_mul(MEMORY_OF_A_PACKET).saturating_add(MEMORY_OF_A_LINK)
        })
        .fold(0, u64::saturating_add);
    let nodes = graph.nodes.len() as u64 * MEMORY_OF_A_NODE;
    let connections = (connections as u64).saturating_mul(MEMORY_OF_A_CONNECTION);
    let rows = (rows as u64).saturating_mul(MEMORY_OF_A_FLOW);
    let rest = nodes.saturating_add(connections).saturating_add(rows).saturating_add(kept as u64);
    Bytes::new(buffers.saturating_add(rest))
}

#[expect(clippy::cast_precision_loss, reason = "numbers of links are far below 2^53")]
fn roles(graph: &Graph, offered: &[f64]) -> Vec<RoleSummary> {
    let of = |role: Role| {
        let loads: Vec<f64> =
            graph.links.iter().zip(offered).filter(|(link, _)| link.role == role).map(|(_, load)| *load).collect();
        (!loads.is_empty()).then(|| RoleSummary {
            role: role_name(role),
            ports: loads.len(),
            mean_load: loads.iter().sum::<f64>() / loads.len() as f64,
            max_load: loads.iter().copied().fold(0.0, f64::max),
        })
    };
    [Role::Host, Role::Edge, Role::Fabric, Role::Wan].into_iter().filter_map(of).collect()
}

#[expect(clippy::cast_precision_loss, reason = "rates are far below 2^53 bit/s")]
fn bottlenecks(graph: &Graph, offered: &[f64], long: &[f64]) -> Vec<Bottleneck> {
    // What a further flow would get: the free rate shared with the long-lived flows.
    let left = |link: usize| graph.links[link].rate.as_bps() as f64 * (1.0 - offered[link]) / (1.0 + long[link]);
    let mut busy: Vec<usize> =
        (0..graph.links.len()).filter(|link| offered[*link] > 0.0 || long[*link] > 0.0).collect();
    busy.sort_by(|a, b| left(*a).total_cmp(&left(*b)).then(a.cmp(b)));
    busy.truncate(BOTTLENECKS);
    let bottleneck =
        |link: usize| Bottleneck { link: graph.links[link].name.clone(), load: offered[link], long_flows: long[link] };
    busy.into_iter().map(bottleneck).collect()
}
