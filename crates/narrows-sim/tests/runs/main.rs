//! Whole runs of the simulator. One program: each compiles the machines anew.
#![allow(missing_docs, unreachable_pub, reason = "tests")]

mod accounting;
mod basics;
mod bridges;
mod datagrams;
mod freebsd;
mod handshake;
mod headroom;
mod in_c;
mod invariants;
mod lossless;
mod mtu;
mod near_source;
mod nic_limiter;
mod partition;
mod plans;
mod programs;
mod random_program;
mod rdma;
mod routing;
mod topologies;
mod tracing;
mod truths;
mod two_tier;
