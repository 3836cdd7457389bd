//! Marking laws: one file each, one line here.

use crate::units::{Bytes, Packets};

/// A size counted either in packets or in IP bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum Size {
    /// Packets.
    Packets(Packets),
    /// IP bytes.
    Bytes(Bytes),
}

/// The law of a port and its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum AqmConfig {
    /// Mark an arriving ECN-capable packet if the instantaneous queue is above this [DCTCP §3.1].
    Threshold {
        /// K.
        mark_at: Size,
    },
    /// Random early detection on the averaged queue [RFC 2309; Floyd and Jacobson 1993].
    Red {
        /// Below this average nothing happens.
        min: Size,
        /// Above this average every packet is marked or dropped (from `max` to twice `max` gradually, if `gentle`).
        max: Size,
        /// Probability at `max`, in units of 2⁻¹⁶.
        max_probability: u32,
        /// The average's weight is 2^−`weight_shift`.
        weight_shift: u8,
        /// Rises from `max_probability` to 1 between `max` and twice `max`.
        gentle: bool,
        /// Marks ECN-capable packets instead of dropping them.
        ecn: bool,
    },
}
