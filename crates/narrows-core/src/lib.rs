//! The pure heart of Narrows: congestion controllers, TCP, queues and applications as state machines.
//!
//! Every item here is handed the time and returns what to do. There is no clock, no input or output, no entropy and no
//! floating point: the same calls give the same results on every machine. The packet simulator, the live testbed, the
//! edge router and the tests are drivers of these same machines.
//!
//! Layers, each knowing only those above it in this list:
//!
//! 1. [`units`]: time, rates and sizes, one canonical integer each.
//! 2. [`packet`]: what a packet means, never its bytes.
//! 3. [`rng`]: a seed and a name give a stream.
//! 4. [`component`]: names, parameters and defaults of what experiments choose.
//! 5. [`cc`]: congestion controllers. They read facts and state two numbers, a window and a pacing rate.
//! 6. [`queue`]: who may enter a port's buffer, and with which mark.
//! 7. [`routing`]: which of several equally short ways a packet takes.
//! 8. [`tcp`]: both ends of a connection.
//! 9. [`transport`]: what a driver asks of TCP and of the other transports alike.
//! 10. [`app`]: what the application on one host does next.
//! 11. [`edge`]: what a router at the border of a site does.
#![no_std]
#![forbid(unsafe_code)]
#![warn(clippy::float_arithmetic)]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod app;
pub mod cc;
pub mod component;
pub mod edge;
pub mod link;
pub mod nic;
pub mod packet;
pub mod queue;
pub mod ring;
pub mod rng;
pub mod routing;
pub mod tcp;
pub mod telemetry;
pub mod transport;
pub mod units;
