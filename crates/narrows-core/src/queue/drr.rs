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
pub const MOST_CLASSES: usize = 8;
/// Largest weight.
pub const MOST_WEIGHT: u16 = 1_000;

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
    /// Classes with these weights, each at least 1 and at most [`MOST_WEIGHT`], and none with anything to send.
    ///
    /// # Panics
    /// If there are no classes or more than [`MOST_CLASSES`], or a weight is out of range.
    pub fn new(weights: &[u16]) -> DeficitRoundRobin {
        assert!((1..=MOST_CLASSES).contains(&weights.len()), "a port has one to {MOST_CLASSES} classes");
        let share = |&weight: &u16| {
            assert!((1..=MOST_WEIGHT).contains(&weight), "a weight is 1 to {MOST_WEIGHT}");
            Share { quantum: Bytes::new(u64::from(weight) * QUANTUM.get()), deficit: Bytes::ZERO }
        };
        DeficitRoundRobin {
            shares: weights.iter().map(share).collect(),
            turns: VecDeque::with_capacity(weights.len()),
            begun: false,
        }
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
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::vec;

    /// Queues and their scheduler.
    struct Port {
        law: DeficitRoundRobin,
        queues: Vec<VecDeque<u64>>,
    }

    impl Port {
        fn new(weights: &[u16]) -> Port {
            Port { law: DeficitRoundRobin::new(weights), queues: vec![VecDeque::new(); weights.len()] }
        }

        fn push(&mut self, class: usize, size: u64) {
            self.queues[class].push_back(size);
            if self.queues[class].len() == 1 {
                self.law.wake(class);
            }
        }

        fn send(&mut self) -> Option<(usize, u64)> {
            let class = self.law.choose(|class| Bytes::new(self.queues[class][0]))?;
            let size = self.queues[class].pop_front().unwrap();
            if self.queues[class].is_empty() {
                self.law.rest();
            }
            Some((class, size))
        }
    }

    #[test]
    fn classes_that_all_wait_share_by_weight() {
        let weights = [5, 1, 3];
        let mut port = Port::new(&weights);
        let sizes = [1_500, 64, 700];
        let mut sent = [0; 3];
        for _ in 0..200_000 {
            for (class, size) in sizes.into_iter().enumerate() {
                while port.queues[class].len() < 2 {
                    port.push(class, size);
                }
            }
            let (class, size) = port.send().unwrap();
            sent[class] += size;
        }
        let all: u64 = sent.iter().sum();
        for (sent, weight) in sent.into_iter().zip(weights) {
            let (share, due) = (sent as f64 / all as f64, f64::from(weight) / 9.0);
            assert!((share / due - 1.0).abs() < 1e-3, "{share} of {due}");
        }
    }

    #[test]
    fn what_a_turn_leaves_counts_in_the_next() {
        // 600 are left of the first turn of class 0, which take its second packet in the next; class 1 waits through a turn
        // for a packet beyond its quantum, and has 1000 left for its second.
        let mut port = Port::new(&[1, 1, 1]);
        for (class, sizes) in [(0, [900, 1_600]), (1, [2_000, 1_000]), (2, [500, 1_100])] {
            for size in sizes {
                port.push(class, size);
            }
        }
        let order: Vec<(usize, u64)> = core::iter::from_fn(|| port.send()).collect();
        assert_eq!(order, [(0, 900), (2, 500), (0, 1_600), (1, 2_000), (1, 1_000), (2, 1_100)]);
    }

    #[test]
    fn who_rests_saves_nothing() {
        let mut port = Port::new(&[9, 1]);
        port.push(0, 100);
        assert_eq!(port.send(), Some((0, 100)));
        // Not 13 400 bytes and a quantum: 13 500, which is nine packets.
        for _ in 0..20 {
            port.push(0, 1_500);
            port.push(1, 1_500);
        }
        let order: Vec<usize> = (0..10).map(|_| port.send().unwrap().0).collect();
        assert_eq!(order, [0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
    }

    fn weights() -> impl Strategy<Value = Vec<u16>> {
        prop::collection::vec(prop_oneof![1u16..10, 1u16..=MOST_WEIGHT], 1..=MOST_CLASSES)
    }

    proptest! {
        /// Packets of one class go in their order by the queues' nature; here: whatever waits is sent, and by nobody else.
        #[test]
        fn something_is_sent_while_anything_waits(weights in weights(),
            ops in prop::collection::vec((any::<bool>(), any::<usize>(), 20u64..65_536), 1..500))
        {
            let mut port = Port::new(&weights);
            for (push, class, size) in ops {
                if push {
                    port.push(class % weights.len(), size);
                } else {
                    let waiting: usize = port.queues.iter().map(VecDeque::len).sum();
                    prop_assert_eq!(port.send().is_some(), waiting > 0);
                    prop_assert_eq!(port.queues.iter().map(VecDeque::len).sum::<usize>(), waiting.saturating_sub(1));
                }
            }
        }

        /// Over any time in which two classes wait, what each has sent for a unit of weight differs by a quantum and a packet.
        #[test]
        fn no_class_is_ahead_by_more_than_a_quantum_and_a_packet(weights in weights(),
            sizes in prop::collection::vec(20u64..=1_500, 1..50), from in 0usize..300, sent in 1usize..300)
        {
            let mut port = Port::new(&weights);
            let mut next = sizes.iter().copied().cycle();
            let mut fill = |port: &mut Port| for class in 0..weights.len() {
                while port.queues[class].len() < 2 {
                    port.push(class, next.next().unwrap());
                }
            };
            let mut bytes = vec![0; weights.len()];
            for step in 0..from + sent {
                fill(&mut port);
                let (class, size) = port.send().unwrap();
                if step >= from {
                    bytes[class] += size;
                }
            }
            let largest = *sizes.iter().max().unwrap();
            for (one, &w_one) in weights.iter().enumerate() {
                for (other, &w_other) in weights.iter().enumerate() {
                    // Both sides times both weights: |b_i·w_j − b_j·w_i| ≤ Q·w_i·w_j + m·(w_i + w_j).
                    let (w_one, w_other) = (u64::from(w_one), u64::from(w_other));
                    let apart = (bytes[one] * w_other).abs_diff(bytes[other] * w_one);
                    let bound = QUANTUM.get() * w_one * w_other + largest * (w_one + w_other);
                    prop_assert!(one == other || apart <= bound, "{:?} of {:?}", bytes, weights);
                }
            }
        }
    }
}
