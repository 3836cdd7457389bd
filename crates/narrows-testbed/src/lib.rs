//! The live driver: hosts are network namespaces of this kernel, and the network between them is emulated by one thread on
//! a real clock.
//!
//! ```text
//! host namespace ── TUN ──▶ Emulator ── offer ──▶ Network (the plan's ports, links, switches) ──▶ TUN ── host namespace
//!   real sockets              real clock            virtual time: exact rates, delays, queues, marks
//! ```
//!
//! A packet enters the host's port at the time at which it was read. From there on everything is computed in virtual time
//! by [`narrows_network`], as in the simulator, and only the delivery waits for the real clock. How late a delivery was is
//! recorded, and never accumulates: what follows is computed from the virtual time.
//!
//! | module | what it is |
//! |---|---|
//! | [`clock`] | the monotonic clock as the network's time |
//! | [`packet`] | real packets: parsed, marked, kept in buffers |
//! | [`emulator`] | the plan's network between the hosts' devices |
//! | [`lateness`] | how late deliveries were, and whether a run may count |
//! | [`guest`] | the same in a machine whose clock counts instructions |
#![deny(unsafe_code)]
#![cfg(target_os = "linux")]

pub mod address;
pub mod agent;
pub mod clock;
mod collect;
pub mod doctor;
pub mod emulator;
pub mod guest;
pub mod host;
pub mod lateness;
pub mod namespace;
pub mod near_source;
mod netlink;
pub mod packet;
pub mod priority;
pub mod samples;
mod switches;
pub mod testbed;
pub mod tun;

pub use testbed::{Options, Outcome, Progress, TestbedError, run};
