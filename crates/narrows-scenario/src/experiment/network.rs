//! The network as an experiment writes it: one named topology, and the links by what they are for.

use std::collections::BTreeMap;

use narrows_core::units::{Bytes, Rate, Span};
use schemars::JsonSchema;
use serde::Deserialize;

use super::located::Located;
use super::quantity::{Fraction, Quantity, Room};
use super::selector::{Anything, Aqm, CongestionPoint, EdgePair};

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
    /// Share of packets lost on the wire, independently.
    pub loss: Option<Located<Fraction>>,
    /// Which packets may be lost so; default: `"all"`.
    pub loss_of: Option<LossOf>,
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

/// Values by dotted path.
pub type Sets = BTreeMap<String, Anything>;
