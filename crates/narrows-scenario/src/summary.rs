//! What `narrows check` prints: how large a plan is, what it offers where, and what running it costs. Estimates, not
//! promises.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use narrows_core::transport::Transport;
use narrows_core::units::{Bytes, Span, Time};
use serde::Serialize;

use crate::offered;
use crate::route::Routes;
use crate::traffic::transport::{full_packet, own_rate};
use narrows_plan::{Connections, FlowStart, Graph, Link, NodeKind, Pairs, Pattern, Plan, Role, Schedule, Traffic};

mod links;
mod long;
mod memory;
mod network;
mod paths;
mod settling;

pub use long::LongFlow;
use memory::Held;
pub(crate) use memory::Memory;
pub use network::NetworkSummary;
pub use paths::{Buffer, PathKind, Paths};
pub use settling::Settling;

/// One acknowledgement for so many packets of data where the receiver merges bursts: measured 2 (all paced) to 10.
const PACKETS_PER_ACK_MERGED: f64 = 4.0;
/// Packets of a connection's handshake.
const HANDSHAKE_PACKETS: f64 = 3.0;
/// Packets of an overload that come for each that gets through: what is dropped has crossed links before.
const SENT_IN_OVERLOAD: f64 = 2.0;
/// What a connection that is there with many others costs beside its packets, in packet-hops. Measured: 210 to 330 with 10,000
/// to 100,000 at once.
const HOPS_OF_A_CONNECTION: f64 = 270.0;

/// What a packet-hop is taken to cost, nanoseconds of one core.
const NS_PER_PACKET_HOP: f64 = 75.0;

/// A plan in numbers.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// Hosts.
    pub hosts: usize,
    /// Switches.
    pub switches: usize,
    /// Links, each direction counted.
    pub links: usize,
    /// What its ports do, and its hosts.
    pub network: NetworkSummary,
    /// Each kind of traffic.
    pub traffic: Vec<TrafficSummary>,
    /// Offered load by what ports are for: of flows at random, and of those without a size that have a rate of their own.
    pub roles: Vec<RoleSummary>,
    /// The most loaded links, most loaded first: by offered load, and where other long-lived flows meet.
    pub bottlenecks: Vec<Bottleneck>,
    /// Where unfinished work takes longest to settle, if traffic comes at random.
    pub settling: Option<Settling>,
    /// Functions that lose or reorder packets on links, as sentences; with what they come to in the mean.
    pub functions: Vec<String>,
    /// Changes of links during the run, as sentences.
    pub events: Vec<String>,
    /// Packets of data and acknowledgements, whole run.
    pub packets: f64,
    /// The same, each counted on every link it crosses.
    pub packet_hops: f64,
    /// What takes time, in packet-hops' worth of it.
    pub work: f64,
    /// Memory that a run adds to its process, bytes: measured, 0.7 to 1.4 times what it takes, and up to twice where
    /// persistent connections carry many flows.
    pub memory: Bytes,
    /// The same, with what most of it is for.
    #[serde(skip)]
    pub(crate) largest_use: Memory,
    /// Time that a run takes on one core, if a packet-hop costs 75 ns.
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
    /// Of these, those that begin after the warm-up, expected; none where that depends on what becomes of others.
    pub counted: Option<f64>,
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
    /// Name of the first port with the largest.
    pub busiest: String,
}

/// A link that will be busy.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Bottleneck {
    /// Its name.
    pub link: String,
    /// Share of its rate that is offered.
    pub load: f64,
    /// Long-lived flows that cross it, expected, without those that have a rate of their own.
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
    /// Bytes on the wire of a full packet.
    wire: f64,
    /// What each sends at most, bit/s, where its transport says so.
    own_rate: Option<f64>,
}

impl Lasting {
    /// When it is there, on a grid so coarse.
    fn period(&self, grid: Option<f64>) -> Period {
        let Some(step) = grid else { return Period { begin: self.begin, end: self.end } };
        Period { begin: (self.begin / step).floor() * step, end: (self.end / step).ceil() * step }
    }
}

/// When flows are there, seconds.
#[derive(Clone, Copy, Debug)]
struct Period {
    begin: f64,
    end: f64,
}

impl Period {
    /// The step that keeps different periods few, if they are many: each is held against every other.
    fn grid(elastic: &[Lasting], seconds: f64) -> Option<f64> {
        const MAX_PERIODS: usize = 64;
        let different: BTreeSet<(u64, u64)> = elastic.iter().map(|lasting| lasting.period(None).key()).collect();
        (different.len() > MAX_PERIODS).then_some(seconds / 8.0)
    }

    fn key(self) -> (u64, u64) {
        (self.begin.to_bits(), self.end.to_bits())
    }

    /// The part of another's time that this one is there.
    fn share_of(self, other: Period) -> f64 {
        let both = (self.end.min(other.end) - self.begin.max(other.begin)).max(0.0);
        if both > 0.0 { both / (other.end - other.begin) } else { 0.0 }
    }
}

/// How many bottlenecks are listed.
const BOTTLENECKS: usize = 5;

impl Summary {
    /// The plan in numbers.
    ///
    /// # Panics
    /// If traffic of the plan has no path: a plan made by this crate has.
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "estimates: positive, and saturating"
    )]
    pub fn of(plan: &Plan) -> Summary {
        let graph = &plan.network;
        let routes = Routes::new(graph);
        let crossing = |pairs: &Pairs| routes.crossing(pairs).expect("a plan's traffic has paths");
        let seconds = plan.schedule.end.as_ps() as f64 / 1e12;
        let offered = offered::of(plan, &routes).expect("a plan's traffic has paths");
        let mut long = vec![0.0; graph.links.len()];
        let mut traffic = vec![];
        let mut held = Held::of(plan);
        let mut data: Vec<Exchange<'_>> = vec![];
        let mut elastic: Vec<Lasting> = vec![];
        for kind in &plan.traffic {
            let (flows, mean, rate, sizes);
            let (payload, wire) = full_packet(kind, graph.mtu);
            let with_acks = 1.0 + packets_per_ack(kind).map_or(0.0, f64::recip);
            let fresh = !kind.connections.are_kept();
            let handshake = if kind.connections == Connections::Fresh { HANDSHAKE_PACKETS } else { 0.0 };
            match &kind.pattern {
                Pattern::Open(open) => {
                    let per_second = offered::flows_per_second(open);
                    (flows, mean, rate, sizes) = (
                        per_second * seconds,
                        Some(open.sizes.mean()),
                        Some(per_second),
                        Some(open.sizes.name.clone()),
                    );
                    let packets = (open.sizes.mean() / payload).max(1.0);
                    data.push(Exchange::new(
                        Cow::Borrowed(&open.pairs),
                        flows * (packets * with_acks + handshake),
                        kind,
                        flows,
                    ));
                    match kind.connections {
                        Connections::Persistent { pool } => {
                            held.keep(kind, f64::from(pool) * pairs_of(&open.pairs), flows, packets);
                        }
                        _ => held.overlapping(flows, per_second, open.sizes.mean(), seconds),
                    }
                }
                Pattern::List(list) => {
                    (flows, rate, sizes) = (list.len() as f64, None, None);
                    let sized: Vec<u64> = list.iter().filter_map(|flow| flow.size).map(Bytes::get).collect();
                    mean = (!sized.is_empty()).then(|| sized.iter().sum::<u64>() as f64 / sized.len() as f64);
                    let pairs = |long: bool| -> Vec<(u32, u32)> {
                        let wanted = list.iter().filter(|flow| flow.size.is_none() == long);
                        wanted.map(|flow| (flow.source, flow.destination)).collect()
                    };
                    if !sized.is_empty() {
                        let packets: f64 = sized.iter().map(|size| (*size as f64 / payload).max(1.0)).sum();
                        let all = packets * with_acks + sized.len() as f64 * handshake;
                        data.push(Exchange::new(
                            Cow::Owned(Pairs::Listed(pairs(false))),
                            all,
                            kind,
                            sized.len() as f64,
                        ));
                        let moments = list.iter().map(|flow| (flow.at + flow.spread).as_ps() as f64 / 1e12);
                        let per_second = sized.len() as f64 / moments.fold(1e-3, f64::max);
                        held.overlapping(sized.len() as f64, per_second, mean.unwrap_or_default(), seconds);
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
                        held.connections += count;
                        let own_rate = lasting.first().and_then(|(from, _)| own_rate(kind, graph, *from));
                        let pairs = Pairs::Listed(lasting);
                        elastic.push(Lasting { pairs, count, begin, end, with_acks, wire, own_rate });
                    }
                }
                Pattern::App(app) => {
                    let (app, pairs) = (app.rounds(), app.rounds().pairs());
                    let (size, width) = (app.size().get() as f64, pairs.len() as f64);
                    flows = offered::rounds(app, plan.schedule.end) * width;
                    (mean, sizes) = (Some(size), None);
                    rate = app.mean_interarrival().map(|_| flows / seconds);
                    let loads = app.loads();
                    let bytes: f64 = loads.iter().map(|load| load.bytes as f64).sum();
                    // With the requests, where they count.
                    let packets = flows * (size / payload).max(1.0) * bytes / (size * width);
                    let handshakes = if fresh { flows * handshake } else { 0.0 };
                    let all = packets * with_acks + handshakes;
                    let mut different = pairs.clone();
                    different.sort_unstable();
                    different.dedup();
                    held.connections += different.len() as f64;
                    for load in loads {
                        let part = load.bytes as f64 / bytes;
                        let pairs = Cow::Owned(Pairs::Listed(load.pairs));
                        data.push(Exchange::new(pairs, all * part, kind, flows * part));
                    }
                }
            }
            held.flows += flows;
            traffic.push(TrafficSummary {
                name: kind.name.clone(),
                controller: kind.controller.name.clone(),
                sizes,
                mean_size_bytes: mean,
                flows_per_second: rate,
                flows,
                counted: counted(kind, &plan.schedule, flows),
            });
        }
        let until = (plan.schedule.end + plan.schedule.drain).as_ps() as f64 / 1e12;
        held.connections = held.connections.max(slow_down(&mut data, graph, &routes, until));
        // Links that each list crosses and its part of them, few of many; and what all lists of the same times have there.
        let shares: Vec<Vec<(usize, f64)>> = elastic
            .iter()
            .map(|lasting| (0..).zip(crossing(&lasting.pairs)).filter(|(_, share)| *share > 0.0).collect())
            .collect();
        // What is sent at a rate of its own is offered, too, in the mean over the run.
        let mut told = offered.clone();
        let mut periods: Vec<(Period, Vec<f64>)> = vec![];
        let grid = Period::grid(&elastic, seconds);
        let mut place = BTreeMap::new();
        for (lasting, shares) in elastic.iter().zip(&shares) {
            let period = lasting.period(grid);
            let at = *place.entry(period.key()).or_insert_with(|| {
                periods.push((period, vec![0.0; graph.links.len()]));
                periods.len() - 1
            });
            for (link, share) in shares {
                match lasting.own_rate {
                    None => long[*link] += lasting.count * share,
                    Some(rate) => {
                        let there = (lasting.end - lasting.begin) / seconds;
                        told[*link] += lasting.count * share * there * rate / graph.links[*link].rate.as_bps() as f64;
                    }
                }
                periods[at].1[*link] += lasting.count * share;
            }
        }
        // A long-lived flow gets what the most contended link on its way leaves; all of a list are taken to be alike, and
        // share with others while these are there.
        for (lasting, own) in elastic.iter().zip(&shares) {
            let period = lasting.period(grid);
            let with = |link: usize| -> f64 {
                periods.iter().map(|(other, flows)| flows[link] * other.share_of(period)).sum()
            };
            let per_flow = own
                .iter()
                .map(|(link, _)| {
                    graph.links[*link].rate.as_bps() as f64 * (1.0 - offered[*link]).max(0.05) / with(*link).max(1.0)
                })
                .fold(lasting.own_rate.unwrap_or(f64::INFINITY), f64::min);
            let bits = lasting.count * (lasting.end - lasting.begin) * per_flow;
            let packets = bits / (8.0 * lasting.wire) * lasting.with_acks;
            data.push(Exchange { pairs: Cow::Borrowed(&lasting.pairs), packets, fresh: 0.0 });
        }
        let amounts = amounts(&data);
        let packets: f64 = amounts.iter().map(|(_, packets)| packets).sum();
        let carried = routes.carried(&amounts).expect("a plan's traffic has paths");
        let packet_hops: f64 = carried.iter().sum();
        let memory = held.memory(&carried, packets);
        let work = packet_hops + held.connections * HOPS_OF_A_CONNECTION;
        Summary {
            hosts: graph.nodes.iter().filter(|node| node.kind == NodeKind::Host).count(),
            switches: graph.nodes.iter().filter(|node| node.kind == NodeKind::Switch).count(),
            links: graph.links.len(),
            network: NetworkSummary::of(plan),
            traffic,
            roles: roles(graph, &told),
            bottlenecks: bottlenecks(graph, &told, &long),
            settling: Settling::of(plan, &routes, &offered),
            functions: links::functions(graph),
            events: links::events(graph),
            packets,
            packet_hops,
            work,
            memory: memory.total,
            largest_use: memory,
            cpu_time: Span::from_ps((work * NS_PER_PACKET_HOP * 1_000.0) as u64),
        }
    }
}

/// Of so many flows of a traffic those that are expected to begin after the warm-up.
#[expect(clippy::cast_precision_loss, reason = "an estimate")]
fn counted(kind: &Traffic, schedule: &Schedule, flows: f64) -> Option<f64> {
    let warmup = Time::ZERO + schedule.warmup;
    let since = |start: Time| {
        let whole = schedule.end.as_ps().saturating_sub(start.as_ps());
        let counted = schedule.end.as_ps().saturating_sub(start.max(warmup).as_ps());
        flows * counted as f64 / whole.max(1) as f64
    };
    match &kind.pattern {
        Pattern::Open(_) => Some(since(Time::ZERO)),
        Pattern::List(list) => Some(list.iter().filter(|flow| flow.at >= warmup).count() as f64),
        Pattern::App(app) => app.rounds().mean_interarrival().map(|_| since(app.rounds().start())),
    }
}

/// Packets of data that one acknowledgement answers; `None` where there are none.
fn packets_per_ack(kind: &Traffic) -> Option<f64> {
    match &kind.transport {
        Transport::Datagram(_) => None,
        Transport::Rdma(config) => Some(f64::from(config.ack_every.max(1))),
        Transport::Tcp => {
            let every = f64::from(kind.profile.ack_every.max(1));
            Some(if kind.profile.receive_offload.is_some() { every.max(PACKETS_PER_ACK_MERGED) } else { every })
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "numbers of hosts are far below 2^53")]
fn pairs_of(pairs: &Pairs) -> f64 {
    match pairs {
        Pairs::Listed(listed) => listed.len() as f64,
        Pairs::Between { sources, destinations } => sources.len() as f64 * destinations.len() as f64,
    }
}

/// Packets of data and acknowledgements, and who exchanges them.
struct Exchange<'a> {
    pairs: Cow<'a, Pairs>,
    packets: f64,
    /// Flows that have a connection of their own.
    fresh: f64,
}

impl<'a> Exchange<'a> {
    fn new(pairs: Cow<'a, Pairs>, packets: f64, kind: &Traffic, flows: f64) -> Exchange<'a> {
        let fresh = if kind.connections.are_kept() { 0.0 } else { flows };
        Exchange { pairs, packets, fresh }
    }
}

fn amounts<'a>(data: &'a [Exchange<'_>]) -> Vec<(&'a Pairs, f64)> {
    data.iter().map(|exchange| (&*exchange.pairs, exchange.packets)).collect()
}

/// Takes away what will not be sent, for the links cannot carry it before the run's end at the latest, `seconds`. Returns the connections that are
/// still there then.
#[expect(clippy::cast_precision_loss, reason = "rates are far below 2^53 bit/s")]
fn slow_down(data: &mut [Exchange<'_>], graph: &Graph, routes: &Routes<'_>, seconds: f64) -> f64 {
    let carried = routes.carried(&amounts(data)).expect("a plan's traffic has paths");
    let wire = graph.mtu.frame().get() as f64;
    let needed = |(link, packets): (&Link, &f64)| packets * wire * 8.0 / link.rate.as_bps() as f64 / seconds;
    let overload: Vec<f64> = graph.links.iter().zip(&carried).map(needed).collect();
    if overload.iter().all(|times| *times <= 1.0) {
        return 0.0;
    }
    let mut waiting = 0.0;
    for exchange in data {
        let shares = routes.crossing(&exchange.pairs).expect("a plan's traffic has paths");
        let crossed = shares.iter().zip(&overload).filter(|(share, _)| **share > 0.0);
        let times = crossed.map(|(_, times)| *times).fold(1.0, f64::max);
        exchange.packets /= (times / SENT_IN_OVERLOAD).max(1.0);
        waiting += exchange.fresh * (1.0 - 1.0 / times);
    }
    waiting
}

#[expect(clippy::cast_precision_loss, reason = "numbers of links are far below 2^53")]
fn roles(graph: &Graph, offered: &[f64]) -> Vec<RoleSummary> {
    let of = |role: Role| {
        let of_role = graph.links.iter().zip(offered).enumerate().filter(|(_, (link, _))| link.role == role);
        let loads: Vec<(usize, f64)> = of_role.map(|(place, (_, load))| (place, *load)).collect();
        let (busiest, max_load) = loads.iter().copied().reduce(|most, one| if one.1 > most.1 { one } else { most })?;
        Some(RoleSummary {
            role: role.name(),
            ports: loads.len(),
            mean_load: loads.iter().map(|(_, load)| load).sum::<f64>() / loads.len() as f64,
            max_load,
            busiest: graph.links[busiest].name.clone(),
        })
    };
    Role::ALL.into_iter().filter_map(of).collect()
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
