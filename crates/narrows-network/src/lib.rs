//! A network of anything: hosts offer packets to ports, links carry them, switches forward them, and the driver hears
//! of arrivals at hosts and of its own appointments, in one total order.
//!
//! The network knows nothing of TCP and nothing of what a host is: it is generic over the [`Payload`]. A simulator
//! drives it as fast as it can, an emulator with a real clock; both loop over [`Network::next`].
//!
//! | module | what it is |
//! |---|---|
//! | [`network`] | the whole: built from a plan's graph, stepped by its driver |
//! | [`agenda`] | what is due when, in an order that comes from the network alone |
//! | [`port`] | who may enter a queue, when each packet leaves it, and the counters |
//! | `link` | packets in a queue or on a wire, stored in pooled rings |
//! | [`partition`] | how a network is cut into parts that run apart |
//! | `prefetch` | asking for memory before it is needed |
//! | [`route`] | shortest paths and the choice among equal ones |
//! | [`trace`] | what a traced network notes of its packets |
//!
//! Invariants: the same graph, seed and calls give the same results, bit for bit; integers only; one agenda entry for
//! each busy link; no allocation once every structure has reached the size that its traffic needs.
#![deny(unsafe_code)]

pub mod agenda;
mod link;
pub mod network;
pub mod partition;
mod path;
pub mod port;
mod prefetch;
pub mod route;
mod telemetry;
pub mod trace;

pub use agenda::{Class, Entity};
pub use network::{Carried, Event, Network, Next, Payload, Place};
pub use partition::{MAX_PARTS, Partition};
pub use port::{Counters, Offered};
pub use route::GraphError;
