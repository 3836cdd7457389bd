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
//! A bucket should hold about one entry when all is busy, and a page should be longer than the usual time from adding an
//! entry to its turn, so that few entries pass through two lists. A busy link adds its next arrival one frame's time
//! ahead, and `links` busy links of one rate turn that time into `links` entries. [`Shape::of`] therefore takes the mean
//! distance of arrivals with every link busy as the width, and at least eight buckets a page for each link.
//!
//! Invariants: every entry in `near`, `far` or `beyond` belongs to a bucket at or after `horizon`; `open` is sorted, latest
//! first, and holds all others; a page's far list is moved to `near` before any of its buckets is opened.

#![allow(clippy::cast_possible_truncation, reason = "places are masked to their level's size; nodes fit into memory")]

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A time in picoseconds and a key: pairs are unique, except for stale ones.
pub(super) type Entry = (u64, u64);

const NONE: u32 = u32::MAX;
/// Pages in the far level.
const FAR: u64 = 4_096;

/// How a wheel cuts time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shape {
    /// A bucket is 2^`width_bits` picoseconds wide.
    pub(super) width_bits: u32,
    /// A page is 2^`page_bits` buckets long.
    pub(super) page_bits: u32,
}

impl Shape {
    /// For `links` links that together carry so many full frames per second. See the module's documentation.
    pub(super) fn of(links: usize, frames_per_second: u64) -> Shape {
        let distance = 1_000_000_000_000 / frames_per_second.max(1);
        Shape {
            width_bits: distance.max(1).ilog2().clamp(4, 36),
            page_bits: (8 * links).next_power_of_two().ilog2().clamp(10, 14),
        }
    }
}

/// See the [module](self).
#[derive(Clone, Debug)]
pub(super) struct Wheel {
    shape: Shape,
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
    heads: Vec<u32>,
    occupied: Bits,
}

impl Wheel {
    pub(super) fn new(shape: Shape) -> Wheel {
        Wheel {
            shape,
            open: Vec::with_capacity(64),
            horizon: 0,
            page: 0,
            near: Level::new(1 << shape.page_bits),
            far: Level::new(FAR as usize),
            beyond: BinaryHeap::new(),
            nodes: Vec::new(),
            free: NONE,
        }
    }

    #[inline]
    pub(super) fn push(&mut self, entry: Entry) {
        if entry.0 >> self.shape.width_bits >= self.horizon {
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
            let place = self.horizon & ((1 << self.shape.page_bits) - 1);
            let in_page = self.horizon >> self.shape.page_bits == self.page;
            let bucket = if in_page { self.near.occupied.next(place as usize) } else { None };
            match bucket {
                Some(bucket) => {
                    let number = self.page << self.shape.page_bits | bucket as u64;
                    if number << self.shape.width_bits > until {
                        return None;
                    }
                    self.horizon = number + 1;
                    self.open_bucket(bucket);
                }
                None => {
                    let page = self.next_page()?;
                    if page << self.shape.page_bits << self.shape.width_bits > until {
                        return None;
                    }
                    self.turn_to(page);
                }
            }
        }
    }

    /// Puts an entry of a bucket that has not been opened into its list.
    #[inline]
    fn file(&mut self, entry: Entry) {
        let bucket = entry.0 >> self.shape.width_bits;
        let ahead = (bucket >> self.shape.page_bits) - self.page;
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
        let (level, place) = if ahead == 0 {
            (&mut self.near, bucket & ((1 << self.shape.page_bits) - 1))
        } else {
            (&mut self.far, (bucket >> self.shape.page_bits) & (FAR - 1))
        };
        let head = &mut level.heads[place as usize];
        if *head == NONE {
            level.occupied.set(place as usize);
        }
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
    fn next_page(&self) -> Option<u64> {
        let start = ((self.page + 1) & (FAR - 1)) as usize;
        let far = self.far.occupied.next(start).or_else(|| self.far.occupied.next(0));
        let far = far.map(|place| self.page + 1 + ((place as u64).wrapping_sub(start as u64) & (FAR - 1)));
        let beyond = self.beyond.peek().map(|Reverse(entry)| self.page_of(*entry));
        match (far, beyond) {
            (Some(far), Some(beyond)) => Some(far.min(beyond)),
            (far, beyond) => far.or(beyond),
        }
    }

    fn page_of(&self, entry: Entry) -> u64 {
        entry.0 >> self.shape.width_bits >> self.shape.page_bits
    }

    /// Makes `page` the current one and moves its entries to the near level.
    fn turn_to(&mut self, page: u64) {
        self.page = page;
        self.horizon = page << self.shape.page_bits;
        let place = (page & (FAR - 1)) as usize;
        if self.far.heads[place] != NONE {
            let mut node = self.far.take(place);
            while node != NONE {
                let Node { entry, next } = self.nodes[node as usize];
                self.link(node, entry.0 >> self.shape.width_bits, 0);
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
    fn new(places: usize) -> Level {
        Level { heads: vec![NONE; places], occupied: Bits::new(places) }
    }

    /// Empties a list that is not empty; its first node.
    #[inline]
    fn take(&mut self, place: usize) -> u32 {
        self.occupied.clear(place);
        std::mem::replace(&mut self.heads[place], NONE)
    }
}

/// A set of small numbers that finds its next member fast: one bit each, and a summary bit for each word.
#[derive(Clone, Debug)]
struct Bits {
    words: Vec<u64>,
    summary: Vec<u64>,
}

impl Bits {
    fn new(size: usize) -> Bits {
        let words = size.div_ceil(64);
        Bits { words: vec![0; words], summary: vec![0; words.div_ceil(64)] }
    }

    #[inline]
    fn set(&mut self, member: usize) {
        let word = member / 64;
        self.words[word] |= 1 << (member % 64);
        self.summary[word / 64] |= 1 << (word % 64);
    }

    #[inline]
    fn clear(&mut self, member: usize) {
        let word = member / 64;
        self.words[word] &= !(1 << (member % 64));
        if self.words[word] == 0 {
            self.summary[word / 64] &= !(1 << (word % 64));
        }
    }

    /// The smallest member from `from` on.
    #[inline]
    fn next(&self, from: usize) -> Option<usize> {
        let word = from / 64;
        let rest = self.words.get(word)? & (!0 << (from % 64));
        if rest != 0 {
            return Some(word * 64 + rest.trailing_zeros() as usize);
        }
        let mut mask = (!0u64 << (word % 64)) << 1;
        if word % 64 == 63 {
            mask = 0;
        }
        for summary in word / 64..self.summary.len() {
            let words = self.summary[summary] & mask;
            if words != 0 {
                let word = summary * 64 + words.trailing_zeros() as usize;
                return Some(word * 64 + self.words[word].trailing_zeros() as usize);
            }
            mask = !0;
        }
        None
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
            ops in prop::collection::vec(op(), 1..300), width_bits in 0u32..12, page_bits in 1u32..13,
        ) {
            let mut wheel = Wheel::new(Shape { width_bits, page_bits });
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
            members in prop::collection::btree_set(0usize..16_384, 0..20), from in 0usize..16_500,
        ) {
            let mut bits = Bits::new(16_384);
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
        let mut wheel = Wheel::new(Shape { width_bits: 4, page_bits: 10 });
        wheel.push((1_000_000, 1));
        assert_eq!(wheel.pop(999), None);
        assert!(wheel.horizon << 4 <= 999);
    }

    #[test]
    fn a_busy_fat_tree_gets_narrow_buckets_and_long_pages() {
        assert_eq!(Shape::of(42, 42 * 81_274), Shape { width_bits: 18, page_bits: 10 });
        assert_eq!(Shape::of(5_120, 5_120 * 812_743), Shape { width_bits: 7, page_bits: 14 });
    }
}
