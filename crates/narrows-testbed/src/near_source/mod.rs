//! The hosts' side of the near-source loop: whom a host believes, and which of its connections listen. Who changes the rate of
//! a connection that is another's is not known here; the driver of a run brings it along.

pub mod reactor;

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::atomic::AtomicBool;

use narrows_core::tcp::near_source::ReactionPoint;
use narrows_core::units::{Rate, Time};
use narrows_plan::{Graph, Plan, Role};
use narrows_wire::{Flow, Key, Pair, Sender, Tally};

use crate::address;
use crate::agent;
use crate::clock::Clock;
use crate::lateness::Histogram;
use crate::switches::identity;

/// What a host's loop is given. It runs in the host's namespace.
#[derive(Debug)]
pub struct Host {
    /// The address that notifications come to.
    pub address: IpAddr,
    /// The congestion points that may tell it.
    pub senders: BTreeMap<Pair, Sender>,
    /// The rate of its own link.
    pub line: Rate,
    /// How connections react, by the port at either end that says which traffic they are of.
    pub points: BTreeMap<u16, ReactionPoint>,
    /// What random cycles are drawn from.
    pub seed: u64,
    /// The run's clock: times in [`Heard`] are on it.
    pub clock: Clock,
}

impl Host {
    /// How a connection of this host reacts; `None` if it does not listen.
    pub fn point(&self, flow: &Flow) -> Option<&ReactionPoint> {
        let ports = [flow.source.port(), flow.destination.port()];
        ports.iter().find_map(|port| self.points.get(port))
    }
}

/// A notification that was acted on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    /// When, on the run's clock.
    pub at: Time,
    /// Whose rate was cut.
    pub flow: Flow,
}

/// What a host's loop leaves behind.
#[derive(Clone, Debug, Default)]
pub struct Heard {
    /// What was acted on, in order.
    pub cuts: Vec<Cut>,
    /// How many notifications were believed, and how many were not, by reason.
    pub tally: Tally,
    /// From a notification's arrival at the host until the connection's rate was another.
    pub reaction: Histogram,
}

/// Takes a host's notifications and limits its connections until it is told to stop.
pub trait Listener: Sync {
    /// Does it, on a thread in the host's namespace. A plan that begins waits for nobody: it is at work within some
    /// milliseconds.
    ///
    /// # Errors
    /// Why it cannot: the run fails with it.
    fn listen(&self, host: &Host, stop: &AtomicBool) -> Result<Heard, String>;
}

/// What the loops of a plan's hosts are given, by host: of those that listen to somebody.
pub(crate) fn hosts(plan: &Plan, key: &Key, seed: u64, clock: Clock) -> BTreeMap<u32, Host> {
    let points: BTreeMap<u16, ReactionPoint> = (0..)
        .zip(&plan.traffic)
        .filter_map(|(traffic, entry)| Some((agent::port(traffic), entry.profile.near_source?)))
        .collect();
    let graph = &plan.network;
    if points.is_empty() {
        return BTreeMap::new();
    }
    let own = (0..).zip(&graph.links).filter(|(_, link)| link.role == Role::Host);
    let all = own.map(|(own, link)| {
        let given = Host {
            address: address::v4(link.from).into(),
            senders: senders(graph, link.from, own, key),
            line: link.rate,
            points: points.clone(),
            seed: seed ^ u64::from(link.from) << 32,
            clock,
        };
        (link.from, given)
    });
    all.filter(|(_, given)| !given.senders.is_empty()).collect()
}

/// The congestion points that tell a host, at the one address that its connections have.
fn senders(graph: &Graph, host: u32, own: u32, key: &Key) -> BTreeMap<Pair, Sender> {
    let telling = (0..).zip(&graph.links).filter(|(link, _)| graph.is_told(host, own, *link));
    let at = address::v4(host).into();
    let sender = |from: u32| Sender { address: address::switch_v4(from).into(), keys: key.of_host(at).into() };
    telling.map(|(link, port)| ((identity(graph, link), at), sender(port.from))).collect()
}
