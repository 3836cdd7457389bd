//! The network as an experiment writes it: one named topology, and the links by what they are for.

use std::collections::BTreeMap;

use narrows_core::units::{Bytes, Rate, Span};
use schemars::JsonSchema;
use serde::Deserialize;

use super::bridge::Bridge;
use super::host::Host;
use super::located::Located;
use super::quantity::{Fraction, Quantity, Room};
use super::selector::Anything;

/// A named topology and its parameters.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Topology {
    /// Two datacenters joined by one wide-area link [GEMINI §V].
    TwoDatacenters(TwoDatacenters),
    /// Senders on the left, receivers on the right, one link between two switches.
    Dumbbell(Dumbbell),
    /// Hosts on one switch [DCTCP §4].
    Star(Star),
    /// A three-level fat tree of k-port switches [Al-Fares 2008].
    FatTree(FatTree),
    /// Any network, node by node.
    Graph(Graph),
}

/// A class of links, and the ports that feed them.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct LinkClass {
    /// Line rate of each direction.
    pub rate: Option<Located<Quantity<Rate>>>,
    /// Propagation delay of each direction.
    pub delay: Option<Located<Quantity<Span>>>,
    /// The port's own limit: packets, bytes or `"unlimited"`. Stating it without `pool` takes the default pool away.
    pub limit: Option<Located<Room>>,
    /// Memory that the ports of one switch share.
    pub pool: Option<Located<Pool>>,
    /// The marking law.
    pub aqm: Option<Located<Aqm>>,
    /// What tells senders near by of the queue, beside the law.
    pub congestion_point: Option<Located<CongestionPoint>>,
    /// How the port serves several classes of traffic; one queue where nothing is said.
    pub scheduler: Option<Located<Scheduler>>,
    /// Share of packets lost on the wire, independently.
    pub loss: Option<Located<Fraction>>,
    /// Which packets may be lost so; `"all"` where nothing is said.
    pub loss_of: Option<LossOf>,
    /// What the routers at its two ends do together; links between routers only.
    pub bridge: Option<Located<Bridge>>,
}

/// Which packets a wire loses.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LossOf {
    /// Any.
    All,
    /// Those with data.
    Data,
    /// Those with data that are not ECN-capable: a wide area that spares the others.
    Unprotected,
}

/// Shared switch memory with dynamic thresholds: a port may hold at most `alpha` times what is free.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Pool {
    /// The whole pool, IP bytes.
    pub size: Located<Quantity<Bytes>>,
    /// A port's share of what is free; 0.2 lets one hot port hold a sixth of the pool.
    pub alpha: Located<Fraction>,
}

/// A marking law.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Aqm {
    /// No law: tail drop.
    None,
    /// Mark an ECN-capable packet that finds more than this queued [DCTCP §3.1].
    Threshold(Threshold),
    /// Random early detection on the averaged queue.
    Red(Red),
    /// Proportional-integral control of the queue [Hollot 2001].
    Pi(Pi),
}

/// What samples a port's queue and tells the senders near by, if they listen: see `near-source` of a host.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CongestionPoint {
    /// Nothing.
    None,
    /// QCN [802.1Qau].
    Qcn(Qcn),
}

/// The parameters of [`CongestionPoint::Qcn`].
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Qcn {
    /// Where the queue is to be held, IP bytes. Where nothing is said, 33 KB for each 10 Gbit/s, and no more than half of
    /// the port's marking threshold.
    pub set_point: Option<Located<Quantity<Bytes>>>,
    /// What growth weighs beside the distance from the set point, 0 to 64; 2 where nothing is said.
    pub weight: Option<Located<u64>>,
    /// Bytes between two samples without congestion; 150 KB where nothing is said.
    pub sample_base: Option<Located<Quantity<Bytes>>>,
    /// Who is told; `"tor"` where nothing is said.
    pub notify: Option<Notify>,
}

/// How a port serves several classes of traffic: see `service-class` of a traffic.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Scheduler {
    /// It does not: one queue, first in, first out.
    Fifo,
    /// Deficit round robin [Shreedhar 1995].
    Drr(Drr),
}

/// The parameter of [`Scheduler::Drr`].
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Drr {
    /// By class, from 0: 2 to 8 of them, each 1 to 1000.
    pub weights: Located<Vec<u16>>,
}

/// Whom a congestion point tells.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Notify {
    /// Hosts on the same switch.
    Tor,
    /// Hosts of the same datacenter.
    SourceDatacenter,
}

/// The parameter of [`Aqm::Threshold`].
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Threshold {
    /// K.
    pub mark_at: Located<Room>,
}

/// The parameters of [`Aqm::Red`].
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Red {
    /// Below this average nothing happens.
    pub min: Located<Room>,
    /// Above this average every packet is marked or dropped.
    pub max: Located<Room>,
    /// Probability at `max`.
    pub max_probability: Located<Fraction>,
    /// The average's weight is 2^−this; 9 where nothing is said.
    pub weight_shift: Option<Located<u8>>,
    /// From `max` to twice `max` the probability rises to 1 gradually.
    pub gentle: Option<bool>,
    /// Marks ECN-capable packets instead of dropping them; true where nothing is said.
    pub ecn: Option<bool>,
    /// Never drops: what does not understand ECN passes. False where nothing is said.
    pub marks_only: Option<bool>,
}

/// The parameters of [`Aqm::Pi`]: at every `period`, p ← p + a·(q − reference) − b·(q before − reference).
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Pi {
    /// Where the queue is held.
    pub reference: Located<Room>,
    /// Per packet, or per byte where the reference is in bytes.
    pub a: Located<Fraction>,
    /// At most `a`.
    pub b: Located<Fraction>,
    /// Between two computations of the probability.
    pub period: Located<Quantity<Span>>,
    /// Marks ECN-capable packets instead of dropping them; true where nothing is said.
    pub ecn: Option<bool>,
}

/// Parameters of two datacenters.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct TwoDatacenters {
    /// Servers in each rack; 12 where nothing is said.
    pub servers: Option<Located<u32>>,
    /// Racks in each datacenter; 2 where nothing is said.
    pub racks: Option<Located<u32>>,
    /// Links inside a datacenter.
    #[serde(default)]
    pub fabric: LinkClass,
    /// Links between a switch and a host, where they differ from `fabric`.
    #[serde(default)]
    pub edge: LinkClass,
    /// The link between the border routers.
    #[serde(default)]
    pub wan: LinkClass,
    /// The hosts' stack.
    #[serde(default)]
    pub host: Host,
}

/// Parameters of a dumbbell.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Dumbbell {
    /// Hosts on each side.
    pub pairs: Option<Located<u32>>,
    /// The link between the two switches.
    #[serde(default)]
    pub fabric: LinkClass,
    /// The hosts' links, where they differ from `fabric`.
    #[serde(default)]
    pub edge: LinkClass,
    /// The hosts' stack.
    #[serde(default)]
    pub host: Host,
}

/// Parameters of a star.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Star {
    /// Hosts on the switch.
    pub hosts: Option<Located<u32>>,
    /// The hosts' links.
    #[serde(default)]
    pub fabric: LinkClass,
    /// The same links, where something differs from `fabric`.
    #[serde(default)]
    pub edge: LinkClass,
    /// The hosts' stack.
    #[serde(default)]
    pub host: Host,
}

/// Parameters of a fat tree.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct FatTree {
    /// Ports of each switch, even: k³/4 hosts.
    pub k: Option<Located<u32>>,
    /// Links between switches.
    #[serde(default)]
    pub fabric: LinkClass,
    /// The hosts' links, where they differ from `fabric`.
    #[serde(default)]
    pub edge: LinkClass,
    /// The hosts' stack.
    #[serde(default)]
    pub host: Host,
}

/// Parameters of any network. Every link inherits from the class of its role.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Graph {
    /// Switches.
    #[serde(default)]
    pub switches: Vec<Located<Switch>>,
    /// Hosts, each on one switch.
    #[serde(default)]
    pub hosts: Vec<Located<HostGroup>>,
    /// Links between switches.
    #[serde(default)]
    pub links: Vec<Located<SwitchLink>>,
    /// What links between switches of one site inherit.
    #[serde(default)]
    pub fabric: LinkClass,
    /// What hosts' links inherit, where it differs from `fabric`.
    #[serde(default)]
    pub edge: LinkClass,
    /// What links between sites inherit.
    #[serde(default)]
    pub wan: LinkClass,
    /// The hosts' stack.
    #[serde(default)]
    pub host: Host,
}

/// A switch of a graph.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Switch {
    /// Unique among all nodes.
    pub name: Located<String>,
    /// The datacenter it stands in; 0 where nothing is said.
    #[serde(default)]
    pub site: u16,
    /// The rack it stands in, unique over all sites; 0 for none.
    #[serde(default)]
    pub rack: u16,
    /// Memory that its ports share, where it differs from its links' class.
    pub pool: Option<Located<Pool>>,
}

/// Hosts of a graph that are alike.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct HostGroup {
    /// The host's name; with `count`, `name-1`, `name-2` and so on.
    pub name: Located<String>,
    /// How many; without it, one.
    pub count: Option<Located<u32>>,
    /// The switch they hang on.
    pub switch: Located<String>,
    /// What differs from the class on their links, both directions.
    #[serde(default)]
    pub link: LinkClass,
}

/// A link between two switches of a graph, both directions.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct SwitchLink {
    /// A name to `set` and `watch` it by.
    pub name: Option<Located<String>>,
    /// The two switches.
    #[schemars(with = "(String, String)")]
    pub ends: Located<Vec<Located<String>>>,
    /// `"fabric"` or `"wan"`; where nothing is said, `wan` if the sites differ.
    pub role: Option<Located<SwitchRole>>,
    /// What differs from the class, both directions.
    #[serde(default)]
    pub both: LinkClass,
    /// What differs from the first end to the second.
    #[serde(default)]
    pub forward: LinkClass,
    /// What differs from the second end to the first.
    #[serde(default)]
    pub backward: LinkClass,
}

/// What a link between switches is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SwitchRole {
    /// Inside a datacenter.
    Fabric,
    /// Between datacenters.
    Wan,
}

/// Values by dotted path.
pub type Sets = BTreeMap<String, Anything>;
