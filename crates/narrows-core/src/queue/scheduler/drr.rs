//! Deficit round robin: which of a port's classes sends next [Shreedhar 1995].
//!
//! Classes with something waiting take turns. A turn gives a class its quantum, and the class sends while what it has
//! been given covers its first packet. What is left waits for its next turn; a class that has nothing more to send leaves
//! with nothing. While all wait, class `i` has the share `w_i / Σ w` of what is sent, and what two classes `i` and `j` send
//! in any time, each divided by its weight, differs by at most `Q + m/w_i + m/w_j`, where `Q` is [`QUANTUM`] and `m` the
//! largest packet: a quantum and a packet.
//!
//! Deciding only: the queues are the driver's. It tells when a queue begins to wait ([`wake`](DeficitRoundRobin::wake))
//! and when the packet that was chosen was its last ([`rest`](DeficitRoundRobin::rest)). Bytes are IP bytes.

use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;

use super::strict_priority::class_of;
use super::{Aqms, Arriving, Discipline, MAX_CLASSES, Queues};
use crate::component::{Counts, Kind, Settings, Spec, Value, parameters};
use crate::units::Bytes;

/// What a turn gives for a weight of 1: a full packet, so that no turn passes in which nothing can be sent.
pub const QUANTUM: Bytes = Bytes::new(1_500);
/// Largest weight.
pub const MAX_WEIGHT: u16 = 1_000;

/// What experiments may choose.
pub const SPEC: Spec = Spec {
    name: "drr",
    about: "Deficit round robin: classes share the link by weight, in bytes.",
    source: "[Shreedhar 1995]",
    parameters: parameters! {
        "weights": Kind::Counts(2, 8), Value::Required, (1, MAX_WEIGHT as u64), "by class, from 0";
    },
};

/// Its parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Config {
    /// By class: 2 to 8 of them, each 1 to 1000.
    pub weights: Vec<u16>,
}

impl Config {
    pub(super) fn new(settings: &Settings<'_>) -> Result<Config, &'static str> {
        Ok(Config { weights: settings.counts("weights").list().to_vec() })
    }
    pub(super) fn values(&self) -> Vec<Value> {
        vec![Value::Counts(Counts::new(&self.weights).expect("a port has few classes"))]
    }
    pub(super) fn queues(&self) -> Queues {
        Queues::Classes(self.weights.len())
    }
    pub(super) const fn aqm(&self) -> Aqms {
        Aqms::OfPort
    }
    pub(super) fn build(&self, _seed: u64) -> DeficitRoundRobin {
        DeficitRoundRobin::new(&self.weights)
    }
}

/// The classes of one port, and whose turn it is.
#[derive(Clone, Debug)]
pub struct DeficitRoundRobin {
    /// By class.
    shares: Vec<Share>,
    /// Classes with packets that wait, in the order of their turns.
    turns: VecDeque<usize>,
    /// Whether the first of them has had its quantum.
    begun: bool,
}

/// What a class may send.
#[derive(Clone, Copy, Debug)]
struct Share {
    quantum: Bytes,
    /// Given and not sent yet.
    deficit: Bytes,
}

impl DeficitRoundRobin {
    /// Classes with these weights, each at least 1 and at most [`MAX_WEIGHT`], and none with anything to send.
    ///
    /// # Panics
    /// If there are no classes or more than [`MAX_CLASSES`], or a weight is out of range.
    pub fn new(weights: &[u16]) -> DeficitRoundRobin {
        assert!((1..=MAX_CLASSES).contains(&weights.len()), "a port has one to {MAX_CLASSES} classes");
        let share = |&weight: &u16| {
            assert!((1..=MAX_WEIGHT).contains(&weight), "a weight is 1 to {MAX_WEIGHT}");
            Share { quantum: Bytes::new(u64::from(weight) * QUANTUM.get()), deficit: Bytes::ZERO }
        };
        DeficitRoundRobin {
            shares: weights.iter().map(share).collect(),
            turns: VecDeque::with_capacity(weights.len()),
            begun: false,
        }
    }
}

impl Discipline for DeficitRoundRobin {
    fn queues(&self) -> usize {
        self.shares.len()
    }

    fn queue_of(&mut self, packet: &Arriving) -> usize {
        class_of(packet, self.shares.len())
    }

    /// Its turn comes after all others'.
    fn wake(&mut self, class: usize) {
        debug_assert!(!self.turns.contains(&class), "class {class} is awake");
        self.turns.push_back(class);
    }

    /// The packet is paid for: it must go.
    fn choose(&mut self, first: impl Fn(usize) -> Bytes) -> Option<usize> {
        loop {
            let &class = self.turns.front()?;
            let share = &mut self.shares[class];
            if !self.begun {
                share.deficit += share.quantum;
                self.begun = true;
            }
            let size = first(class);
            if size <= share.deficit {
                share.deficit -= size;
                return Some(class);
            }
            self.turns.rotate_left(1);
            self.begun = false;
        }
    }

    /// Its turn ends, and what it had left is gone.
    fn rest(&mut self) {
        let class = self.turns.pop_front().expect("a class was chosen");
        self.shares[class].deficit = Bytes::ZERO;
        self.begun = false;
    }

    fn refund(&mut self, size: Bytes) {
        let &class = self.turns.front().expect("a class was chosen");
        self.shares[class].deficit += size;
    }

    /// It takes no more turns, and as one that rests, it keeps nothing.
    fn leave(&mut self, class: usize) {
        if self.turns.front() == Some(&class) {
            self.begun = false;
        }
        self.turns.retain(|&other| other != class);
        self.shares[class].deficit = Bytes::ZERO;
    }
}

#[cfg(test)]
mod tests;
