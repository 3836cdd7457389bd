//! The network as an experiment writes it: one named topology, and the links by what they are for.

use std::collections::BTreeMap;

use narrows_core::units::{Bytes, Rate, Span};
use schemars::JsonSchema;
use serde::Deserialize;

use super::located::Located;
use super::quantity::{Fraction, Quantity, Room};
use super::selector::{Anything, Aqm, CongestionPoint, EdgePair, Loss, Reordering, Scheduler};

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
    /// The AQM, or `"none"` for tail drop.
    pub aqm: Option<Located<Aqm>>,
    /// What notifies senders of the queue, beside the AQM.
    pub congestion_point: Option<Located<CongestionPoint>>,
    /// How the port serves several classes of traffic; default: one queue.
    pub scheduler: Option<Located<Scheduler>>,
    /// Where packets count, and `limit` with them; default: `"output"`.
    pub buffering: Option<Located<Buffering>>,
    /// Whether and when a switch stops who sends to it; default: `"none"`.
    pub flow_control: Option<Located<FlowControl>>,
    /// Share of packets lost on the wire, independently; or a function that loses them.
    pub loss: Option<Located<Loss>>,
    /// Which packets may be lost so; default: `"all"`.
    pub loss_of: Option<LossOf>,
    /// What has packets overtake others on the wire; default: `"none"`.
    pub reorder: Option<Located<Reordering>>,
    /// What the routers at its two ends do together; links between routers only.
    pub bridge: Option<Located<EdgePair>>,
}

/// Which packets a wire loses.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LossOf {
    /// Any.
    All,
    /// Those with data.
    Data,
    /// Those with data that are not ECN-capable: a WAN that spares the others.
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

/// Where a switch's packets count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Buffering {
    /// At the port by which they leave.
    Output,
    /// At the link by which they came: virtual output queues, and no limit where they leave.
    Input,
}

/// How a switch stops who sends to it.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FlowControl {
    /// It does not.
    None,
    /// Priority flow control, by class of service [802.1Qbb].
    Pfc(Pfc),
}

/// The parameters of [`FlowControl::Pfc`]. With `buffering = "input"` they are of what came over one link, else of what
/// waits at one port, which stops all that fill it.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Pfc {
    /// Beyond this the sender is paused: a size.
    pub xoff: Located<Quantity<Bytes>>,
    /// At or below this it is resumed: a size.
    pub xon: Located<Quantity<Bytes>>,
    /// Packets may be lost: accept less headroom than what may still come after a pause.
    #[serde(default)]
    pub may_lose: bool,
}

/// Values by dotted path.
pub type Sets = BTreeMap<String, Anything>;
