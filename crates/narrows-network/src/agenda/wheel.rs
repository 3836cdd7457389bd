//! The pending set: a two-level timing wheel with a heap for what is far away.
//!
//! Time is cut into narrow buckets and those into pages. Entries of the current page lie in the *near* level by bucket,
//! entries of later pages in the *far* level by page, the rest in the heap *beyond*. Lists are unsorted; a bucket is
//! sorted when it is opened, by (time, key), and what is then added to an opened stretch of time is put into its place.
//! The order of entries therefore never depends on the structure, only the speed does.
//!
//! [`Wheel::pop`] opens no bucket that begins after `until`: what its caller adds next may be due before it.
//!
//! # Width
//! What costs is touching many lists and moving entries from page to page; a few entries in a bucket cost little to sort.
//! A busy link adds its next arrival one frame's time ahead, and `n` busy links of one rate turn that time into `n`
//! entries: so [`width_bits`] takes a few times the mean distance of arrivals with every link busy. In practice most
//! links are not, and buckets hold about one entry.
//!
//! Invariants: every entry in `near`, `far` or `beyond` belongs to a bucket at or after `horizon`; `open` is sorted, latest
//! first, and holds all others; a page's far list is moved to `near` before any of its buckets is opened.

#![allow(clippy::cast_possible_truncation, reason = "places are masked to their level's size; nodes fit into memory")]

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A time in picoseconds and a key: pairs are unique, except for stale ones.
pub(super) type Entry = (u64, u64);

const NONE: u32 = u32::MAX;
/// Lists in a level, buckets in a page, pages in the far level: the square of 64, so that one word tells which words of
/// a [`Bits`] to look at.
const PLACES: usize = 4_096;
const PAGE_BITS: u32 = PLACES.ilog2();
const FAR: u64 = PLACES as u64;

/// The width of a bucket, as a power of two in picoseconds, where links together carry so many full frames per second.
/// See the module's documentation.
pub(super) fn width_bits(frames_per_second: u64) -> u32 {
    let distance = 1_000_000_000_000 / frames_per_second.max(1);
    (distance.max(1).ilog2() + 3).clamp(4, 36)
}

/// See the [module](self).
#[derive(Clone, Debug)]
pub(super) struct Wheel {
    /// A bucket is 2^`width_bits` picoseconds wide.
    width_bits: u32,
    open: Vec<Entry>,
    /// The first bucket that has not been opened.
    horizon: u64,
    page: u64,
    near: Level,
    far: Level,
    beyond: BinaryHeap<Reverse<Entry>>,
    nodes: Vec<Node>,
    free: u32,
}

#[derive(Clone, Copy, Debug)]
struct Node {
    entry: Entry,
    next: u32,
}

/// Lists of nodes, and which of them are not empty.
#[derive(Clone, Debug)]
struct Level {
    heads: Box<[u32; PLACES]>,
    occupied: Bits,
}

impl Wheel {
    pub(super) fn new(width_bits: u32) -> Wheel {
        Wheel {
            width_bits,
            open: Vec::with_capacity(64),
            horizon: 0,
            page: 0,
            near: Level::new(),
            far: Level::new(),
            beyond: BinaryHeap::new(),
            nodes: Vec::new(),
            free: NONE,
        }
    }

    #[inline]
    pub(super) fn push(&mut self, entry: Entry) {
        if entry.0 >> self.width_bits >= self.horizon {
            self.file(entry);
        } else {
            let place = self.open.iter().rposition(|later| *later > entry).map_or(0, |later| later + 1);
            self.open.insert(place, entry);
        }
    }

    /// The first entry, unless it is after `until`.
    #[inline]
    pub(super) fn pop(&mut self, until: u64) -> Option<Entry> {
        loop {
            if let Some(&first) = self.open.last() {
                if first.0 > until {
                    return None;
                }
                self.open.pop();
                return Some(first);
            }
            if !self.open_next(until) {
                return None;
            }
        }
    }

    /// Opens the next bucket with entries, unless it begins after `until`.
    #[inline]
    fn open_next(&mut self, until: u64) -> bool {
        loop {
            let in_page = self.horizon >> PAGE_BITS == self.page;
            let bucket = if in_page { self.near.occupied.next(self.horizon as usize % PLACES) } else { None };
            if let Some(bucket) = bucket {
                let number = self.page << PAGE_BITS | bucket as u64;
                if number << self.width_bits > until {
                    return false;
                }
                self.horizon = number + 1;
                self.open_bucket(bucket);
                return true;
            }
            match self.next_page() {
                Some(page) if page << PAGE_BITS << self.width_bits <= until => self.turn_to(page),
                _ => return false,
            }
        }
    }

    /// Puts an entry of a bucket that has not been opened into its list.
    #[inline]
    fn file(&mut self, entry: Entry) {
        let bucket = entry.0 >> self.width_bits;
        let ahead = (bucket >> PAGE_BITS) - self.page;
        if ahead >= FAR {
            self.beyond.push(Reverse(entry));
            return;
        }
        let node = self.free;
        let node = if node == NONE {
            self.nodes.push(Node { entry, next: NONE });
            self.nodes.len() as u32 - 1
        } else {
            self.free = self.nodes[node as usize].next;
            self.nodes[node as usize].entry = entry;
            node
        };
        self.link(node, bucket, ahead);
    }

    #[inline]
    fn link(&mut self, node: u32, bucket: u64, ahead: u64) {
        let (level, place) = if ahead == 0 { (&mut self.near, bucket) } else { (&mut self.far, bucket >> PAGE_BITS) };
        let place = place as usize % PLACES;
        let head = &mut level.heads[place];
        level.occupied.set(place);
        self.nodes[node as usize].next = *head;
        *head = node;
    }

    #[inline]
    fn open_bucket(&mut self, bucket: usize) {
        let mut node = self.near.take(bucket);
        let first = node;
        loop {
            let Node { entry, next } = self.nodes[node as usize];
            self.open.push(entry);
            if next == NONE {
                break;
            }
            node = next;
        }
        self.nodes[node as usize].next = self.free;
        self.free = first;
        if self.open.len() > 1 {
            self.open.sort_unstable_by(|a, b| b.cmp(a));
        }
    }

    /// The next page with entries.
    #[inline(never)]
    fn next_page(&self) -> Option<u64> {
        let start = (self.page + 1) as usize % PLACES;
        let far = self.far.occupied.next(start).or_else(|| self.far.occupied.next(0));
        let far = far.map(|place| self.page + 1 + ((place as u64).wrapping_sub(start as u64) & (FAR - 1)));
        let beyond = self.beyond.peek().map(|Reverse(entry)| self.page_of(*entry));
        match (far, beyond) {
            (Some(far), Some(beyond)) => Some(far.min(beyond)),
            (far, beyond) => far.or(beyond),
        }
    }

    fn page_of(&self, entry: Entry) -> u64 {
        entry.0 >> self.width_bits >> PAGE_BITS
    }

    /// Makes `page` the current one and moves its entries to the near level.
    #[inline(never)]
    fn turn_to(&mut self, page: u64) {
        self.page = page;
        self.horizon = page << PAGE_BITS;
        let place = page as usize % PLACES;
        if self.far.heads[place] != NONE {
            let mut node = self.far.take(place);
            while node != NONE {
                let Node { entry, next } = self.nodes[node as usize];
                self.link(node, entry.0 >> self.width_bits, 0);
                node = next;
            }
        }
        while let Some(&Reverse(entry)) = self.beyond.peek() {
            if self.page_of(entry) - page >= FAR {
                break;
            }
            self.beyond.pop();
            self.file(entry);
        }
    }
}

impl Level {
    fn new() -> Level {
        Level { heads: Box::new([NONE; PLACES]), occupied: Bits::new() }
    }

    /// Empties a list that is not empty; its first node.
    #[inline]
    fn take(&mut self, place: usize) -> u32 {
        self.occupied.clear(place);
        std::mem::replace(&mut self.heads[place], NONE)
    }
}

/// A set of numbers below [`PLACES`] that finds its next member fast: one bit each, and one for each word of these.
#[derive(Clone, Debug)]
struct Bits {
    words: [u64; PLACES / 64],
    summary: u64,
}

impl Bits {
    fn new() -> Bits {
        Bits { words: [0; PLACES / 64], summary: 0 }
    }

    #[inline]
    fn set(&mut self, member: usize) {
        self.words[member / 64] |= 1 << (member % 64);
        self.summary |= 1 << (member / 64);
    }

    #[inline]
    fn clear(&mut self, member: usize) {
        let word = &mut self.words[member / 64];
        *word &= !(1 << (member % 64));
        if *word == 0 {
            self.summary &= !(1 << (member / 64));
        }
    }

    /// The smallest member from `from` on.
    #[inline]
    fn next(&self, from: usize) -> Option<usize> {
        let word = from / 64;
        let rest = self.words[word] & (!0 << (from % 64));
        if rest != 0 {
            return Some(word * 64 + rest.trailing_zeros() as usize);
        }
        let words = self.summary & (!1 << word);
        if words == 0 {
            return None;
        }
        let word = words.trailing_zeros() as usize % 64;
        Some(word * 64 + self.words[word].trailing_zeros() as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// What a caller does: adds an entry so far after the present, or takes entries up to so far after it.
    #[derive(Clone, Debug)]
    enum Op {
        Push { ahead: u64, key: u64 },
        Pop { window: u64, most: usize },
    }

    fn ahead() -> impl Strategy<Value = u64> {
        // Ties, the same bucket, the same page, the far level, and beyond.
        prop_oneof![Just(0), 0u64..4, 0u64..200, 0u64..100_000, 0u64..50_000_000, 0u64..10_000_000_000]
    }

    fn op() -> impl Strategy<Value = Op> {
        prop_oneof![
            3 => (ahead(), 0u64..50).prop_map(|(ahead, key)| Op::Push { ahead, key }),
            2 => (ahead(), 1usize..8).prop_map(|(window, most)| Op::Pop { window, most }),
        ]
    }

    proptest! {
        #[test]
        fn the_wheel_pops_what_a_heap_pops(
            ops in prop::collection::vec(op(), 1..300), width_bits in 0u32..16,
        ) {
            let mut wheel = Wheel::new(width_bits);
            let mut heap = BinaryHeap::new();
            let mut now = 0;
            for op in ops {
                match op {
                    Op::Push { ahead, key } => {
                        wheel.push((now + ahead, key));
                        heap.push(Reverse((now + ahead, key)));
                    }
                    Op::Pop { window, most } => {
                        let until = now + window;
                        for _ in 0..most {
                            let due = heap.peek().is_some_and(|Reverse(entry)| entry.0 <= until);
                            let expected = if due { heap.pop().map(|Reverse(entry)| entry) } else { None };
                            prop_assert_eq!(wheel.pop(until), expected);
                            now = expected.map_or(until, |entry| entry.0);
                            if expected.is_none() {
                                break;
                            }
                        }
                    }
                }
            }
            while let Some(Reverse(entry)) = heap.pop() {
                prop_assert_eq!(wheel.pop(u64::MAX), Some(entry));
            }
            prop_assert_eq!(wheel.pop(u64::MAX), None);
        }

        #[test]
        fn the_next_member_is_the_smallest_from_there_on(
            members in prop::collection::btree_set(0..PLACES, 0..20), from in 0..PLACES,
        ) {
            let mut bits = Bits::new();
            for &member in &members {
                bits.set(member);
            }
            prop_assert_eq!(bits.next(from), members.range(from..).next().copied());
            for &member in members.range(..from) {
                bits.clear(member);
            }
            prop_assert_eq!(bits.next(0), members.range(from..).next().copied());
        }
    }

    #[test]
    fn no_bucket_beyond_until_is_opened() {
        let mut wheel = Wheel::new(4);
        wheel.push((1_000_000, 1));
        assert_eq!(wheel.pop(999), None);
        assert!(wheel.horizon << 4 <= 999);
    }

    #[test]
    fn a_bucket_is_a_few_arrivals_wide() {
        // 42 links at 1 Gbit/s: an arrival each 293 ns if all are busy. 6,144 links at 10 Gbit/s: five each ns.
        assert_eq!(width_bits(42 * 81_274), 21);
        assert_eq!(width_bits(6_144 * 812_743), 10);
    }
}
