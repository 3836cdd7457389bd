//! The network as an experiment writes it: one named topology, and the links by what they are for.

use std::collections::BTreeMap;

use narrows_core::units::{Bytes, Rate, Span};
use schemars::JsonSchema;
use serde::Deserialize;

use super::bridge::Bridge;
use super::located::Located;
use super::quantity::{Fraction, Quantity, Room};
use super::selector::{Anything, Aqm};

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

/// Values by dotted path.
pub type Sets = BTreeMap<String, Anything>;
