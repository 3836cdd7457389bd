//! Controllers against known truths, on whole networks.

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
mod transport;
mod vegas;
