//! What a run holds at its peak. Fitted to the resident memory of worker processes: 1,000 to 100,000 flows at once, of
//! 5 KB to 2 MB, 10⁶ flows one after the other, persistent connections, 400,000 samples, 3,456 hosts.

use std::fmt;

use narrows_core::cc::spec;
use narrows_core::queue::Limit;
use narrows_core::units::{Bytes, Span};

use narrows_plan::{Graph, Link, NodeKind, Pattern, Plan, RoutingConfig, Sampling, Traffic};

/// A packet in a port or on a wire, and its entry in the sender's scoreboard, bytes.
const PACKET: f64 = 104.0;
/// A connection that has carried something: two ends and a controller, with the windows of a crowd, bytes.
const CONNECTION: f64 = 4_300.0;
/// What persistent connections keep of their largest windows, bytes for each packet that they carry; and those whose
/// controllers measure the path's rate, which fill it at once.
const KEPT: (f64, f64) = (4.0, 20.0);
/// A link and its counters, bytes.
const LINK: f64 = 2_800.0;
/// A flow's row while a run goes on, and with the copy that becomes a file, bytes.
const FLOW: (f64, f64) = (360.0, 420.0);
/// A sample, likewise.
const SAMPLE: (f64, f64) = (60.0, 160.0);
/// What writing files takes, bytes.
const WRITING: f64 = 16e6;
/// Of an entry of a table of flowlets.
const FLOWLET: f64 = 12.0;

/// What a plan's run holds, counted kind by kind.
pub(super) struct Held<'a> {
    plan: &'a Plan,
    /// The slowest link, bit/s.
    slowest: f64,
    /// Packets that the longest path and its largest buffer hold.
    most_window: f64,
    /// Connections that are there at once.
    pub(super) connections: f64,
    /// Flows of the whole run.
    pub(super) flows: f64,
    /// What connections keep of windows, bytes.
    kept: f64,
}

#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "estimates: positive, and saturating"
)]
impl<'a> Held<'a> {
    pub(super) fn of(plan: &'a Plan) -> Held<'a> {
        let links = &plan.network.links;
        let slowest = links.iter().map(|link| link.rate.as_bps()).min().unwrap_or(1) as f64;
        let most_window = links.iter().map(|link| room(&plan.network, link)).fold(0.0, f64::max);
        Held { plan, slowest, most_window, connections: 0.0, flows: 0.0, kept: 0.0 }
    }

    /// Flows that come at this rate, each over a connection of its own. Little's law: one lives about 200 ms and twenty
    /// times its time on the slowest link.
    pub(super) fn overlapping(&mut self, flows: f64, per_second: f64, mean_bytes: f64, seconds: f64) {
        self.connections += (per_second * (0.2 + 20.0 * 8.0 * mean_bytes / self.slowest).min(seconds)).min(flows);
    }

    /// Flows of so many packets over connections that stay.
    pub(super) fn keep(&mut self, kind: &Traffic, connections: f64, flows: f64, packets: f64) {
        let used = connections.min(flows);
        let fills = spec(&kind.controller.name).is_some_and(|spec| spec.needs_delivery_rate);
        self.connections += used;
        self.kept += (flows * packets).min(used * self.most_window) * if fills { KEPT.1 } else { KEPT.0 };
    }

    /// At the peak: near the end of the simulation, or while its rows are written. Links carry so many packets, of this
    /// many in all.
    pub(super) fn memory(&self, carried: &[f64], packets: f64) -> Memory {
        let links = &self.plan.network.links;
        let busy = links.iter().zip(carried).filter(|(_, carried)| **carried > 0.0);
        let out = busy.map(|(link, _)| room(&self.plan.network, link)).sum::<f64>().min(packets);
        let samples = samples(self.plan);
        let simulating = [
            (out * PACKET, Use::Packets),
            (flowlets(&self.plan.network) + links.len() as f64 * LINK, Use::Network),
            (self.connections * CONNECTION, Use::Connections(self.connections as u64)),
            (self.kept, Use::Windows),
            (self.flows * FLOW.0, Use::Flows(self.flows as u64)),
            (samples * SAMPLE.0, Use::Samples(samples as u64)),
        ];
        let writing = [
            (WRITING, Use::Files),
            (self.flows * FLOW.1, Use::Flows(self.flows as u64)),
            (samples * SAMPLE.1, Use::Samples(samples as u64)),
        ];
        let [simulating, writing] = [&simulating[..], &writing].map(|uses| {
            let (bytes, largest) =
                *uses.iter().max_by(|(one, _), (other, _)| one.total_cmp(other)).expect("several uses");
            let total = uses.iter().map(|(bytes, _)| bytes).sum::<f64>();
            Memory { total: Bytes::new(total as u64), largest, largest_bytes: Bytes::new(bytes as u64) }
        });
        if writing.total > simulating.total { writing } else { simulating }
    }
}

/// What a run holds at its peak.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Memory {
    pub(crate) total: Bytes,
    /// What most of it is for, and how much that takes.
    pub(crate) largest: Use,
    pub(crate) largest_bytes: Bytes,
}

/// What memory is for, and how many of it there are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Use {
    Packets,
    Network,
    Connections(u64),
    Windows,
    Flows(u64),
    Samples(u64),
    Files,
}

impl Use {
    /// What needs less of it.
    pub(crate) fn help(self) -> &'static str {
        match self {
            Use::Packets => "lower the buffers, or the rates and delays of the links",
            Use::Network => "lower the number of hosts, or of flowlet entries",
            Use::Connections(_) => "lower the load, or the number of hosts or flows",
            Use::Windows => "lower the buffers, or the number of persistent connections",
            Use::Flows(_) => "lower the load, the run's end or the number of hosts",
            Use::Samples(_) => "sample less often, watch fewer ports, or lower the run's end",
            Use::Files => "run it where there is more memory",
        }
    }
}

impl fmt::Display for Use {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Use::Packets => f.write_str("packets in queues and on links"),
            Use::Network => f.write_str("links and tables of flowlets"),
            Use::Connections(count) => write!(f, "{count} connections at once"),
            Use::Windows => f.write_str("what persistent connections keep of their windows"),
            Use::Flows(count) => write!(f, "the records of {count} flows"),
            Use::Samples(count) => write!(f, "{count} samples"),
            Use::Files => f.write_str("writing the files"),
        }
    }
}

/// Bytes of the tables of flowlets of all switches.
#[expect(clippy::cast_precision_loss, reason = "an estimate")]
fn flowlets(graph: &Graph) -> f64 {
    let Some(RoutingConfig::Flowlet(config)) = graph.routing else { return 0.0 };
    let switches = graph.nodes.iter().filter(|node| node.kind == NodeKind::Switch).count() as f64;
    switches * f64::from(config.entries) * FLOWLET
}

/// Packets that a link and its port hold.
#[expect(clippy::cast_precision_loss, reason = "an estimate")]
fn room(graph: &Graph, link: &Link) -> f64 {
    let packets_in = |bytes: Bytes| bytes.get() / u64::from(graph.mtu.get()) + 1;
    let pool = graph.nodes[link.from as usize].pool.filter(|_| link.pooled);
    let queued = match (link.limit, pool) {
        (Limit::Packets(packets), _) => packets.get(),
        (Limit::Bytes(bytes), _) => packets_in(bytes),
        // A hot port of a pool tops out at its own share of what is free.
        (Limit::Unlimited, Some(pool)) => packets_in(pool.size) / 2,
        (Limit::Unlimited, None) => 1_000,
    };
    packets_in(link.rate.bytes_in(link.greatest_delay())).saturating_add(queued) as f64
}

/// Samples of watched ports, and of the windows and the goodput of long-lived flows, whole run.
#[expect(clippy::cast_precision_loss, reason = "estimates")]
fn samples(plan: &Plan) -> f64 {
    let watched = plan.network.links.iter().filter(|link| link.watched).count() as f64;
    let long_of = |pattern: &Pattern| match pattern {
        Pattern::List(list) => list.iter().filter(|flow| flow.size.is_none()).count(),
        Pattern::Open(_) | Pattern::App(_) => 0,
    };
    let long = plan.traffic.iter().map(|traffic| long_of(&traffic.pattern)).sum::<usize>() as f64;
    let times = |every: Span| match every.as_ps() {
        0 => 0.0,
        every => plan.schedule.end.as_ps() as f64 / every as f64,
    };
    let Sampling { queues, windows, goodput, throughput, .. } = plan.sampling;
    watched * (times(queues) + times(throughput)) + long * (times(windows) + times(goodput))
}
