//! How much a port may hold: a limit of its own, and a share of its switch's memory.

use crate::units::{Bytes, Packets};

/// A port's own limit. The packet in service counts until its last bit has left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum Limit {
    /// None: a host's own port, or one bounded by its pool alone.
    Unlimited,
    /// At most so many packets.
    Packets(Packets),
    /// At most so many IP bytes.
    Bytes(Bytes),
}

/// Memory that a switch's ports share by dynamic thresholds [Choudhury and Hahne 1998]: a port may hold at most
/// `alpha` times what is free in the whole pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub struct PoolConfig {
    /// The whole pool, IP bytes.
    pub size: Bytes,
    /// α in units of 2⁻¹⁶.
    pub alpha: u32,
}
