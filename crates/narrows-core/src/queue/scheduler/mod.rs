//! Schedulers: one file each, one line here. Which of a port's queues sends next.
//!
//! Deciding only: the queues are the driver's. It asks in which queue a packet waits ([`queue_of`](Scheduler::queue_of)), and
//! tells when a queue begins to wait ([`wake`](Scheduler::wake)), when the packet that was chosen was its last
//! ([`rest`](Scheduler::rest)) or is dropped ([`refund`](Scheduler::refund)), and when a queue that waits is paused or has lost
//! all that waited ([`leave`](Scheduler::leave)); one that is resumed wakes again.
//!
//! # Adding a scheduler
//! One file: its `SPEC`; a `Config` with `new`, `values`, `queues`, `aqm` and `build`; a machine that is a [`Discipline`]; its tests. Its
//! `mod` and one line in the `registry!` below. Experiments, errors, the schema, `narrows show scheduler`, the documents and the
//! port follow what these say. A case in the oracle's tests of the network holds the port to it.

use alloc::vec::Vec;

use super::AqmConfig;
use super::aqm::{Departure, Onset, Verdict};
use crate::component::{Counts, Settings, Spec, Value};
use crate::units::{Bytes, Time};

pub mod drr;
pub mod dual_pi2;
pub mod fq;
pub mod fq_codel;
pub mod strict_priority;

pub use drr::DeficitRoundRobin;
pub use dual_pi2::DualPi2;
pub use fq_codel::FlowQueues;
pub use strict_priority::StrictPriority;

/// Most service classes of one port.
pub const MAX_CLASSES: usize = Counts::MOST;

/// What has a queue of its own, and so how a port's limit is shared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Queues {
    /// Each of so many service classes: each has an equal share of the limit, and is paused by itself.
    Classes(usize),
    /// Each flow, as far as a hash tells them apart, of all classes. What is beyond the limit, which is of all together, is
    /// dropped from the head of the longest queue.
    Flows,
    /// Packets of some kinds, of all classes. What is beyond the limit, which is of all together, is refused.
    Kinds,
}

impl Queues {
    /// Number of service classes that have a queue of their own: 1 where all have the same.
    pub const fn classes(self) -> usize {
        match self {
            Queues::Classes(classes) => classes,
            Queues::Flows | Queues::Kinds => 1,
        }
    }
}

/// What marks and drops packets in a scheduler's queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aqms {
    /// The port's AQM, if it has one, in each queue.
    OfPort,
    /// Nothing, and a port has no AQM beside it.
    None,
    /// This AQM in each queue.
    Each(AqmConfig),
    /// The scheduler itself ([`Discipline::leaves`]), beyond this queue; it marks ECN-capable packets.
    Own(Onset),
}

/// What a scheduler knows of a packet that arrives.
#[derive(Clone, Copy, Debug, Default)]
pub struct Arriving {
    /// Its service class.
    pub class: u8,
    /// A hash of its flow.
    pub flow_hash: u32,
    /// ECT(1), or marked already.
    pub is_l4s: bool,
}

/// What each scheduler answers.
pub trait Discipline {
    /// Number of queues; of those that were used, where they are made as flows come.
    fn queues(&self) -> usize;

    /// Where a packet waits: a queue that there is, or one more.
    fn queue_of(&mut self, packet: &Arriving) -> usize;

    /// The first packet waits in `queue`, which is not paused.
    fn wake(&mut self, queue: usize);

    /// The queue whose first packet is sent now; `None` if nothing waits that may be sent. `first` tells the size of the
    /// first packet that waits in a queue. The packet goes.
    fn choose(&mut self, first: impl Fn(usize) -> Bytes) -> Option<usize>;

    /// The packet that was chosen last was the last of its queue.
    fn rest(&mut self);

    /// The packet that was chosen last, of this size, is dropped in place of being sent: it costs nothing.
    fn refund(&mut self, size: Bytes);

    /// A queue that waits is paused, or what waited is dropped.
    fn leave(&mut self, queue: usize);

    /// It is `now`, and what waits is about to change; `waits_since` tells when the packet came that waits first in a queue, if
    /// one does. For schedulers with an AQM of their own.
    fn advance(&mut self, _now: Time, _waits_since: impl Fn(usize) -> Option<Time>) {}

    /// What becomes of the packet that was chosen, after [`advance`](Discipline::advance). For schedulers with an AQM of their own.
    fn leaves(&mut self, _queue: usize, _departure: &Departure) -> Verdict {
        Verdict::Pass
    }
}

/// One queue for all: first in, first out.
#[derive(Clone, Copy, Debug, Default)]
pub struct Fifo {
    waits: bool,
}

impl Discipline for Fifo {
    fn queues(&self) -> usize {
        1
    }
    fn queue_of(&mut self, _packet: &Arriving) -> usize {
        0
    }
    fn wake(&mut self, _queue: usize) {
        self.waits = true;
    }
    fn choose(&mut self, _first: impl Fn(usize) -> Bytes) -> Option<usize> {
        self.waits.then_some(0)
    }
    fn rest(&mut self) {
        self.waits = false;
    }
    fn refund(&mut self, _size: Bytes) {}
    fn leave(&mut self, _queue: usize) {
        self.waits = false;
    }
}

macro_rules! registry {
    ($($module:ident :: $variant:ident $scheduler:ident),* $(,)?) => {
        /// Every scheduler's [`Spec`], in the order of the registry. [`Fifo`] is what a port has without one.
        pub const SPECS: &[Spec] = &[$($module::SPEC),*];

        /// The scheduler of a port and its parameters.
        #[derive(Clone, Debug, PartialEq, Eq)]
        #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
        #[allow(missing_docs, reason = "a variant is its scheduler's configuration")]
        pub enum SchedulerConfig {
            $($variant($module::Config),)*
        }

        impl SchedulerConfig {
            /// The scheduler called `name` with these values; `None` if there is none, a sentence if they do not go together.
            pub fn new(name: &str, settings: &Settings<'_>) -> Option<Result<SchedulerConfig, &'static str>> {
                $(if name == $module::SPEC.name {
                    return Some($module::Config::new(settings).map(SchedulerConfig::$variant));
                })*
                None
            }
            /// What the scheduler is.
            pub const fn spec(&self) -> &'static Spec {
                match self { $(SchedulerConfig::$variant(_) => &$module::SPEC,)* }
            }
            /// A value for each parameter of its [`Spec`].
            pub fn values(&self) -> Vec<Value> {
                match self { $(SchedulerConfig::$variant(config) => config.values(),)* }
            }
            /// What has a queue of its own.
            pub fn queues(&self) -> Queues {
                match self { $(SchedulerConfig::$variant(config) => config.queues(),)* }
            }
            /// What marks and drops packets in its queues.
            pub fn aqm(&self) -> Aqms {
                match self { $(SchedulerConfig::$variant(config) => config.aqm(),)* }
            }
        }

        /// The scheduler of one port. Dispatch is a `match`, so that the packet path has no indirect call.
        #[derive(Clone, Debug)]
        #[allow(missing_docs, reason = "a variant is its scheduler, held by value")]
        pub enum Scheduler {
            Fifo(Fifo),
            $($variant($scheduler),)*
        }

        impl Scheduler {
            /// The scheduler that `config` states; `seed` is of the port.
            pub fn new(config: Option<&SchedulerConfig>, seed: u64) -> Scheduler {
                match config {
                    None => Scheduler::Fifo(Fifo::default()),
                    $(Some(SchedulerConfig::$variant(config)) => Scheduler::$variant(config.build(seed)),)*
                }
            }
        }

        impl Discipline for Scheduler {
            fn queues(&self) -> usize {
                match self { Scheduler::Fifo(it) => it.queues(), $(Scheduler::$variant(it) => it.queues(),)* }
            }
            #[inline]
            fn queue_of(&mut self, packet: &Arriving) -> usize {
                match self { Scheduler::Fifo(it) => it.queue_of(packet), $(Scheduler::$variant(it) => it.queue_of(packet),)* }
            }
            #[inline]
            fn wake(&mut self, queue: usize) {
                match self { Scheduler::Fifo(it) => it.wake(queue), $(Scheduler::$variant(it) => it.wake(queue),)* }
            }
            #[inline]
            fn choose(&mut self, first: impl Fn(usize) -> Bytes) -> Option<usize> {
                match self { Scheduler::Fifo(it) => it.choose(first), $(Scheduler::$variant(it) => it.choose(first),)* }
            }
            #[inline]
            fn rest(&mut self) {
                match self { Scheduler::Fifo(it) => it.rest(), $(Scheduler::$variant(it) => it.rest(),)* }
            }
            fn refund(&mut self, size: Bytes) {
                match self { Scheduler::Fifo(it) => it.refund(size), $(Scheduler::$variant(it) => it.refund(size),)* }
            }
            fn leave(&mut self, queue: usize) {
                match self { Scheduler::Fifo(it) => it.leave(queue), $(Scheduler::$variant(it) => it.leave(queue),)* }
            }
            #[inline]
            fn advance(&mut self, now: Time, waits_since: impl Fn(usize) -> Option<Time>) {
                match self {
                    Scheduler::Fifo(it) => it.advance(now, waits_since),
                    $(Scheduler::$variant(it) => it.advance(now, waits_since),)*
                }
            }
            fn leaves(&mut self, queue: usize, departure: &Departure) -> Verdict {
                match self {
                    Scheduler::Fifo(it) => it.leaves(queue, departure),
                    $(Scheduler::$variant(it) => it.leaves(queue, departure),)*
                }
            }
        }
    };
}

registry! {
    strict_priority::StrictPriority StrictPriority,
    drr::Drr DeficitRoundRobin,
    fq::Fq FlowQueues,
    fq_codel::FqCodel FlowQueues,
    dual_pi2::DualPi2 DualPi2,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn size(_: usize) -> Bytes {
        Bytes::new(1_500)
    }

    #[test]
    fn one_queue_has_all_classes() {
        let mut scheduler = Scheduler::new(None, 0);
        let of = |class| Arriving { class, flow_hash: 9, is_l4s: true };
        assert_eq!([0, 7].map(|class| scheduler.queue_of(&of(class))), [0, 0]);
        assert_eq!(scheduler.choose(size), None);
        scheduler.wake(0);
        assert_eq!(scheduler.choose(size), Some(0));
        scheduler.rest();
        assert_eq!(scheduler.choose(size), None);
    }

    #[test]
    fn a_default_and_what_was_stated_make_the_same_scheduler() {
        for spec in SPECS {
            let values: Vec<Value> = (spec.parameters.iter())
                .map(|parameter| match (parameter.name, parameter.default) {
                    ("classes", Value::Required) => Value::Count(3),
                    ("weights", Value::Required) => Value::Counts(Counts::new(&[2, 1]).unwrap()),
                    (_, default) => default,
                })
                .collect();
            let config = SchedulerConfig::new(spec.name, &Settings::new(spec.parameters, &values)).unwrap().unwrap();
            assert_eq!((config.spec().name, config.values()), (spec.name, values));
            assert_eq!(
                Scheduler::new(Some(&config), 7).queues(),
                match config.queues() {
                    Queues::Classes(classes) => classes,
                    Queues::Flows => 0,
                    Queues::Kinds => 2,
                }
            );
        }
    }
}
