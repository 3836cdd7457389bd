//! Named topologies become graphs. One file each; all are made of the same three moves: a host, a switch, a link.

use std::collections::BTreeMap;
use std::ops::Range;

use narrows_core::component::{Kind, Parameter, Settings, Spec, Value};
use narrows_core::edge;
use narrows_core::link::bernoulli::Config as Bernoulli;
use narrows_core::link::{Key, LOSSES, REORDERINGS};
use narrows_core::packet::Mtu;
use narrows_core::queue::aqm::Size;
use narrows_core::queue::congestion_point;
use narrows_core::queue::pfc::Thresholds;
use narrows_core::queue::scheduler::{Aqms, fq};
use narrows_core::queue::{AqmConfig, CongestionPointConfig, Limit, PoolConfig, SchedulerConfig};
use narrows_core::tcp::profile::Profile;
use narrows_core::units::{Bytes, Packets, Rate, Span};

use schemars::JsonSchema;
use serde::Deserialize;

use crate::controller;
use crate::error::{Judged, Problem};
use crate::experiment::host::{Host, HostPort};
use crate::experiment::located::Located;
use crate::experiment::network::{self, LinkClass, Pool};
use crate::experiment::quantity::{Fraction, Quantity, Room};
use crate::experiment::selector::Loss;
use crate::units::Ppm;
pub use narrows_plan::MAX_HOSTS;
use narrows_plan::{CongestionPoint as Point, FunctionConfig, Graph, Link, LossOf, Node, NodeKind, Role, Scope};

mod bridge;
mod dumbbell;
mod fat_tree;
pub(crate) mod flow_control;
mod graph;
mod leaf_spine;
mod star;
mod two_datacenters;
pub(crate) mod usual;

/// Most links, counting each direction.
pub const MAX_LINKS: u64 = 1_048_576;
/// Highest rate of a link.
pub(crate) const MAX_RATE: Rate = Rate::from_gbps(100_000);
/// Longest delay of a link.
pub(crate) const MAX_DELAY: Span = Span::from_secs(60);
/// What a buffer must hold at least, bytes, whatever the MTU: one of Ethernet's full IP packets.
const FULL_PACKET: u64 = 1_500;

/// The links, by index and one for each direction, that a name of the file's own stands for.
pub(crate) type Named = BTreeMap<String, [usize; 2]>;

/// The network that is written, resolved, and the names that the file gives its links.
pub(crate) fn resolve(topology: &Located<Topology>) -> Judged<(Graph, Named)> {
    let mut named = Named::new();
    let graph = topology.network().resolve(&mut named)?;
    check_room(&graph)
        .and_then(|()| check_classes(&graph))
        .and_then(|()| check_points(&graph))
        .and_then(|()| bridge::check(&graph))
        .and_then(|()| flow_control::check(&graph))
        .and_then(|()| check_functions(&graph))
        .map_err(|problem| problem.at(&topology.span))?;
    Ok((graph, named))
}

/// Refuses ports and memory that hold not one packet of the network's MTU.
fn check_room(graph: &Graph) -> Result<(), Problem> {
    let full = graph.mtu.packet();
    for link in &graph.links {
        let own = [Some(link.limit), link.ingress.map(|memory| memory.limit)].into_iter().flatten();
        let pool = graph.nodes[link.from as usize].pool.filter(|_| link.pooled);
        let small = own.into_iter().any(|limit| matches!(limit, Limit::Bytes(bytes) if bytes < full))
            || pool.is_some_and(|pool| hot_share(pool, 1) < u128::from(full.get()));
        if small {
            let sentence = format!("the buffer of `{}` holds not one packet of {full}, the MTU", link.name);
            return Err(Problem::new(sentence, "make its limit or its pool larger, or lower `host.mtu`"));
        }
    }
    Ok(())
}

/// Refuses classes that have no room for a packet.
fn check_classes(graph: &Graph) -> Result<(), Problem> {
    let full = graph.mtu.packet().get();
    for link in &graph.links {
        let Some(scheduler) = &link.scheduler else { continue };
        let classes = scheduler.queues().classes() as u64;
        if classes == 1 {
            continue;
        }
        let own = match link.limit.share(classes) {
            Limit::Unlimited => u64::MAX,
            Limit::Packets(packets) => packets.get() * full,
            Limit::Bytes(bytes) => bytes.get(),
        };
        let pool = graph.nodes[link.from as usize].pool.filter(|_| link.pooled);
        if own < full || pool.is_some_and(|pool| hot_share(pool, classes) < u128::from(full)) {
            let sentence = format!(
                "one of {classes} equal shares of the buffer of `{}` holds not one packet of {full} B",
                link.name
            );
            return Err(Problem::new(sentence, "make its limit or its pool larger, or have fewer classes"));
        }
    }
    Ok(())
}

/// Refuses a congestion point whose queue never comes to its set point: it would tell nobody anything.
fn check_points(graph: &Graph) -> Result<(), Problem> {
    for link in &graph.links {
        let Some(point) = &link.congestion_point else { continue };
        let set_point = point.sampling.set_point;
        let pool = graph.nodes[link.from as usize].pool.filter(|_| link.pooled);
        let room = pool.map_or(u128::MAX, |pool| hot_share(pool, 1)).min(match link.limit {
            Limit::Unlimited => u128::MAX,
            Limit::Packets(packets) => u128::from(packets.get()) * u128::from(graph.mtu.get()),
            Limit::Bytes(bytes) => u128::from(bytes.get()),
        });
        if u128::from(set_point.get()) >= room {
            let sentence = format!(
                "the set point of `{}` is {set_point}, and no more than {} ever wait there",
                link.name,
                Bytes::new(u64::try_from(room).unwrap_or(u64::MAX))
            );
            return Err(Problem::new(sentence, "lower `set-point`, or give the port more room"));
        }
    }
    Ok(())
}

/// A named topology as written.
pub(crate) trait Network {
    /// The hosts' stack.
    fn host(&self) -> &Host;
    /// Nodes and links; what the file calls links goes to `named`.
    fn resolve(&self, named: &mut Named) -> Judged<Graph>;
}

macro_rules! registry {
    ($($name:literal $module:ident :: $topology:ident $source:literal $about:literal)*) => {
        /// A named topology and its parameters.
        #[derive(Clone, Debug, Deserialize, JsonSchema)]
        #[allow(missing_docs, reason = "a variant is its topology")]
        pub enum Topology {
            $(#[doc = $about] #[serde(rename = $name)] $topology($module::$topology),)*
        }

        /// What each topology is, and the keys that it alone has.
        pub(crate) const TOPOLOGIES: &[Spec] =
            &[$(Spec { name: $name, about: $about, source: $source, parameters: $module::KEYS }),*];

        impl Topology {
            /// The one of this name, of which nothing is said.
            fn usual(name: &str) -> Option<Topology> {
                match name { $($name => Some(Topology::$topology(Default::default())),)* _ => None }
            }

            pub(crate) fn network(&self) -> &dyn Network {
                match self { $(Topology::$topology(network) => network,)* }
            }
        }
    };
}

// Adding a topology: a file with what an experiment says of it, its `KEYS` and its `Network`; its module above, and a line
// here.
registry! {
    "two-datacenters" two_datacenters::TwoDatacenters "[GEMINI §IV]" "Two datacenters joined by one WAN link."
    "dumbbell" dumbbell::Dumbbell "" "Senders on the left, receivers on the right, one link between two switches."
    "star" star::Star "[DCTCP §4]" "Hosts on one switch."
    "fat-tree" fat_tree::FatTree "[Al-Fares 2008]" "A three-level fat tree of k-port switches."
    "leaf-spine" leaf_spine::LeafSpine "[pFabric]" "Leaf switches with hosts, each linked to every spine switch."
    "graph" graph::Written "" "Any network, node by node."
}

/// What a class of links resolves to.
#[derive(Clone, Debug)]
struct LinkSpec {
    /// As it will be, but for its ends and what they decide.
    link: Link,
    /// Memory of the switch that its ports draw on.
    pool: Option<PoolConfig>,
    /// Values of the parameters of a congestion point, and of an edge pair: some follow from the link.
    congestion_point: Option<Vec<Value>>,
    bridge: Option<Vec<Value>>,
    /// Whether packets count by the link that they came over, and when that or the port is paused.
    counts_by_input: bool,
    flow_control: Option<Thresholds>,
}

impl LinkSpec {
    /// Tail drop without bound, at this rate and delay.
    fn plain(rate: Rate, delay: Span) -> LinkSpec {
        let link = Link::new("", (0, 0), Role::Fabric, rate, delay);
        LinkSpec { link, pool: None, congestion_point: None, bridge: None, counts_by_input: false, flow_control: None }
    }

    /// Tail drop beyond so many packets.
    fn limited(packets: u64, rate: Rate, delay: Span) -> LinkSpec {
        let mut spec = LinkSpec::plain(rate, delay);
        spec.link.limit = Limit::Packets(Packets::new(packets));
        spec
    }

    /// This, with what a class says.
    fn with(&self, class: &LinkClass) -> Judged<LinkSpec> {
        let mut spec = self.clone();
        if let Some(rate) = &class.rate {
            spec.link.rate = rate.value.0;
            if spec.link.rate.as_bps() == 0 {
                return Err(Problem::zero("the rate of a link").at(&rate.span));
            }
            bounded("the rate of a link", rate, spec.link.rate, MAX_RATE)?;
        }
        if let Some(delay) = &class.delay {
            spec.link.delay = delay.value.0;
            bounded("the delay of a link", delay, spec.link.delay, MAX_DELAY)?;
        }
        if let Some(limit) = &class.limit {
            spec.link.limit = limit_of(limit)?;
            spec.pool = None;
        }
        if let Some(pool) = &class.pool {
            spec.pool = Some(pool_of(pool)?);
        }
        if let Some(aqm) = &class.aqm {
            spec.link.aqm = controller::aqm(aqm)?;
        }
        if let Some(point) = &class.congestion_point {
            let of = controller::chosen(
                "congestion point",
                congestion_point::SPECS,
                controller::NONE,
                &point.value.0,
                &point.span,
            )?;
            spec.congestion_point = of.map(|(_, values)| values);
        }
        if let Some(scheduler) = &class.scheduler {
            spec.link.scheduler = controller::scheduler(scheduler)?;
        }
        let scheduler = spec.link.scheduler.as_ref();
        let own_law = scheduler.and_then(|scheduler| match (scheduler.spec().name, scheduler.aqm()) {
            (_, Aqms::OfPort) => None,
            (name, Aqms::None) => Some(format!("`{name}` has no AQM in any of its queues")),
            (name, Aqms::Each(aqm)) => {
                Some(format!("`{name}` has `{}` in each of its queues, and no other AQM", aqm.spec().name))
            }
            (name, Aqms::Own(_)) => Some(format!("`{name}` has AQMs of its own, and no other")),
        });
        if let Some(sentence) = own_law {
            // What the topology has by default, or the class that this one inherits from, gives way.
            if let (Some(aqm), Some(_)) = (&class.aqm, spec.link.aqm.take()) {
                let help = "take `aqm` away here, or choose another `scheduler`";
                return Err(Problem::new(sentence, help).at(&aqm.span));
            }
        }
        if let (Some(AqmConfig::Phantom(_)), 2..) = (spec.link.aqm, spec.link.classes()) {
            let sentence = "a phantom queue is of a whole port, and here each class has an AQM of its own";
            let span = class.scheduler.as_ref().map(|scheduler| &scheduler.span);
            let span = class.aqm.as_ref().map(|aqm| &aqm.span).or(span).unwrap_or(&(0..0));
            return Err(Problem::new(sentence, "choose another `aqm`, or no `scheduler` with classes").at(span));
        }
        if let Some(buffering) = &class.buffering {
            spec.counts_by_input = buffering.value == network::Buffering::Input;
        }
        if spec.counts_by_input && spec.pool.is_some() {
            let span = class.buffering.as_ref().map(|buffering| &buffering.span);
            let span = class.pool.as_ref().map(|pool| &pool.span).or(span);
            let sentence = "with `buffering = \"input\"` ports draw on no pool";
            let help = "state a `limit`, in bytes, and no `pool`: it is of what comes over each link";
            return Err(Problem::new(sentence, help).at(span.unwrap_or(&(0..0))));
        }
        if let Some(flow_control) = &class.flow_control {
            spec.flow_control = flow_control::resolve(flow_control)?;
        }
        if let Some(loss) = &class.loss {
            spec.lose(loss)?;
        }
        if let Some(reorder) = &class.reorder {
            let function = controller::link_function("reordering", REORDERINGS, &reorder.value.0, &reorder.span)?;
            spec.set(Key::Reorder, function);
        }
        if let Some(loss_of) = class.loss_of {
            spec.link.loss_of = match loss_of {
                network::LossOf::All => LossOf::All,
                network::LossOf::Data => LossOf::Data,
                network::LossOf::Unprotected => LossOf::Unprotected,
            };
        }
        if let Some(bridge) = &class.bridge {
            let of = controller::chosen("edge function", edge::SPECS, controller::NONE, &bridge.value.0, &bridge.span)?;
            spec.bridge = of.map(|(_, values)| values);
        }
        Ok(spec)
    }
}

impl LinkSpec {
    /// Has its wire lose packets as it is written, and in no other way.
    fn lose(&mut self, written: &Located<Loss>) -> Judged<()> {
        let function = match &written.value {
            Loss::Share(share) => {
                Some(FunctionConfig::Bernoulli(Bernoulli { loss: probability(share.0, &written.span)? }))
            }
            Loss::Function(of) => controller::link_function("loss function", LOSSES, of, &written.span)?,
        };
        match function {
            // Independent losses have a place of their own in a plan.
            Some(FunctionConfig::Bernoulli(Bernoulli { loss })) => {
                self.set(Key::Loss, None);
                self.link.loss = loss;
            }
            other => {
                self.link.loss = 0;
                self.set(Key::Loss, other);
            }
        }
        Ok(())
    }

    /// Of functions with this key it has this one or none.
    fn set(&mut self, key: Key, function: Option<FunctionConfig>) {
        self.link.functions.retain(|function| function.key() != key);
        self.link.functions.extend(function);
        self.link.functions.sort_by_key(FunctionConfig::key);
    }
}

/// A probability of loss, in units of 2⁻³².
pub(crate) fn probability(share: f64, span: &Range<usize>) -> Judged<u32> {
    if share >= 1.0 {
        return Err(Problem::out_of_range("the loss of a link", share, "0", "below 1").at(span));
    }
    Ok(u32::try_from(Fraction(share).scaled(32)).unwrap_or(u32::MAX))
}

/// Refuses reordering where it cannot be.
fn check_functions(graph: &Graph) -> Result<(), Problem> {
    graph.excluded().map_or(Ok(()), |(link, obstacle)| Err(excluded(graph, link, obstacle)))
}

/// That a link has what does not go together.
pub(crate) fn excluded(graph: &Graph, link: usize, obstacle: &str) -> Problem {
    let sentence = format!("`{}`: {obstacle}", graph.links[link].name);
    let help = "at a link with flow control `rate` and `loss` alone may change, and nothing where there is a `bridge` or \
                notifications: take one away";
    Problem::new(sentence, help)
}

/// Refuses a pool where ports share none of their own.
fn without_pool<'a>(class: &'a LinkClass, place: &'static str) -> Judged<&'a LinkClass> {
    match &class.pool {
        Some(pool) => Err(Problem::not_here("pool", place).at(&pool.span)),
        None => Ok(class),
    }
}

/// What hosts' links have of their own: all but a pool.
fn edge_class(edge: &LinkClass) -> Judged<&LinkClass> {
    without_pool(edge, "in `edge`: it is the switch's, and stands in `fabric`")
}

pub(crate) fn bounded<T: PartialOrd + std::fmt::Display, W>(
    what: &str,
    at: &Located<W>,
    value: T,
    most: T,
) -> Judged<()> {
    if value <= most {
        return Ok(());
    }
    Err(Problem::out_of_range(what, value, "0", most).at(&at.span))
}

fn limit_of(room: &Located<Room>) -> Judged<Limit> {
    match room.value {
        Room::Unlimited => Ok(Limit::Unlimited),
        Room::Packets(packets) if packets == Packets::ZERO => Err(Problem::zero("the limit of a port").at(&room.span)),
        Room::Packets(packets) => {
            bounded("the limit of a port", room, packets, Packets::new(1 << 32))?;
            Ok(Limit::Packets(packets))
        }
        Room::Bytes(bytes) if bytes.get() < FULL_PACKET => {
            Err(Problem::no_room("a buffer", bytes.get()).at(&room.span))
        }
        Room::Bytes(bytes) => {
            bounded("the limit of a port", room, bytes, Bytes::new(1 << 42))?;
            Ok(Limit::Bytes(bytes))
        }
    }
}

fn pool_of(pool: &Located<Pool>) -> Judged<PoolConfig> {
    let size = pool.size.value.0;
    if size.get() < FULL_PACKET {
        return Err(Problem::no_room("a pool", size.get()).at(&pool.size.span));
    }
    bounded("the size of a pool", &pool.size, size, Bytes::new(1 << 42))?;
    let alpha = pool.alpha.scaled(16);
    let Some(alpha) = u32::try_from(alpha).ok().filter(|alpha| *alpha > 0) else {
        return Err(Problem::out_of_range("alpha", pool.alpha.0, "0.00002", "65535").at(&pool.alpha.span));
    };
    let config = PoolConfig { size, alpha };
    let hot = hot_share(config, 1);
    if hot < u128::from(FULL_PACKET) {
        let bytes = u64::try_from(hot).unwrap_or(u64::MAX);
        return Err(Problem::no_room("a port's share of the pool", bytes).at(&pool.span));
    }
    Ok(config)
}

/// What one of so many equal shares of a port may hold at most, all others empty, bytes: with α of a share, α/(1+α) of the
/// pool [Choudhury and Hahne 1998].
pub(crate) fn hot_share(pool: PoolConfig, shares: u64) -> u128 {
    let (alpha, one) = (u128::from(pool.alpha), u128::from(shares) << 16);
    u128::from(pool.size.get()) * alpha / (alpha + one)
}

/// The default set point for each 10 Gbit/s.
const SET_POINT_AT_10_GBPS: u64 = 33_000;

/// The congestion point with these values at a port. Its default set point is below the threshold of the port's
/// marking, so that it acts first.
fn qcn_at(values: &[Value], rate: Rate, aqm: Option<AqmConfig>, mtu: Mtu) -> Point {
    let settings = Settings::new(congestion_point::SPECS[0].parameters, values);
    let marks_at = match aqm {
        Some(AqmConfig::Threshold(aqm)) => match aqm.mark_at {
            Size::Packets(packets) => packets.get() * mtu.packet().get(),
            Size::Bytes(bytes) => bytes.get(),
        },
        _ => u64::MAX,
    };
    let usual = Bytes::new(rate.scaled(SET_POINT_AT_10_GBPS, Rate::from_gbps(10).as_bps()).as_bps());
    let usual = usual.min(Bytes::new(marks_at / 2)).max(mtu.packet());
    let sampling = CongestionPointConfig {
        set_point: settings.bytes_or_auto("set-point").unwrap_or(usual),
        weight: u8::try_from(settings.count("weight")).unwrap_or(u8::MAX),
        sample_base: settings.bytes("sample-base"),
    };
    Point { sampling, scope: if settings.choice("notify") == "tor" { Scope::Tor } else { Scope::SourceDatacenter } }
}

/// A key that says how many: its default, and the least and most that it may be.
#[allow(clippy::cast_lossless, reason = "`From` is not for constants")]
const fn number(name: &'static str, default: u32, range: (u32, u32), about: &'static str) -> Parameter {
    let range = Some((range.0 as u64, range.1 as u64));
    Parameter { name, kind: Kind::Count, default: Value::Count(default as u64), range, about }
}

/// The value of a key made by [`number`], or its default.
fn count(key: &Parameter, written: Option<&Located<u32>>) -> Judged<u32> {
    let (Value::Count(default), Some((least, most))) = (key.default, key.range) else {
        unreachable!("{} has a number as default, and a range", key.name)
    };
    match written {
        None => Ok(u32::try_from(default).expect("made from a u32")),
        Some(written) if (least..=most).contains(&written.value.into()) => Ok(written.value),
        Some(written) => Err(Problem::out_of_range(key.name, written.value, least, most).at(&written.span)),
    }
}

/// Clocks of Ethernet ports differ from their nominal rate by up to 100 ppm [802.3 §40.6.1.2.6]; ten times that is broken.
const MAX_CLOCK_SPREAD: Ppm = Ppm(1_000);
/// Linux's `fq` has as many buckets by default, and in each flow's turn two full packets [Linux `sch_fq.c` `fq_init`].
const HOST_QUEUES: u32 = 1_024;
const HOST_QUANTUM: Bytes = Bytes::new(3_000);

/// Stack delays of the hosts, out and in, how much that out differs from packet to packet, and the largest packet.
#[derive(Clone, Copy, Debug)]
struct Stack {
    mtu: Mtu,
    tx: Span,
    rx: Span,
    jitter: Span,
    /// Parts per million.
    clock_spread: u32,
    port: HostPort,
}

impl Stack {
    fn of(host: &Host, default_us: u64) -> Judged<Stack> {
        let named = host.profile.as_ref().and_then(|name| Profile::stack_delay(&name.value));
        let (out, back) = named.unwrap_or((Span::from_us(default_us), Span::from_us(default_us)));
        let mtu = match &host.mtu {
            None => Mtu::ETHERNET,
            Some(mtu) => Mtu::new(mtu.value).ok_or_else(|| {
                let (least, most) = Mtu::RANGE;
                Problem::out_of_range("mtu", mtu.value, least, most).at(&mtu.span)
            })?,
        };
        let clock_spread = match &host.clock_spread {
            None => 0,
            Some(spread) => {
                bounded("clock-spread", spread, spread.value.0, MAX_CLOCK_SPREAD)?;
                u32::try_from(spread.value.0.0).expect("bounded")
            }
        };
        let port = host.port.as_ref().map_or(HostPort::Fifo, |port| port.value);
        let plain = Stack { mtu, tx: out, rx: back, jitter: Span::ZERO, clock_spread, port };
        let Some(said) = &host.stack_delay else { return Ok(plain) };
        let or = |written: &Option<Located<Quantity<Span>>>, default: Span| {
            let Some(delay) = written else { return Ok(default) };
            bounded("a stack delay", delay, delay.value.0, Span::from_secs(1)).map(|()| delay.value.0)
        };
        let jitter = or(&said.jitter, Span::ZERO)?;
        if let (true, HostPort::Fq, Some(at)) = (jitter > Span::ZERO, port, &said.jitter) {
            let sentence = "a host's port with `fq` has no jitter: it delays each packet behind the one before";
            let help = "take `jitter` away, or `port = \"fq\"`; clocks that differ (`clock-spread`) prevent synchronised senders, too";
            return Err(Problem::new(sentence, help).at(&at.span));
        }
        Ok(Stack { tx: or(&said.tx, out)?, rx: or(&said.rx, back)?, jitter, ..plain })
    }
}

/// A graph in the making: all hosts first, then switches, then links.
#[derive(Debug)]
struct Builder {
    graph: Graph,
    stack: Stack,
}

impl Builder {
    fn new(stack: Stack) -> Builder {
        Builder { graph: Graph { mtu: stack.mtu, ..Graph::default() }, stack }
    }

    fn node(&mut self, name: String, kind: NodeKind, site: u16, rack: u16, pool: Option<PoolConfig>) -> u32 {
        let index = u32::try_from(self.graph.nodes.len()).expect("nodes are bounded far below 2^32");
        self.graph.nodes.push(Node { name, kind, site, rack, pool });
        index
    }

    fn host(&mut self, name: String, site: u16, rack: u16) -> u32 {
        assert!(
            self.graph.nodes.last().is_none_or(|node| node.kind == NodeKind::Host),
            "hosts come before switches: their indices are their numbers"
        );
        self.node(name, NodeKind::Host, site, rack, None)
    }

    fn switch(&mut self, name: String, site: u16, rack: u16, pool: Option<PoolConfig>) -> u32 {
        self.node(name, NodeKind::Switch, site, rack, pool)
    }

    fn link(&mut self, from: u32, to: u32, role: Role, spec: &LinkSpec) {
        let name = |node: u32| &self.graph.nodes[node as usize].name;
        let name = format!("{}->{}", name(from), name(to));
        let plain = spec.link.clone();
        let nodes = [from, to].map(|node| self.graph.nodes[node as usize].kind);
        let mut link = Link {
            name,
            from,
            to,
            role,
            pooled: spec.pool.is_some(),
            congestion_point: spec
                .congestion_point
                .as_ref()
                .map(|values| qcn_at(values, plain.rate, plain.aqm, self.graph.mtu)),
            bridge: spec.bridge.as_ref().map(|values| bridge::at(values, plain.rate, plain.delay)),
            ..plain
        };
        flow_control::place(&mut link, spec.counts_by_input, spec.flow_control, nodes);
        self.graph.links.push(link);
    }

    /// Hangs a host on its switch. Stack delays are folded into the host's links; its own port has no bound.
    fn attach(&mut self, host: u32, switch: u32, spec: &LinkSpec) {
        let Stack { tx, rx, jitter, clock_spread, port, .. } = self.stack;
        let Link { rate, delay, loss, loss_of, .. } = spec.link;
        let functions = spec.link.functions.clone();
        let LinkSpec { counts_by_input, flow_control, .. } = *spec;
        let plain = LinkSpec::plain(rate, delay + tx);
        let mut own = LinkSpec { bridge: spec.bridge.clone(), counts_by_input, flow_control, ..plain };
        let limit = if counts_by_input { spec.link.limit } else { Limit::Unlimited };
        let fq = SchedulerConfig::Fq(fq::Config { queues: HOST_QUEUES, quantum: HOST_QUANTUM });
        let scheduler = (port == HostPort::Fq).then_some(fq);
        own.link = Link { stack: tx, loss, loss_of, functions, jitter, clock_spread, scheduler, limit, ..own.link };
        self.link(host, switch, Role::Host, &own);
        let mut back = spec.clone();
        (back.link.delay, back.link.stack) = (delay + rx, rx);
        self.link(switch, host, Role::Edge, &back);
    }

    /// Joins two switches, both directions alike.
    fn join(&mut self, one: u32, other: u32, role: Role, spec: &LinkSpec) {
        self.link(one, other, role, spec);
        self.link(other, one, role, spec);
    }
}
