//! The fast driver: model hosts on a network, and a recorder.
//!
//! ```text
//! Plan + seed ─▶ Simulation ──advance──▶ … ──finish──▶ Results (rows, in the order of the plan's identifiers)
//!            ╲─▶ run ─▶ parts × threads ──merge──▶ the same Results
//! ```
//!
//! A host is its port, its connections' ends ([`narrows_core::tcp::Endpoint`]) and the applications that feed them. What
//! happens is decided in `narrows-core` and `narrows-network`; this crate moves segments between the two and takes notes.
//! Nothing here draws on clocks, entropy or the order of memory: the same plan and seed give the same results.
#![forbid(unsafe_code)]

mod bridges;
mod calibrate;
mod connections;
mod flows;
mod hosts;
mod merge;
mod nic;
mod packet;
mod parallel;
mod simulation;
mod trace;

pub use calibrate::{hold_ns, read_ns, thread_cpu_ns};
pub use narrows_network::Partition;
pub use parallel::{Ran, partitions_for, run, run_in_parts, run_traced};
pub use simulation::{Progress, SimError, Simulation};
pub use trace::{Selection, Wanted};
