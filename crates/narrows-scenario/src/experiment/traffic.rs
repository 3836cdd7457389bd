//! The traffic as an experiment writes it.

use narrows_core::units::{Bytes, Span, Time};
use schemars::JsonSchema;
use serde::Deserialize;

use super::host::Host;
use super::located::Located;
use super::quantity::{Fraction, Quantity};
use super::selector::{Controller, Selector, Transport};
use crate::units::Frequency;

/// An entry, with a key for each application.
macro_rules! entry {
    (machines: $($machine:ident :: $app:ident),*; $($(#[$doc:meta])* $key:literal: $module:ident :: $kind:ident;)*) => {
        /// One kind of traffic: exactly one of `arrivals`, `long`, `flows` and the applications says when.
        #[derive(Clone, Debug, Deserialize, JsonSchema)]
        #[serde(rename_all = "kebab-case", deny_unknown_fields)]
        pub struct Traffic {
            /// Unique; names its random streams. Default: `traffic-1` and so on.
            pub name: Option<Located<String>>,
            /// Its controller, where it is not the arm's.
            pub cc: Option<Located<Controller>>,
            /// Classic ECN for a controller that does not need ECN.
            pub ecn: Option<Located<bool>>,
            /// What differs from the topology's `host` for this traffic.
            #[serde(default)]
            pub host: Host,
            /// Which class of a port with a `scheduler` its packets belong to, both ways; default: 0.
            pub service_class: Option<Located<u8>>,
            /// `"tcp"`, or `{ datagram = { rate = "5Gbps" } }`, or a share of the host's link, `"50 %"`; default: `"tcp"`.
            pub transport: Option<Located<Transport>>,
            /// `"fresh"`, `"fresh-established"`, `{ persistent = { pool = 5 } }`, or of a `program` `"in-order"`.
            pub connections: Option<Located<Connections>>,
            /// Who sends to whom, by where they stand.
            pub between: Option<Located<Between>>,
            /// Hosts that send the flows' bytes.
            pub from: Option<Located<Selector>>,
            /// Hosts that receive them.
            pub to: Option<Located<Selector>>,
            /// Of each rack only the first so many hosts take part.
            pub active: Option<Located<u32>>,
            /// Flows that arrive at random.
            pub arrivals: Option<Located<Arrivals>>,
            /// Sizes of flows that arrive at random.
            pub size: Option<Located<Sizes>>,
            /// The receiver asks for each flow with a request of this size.
            pub request: Option<Located<Quantity<Bytes>>>,
            /// Stratified sizes and scaled arrivals: a short run offers exactly what it says.
            pub exact: Option<Located<bool>>,
            /// Long-lived flows.
            pub long: Option<Located<Long>>,
            $($(#[$doc])* pub $module: Option<Located<crate::traffic::$module::$kind>>,)*
            /// Flows one by one.
            pub flows: Option<Located<Flows>>,
        }
    };
}

narrows_core::applications!(entry);

/// Who sends to whom, by where they stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Between {
    /// Every flow crosses from one datacenter to another; every direction alike.
    Datacenters,
    /// Every flow stays in its datacenter and leaves its rack.
    Racks,
    /// Every flow stays in its rack.
    SameRack,
    /// Any host to any other.
    All,
    /// Each host sends to one other and receives from one: a fixed permutation.
    Permutation,
}

/// How flows use connections.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Connections {
    /// A connection for each flow, handshake included.
    Fresh,
    /// A connection for each flow, already open.
    FreshEstablished,
    /// Idle connections are used again.
    Persistent(Persistent),
    /// One connection for each ordered pair, whose flows follow each other without a gap; with `program` only.
    InOrder,
}

/// How many connections a pair begins with.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Persistent {
    /// Established connections of each pair at the start.
    pub pool: u32,
}

/// An arrival process.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Arrivals {
    /// Exponential times between flows.
    Poisson(Poisson),
    /// Log-normal times between the flows of each sender.
    LogNormal(LogNormal),
    /// Log-normal ON and OFF periods of each sender, and log-normal times between its flows in ON periods.
    OnOff(OnOff),
}

/// Bursts and lulls: each sender has a process of its own, which has gone on for ever when the run begins.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct LogNormal {
    /// Mean time between two flows of a sender, over all its receivers.
    pub mean: Located<Quantity<Span>>,
    /// Standard deviation of the logarithm of that time.
    pub sigma: Located<Fraction>,
}

/// ON and OFF periods that take turns: each sender has its own, which have gone on for ever when the run begins.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct OnOff {
    /// Median length of the ON periods.
    pub on: Located<Quantity<Span>>,
    /// Median length of the OFF periods.
    pub off: Located<Quantity<Span>>,
    /// Median time between two flows of a sender in an ON period, over all its receivers.
    pub gap: Located<Quantity<Span>>,
    /// Standard deviation of the logarithm of all three.
    pub sigma: Located<Fraction>,
}

/// The intensity of a Poisson process: a load of a link, or a rate.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Poisson {
    /// Share of the busiest of the links `of` that the flows' wire bytes take.
    pub load: Option<Located<Fraction>>,
    /// The part of that load that is this traffic's, above 0; default: all of it. Several traffics share a load
    /// so, and a sweep sets it for all of them.
    pub part: Option<Located<Fraction>>,
    /// A role, `"wan"`, `"fabric"`, `"edge"`, `"host"`, or a link, `"tor-a1->border-a"`, globs allowed.
    pub of: Option<Located<String>>,
    /// Flows per second, over all pairs.
    pub rate: Option<Located<Quantity<Frequency>>>,
}

/// Sizes of flows.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Sizes {
    /// A built-in distribution: `"web-search"`, `"data-mining"`, `"cache"`.
    Cdf(Located<String>),
    /// A file beside the experiment: lines of size in bytes and cumulative probability, 0–1 or 0–100.
    File(Located<String>),
    /// One size for all.
    Fixed(Located<Quantity<Bytes>>),
}

/// Long-lived flows.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Long {
    /// How many; default: one per sender.
    pub flows: Option<Located<u32>>,
    /// When the first starts; default: at once.
    pub start: Option<Located<Quantity<Time>>>,
    /// Each starts up to so much later, at a moment that the seed decides; default: at once.
    pub spread: Option<Located<Quantity<Span>>>,
    /// Each starts so much later than the one before.
    pub stagger: Option<Located<Quantity<Span>>>,
    /// When the first stops offering data; default: at the run's end.
    pub stop: Option<Located<Quantity<Time>>>,
    /// Each stops so much later than the one before.
    pub stop_stagger: Option<Located<Quantity<Span>>>,
    /// A size for each instead of a stop.
    pub size: Option<Located<Quantity<Bytes>>>,
}

/// Flows one by one: in the text, or in a file.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Flows {
    /// In the text.
    List(Vec<Located<Flow>>),
    /// A file beside the experiment: `source destination priority port bytes start-seconds` per line, hosts by number.
    File(Located<String>),
}

/// One flow.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Flow {
    /// The host that sends its bytes.
    pub from: Located<String>,
    /// The host that receives them.
    pub to: Located<String>,
    /// When; default: at once.
    pub at: Option<Located<Quantity<Time>>>,
    /// Its size; without it the flow goes on until `stop` or the run's end.
    pub size: Option<Located<Quantity<Bytes>>>,
    /// When a flow without a size stops offering data.
    pub stop: Option<Located<Quantity<Time>>>,
    /// The receiver asks for it with a request of this size.
    pub request: Option<Located<Quantity<Bytes>>>,
}
