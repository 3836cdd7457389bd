//! Text → experiment → validated → [`Vec<Plan>`](plan::Plan). Drivers take only plans.
#![forbid(unsafe_code)]

pub mod plan;
