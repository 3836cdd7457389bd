//! Everything worth observing: one vocabulary for the recorder, the tests and the kernel's records.

use crate::units::{Bytes, Packets, Rate, Span, Time};

/// Why a packet was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum DropReason {
    /// The port's own limit.
    Limit,
    /// The switch's shared pool.
    Pool,
    /// Active queue management.
    Aqm,
    /// An impairment that the experiment asked for.
    Impairment,
}

impl DropReason {
    /// Every reason, in the order of the counters.
    pub const ALL: [DropReason; 4] = [DropReason::Limit, DropReason::Pool, DropReason::Aqm, DropReason::Impairment];
    /// Its name in results.
    pub const fn name(self) -> &'static str {
        match self {
            DropReason::Limit => "limit",
            DropReason::Pool => "pool",
            DropReason::Aqm => "aqm",
            DropReason::Impairment => "impairment",
        }
    }
}

/// Something happened. Identifiers are those of the plan: a port is a directed link, an end is (connection, side).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fact {
    /// A port refused a packet of this size (IP bytes).
    Dropped {
        /// The port.
        port: u32,
        /// Why.
        reason: DropReason,
        /// IP bytes.
        size: Bytes,
    },
    /// A port marked a packet.
    Marked {
        /// The port.
        port: u32,
    },
    /// A port's backlog, the packet in service included, at a sample.
    Queue {
        /// The port.
        port: u32,
        /// IP bytes waiting or in service.
        bytes: Bytes,
        /// Packets waiting or in service.
        packets: Packets,
    },
    /// A sender's window at a sample.
    Window {
        /// The connection.
        connection: u32,
        /// Packets.
        packets: Packets,
        /// The pacing rate, if it paces.
        pacing: Option<Rate>,
    },
    /// A sender's round-trip sample.
    Rtt {
        /// The connection.
        connection: u32,
        /// The sample.
        span: Span,
    },
    /// A sender retransmitted a segment.
    Retransmitted {
        /// The connection.
        connection: u32,
        /// Bytes of payload.
        bytes: Bytes,
    },
    /// A sender's retransmission timer expired.
    Timeout {
        /// The connection.
        connection: u32,
    },
    /// A flow was offered to its connection.
    FlowStarted {
        /// The flow.
        flow: u32,
    },
    /// The flow's last byte was delivered in order.
    FlowDone {
        /// The flow.
        flow: u32,
    },
}

/// Something that watches. A driver is generic over it, so that watching nothing costs nothing.
pub trait Probe {
    /// Takes note of a fact at its moment.
    fn observe(&mut self, now: Time, fact: Fact);
}

/// Watches nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoProbe;

impl Probe for NoProbe {
    #[inline(always)]
    fn observe(&mut self, _now: Time, _fact: Fact) {}
}
