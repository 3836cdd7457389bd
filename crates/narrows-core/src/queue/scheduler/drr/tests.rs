//! Shares by weight, whatever is sent.

use super::*;
use proptest::prelude::*;
use std::vec;

/// Queues and their scheduler.
struct Port {
    scheduler: DeficitRoundRobin,
    queues: Vec<VecDeque<u64>>,
}

impl Port {
    fn new(weights: &[u16]) -> Port {
        Port { scheduler: DeficitRoundRobin::new(weights), queues: vec![VecDeque::new(); weights.len()] }
    }

    fn push(&mut self, class: usize, size: u64) {
        self.queues[class].push_back(size);
        if self.queues[class].len() == 1 {
            self.scheduler.wake(class);
        }
    }

    fn send(&mut self) -> Option<(usize, u64)> {
        let class = self.scheduler.choose(|class| Bytes::new(self.queues[class][0]))?;
        let size = self.queues[class].pop_front().unwrap();
        if self.queues[class].is_empty() {
            self.scheduler.rest();
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
    prop::collection::vec(prop_oneof![1u16..10, 1u16..=MAX_WEIGHT], 1..=MAX_CLASSES)
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

    /// Over any time in which classes wait, what two of them have sent for a unit of weight differs by a quantum and a packet:
    /// from any point on, until each has had its turn twice.
    #[test]
    fn no_class_is_ahead_by_more_than_a_quantum_and_a_packet(
        weights in prop::collection::vec(prop_oneof![1u16..10, 1u16..=MAX_WEIGHT], 2..=4),
        sizes in prop::collection::vec(20u64..=1_500, 1..50), from in 0usize..3_000)
    {
        let mut port = Port::new(&weights);
        let mut next = sizes.iter().copied().cycle();
        let mut send = || {
            for class in 0..weights.len() {
                while port.queues[class].len() < 2 {
                    port.push(class, next.next().unwrap());
                }
            }
            port.send().unwrap()
        };
        for _ in 0..from {
            send();
        }
        let largest = *sizes.iter().max().unwrap();
        let mut bytes = vec![0; weights.len()];
        let quantum = |class: usize| QUANTUM.get() * u64::from(weights[class]);
        while (0..weights.len()).any(|class| bytes[class] < 2 * quantum(class)) {
            let (class, size) = send();
            bytes[class] += size;
            for (other, &w_other) in weights.iter().enumerate() {
                // Both sides times both weights: |b_i·w_j − b_j·w_i| ≤ Q·w_i·w_j + m·(w_i + w_j).
                let (w_one, w_other) = (u64::from(weights[class]), u64::from(w_other));
                let apart = (bytes[class] * w_other).abs_diff(bytes[other] * w_one);
                let bound = QUANTUM.get() * w_one * w_other + largest * (w_one + w_other);
                prop_assert!(class == other || apart <= bound, "{:?} of {:?}", bytes, weights);
            }
        }
    }
}

#[test]
fn a_paused_class_keeps_nothing_and_the_others_go_on() {
    let size = |_: usize| Bytes::new(1_500);
    let mut scheduler = DeficitRoundRobin::new(&[2, 1]);
    scheduler.wake(0);
    scheduler.wake(1);
    assert_eq!(scheduler.choose(size), Some(0));
    scheduler.leave(0);
    assert_eq!([scheduler.choose(size), scheduler.choose(size)], [Some(1), Some(1)]);
    scheduler.wake(0);
    // Its quantum is two packets, and nothing is left from before.
    let turns = [0; 6].map(|_| scheduler.choose(size).unwrap());
    assert_eq!(turns.iter().filter(|&&class| class == 0).count(), 4);
}
