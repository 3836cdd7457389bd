//! Controllers against known truths, on whole networks.

mod aqm;
mod bbr;
mod bbr_v3;
mod copa;
mod cubic;
mod dcqcn;
mod dctcp;
mod determinism;
mod fairness;
mod gemini;
pub(crate) mod hpcc;
mod l4s;
mod ledbat_plus_plus;
mod links;
mod measure;
mod newreno;
mod swift;
mod timely;
mod transport;
mod uno;
mod vegas;
mod vivace;
