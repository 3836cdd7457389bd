//! Packets in a port's queue or on its wire: one ring for each link, in pooled chunks.
//!
//! A record is written when a port accepts a packet and read when the packet arrives at the far end. In between, the
//! ring's front part is on the wire and its rear part in the queue; where the one ends and the other begins depends on
//! the time, and `Ring::settled` is a lower bound of it that its port moves on when an answer needs it.
//!
//! Rings share their memory, so that it follows what the whole network holds rather than the sum of every link's
//! maximum, and a ring that runs empty starts again on the same cache lines.
//!
//! Invariants: a ring's records have ascending times; `settled` is never before the front; chunks are either in exactly
//! one ring or free.

use crate::prefetch::prefetch;
use narrows_core::units::Time;
use std::hint::select_unpredictable;

/// Records per chunk: a power of two. An idle link keeps one chunk, a long one wastes at most two.
const CHUNK: usize = 16;
const NONE: u32 = u32::MAX;

/// A packet on its way, and when it arrives.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Record<P> {
    pub(crate) at: Time,
    pub(crate) packet: P,
}

const _: () = assert!(size_of::<Record<[u64; 4]>>() == 40, "a payload of 32 bytes makes a record of 40");

/// One link's packets, oldest first. Positions are indices into the [`Store`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ring {
    front: u32,
    settled: u32,
    back: u32,
    len: u32,
}

/// The memory of all rings.
#[derive(Clone, Debug)]
pub(crate) struct Store<P> {
    records: Vec<Record<P>>,
    /// For each chunk, the one that follows it in its ring, or in the list of free ones.
    next: Vec<u32>,
    free: u32,
}

impl Ring {
    pub(crate) const EMPTY: Ring = Ring { front: NONE, settled: NONE, back: NONE, len: 0 };

    /// Number of records.
    pub(crate) fn len(&self) -> u32 {
        self.len
    }

    /// Counts every record as settled, if `all`: selected, as which it is cannot be predicted.
    #[inline(always)]
    pub(crate) fn settle_if(&mut self, all: bool) {
        self.settled = select_unpredictable(all, self.back, self.settled);
    }

    /// Position of the record that is pushed next; `None` if the ring has not begun.
    #[inline(always)]
    pub(crate) fn back(&self) -> Option<u32> {
        (self.back != NONE).then_some(self.back)
    }

    /// Position of the oldest record, if there is one. What lies there stays until the next push into any ring.
    pub(crate) fn front(&self) -> u32 {
        self.front
    }
}

#[allow(clippy::cast_possible_truncation, reason = "2³² packets in flight would not fit into memory")]
impl<P: Copy + Default> Store<P> {
    pub(crate) fn new() -> Store<P> {
        Store { records: Vec::new(), next: Vec::new(), free: NONE }
    }

    /// Appends `record` to `ring`.
    #[inline(always)]
    pub(crate) fn push(&mut self, ring: &mut Ring, record: Record<P>) {
        let position = self.next_place(ring);
        self.records[position as usize] = record;
    }

    /// Appends the packet that lies at `position`, with a new time.
    #[inline(always)]
    pub(crate) fn push_again(&mut self, ring: &mut Ring, position: u32, at: Time) {
        let to = self.next_place(ring);
        let packet = self.records[position as usize].packet;
        self.records[to as usize] = Record { at, packet };
    }

    /// Appends all these records to `ring`.
    #[inline(always)]
    pub(crate) fn extend(&mut self, ring: &mut Ring, records: impl Iterator<Item = Record<P>>) {
        let mut own = *ring;
        for record in records {
            self.push(&mut own, record);
        }
        *ring = own;
    }

    /// The position of a new record at the ring's end.
    #[inline(always)]
    fn next_place(&mut self, ring: &mut Ring) -> u32 {
        if ring.back == NONE {
            let start = self.take_chunk() * CHUNK as u32;
            *ring = Ring { front: start, settled: start, back: start, len: 0 };
        }
        let position = ring.back;
        ring.len += 1;
        if (position + 1).is_multiple_of(CHUNK as u32) {
            let chunk = self.take_chunk();
            self.next[position as usize / CHUNK] = chunk;
            ring.back = chunk * CHUNK as u32;
        } else {
            ring.back = position + 1;
        }
        position
    }

    /// Asks for the record at a position of a ring.
    #[inline(always)]
    pub(crate) fn prefetch(&self, position: u32) {
        prefetch(&self.records, position as usize);
    }

    /// The record at a position of a ring.
    #[inline]
    pub(crate) fn record(&self, position: u32) -> &Record<P> {
        &self.records[position as usize]
    }

    /// The same, to be changed.
    #[inline]
    pub(crate) fn record_mut(&mut self, position: u32) -> &mut Record<P> {
        &mut self.records[position as usize]
    }

    /// Removes the oldest record. `unsettled` says that no record has been settled that is not gone: then the settled
    /// position moves along. An empty ring starts again at its chunk's beginning.
    ///
    /// Whether either is so is a toss-up at most links, and a wrong guess costs more than both: selected, not branched.
    #[inline(always)]
    pub(crate) fn pop(&mut self, ring: &mut Ring, unsettled: bool) {
        debug_assert!(ring.len > 0);
        let old = ring.front;
        let front = self.after(old);
        if (old + 1).is_multiple_of(CHUNK as u32) {
            self.free_chunk(old / CHUNK as u32);
        }
        ring.len -= 1;
        let settled = select_unpredictable(unsettled, front, ring.settled);
        let start = front & !(CHUNK as u32 - 1);
        let empty = ring.len == 0;
        ring.front = select_unpredictable(empty, start, front);
        ring.settled = select_unpredictable(empty, start, settled);
        ring.back = select_unpredictable(empty, start, ring.back);
    }

    /// Removes all settled records; so many are not.
    pub(crate) fn pop_settled(&mut self, ring: &mut Ring, unsettled: u32) {
        let mut chunk = ring.front / CHUNK as u32;
        while chunk != ring.settled / CHUNK as u32 {
            let next = self.next[chunk as usize];
            self.free_chunk(chunk);
            chunk = next;
        }
        (ring.front, ring.len) = (ring.settled, unsettled);
    }

    /// The first record that is not settled. Only for a ring that has one.
    #[inline]
    pub(crate) fn first_unsettled(&self, ring: &Ring) -> &Record<P> {
        &self.records[ring.settled as usize]
    }

    /// Counts the first record that is not settled as settled.
    #[inline]
    pub(crate) fn settle_one(&self, ring: &mut Ring) {
        ring.settled = self.after(ring.settled);
    }

    /// The last `number` records, oldest first: those not settled, if their number is given.
    pub(crate) fn unsettled<'a>(&'a self, ring: &Ring, number: u64) -> impl Iterator<Item = &'a Record<P>> {
        let mut position = ring.settled;
        (0..number).map(move |_| {
            let record = &self.records[position as usize];
            position = self.after(position);
            record
        })
    }

    /// Removes the last of `unsettled` records that are not settled, all but the first `keep`.
    pub(crate) fn cut(&mut self, ring: &mut Ring, unsettled: u32, keep: u32) {
        let mut end = ring.settled;
        for _ in 0..keep {
            end = self.after(end);
        }
        let (kept, last) = (end / CHUNK as u32, ring.back / CHUNK as u32);
        let mut chunk = kept;
        while chunk != last {
            let next = self.next[chunk as usize];
            if chunk != kept {
                self.free_chunk(chunk);
            }
            chunk = next;
        }
        if last != kept {
            self.free_chunk(last);
        }
        ring.back = end;
        ring.len -= unsettled - keep;
    }

    #[inline]
    fn after(&self, position: u32) -> u32 {
        if (position + 1).is_multiple_of(CHUNK as u32) {
            self.next[position as usize / CHUNK] * CHUNK as u32
        } else {
            position + 1
        }
    }

    #[inline(never)]
    fn free_chunk(&mut self, chunk: u32) {
        self.next[chunk as usize] = self.free;
        self.free = chunk;
    }

    #[inline(never)]
    fn take_chunk(&mut self) -> u32 {
        if self.free == NONE {
            return self.new_chunk();
        }
        let chunk = self.free;
        self.free = self.next[chunk as usize];
        chunk
    }

    /// A chunk that was never used. Memory is reserved by an eighth as much again, and touched only as it is used.
    fn new_chunk(&mut self) -> u32 {
        let chunks = self.next.len();
        if chunks == self.next.capacity() {
            let more = (chunks / 8).max(64);
            self.next.reserve_exact(more);
            self.records.reserve_exact(more * CHUNK);
        }
        self.next.push(NONE);
        self.records.resize((chunks + 1) * CHUNK, Record { at: Time::ZERO, packet: P::default() });
        chunks as u32
    }
}

#[cfg(test)]
#[allow(clippy::cast_possible_truncation, reason = "the test's rings are short")]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    fn index(position: usize) -> u32 {
        u32::try_from(position).expect("few records")
    }

    proptest! {
        /// Three rings in one store, against three queues of their own.
        #[test]
        fn rings_that_share_a_store_are_queues(ops in prop::collection::vec((0usize..3, 0u8..6), 1..2_000)) {
            let mut store = Store::new();
            let mut rings = [Ring::EMPTY; 3];
            let mut queues = [const { VecDeque::new() }; 3];
            let mut settled = [0; 3];
            for (turn, (ring, op)) in ops.into_iter().enumerate() {
                let (queue, settled, ring) = (&mut queues[ring], &mut settled[ring], &mut rings[ring]);
                match op {
                    0 if *settled < queue.len() => {
                        store.settle_one(ring);
                        *settled += 1;
                    }
                    1 if !queue.is_empty() => {
                        store.pop(ring, *settled == 0);
                        queue.pop_front();
                        *settled = settled.saturating_sub(1);
                    }
                    2 if turn % 50 == 0 => {
                        ring.settle_if(true);
                        *settled = queue.len();
                    }
                    3 if turn % 20 == 1 && !queue.is_empty() => {
                        store.pop_settled(ring, index(queue.len() - *settled));
                        queue.drain(..std::mem::take(settled));
                    }
                    3 if turn % 20 == 0 => {
                        let unsettled = queue.len() - *settled;
                        let keep = turn % (unsettled + 1);
                        store.cut(ring, index(unsettled), index(keep));
                        queue.truncate(*settled + keep);
                    }
                    _ => {
                        store.push(ring, Record { at: Time::from_ps(turn as u64), packet: turn });
                        queue.push_back(turn);
                    }
                }
                prop_assert_eq!(ring.len() as usize, queue.len());
                if let Some(&front) = queue.front() {
                    prop_assert_eq!(store.record(ring.front()).packet, front);
                }
                let rest = queue.len() - *settled;
                let unsettled = store.unsettled(ring, rest as u64).map(|record| record.packet);
                prop_assert!(unsettled.eq(queue.iter().copied().skip(*settled)));
            }
        }
    }
}
