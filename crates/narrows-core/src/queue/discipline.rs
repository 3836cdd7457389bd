//! Which of a port's queues sends next: first in first out, strict priority, [deficit round robin](super::drr),
//! [FQ-CoDel](super::fq_codel) or [DualPI2](super::dual_pi2).
//!
//! Deciding only: the queues are the driver's. It tells when a queue begins to wait ([`wake`](Discipline::wake)), when the
//! packet that was chosen was its last ([`rest`](Discipline::rest)) or is dropped ([`refund`](Discipline::refund)), and when
//! a queue that waits is paused or has lost all that waited ([`leave`](Discipline::leave)); one that is resumed wakes again.

use super::drr::{DeficitRoundRobin, MAX_CLASSES};
use super::dual_pi2;
use super::fq_codel::FlowQueues;
use crate::units::Bytes;

/// The law of a port's turns.
#[derive(Clone, Debug)]
pub enum Discipline {
    /// One queue for all classes.
    Fifo(StrictPriority),
    /// A queue for each class; class 0 goes first.
    Strict(StrictPriority),
    /// A queue for each class, which share by weight.
    Drr(DeficitRoundRobin),
    /// A queue for each flow, as far as a hash tells them apart, of all classes.
    FqCodel(FlowQueues),
    /// A queue for L4S packets and one for all others, of all classes.
    Dual(DeficitRoundRobin),
}

/// Queues of which the first that waits sends.
#[derive(Clone, Copy, Debug)]
pub struct StrictPriority {
    /// Bit `i` is set while queue `i` waits.
    waiting: u32,
    queues: usize,
}

impl StrictPriority {
    const fn lowest(self) -> Option<usize> {
        if self.waiting == 0 { None } else { Some(self.waiting.trailing_zeros() as usize) }
    }
}

impl Discipline {
    /// One queue.
    pub const FIFO: Discipline = Discipline::Fifo(StrictPriority { waiting: 0, queues: 1 });

    /// So many classes, each served only while all before it are empty or paused.
    ///
    /// # Panics
    /// If there are none, or more than [`MAX_CLASSES`].
    pub fn strict(classes: usize) -> Discipline {
        assert!((1..=MAX_CLASSES).contains(&classes), "a port has one to {MAX_CLASSES} classes");
        Discipline::Strict(StrictPriority { waiting: 0, queues: classes })
    }

    /// Number of queues; of those that were used, where they are flows'.
    pub const fn queues(&self) -> usize {
        match self {
            Discipline::Fifo(law) | Discipline::Strict(law) => law.queues,
            Discipline::Drr(law) | Discipline::Dual(law) => law.classes(),
            Discipline::FqCodel(law) => law.used(),
        }
    }

    /// Whether there is a queue for each service class.
    pub const fn has_classes(&self) -> bool {
        matches!(self, Discipline::Strict(_) | Discipline::Drr(_))
    }

    /// The queue of this service class, of flows with this hash, which may be one more than there were, or of packets that are
    /// L4S or not.
    ///
    /// # Panics
    /// If there are queues for classes, and none for this one.
    #[inline]
    pub fn queue_of(&mut self, class: u8, flow_hash: u32, is_l4s: bool) -> usize {
        match self {
            Discipline::Fifo(_) => 0,
            Discipline::FqCodel(law) => law.queue_of(flow_hash),
            Discipline::Dual(_) => {
                if is_l4s {
                    dual_pi2::L4S
                } else {
                    dual_pi2::CLASSIC
                }
            }
            law => {
                assert!(usize::from(class) < law.queues(), "class {class} has no queue");
                usize::from(class)
            }
        }
    }

    /// The first packet waits in `queue`, which is not paused.
    #[inline]
    pub fn wake(&mut self, queue: usize) {
        match self {
            Discipline::Fifo(law) | Discipline::Strict(law) => law.waiting |= 1 << queue,
            Discipline::Drr(law) | Discipline::Dual(law) => law.wake(queue),
            Discipline::FqCodel(law) => law.wake(queue),
        }
    }

    /// The queue whose first packet is sent now; `None` if nothing waits that may be sent. `first` tells the size of the
    /// first packet that waits in a queue. The packet goes.
    #[inline]
    pub fn choose(&mut self, first: impl Fn(usize) -> Bytes) -> Option<usize> {
        match self {
            Discipline::Fifo(law) | Discipline::Strict(law) => law.lowest(),
            Discipline::Drr(law) | Discipline::Dual(law) => law.choose(first),
            Discipline::FqCodel(law) => law.choose(first),
        }
    }

    /// The packet that was chosen last was the last of its queue.
    #[inline]
    pub fn rest(&mut self) {
        match self {
            Discipline::Fifo(law) | Discipline::Strict(law) => law.waiting &= law.waiting - 1,
            Discipline::Drr(law) | Discipline::Dual(law) => law.rest(),
            Discipline::FqCodel(law) => law.rest(),
        }
    }

    /// The packet that was chosen last, of this size, is dropped in place of being sent: it costs nothing.
    pub fn refund(&mut self, size: Bytes) {
        match self {
            Discipline::Fifo(_) | Discipline::Strict(_) => {}
            Discipline::Drr(law) | Discipline::Dual(law) => law.refund(size),
            Discipline::FqCodel(law) => law.refund(size),
        }
    }

    /// A queue that waits is paused, or what waited is dropped.
    pub fn leave(&mut self, queue: usize) {
        match self {
            Discipline::Fifo(law) | Discipline::Strict(law) => law.waiting &= !(1 << queue),
            Discipline::Drr(law) | Discipline::Dual(law) => law.leave(queue),
            Discipline::FqCodel(law) => law.leave(queue),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn size(_: usize) -> Bytes {
        Bytes::new(1_500)
    }

    #[test]
    fn the_first_class_that_waits_and_is_not_paused_sends() {
        let mut law = Discipline::strict(4);
        assert_eq!(law.choose(size), None);
        [3, 1, 2].into_iter().for_each(|class| law.wake(class));
        assert_eq!(law.choose(size), Some(1));
        law.leave(1);
        assert_eq!(law.choose(size), Some(2));
        law.rest();
        assert_eq!(law.choose(size), Some(3));
        law.wake(1);
        assert_eq!(law.choose(size), Some(1));
    }

    #[test]
    fn a_paused_class_of_a_round_robin_keeps_nothing_and_the_others_go_on() {
        let mut law = Discipline::Drr(DeficitRoundRobin::new(&[2, 1]));
        law.wake(0);
        law.wake(1);
        assert_eq!(law.choose(size), Some(0));
        law.leave(0);
        assert_eq!([law.choose(size), law.choose(size)], [Some(1), Some(1)]);
        law.wake(0);
        // Its quantum is two packets, and nothing is left from before.
        let turns = [0; 6].map(|_| law.choose(size).unwrap());
        assert_eq!(turns.iter().filter(|&&class| class == 0).count(), 4);
    }

    #[test]
    fn one_queue_has_all_classes() {
        assert_eq!([0, 7].map(|class| Discipline::FIFO.clone().queue_of(class, 9, true)), [0, 0]);
        assert_eq!(Discipline::strict(8).queue_of(7, 9, false), 7);
    }
}
