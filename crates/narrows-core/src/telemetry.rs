//! In-band network telemetry: what ports write into the packets that leave them [HPCC §3].

use crate::units::{Bytes, Rate, Time};

/// What one port wrote into a packet, at the moment at which the packet began to leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hop {
    /// That moment.
    pub at: Time,
    /// IP bytes in the port's queues, without the packet.
    pub queue: Bytes,
    /// Bytes that the port has sent on the wire up to then, framing included, without the packet.
    pub sent: Bytes,
    /// The line's rate.
    pub rate: Rate,
}
