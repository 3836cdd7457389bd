//! Controllers against known truths, on whole networks.
#![allow(missing_docs, reason = "tests")]

mod aqm;
mod bbr;
mod cubic;
mod dcqcn;
mod dctcp;
mod determinism;
mod fairness;
mod gemini;
mod links;
mod measure;
mod newreno;
#[path = "../plans/mod.rs"]
#[allow(dead_code, unreachable_pub, reason = "a test uses the part it needs")]
mod plans;
mod transport;
mod vegas;
