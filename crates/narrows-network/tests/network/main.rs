//! The network from outside: closed forms, promises, and the explicit port. One program, as each that has a packet of its own
//! compiles the whole network for it.
#![allow(clippy::unwrap_used, clippy::cast_possible_truncation, reason = "a test may")]

mod bridges;
mod closed_forms;
mod notifications;
mod oracle;
mod parts;
mod support;
mod telemetry;
