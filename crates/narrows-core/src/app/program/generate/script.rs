//! One rank's program as steps that follow each other: each begins when the one before has ended.

use alloc::vec::Vec;

use crate::app::program::schedule::{After, Builder};
use crate::units::Span;

/// The script of one rank.
pub(super) struct Script<'b> {
    builder: &'b mut Builder,
    /// The rank, and how many there are.
    pub(super) rank: u32,
    pub(super) ranks: u32,
    /// Operations of the latest step.
    step: Vec<u32>,
}

impl<'b> Script<'b> {
    pub(super) fn new(builder: &'b mut Builder, rank: u32, ranks: u32) -> Script<'b> {
        Script { builder, rank, ranks, step: Vec::new() }
    }

    /// These operations are the next step.
    fn follow(&mut self, step: Vec<u32>) {
        for &operation in &step {
            self.step.iter().for_each(|&on| self.builder.requires(operation, on, After::End));
        }
        self.step = step;
    }

    /// A step of several operations after one of several: the two meet in a computation of no time, else each of the one
    /// would depend on each of the other.
    fn meet(&mut self, next: usize) {
        if self.step.len() > 1 && next > 1 {
            let meeting = self.builder.calc(0, 0);
            self.follow(Vec::from([meeting]));
        }
    }

    /// Computes.
    pub(super) fn calc(&mut self, span: Span) {
        let operation = self.builder.calc(span.as_ns(), 0);
        self.follow(Vec::from([operation]));
    }

    /// Sends a message.
    pub(super) fn send(&mut self, to: u32, bytes: u64) {
        self.exchange([(to, bytes)], []);
    }

    /// Waits for a message.
    pub(super) fn recv(&mut self, from: u32, bytes: u64) {
        self.exchange([], [(from, bytes)]);
    }

    /// Sends to these and receives from those, all at once, and waits for all.
    pub(super) fn exchange(
        &mut self,
        to: impl IntoIterator<Item = (u32, u64)>,
        from: impl IntoIterator<Item = (u32, u64)>,
    ) {
        let (to, from): (Vec<_>, Vec<_>) = (to.into_iter().collect(), from.into_iter().collect());
        self.meet(to.len() + from.len());
        let receives: Vec<u32> = from.into_iter().map(|(rank, bytes)| self.builder.recv(bytes, rank, 0, 0)).collect();
        let sends: Vec<u32> = to.into_iter().map(|(rank, bytes)| self.builder.send(bytes, rank, 0, 0)).collect();
        if receives.len() + sends.len() > 0 {
            self.follow(receives.into_iter().chain(sends).collect());
        }
    }

    /// Exchanges messages of this size with one partner; none with itself.
    pub(super) fn swap(&mut self, partner: u32, bytes: u64) {
        if partner != self.rank {
            self.exchange([(partner, bytes)], [(partner, bytes)]);
        }
    }

    /// An all-reduce by recursive doubling, among a power of two of ranks.
    pub(super) fn all_reduce(&mut self, bytes: u64) {
        let mut distance = 1;
        while distance < self.ranks {
            self.swap(self.rank ^ distance, bytes);
            distance *= 2;
        }
    }

    /// A reduction to rank 0 over a binomial tree.
    pub(super) fn reduce(&mut self, bytes: u64) {
        let mut distance = 1;
        while distance < self.ranks {
            if self.rank & distance != 0 {
                self.send(self.rank - distance, bytes);
                return;
            }
            if self.rank + distance < self.ranks {
                self.recv(self.rank + distance, bytes);
            }
            distance *= 2;
        }
    }

    /// A broadcast from rank 0 over a binomial tree.
    pub(super) fn broadcast(&mut self, bytes: u64) {
        let mut distance = self.ranks.next_power_of_two();
        if self.rank > 0 {
            distance = 1 << self.rank.trailing_zeros();
            self.recv(self.rank - distance, bytes);
        }
        let children = core::iter::successors(Some(distance / 2), |half| Some(half / 2)).take_while(|&half| half > 0);
        let (rank, ranks) = (self.rank, self.ranks);
        self.exchange(children.map(|half| rank + half).filter(|&child| child < ranks).map(|child| (child, bytes)), []);
    }

    /// Each rank sends to each other, `bytes(source, destination)`: to the next one first, all at once.
    pub(super) fn all_to_all(&mut self, bytes: impl Fn(u32, u32) -> u64) {
        let (rank, ranks) = (self.rank, self.ranks);
        let to = (1..ranks).map(|step| (rank + step) % ranks).map(|to| (to, bytes(rank, to)));
        let from = (1..ranks).map(|step| (rank + ranks - step) % ranks).map(|from| (from, bytes(from, rank)));
        self.exchange(to, from);
    }
}
