//! What is worth observing at its moment: one vocabulary for recorders, tests and, later, the kernel's records. What can
//! be read at any time (counters, windows, backlogs) is read, not told.

use crate::units::{Bytes, Time};

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

/// Something happened. Identifiers are those of the plan: a port is a directed link.
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
