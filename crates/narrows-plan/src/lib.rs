//! What a driver is given: everything resolved, nothing left to look up. A plan holds the traffic's *process*, not its
//! million flows; its hash names its results.

#![forbid(unsafe_code)]

pub use narrows_core::app::incast::Incast;
pub use narrows_core::app::{FlowStart, Kind};
use narrows_core::cc::{Value, spec};
use narrows_core::edge::dcib;
use narrows_core::link::bernoulli::Config as Bernoulli;
pub use narrows_core::link::{Change, Event, FunctionConfig};
use narrows_core::link::{Key, Schedule as LinkSchedule};
use narrows_core::packet::Mtu;
use narrows_core::queue::pfc::Thresholds;
use narrows_core::queue::{AqmConfig, CongestionPointConfig, Limit, PoolConfig, SchedulerConfig};
use narrows_core::rng::Stream;
pub use narrows_core::routing::RoutingConfig;
use narrows_core::tcp::profile::Profile;
pub use narrows_core::transport::Transport;
use narrows_core::units::{Bytes, Rate, Span, Time};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::BTreeMap;

pub mod arrivals;
pub mod flows;
mod hash;
mod on_off;
mod sizes;
mod sources;

pub use hash::of_json;
pub use on_off::OnOff;
pub use sources::Sources;

/// One network, one traffic, one set of controllers; a seed makes it a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Plan {
    /// The experiment's name: a label, not part of the hash.
    pub experiment: String,
    /// The arm's name: a label, not part of the hash.
    pub arm: String,
    /// Values of the sweep's axes, by name: labels, not part of the hash.
    pub axes: Vec<(String, String)>,
    /// What the arm declares to be different, and what axes set beside the paths that they are called by, key and value:
    /// labels, not part of the hash.
    pub declared: Vec<(String, String)>,
    /// The network.
    pub network: Graph,
    /// What is sent over it.
    pub traffic: Vec<Traffic>,
    /// When and how long.
    pub schedule: Schedule,
    /// What is sampled.
    pub sampling: Sampling,
}

/// When a run ends and what of it counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Schedule {
    /// No flow starts at or after this.
    pub end: Time,
    /// Started flows may go on so long after `end`; then the run stops and they stay unfinished.
    pub drain: Span,
    /// Flows that start before this, and port counters until then, do not count.
    pub warmup: Span,
}

/// What is sampled while a run goes on, and how often; zero spans sample nothing.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Sampling {
    /// Backlog of every watched port.
    pub queues: Span,
    /// Window and pacing rate of the senders of sampled flows.
    pub windows: Span,
    /// Goodput of sampled flows, in bins of this width.
    pub goodput: Span,
    /// What watched ports send, in bins of this width. Zero is left out of the plan's text.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub throughput: Span,
    /// The flows that are sampled beside those without a size. None is left out of the plan's text.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flows: Vec<SampledFlow>,
}

/// Flows with a size that are sampled while they go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SampledFlow {
    /// All of this traffic entry.
    All(u32),
    /// One of a traffic entry, by its place in the order of their starts.
    One {
        /// The entry.
        traffic: u32,
        /// How many of the entry come before it.
        sequence: u32,
    },
    /// The flow of this number in results; of plans without closed loops only.
    Number(u32),
}

/// A network: nodes and directed links. Indices into these lists are the identifiers that drivers and results use.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Graph {
    /// Hosts first, in the order of their names in the topology, then switches.
    pub nodes: Vec<Node>,
    /// Every link, one entry per direction.
    pub links: Vec<Link>,
    /// The largest IP packet, of all hosts and links; Ethernet's is left out of the plan's text.
    #[serde(default, skip_serializing_if = "Mtu::is_ethernet")]
    pub mtu: Mtu,
    /// How switches choose among equally short ways; none is by the hash of a flow (ECMP), and is left out of the plan's text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub routing: Option<RoutingConfig>,
}

/// Most hosts of a network.
pub const MAX_HOSTS: u32 = 1 << 14;

/// Most connections that each of so many hosts can open in a run: a connection's number has 32 bits and says which host opened
/// it.
pub const fn most_connections(hosts: u32) -> u32 {
    let host_bits = u32::BITS - hosts.saturating_sub(1).leading_zeros();
    1 << (u32::BITS - if host_bits == 0 { 1 } else { host_bits })
}

impl Graph {
    /// Whether two nodes stand in different datacenters.
    pub fn crosses(&self, one: u32, other: u32) -> bool {
        self.nodes[one as usize].site != self.nodes[other as usize].site
    }

    /// By link: whether its port is served packet by packet, as one with several queues is, one whose AQM judges packets that leave,
    /// one that can be paused, one that writes telemetry, and each of a switch that counts what it holds by ingress. All others are
    /// computed: what they do is known on a packet's arrival.
    pub fn served(&self) -> Vec<bool> {
        let mut counts = vec![false; self.nodes.len()];
        for link in &self.links {
            counts[link.to as usize] |= link.ingress.is_some();
            counts[link.from as usize] |= link.pauses.is_some();
        }
        let is_served = |(link, can_be_paused): (&Link, bool)| {
            let at_switch = self.nodes[link.from as usize].kind == NodeKind::Switch;
            let judges_departures = link.aqm.is_some_and(|aqm| aqm.judges_departures());
            let is_asked_as_it_sends = link.scheduler.is_some() || judges_departures || link.telemetry;
            is_asked_as_it_sends || can_be_paused || at_switch && counts[link.from as usize]
        };
        self.links.iter().zip(self.can_be_paused()).map(is_served).collect()
    }

    /// By link: whether its far end may pause it, for what came over it or for a port that it fills.
    pub fn can_be_paused(&self) -> Vec<bool> {
        let mut pauses = vec![false; self.nodes.len()];
        self.links.iter().for_each(|link| pauses[link.from as usize] |= link.pauses.is_some());
        let by_input = |link: &Link| link.ingress.is_some_and(|memory| memory.thresholds.is_some());
        self.links.iter().map(|link| by_input(link) || pauses[link.to as usize]).collect()
    }

    /// By link: the one back, between the same two nodes, if there is one; of several, the one in the same place among them.
    pub fn reverses(&self) -> Vec<Option<u32>> {
        let mut among = BTreeMap::<(u32, u32), Vec<u32>>::new();
        for (id, link) in (0..).zip(&self.links) {
            among.entry((link.from, link.to)).or_default().push(id);
        }
        let mut places = BTreeMap::<(u32, u32), usize>::new();
        let back = |link: &Link| {
            let place = places.entry((link.from, link.to)).or_default();
            *place += 1;
            among.get(&(link.to, link.from))?.get(*place - 1).copied()
        };
        self.links.iter().map(back).collect()
    }

    /// The one rule of what cannot be combined at a link. What changes needs the wire to itself; where pause frames go, rate and
    /// loss alone may change. The first link that breaks it, and what stands in the way.
    pub fn excluded(&self) -> Option<(usize, &'static str)> {
        if !self.links.iter().any(Link::varies) {
            return None;
        }
        let has_points = self.links.iter().any(|link| link.congestion_point.is_some());
        let (can_be_paused, reverses) = (self.can_be_paused(), self.reverses());
        (self.links.iter().enumerate()).filter(|(_, link)| link.varies()).find_map(|(index, link)| {
            let notifies = has_points && link.role != Role::Wan && !self.crosses(link.from, link.to);
            let pauses = can_be_paused[index] || reverses[index].is_some_and(|back| can_be_paused[back as usize]);
            let goes_down = link.events.iter().any(|event| event.change == Change::Down);
            let obstacle = if link.bridge.is_some() {
                "it changes or reorders packets, and an edge pair (`bridge`) joins its ends"
            } else if notifies {
                "it changes or reorders packets, and notifications of congestion points go ahead of others on it"
            } else if pauses && (goes_down || link.takes_other_times()) {
                "it goes down, changes its delay or reorders packets, and it has flow control"
            } else {
                return None;
            };
            Some((index, obstacle))
        })
    }

    /// Whether the congestion point at the port `link` tells a host, whose own link is `own`.
    pub fn is_told(&self, host: u32, own: u32, link: u32) -> bool {
        let port = &self.links[link as usize];
        port.congestion_point.is_some_and(|point| match point.scope {
            Scope::Tor => self.links[own as usize].to == port.from,
            Scope::SourceDatacenter => !self.crosses(host, port.from),
        })
    }
}

/// What a node is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NodeKind {
    /// Has exactly one link out and one in.
    Host,
    /// Forwards.
    Switch,
}

/// One node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Node {
    /// Unique: `a1-3`, `tor-a1`, `border-a`.
    pub name: String,
    /// Host or switch.
    pub kind: NodeKind,
    /// The datacenter it stands in; 0 where there is only one.
    pub site: u16,
    /// The rack it stands in, unique over all sites; 0 where there are none.
    pub rack: u16,
    /// Memory that its ports with `pooled` share.
    pub pool: Option<PoolConfig>,
}

/// One direction of a link, and the port that feeds it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Link {
    /// `from->to`.
    pub name: String,
    /// Index of the node whose port this is.
    pub from: u32,
    /// Index of the node at the other end.
    pub to: u32,
    /// Line rate.
    pub rate: Rate,
    /// From the last bit sent to the handling at the other end: propagation, and the stack delay of a host on either end.
    pub delay: Span,
    /// How much of `delay` models the stack of a host at either end: live drivers leave it out, and `jitter` with it. Zero is
    /// left out of the plan's text.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub stack: Span,
    /// What the port is for: `host` (a host's own), `edge` (towards a host), `fabric`, `wan`.
    pub role: Role,
    /// The port's own limit.
    pub limit: Limit,
    /// Whether it also draws on its node's pool.
    pub pooled: bool,
    /// Its AQM.
    pub aqm: Option<AqmConfig>,
    /// What samples its queue and notifies senders; left out of the plan's text where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub congestion_point: Option<CongestionPoint>,
    /// What serves it where it has several classes; a FIFO, and left out of the plan's text, where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheduler: Option<SchedulerConfig>,
    /// The memory of the switch at the far end for what comes over this link; left out of the plan's text where packets count at
    /// the port that they leave by alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ingress: Option<Ingress>,
    /// When this port has whatever fills it paused; left out of the plan's text where it never does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pauses: Option<Thresholds>,
    /// Packets lost on the wire, independently, in units of 2⁻³²; 0 for none.
    pub loss: u32,
    /// Which packets may be; any, and left out of the plan's text, where nothing else is said.
    #[serde(default, skip_serializing_if = "LossOf::is_all")]
    pub loss_of: LossOf,
    /// What else happens to packets on the wire, of each key at most one; left out of the plan's text where there is nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub functions: Vec<FunctionConfig>,
    /// What changes during the run, in the order of time; left out of the plan's text where nothing does.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<Event>,
    /// What the routers at both ends do with what passes; left out of the plan's text where there is nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bridge: Option<dcib::Config>,
    /// A packet that is offered from outside begins to leave so much later at most, at random; the order stays: a model of a
    /// host's stack as well. Zero is left out of the plan's text.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub jitter: Span,
    /// The clock of a host's port is slower than its nominal rate by a share that is drawn for each run, up to this: parts per
    /// million. Zero is left out of the plan's text.
    #[serde(default, skip_serializing_if = "is_exact")]
    pub clock_spread: u32,
    /// Whether its port writes telemetry into packets of data; left out of the plan's text where it does not.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub telemetry: bool,
    /// Whether its backlog is sampled.
    pub watched: bool,
}

impl Node {
    /// In no rack, of the only datacenter, without memory of its own.
    pub fn new(name: impl Into<String>, kind: NodeKind) -> Node {
        Node { name: name.into(), kind, site: 0, rack: 0, pool: None }
    }
}

impl Link {
    /// A FIFO without bound in front of a wire that loses nothing.
    pub fn new(name: impl Into<String>, (from, to): (u32, u32), role: Role, rate: Rate, delay: Span) -> Link {
        Link {
            name: name.into(),
            from,
            to,
            rate,
            delay,
            stack: Span::ZERO,
            role,
            limit: Limit::Unlimited,
            pooled: false,
            aqm: None,
            congestion_point: None,
            scheduler: None,
            ingress: None,
            pauses: None,
            loss: 0,
            loss_of: LossOf::All,
            functions: Vec::new(),
            events: Vec::new(),
            bridge: None,
            jitter: Span::ZERO,
            clock_spread: 0,
            telemetry: false,
            watched: false,
        }
    }

    /// Number of service classes that have a queue of their own at its port: 1 where all have the same.
    pub fn classes(&self) -> usize {
        self.scheduler.as_ref().map_or(1, |scheduler| scheduler.queues().classes())
    }

    /// The link as it is in the run with this seed: see [`clock_spread`](Self::clock_spread).
    pub fn clocked(&self, seed: u64) -> Cow<'_, Link> {
        if self.clock_spread == 0 {
            return Cow::Borrowed(self);
        }
        let mut link = self.clone();
        // In parts per thousand million, for the whole of them.
        let spread = u64::from(self.clock_spread) * 1_000;
        let slower = Stream::named(seed, &format!("clock/{}", self.name)).below(spread + 1);
        let slowed = |rate: Rate| {
            let bps = u128::from(rate.as_bps()) * u128::from(1_000_000_000 - slower) / 1_000_000_000;
            Rate::from_bps(u64::try_from(bps).expect("no more than before").max(1))
        };
        link.rate = slowed(self.rate);
        for event in &mut link.events {
            if let Change::Rate(rate) = &mut event.change {
                *rate = slowed(*rate);
            }
        }
        Cow::Owned(link)
    }

    /// What happens to packets on the wire, in the order in which it does.
    pub fn all_functions(&self) -> Vec<FunctionConfig> {
        let changes = self.events.iter().any(|event| matches!(event.change, Change::Loss(_)));
        let independent =
            (self.loss > 0 || changes).then_some(FunctionConfig::Bernoulli(Bernoulli { loss: self.loss }));
        let mut functions: Vec<FunctionConfig> =
            independent.into_iter().chain(self.functions.iter().copied()).collect();
        functions.sort_by_key(FunctionConfig::key);
        functions
    }

    /// All that changes during the run.
    pub fn schedule(&self) -> LinkSchedule {
        LinkSchedule::new(self.rate, self.delay, self.loss, &self.events)
    }

    /// The least delay that it has during the run.
    pub fn least_delay(&self) -> Span {
        if self.events.is_empty() { self.delay } else { self.schedule().least_delay() }
    }

    /// The greatest delay that it has during the run.
    pub fn greatest_delay(&self) -> Span {
        if self.events.is_empty() { self.delay } else { self.schedule().greatest_delay() }
    }

    /// Whether packets may take longer than [`least_delay`](Self::least_delay) on the wire, or the port changes.
    fn varies(&self) -> bool {
        !self.events.is_empty() || self.takes_other_times()
    }

    /// Whether packets may take longer than [`least_delay`](Self::least_delay) on the wire.
    fn takes_other_times(&self) -> bool {
        self.events.iter().any(|event| matches!(event.change, Change::Delay(_)))
            || self.functions.iter().any(|function| function.key() == Key::Reorder)
    }
}

/// Which packets a wire may lose.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LossOf {
    /// Any.
    #[default]
    All,
    /// Those with data.
    Data,
    /// Those with data that are not ECN-capable.
    Unprotected,
}

impl LossOf {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
    fn is_all(&self) -> bool {
        *self == LossOf::All
    }
}

/// The memory of a switch for what comes over one link: a packet takes room from its arrival until its last bit has left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Ingress {
    /// Beyond this packets are dropped: bytes, over all classes.
    pub limit: Limit,
    /// When the link is paused, by class; `None`: never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thresholds: Option<Thresholds>,
}

/// A congestion point at a port, and whom it tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct CongestionPoint {
    /// How it samples.
    pub sampling: CongestionPointConfig,
    /// Whom it tells.
    pub scope: Scope,
}

impl CongestionPoint {
    /// The value of each parameter of [`SPEC`](narrows_core::queue::congestion_point::SPEC), in its order.
    pub fn values(&self) -> [Value; 4] {
        let CongestionPointConfig { set_point, weight, sample_base } = self.sampling;
        [
            Value::Bytes(set_point),
            Value::Count(weight.into()),
            Value::Bytes(sample_base),
            Value::Choice(self.scope as u8),
        ]
    }
}

/// Whom a congestion point tells of the congestion that their packets meet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scope {
    /// Hosts on the same switch: beyond it a packet bears a router's address and not its sender's.
    #[default]
    Tor,
    /// Hosts of the same datacenter.
    SourceDatacenter,
}

/// Whether nothing is said by it: then it is not written.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
fn is_zero(span: &Span) -> bool {
    *span == Span::ZERO
}

/// Whether a clock is exact: then it is not written.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
fn is_exact(spread: &u32) -> bool {
    *spread == 0
}

/// Whether it is the class of who says nothing: then it is not written.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
fn is_first(class: &u8) -> bool {
    *class == 0
}

/// What a port is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// A host's own port: a FIFO that never drops its own host's packets.
    Host,
    /// A switch's port towards a host.
    Edge,
    /// Between switches inside a datacenter.
    Fabric,
    /// Between datacenters.
    Wan,
}

impl Role {
    /// Every role.
    pub const ALL: [Role; 4] = [Role::Host, Role::Edge, Role::Fabric, Role::Wan];

    /// Its name, as in experiments and in results.
    pub const fn name(self) -> &'static str {
        match self {
            Role::Host => "host",
            Role::Edge => "edge",
            Role::Fabric => "fabric",
            Role::Wan => "wan",
        }
    }
}

/// A kind of traffic: who sends what to whom, over which stack.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Traffic {
    /// Unique; the name of its random streams.
    pub name: String,
    /// The controller; [none](ControllerChoice::none) of datagrams.
    pub controller: ControllerChoice,
    /// The hosts' stack.
    pub profile: Profile,
    /// Which class of a port with several its packets are of, both ways; 0 is left out of the plan's text.
    #[serde(default, skip_serializing_if = "is_first")]
    pub service_class: u8,
    /// What its flows run over; TCP is left out of the plan's text.
    #[serde(default, skip_serializing_if = "Transport::is_tcp")]
    pub transport: Transport,
    /// Fresh or persistent connections.
    pub connections: Connections,
    /// Who sends what, when.
    pub pattern: Pattern,
}

/// A controller and its parameters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct ControllerChoice {
    /// Its name in the registry. Of one in a file the name that it has there or, if that is one of the registry, its file's.
    pub name: String,
    /// One value for each parameter of its spec, in that order.
    pub values: Vec<Value>,
    /// Its packets are ECN-capable: always for a controller that needs it, on request for others (classic ECN).
    pub ecn: bool,
    /// The file of a controller in C or Python, which is none of the registry; others leave it out of the plan's text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<Program>,
}

/// A controller in C or Python, whole: a plan refers to no file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Program {
    /// The file's name, without its folder.
    pub file: String,
    /// Which of its controllers, by the name that it has there.
    pub controller: String,
    /// What it holds.
    pub text: String,
    /// Files beside it that it needs, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub others: BTreeMap<String, String>,
    /// Values of its parameters, as one writes them; the others have the file's own.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub parameters: BTreeMap<String, String>,
    /// Whether it reads what switches write into packets.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub needs_telemetry: bool,
}

impl ControllerChoice {
    /// This controller with its parameters as they are by default.
    ///
    /// # Panics
    /// If none of this name is registered.
    pub fn new(name: &str, ecn: bool) -> ControllerChoice {
        let parameters = spec(name).expect("a registered controller").parameters;
        let values = parameters.iter().map(|parameter| parameter.default).collect();
        ControllerChoice { name: name.to_owned(), values, ecn, program: None }
    }

    /// That of traffic without congestion control.
    pub fn none() -> ControllerChoice {
        ControllerChoice { name: "none".to_owned(), values: vec![], ecn: false, program: None }
    }
}

/// How flows use connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Connections {
    /// A connection for each flow; its handshake is part of the completion time.
    Fresh,
    /// A connection for each flow, open when the flow begins.
    FreshEstablished,
    /// An idle connection of the same pair if there is one, else a new one. A pair begins with this many, established.
    Persistent {
        /// Established connections per pair at the start.
        pool: u32,
    },
    /// One connection for each ordered pair of hosts, open at the start; its flows follow each other without a gap.
    InOrder,
}

impl Connections {
    /// Whether connections carry flow after flow.
    pub const fn are_kept(self) -> bool {
        matches!(self, Connections::Persistent { .. } | Connections::InOrder)
    }
}

/// Who sends what, when.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pattern {
    /// Flows arrive at random, whatever became of the earlier ones.
    Open(Open),
    /// Flows stated one by one.
    List(Vec<FlowStart>),
    /// An application that goes in rounds, by its own key.
    #[serde(untagged)]
    App(Kind),
}

/// Flows that arrive at random.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Open {
    /// Mean time between two flows of this traffic, over all pairs.
    pub mean_interarrival: Span,
    /// Standard deviation of the logarithm of these times, which are log-normal; `None`: they are exponential.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sigma: Option<f64>,
    /// ON and OFF periods, from which the mean time between flows follows, and the times between flows in ON periods,
    /// whatever `sigma` is; `None`: flows come at all times.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_off: Option<OnOff>,
    /// The sizes.
    pub sizes: SizeDistribution,
    /// Who may send to whom.
    pub pairs: Pairs,
    /// Sizes drawn stratified and arrivals scaled, so that a short run offers exactly what it says.
    pub exact: bool,
    /// The receiver asks for each flow with a request of this size; `None`: the sender begins by itself.
    pub request: Option<Bytes>,
}

/// Who may send to whom. Never a host to itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pairs {
    /// Source uniform over the first list, destination uniform over the second; drawn again while they are equal.
    Between {
        /// Nodes that send the flow's bytes.
        sources: Vec<u32>,
        /// Nodes that receive them.
        destinations: Vec<u32>,
    },
    /// One of these ordered pairs, uniformly.
    Listed(Vec<(u32, u32)>),
}

/// A distribution of sizes: cumulative probability at sizes, linear in between.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct SizeDistribution {
    /// Its name: `web-search`, or the file's.
    pub name: String,
    /// `(bytes, cumulative probability)`, both ascending; begins at probability 0 and ends at 1.
    pub points: Vec<(u64, f64)>,
}
