//! AQMs: one file each, one line here.
//!
//! An AQM sees every packet that arrives at its port, before the port's limits do, and passes, marks or drops it. The
//! driver applies a mark only to a packet that the limits then let in. Some AQMs judge a packet when it leaves, too
//! ([`codel`]): their ports are served packet by packet.
//!
//! # Adding an AQM
//! One file: its `SPEC`; a `Config` with `new`, `values`, `marks`, `draws`, `onset` and `judges_departures`; a type with `build`, `decide`,
//! `indifferent_up_to` and `leaves`; its tests. Its `mod` and one line in the `registry!` below. Experiments, errors, the schema, `narrows show aqm` and the
//! documents follow the `SPEC`. Experiments are held to the ranges of the `SPEC`; `Config::new` judges only what its values
//! are to each other, and need not judge a single one again.
//!
//! An AQM has no timer. What happens at times of its own it makes up for when a packet arrives ([`pi`], [`pie`]): since the last
//! arrival the queue only drained. A call's work stays bounded, however long a port was idle.

use alloc::vec::Vec;

use super::Backlog;
use crate::component::{Settings, Spec, Value};
use crate::rng::SmallStream;
use crate::units::{Bytes, Packets, Rate, Span, Time};

pub mod codel;
pub mod phantom;
pub mod pi;
pub mod pie;
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
    /// As a parameter's value.
    pub const fn value(self) -> Value {
        match self {
            Size::Packets(packets) => Value::Packets(packets),
            Size::Bytes(bytes) => Value::Bytes(bytes),
        }
    }
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

/// A queue up to which an AQM leaves packets alone, at least in the long run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Onset {
    /// Of this size.
    Queue(Size),
    /// In which packets wait so long.
    Delay(Span),
}

/// What an AQM knows of its port beyond its own parameters.
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
    /// IP bytes.
    pub size: Bytes,
    /// What the port holds, this packet not included. Exact.
    pub backlog: Backlog,
    /// When the last bit of the last packet left; meaningful while the backlog is empty.
    pub idle_since: Time,
    /// ECT(0), ECT(1), or marked already.
    pub ecn_capable: bool,
}

/// A packet whose service is about to begin.
#[derive(Clone, Copy, Debug)]
pub struct Departure {
    /// When.
    pub now: Time,
    /// How long it has waited.
    pub sojourn: Span,
    /// IP bytes.
    pub size: Bytes,
    /// What remains in its queue, this packet not included. Exact.
    pub backlog: Backlog,
    /// ECT(0), ECT(1), or marked already.
    pub ecn_capable: bool,
}

/// What becomes of a packet, as far as the AQM is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It goes on unchanged.
    Pass,
    /// It goes on with the congestion mark. Only ever for an ECN-capable packet.
    Mark,
    /// It is discarded.
    Drop,
}

/// What an AQM that judges arrivals alone says of departures.
trait JudgesArrivals {
    fn leaves(&mut self, _departure: &Departure) -> Verdict {
        Verdict::Pass
    }
}

macro_rules! registry {
    ($($module:ident :: $aqm:ident),* $(,)?) => {
        /// Every AQM's [`Spec`], in the order of the registry.
        pub const SPECS: &[Spec] = &[$($module::SPEC),*];

        /// The AQM of a port and its parameters.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
        #[allow(missing_docs, reason = "a variant is its AQM's configuration")]
        pub enum AqmConfig {
            $($aqm($module::Config),)*
        }

        impl AqmConfig {
            /// The AQM called `name` with these values; `None` if there is none, a sentence if they do not go together.
            pub fn new(name: &str, settings: &Settings<'_>) -> Option<Result<AqmConfig, &'static str>> {
                $(if name == $module::SPEC.name {
                    return Some($module::Config::new(settings).map(AqmConfig::$aqm));
                })*
                None
            }
            /// What the AQM is.
            pub const fn spec(&self) -> &'static Spec {
                match self { $(AqmConfig::$aqm(_) => &$module::SPEC,)* }
            }
            /// A value for each parameter of its [`Spec`].
            pub fn values(&self) -> Vec<Value> {
                match self { $(AqmConfig::$aqm(config) => config.values(),)* }
            }
            /// Whether it marks packets that are ECN-capable.
            pub const fn marks(&self) -> bool {
                match self { $(AqmConfig::$aqm(config) => config.marks(),)* }
            }
            /// Whether it draws random numbers.
            pub const fn draws(&self) -> bool {
                match self { $(AqmConfig::$aqm(config) => config.draws(),)* }
            }
            /// The queue beyond which it acts.
            pub const fn onset(&self) -> Onset {
                match self { $(AqmConfig::$aqm(config) => config.onset(),)* }
            }
            /// Whether it judges packets that leave.
            pub const fn judges_departures(&self) -> bool {
                match self { $(AqmConfig::$aqm(config) => config.judges_departures(),)* }
            }
        }

        /// Any AQM. Dispatch is a `match`, so that the packet path has no indirect call.
        #[derive(Clone, Debug)]
        #[allow(missing_docs, clippy::large_enum_variant, reason = "a variant is its AQM, held by value")]
        pub enum Aqm {
            $($aqm($module::$aqm),)*
        }

        impl Aqm {
            /// The AQM that `config` states.
            pub fn new(config: &AqmConfig, context: &Context) -> Aqm {
                match config { $(AqmConfig::$aqm(config) => Aqm::$aqm($module::$aqm::build(config, context)),)* }
            }

            /// The AQM's verdict on an arriving packet. Called once for each, in order.
            #[inline]
            pub fn decide(&mut self, arrival: &Arrival) -> Verdict {
                match self { $(Aqm::$aqm(aqm) => aqm.decide(arrival),)* }
            }

            /// The AQM's verdict on the packet that is about to leave; asked again of the next one if it drops it.
            pub fn leaves(&mut self, departure: &Departure) -> Verdict {
                match self { $(Aqm::$aqm(aqm) => aqm.leaves(departure),)* }
            }

            /// While the backlog is known to be at most this, any packet passes and the AQM's state stays as it is:
            /// the driver need not ask. `None` for an AQM that must see every arrival. Never changes.
            pub fn indifferent_up_to(&self) -> Option<Backlog> {
                match self { $(Aqm::$aqm(aqm) => aqm.indifferent_up_to(),)* }
            }
        }
    };
}

registry! {
    threshold::Threshold,
    red::Red,
    pi::Pi,
    pie::Pie,
    codel::Codel,
    phantom::Phantom,
}
