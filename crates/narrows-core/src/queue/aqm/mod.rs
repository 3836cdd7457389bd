//! Marking laws: one file each, one line here.
//!
//! A law sees every packet that arrives at its port, before the port's limits do, and passes, marks or drops it. The
//! driver applies a mark only to a packet that the limits then let in.
//!
//! # Adding a law
//! One file with a type that has `build`, `decide` and `indifferent_up_to`, and its tests; one variant of [`AqmConfig`];
//! one line in the `registry!` below.

use super::Backlog;
use crate::rng::SmallStream;
use crate::units::{Bytes, Packets, Rate, Span, Time};

pub mod pi;
pub mod red;
pub mod threshold;

/// A size counted either in packets or in IP bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum Size {
    /// Packets.
    Packets(Packets),
    /// IP bytes.
    Bytes(Bytes),
}

impl Size {
    /// The number of packets or bytes.
    pub const fn get(self) -> u64 {
        match self {
            Size::Packets(packets) => packets.get(),
            Size::Bytes(bytes) => bytes.get(),
        }
    }
    /// `backlog`, counted in the unit of `self`.
    pub const fn counted(self, backlog: Backlog) -> u64 {
        match self {
            Size::Packets(_) => backlog.packets.get(),
            Size::Bytes(_) => backlog.bytes.get(),
        }
    }
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
        /// Never drops: what does not understand ECN passes, as it does at a threshold.
        marks_only: bool,
    },
    /// Proportional-integral control of the queue [Hollot 2001].
    Pi {
        /// q_ref: where the queue is held.
        reference: Size,
        /// Weight of the queue's distance from `reference` now, per packet or byte, in units of 2⁻³².
        a: u32,
        /// Weight of that of a period ago, at most `a`; the same units.
        b: u32,
        /// Between two computations of the probability.
        period: Span,
        /// Marks ECN-capable packets instead of dropping them.
        ecn: bool,
    },
}

/// What a law knows of its port beyond its own parameters.
#[derive(Clone, Copy, Debug)]
pub struct Context {
    /// Line rate of the port.
    pub rate: Rate,
    /// A stream of the port's own.
    pub stream: SmallStream,
}

/// A packet that has arrived and is not yet in the queue.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    /// When.
    pub now: Time,
    /// What the port holds, this packet not included. Exact.
    pub backlog: Backlog,
    /// When the last bit of the last packet left; meaningful while the backlog is empty.
    pub idle_since: Time,
    /// ECT(0), ECT(1), or marked already.
    pub ecn_capable: bool,
}

/// What becomes of an arriving packet, as far as the law is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It goes on unchanged.
    Pass,
    /// It goes on with the congestion mark. Only ever for an ECN-capable packet.
    Mark,
    /// It is discarded.
    Drop,
}

macro_rules! registry {
    ($($module:ident :: $law:ident),* $(,)?) => {
        /// Any law. Dispatch is a `match`, so that the packet path has no indirect call.
        #[derive(Clone, Debug)]
        #[allow(missing_docs, clippy::large_enum_variant, reason = "a variant is its law, held by value")]
        pub enum Aqm {
            $($law($module::$law),)*
        }

        impl Aqm {
            /// The law that `config` states.
            pub fn new(config: &AqmConfig, context: &Context) -> Aqm {
                $(if let Some(law) = $module::$law::build(config, context) {
                    return Aqm::$law(law);
                })*
                unreachable!("a law that is not in the registry: {config:?}")
            }

            /// The law's verdict on an arriving packet. Called once for each, in order.
            #[inline]
            pub fn decide(&mut self, arrival: &Arrival) -> Verdict {
                match self { $(Aqm::$law(law) => law.decide(arrival),)* }
            }

            /// While the backlog is known to be at most this, any packet passes and the law's state stays as it is:
            /// the driver need not ask. `None` for a law that must see every arrival. Never changes.
            pub fn indifferent_up_to(&self) -> Option<Backlog> {
                match self { $(Aqm::$law(law) => law.indifferent_up_to(),)* }
            }
        }
    };
}

registry! {
    threshold::Threshold,
    red::Red,
    pi::Pi,
}
