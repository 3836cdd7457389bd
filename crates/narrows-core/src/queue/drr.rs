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
use alloc::vec::Vec;

use crate::units::Bytes;

/// What a turn gives for a weight of 1: a full packet, so that no turn passes in which nothing can be sent.
pub const QUANTUM: Bytes = Bytes::new(1_500);
/// Most classes of one port.
pub const MAX_CLASSES: usize = 8;
/// Largest weight.
pub const MAX_WEIGHT: u16 = 1_000;

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

    /// Number of classes.
    pub const fn classes(&self) -> usize {
        self.shares.len()
    }

    /// The first packet waits in the queue of `class`: its turn comes after all others'.
    pub fn wake(&mut self, class: usize) {
        debug_assert!(!self.turns.contains(&class), "class {class} is awake");
        self.turns.push_back(class);
    }

    /// The class whose first packet is sent now; `None` if nothing waits. `first` tells the size of the first packet that
    /// waits in a class. The packet is paid for: it must go.
    pub fn choose(&mut self, first: impl Fn(usize) -> Bytes) -> Option<usize> {
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

    /// The packet that was chosen last was the last of its class: its turn ends, and what it had left is gone.
    pub fn rest(&mut self) {
        let class = self.turns.pop_front().expect("a class was chosen");
        self.shares[class].deficit = Bytes::ZERO;
        self.begun = false;
    }

    /// The packet that was chosen last, of this size, was dropped in place of being sent.
    pub fn refund(&mut self, size: Bytes) {
        let &class = self.turns.front().expect("a class was chosen");
        self.shares[class].deficit += size;
    }

    /// A class that waits takes no more turns: it is paused. As one that rests, it keeps nothing.
    pub fn leave(&mut self, class: usize) {
        if self.turns.front() == Some(&class) {
            self.begun = false;
        }
        self.turns.retain(|&other| other != class);
        self.shares[class].deficit = Bytes::ZERO;
    }
}

#[cfg(test)]
mod tests;
