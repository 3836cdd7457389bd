//! The operations of all ranks, as columns: a million of them are a few arrays, not a million objects.
//!
//! The operations of a rank follow each other; a dependency stays within its rank. Messages match by *channel*, the triple of
//! sender, receiver and tag.

use alloc::collections::BTreeMap;
use alloc::vec;
use alloc::vec::Vec;

use crate::units::{Bytes, Span};

/// What an operation does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Computes for so long.
    Calc(Span),
    /// Sends a message of so many bytes over this channel.
    Send(Bytes, u32),
    /// Waits for the next message of this channel.
    Recv(u32),
}

/// Sender, receiver and tag of messages that match each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Channel {
    /// The rank that sends.
    pub source: u32,
    /// The rank that receives.
    pub destination: u32,
    /// The messages' tag.
    pub tag: u32,
}

/// When an operation may start, seen from one on which it depends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum After {
    /// `requires`: after its end.
    End,
    /// `irequires`: after its start.
    Start,
}

/// In `what`: a computation; a receive has this bit beside its channel's number.
const CALC: u32 = u32::MAX;
const RECV: u32 = 1 << 31;
/// In `dependants`: one that waits for the start only.
const ON_START: u32 = 1 << 31;
/// Operations of a program at most: at some 50 bytes each, a gigabyte.
pub const MAX_OPERATIONS: u32 = 20_000_000;

/// A program's operations, by number. Numbers ascend with the rank.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Schedule {
    /// By rank, and one more: the number of its first operation.
    first: Vec<u32>,
    /// By operation: [`CALC`], or its channel and which side of it.
    what: Vec<u32>,
    /// By operation: nanoseconds, or bytes; of a receive as stated.
    amount: Vec<u64>,
    /// By operation: the processor of its rank.
    cpu: Vec<u8>,
    /// By operation, and one more: where those that depend on it begin in `dependants`.
    of: Vec<u32>,
    dependants: Vec<u32>,
    channels: Vec<Channel>,
}

impl Schedule {
    /// Number of ranks.
    pub fn ranks(&self) -> u32 {
        count(self.first.len()) - 1
    }

    /// Number of operations.
    pub fn operations(&self) -> u32 {
        count(self.what.len())
    }

    /// Every channel, by number.
    pub fn channels(&self) -> &[Channel] {
        &self.channels
    }

    /// Numbers of a rank's operations.
    pub fn of_rank(&self, rank: u32) -> core::ops::Range<u32> {
        self.first[rank as usize]..self.first[rank as usize + 1]
    }

    /// The rank of an operation.
    pub fn rank(&self, operation: u32) -> u32 {
        let channel = |place: u32| &self.channels[place as usize];
        match self.what[operation as usize] {
            CALC => count(self.first.partition_point(|&first| first <= operation)) - 1,
            recv if recv & RECV != 0 => channel(recv ^ RECV).destination,
            send => channel(send).source,
        }
    }

    /// What an operation does.
    pub fn operation(&self, operation: u32) -> Operation {
        let amount = self.amount[operation as usize];
        match self.what[operation as usize] {
            CALC => Operation::Calc(Span::from_ns(amount)),
            recv if recv & RECV != 0 => Operation::Recv(recv ^ RECV),
            send => Operation::Send(Bytes::new(amount), send),
        }
    }

    /// Nanoseconds of a computation, or bytes of a message; of a receive as stated.
    pub fn amount(&self, operation: u32) -> u64 {
        self.amount[operation as usize]
    }

    /// The processor of its rank that an operation takes.
    pub fn cpu(&self, operation: u32) -> u8 {
        self.cpu[operation as usize]
    }

    /// The operations that depend on this one, and how.
    pub fn dependants(&self, operation: u32) -> impl Iterator<Item = (u32, After)> + '_ {
        let of = self.of[operation as usize] as usize..self.of[operation as usize + 1] as usize;
        let tell = |&one: &u32| (one & !ON_START, if one & ON_START == 0 { After::End } else { After::Start });
        self.dependants[of].iter().map(tell)
    }

    /// By operation: on how many others it depends.
    pub fn dependencies(&self) -> Vec<u32> {
        let mut left = vec![0; self.what.len()];
        self.dependants.iter().for_each(|&one| left[(one & !ON_START) as usize] += 1);
        left
    }

    /// The messages: source and destination rank, and size.
    pub fn messages(&self) -> impl Iterator<Item = (u32, u32, Bytes)> + '_ {
        (0..self.operations()).filter_map(|operation| match self.operation(operation) {
            Operation::Send(size, channel) => {
                let Channel { source, destination, .. } = self.channels[channel as usize];
                Some((source, destination, size))
            }
            _ => None,
        })
    }

    /// Bytes of memory that the columns take.
    pub fn memory(&self) -> usize {
        let words = self.first.capacity() + self.what.capacity() + self.of.capacity() + self.dependants.capacity();
        words * 4 + self.amount.capacity() * 8 + self.cpu.capacity() + self.channels.capacity() * 12
    }
}

/// Makes a [`Schedule`], rank after rank.
#[derive(Clone, Debug, Default)]
pub struct Builder {
    made: Schedule,
    numbers: BTreeMap<Channel, u32>,
    /// (operation, one that depends on it), the latter with [`ON_START`].
    pairs: Vec<(u32, u32)>,
    rank: u32,
}

impl Builder {
    /// What follows is of this rank: a higher one than before.
    ///
    /// # Panics
    /// If it is not.
    pub fn rank(&mut self, rank: u32) {
        let made = &mut self.made;
        assert!(made.first.len() <= rank as usize, "ranks ascend");
        made.first.resize(rank as usize + 1, count(made.what.len()));
        self.rank = rank;
    }

    fn push(&mut self, what: u32, amount: u64, cpu: u8) -> u32 {
        if self.is_full() {
            return count(self.made.what.len() - 1);
        }
        let made = &mut self.made;
        made.what.push(what);
        made.amount.push(amount);
        made.cpu.push(cpu);
        count(made.what.len() - 1)
    }

    /// Whether there are more operations than a program may have; then no more are taken.
    pub fn is_full(&self) -> bool {
        self.made.what.len() > MAX_OPERATIONS as usize
    }

    fn channel(&mut self, channel: Channel) -> u32 {
        let next = count(self.made.channels.len());
        let number = *self.numbers.entry(channel).or_insert(next);
        if number == next {
            self.made.channels.push(channel);
        }
        number
    }

    /// The rank computes so many nanoseconds; the operation's number.
    pub fn calc(&mut self, ns: u64, cpu: u8) -> u32 {
        self.push(CALC, ns, cpu)
    }

    /// The rank sends a message.
    pub fn send(&mut self, bytes: u64, destination: u32, tag: u32, cpu: u8) -> u32 {
        let channel = self.channel(Channel { source: self.rank, destination, tag });
        self.push(channel, bytes, cpu)
    }

    /// The rank receives a message.
    pub fn recv(&mut self, bytes: u64, source: u32, tag: u32, cpu: u8) -> u32 {
        let channel = self.channel(Channel { source, destination: self.rank, tag });
        self.push(channel | RECV, bytes, cpu)
    }

    /// `operation` depends on `on`, both of the same rank.
    pub fn requires(&mut self, operation: u32, on: u32, after: After) {
        if self.is_full() {
            return;
        }
        self.pairs.push((on, operation | if after == After::Start { ON_START } else { 0 }));
    }

    /// The schedule of so many ranks. Dependencies stand in the order of the operations.
    pub fn finish(self, ranks: u32) -> Schedule {
        let Builder { mut made, mut pairs, .. } = self;
        made.first.resize(ranks as usize + 1, count(made.what.len()));
        pairs.sort_unstable_by_key(|&(on, one)| (on, one & !ON_START, one));
        // One that waits for the end need not wait for the start too.
        pairs.dedup_by_key(|&mut (on, one)| (on, one & !ON_START));
        made.of = vec![0; made.what.len() + 1];
        pairs.iter().for_each(|&(on, _)| made.of[on as usize + 1] += 1);
        for place in 1..made.of.len() {
            made.of[place] += made.of[place - 1];
        }
        made.dependants = pairs.into_iter().map(|(_, one)| one).collect();
        made
    }
}

pub(super) fn count(length: usize) -> u32 {
    u32::try_from(length).expect("fewer than 2³²")
}
