//! The pending set: a two-level timing wheel with a heap for what is far away.
//!
//! Time is cut into narrow buckets and those into pages. The *near* level has a list for each of the next buckets, a page's
//! number of them: a window that moves along. Later entries lie in the *far* level by page, the rest in the heap *beyond*.
//! Lists are unsorted; the first of a bucket's few entries is looked for when it is wanted, by (time, key), and only a bucket
//! that turns out to be crowded is sorted. The order of entries therefore never depends on the structure, only the speed does.
//!
//! A link has at most one entry, and it keeps its place in the arena for good: what a busy link costs is a time written and
//! two list heads. Other entries take arena places from a free list.
//!
//! [`Wheel::pop`] passes no bucket that begins after `until`: what its caller adds next may be due before it.
//!
//! # Width
//! A busy link adds its next arrival one frame's time ahead, and `n` busy links of one rate turn that time into `n`
//! entries: [`width_bits`] takes one to two times the mean distance of arrivals with every link busy. In practice most
//! links are not, and most buckets are empty. That is well: passing an empty bucket takes a few instructions, choosing
//! among several entries a branch that nobody can predict.
//!
//! Invariants: every entry in `near` belongs to one of the [`PLACES`] buckets at and after `base`, the first of them to bucket
//! `first` if that is known; every entry in `far` or `beyond` to a page that begins later, at `turn_at` or after it; `open` is
//! sorted, latest first, and holds all others; a page's far list is moved to `near` before any of its buckets is looked at;
//! `near_until` is `turn_at` while nothing is open, else 0.

#![allow(
    clippy::cast_possible_truncation,
    reason = "places are masked to their level's size; the arena fits into memory"
)]

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A time in picoseconds and a key: pairs are unique, except for stale ones.
pub(super) type Entry = (u64, u64);

const NONE: u32 = u32::MAX;
const NEVER: u64 = u64::MAX;
/// Lists in a level, buckets in a page, pages in the far level. On fat-trees of 1,024 hosts a page is four hops of full frames.
const PLACES: usize = 16_384;
const PAGE_BITS: u32 = PLACES.ilog2();
const FAR: u64 = PLACES as u64;
/// Entries of one bucket among which the first is looked for each time; more are sorted.
const CROWD: u32 = 8;

/// The width of a bucket, as a power of two in picoseconds, where links together carry so many full frames per second.
/// See the module's documentation.
pub(super) fn width_bits(frames_per_second: u64) -> u32 {
    let distance = 1_000_000_000_000 / frames_per_second.max(1);
    (distance.max(1).ilog2() + 1).clamp(4, 36)
}

/// See the [module](self).
#[derive(Clone, Debug)]
pub(super) struct Wheel {
    /// A bucket is 2^`width_bits` picoseconds wide.
    width_bits: u32,
    /// Places of the arena that belong to links.
    links: u32,
    /// The first bucket that may have entries in `near`.
    base: u64,
    /// The first that has, as last looked for, or 0 where that is not known; [`NEVER`] for none.
    first: u64,
    /// The first bucket of the first page with entries in `far` or `beyond`; [`NEVER`] for none.
    turn_at: u64,
    /// The same, or 0 while something is open: up to here what comes first is in `near`.
    near_until: u64,
    free: u32,
    nodes: Vec<Node>,
    /// By node: what decides between equal times.
    keys: Vec<u64>,
    near: Level,
    open: Vec<(Entry, u32)>,
    far: Level,
    beyond: BinaryHeap<Reverse<(u64, u32)>>,
}

#[derive(Clone, Copy, Debug)]
struct Node {
    time: u64,
    next: u32,
    /// Of a link's entry: where its first packet lies, to be asked for before its port is read.
    front: u32,
}

/// What [`Wheel::pop`] finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Popped {
    /// The entry of this link.
    Link(u32),
    /// The entry with this key.
    Other(u64),
}

/// Lists of nodes, and which of them are not empty.
#[derive(Clone, Debug)]
struct Level {
    heads: Box<[u32; PLACES]>,
    occupied: Bits,
}

impl Wheel {
    /// An empty wheel. The first arena places are for links, with these keys.
    pub(super) fn new(width_bits: u32, link_keys: impl Iterator<Item = u64>) -> Wheel {
        let keys: Vec<u64> = link_keys.collect();
        Wheel {
            width_bits,
            links: keys.len() as u32,
            open: Vec::with_capacity(64),
            base: 0,
            first: 0,
            turn_at: NEVER,
            near_until: NEVER,
            near: Level::new(),
            far: Level::new(),
            beyond: BinaryHeap::new(),
            nodes: vec![Node { time: 0, next: NONE, front: NONE }; keys.len()],
            keys,
            free: NONE,
        }
    }

    /// Adds the entry of a link that has none. `front` is where its first packet lies. `GUESSED` as for [`pop`](Self::pop).
    #[inline(always)]
    pub(super) fn push_link<const GUESSED: bool>(&mut self, link: u32, time: u64, front: u32) {
        let node = &mut self.nodes[link as usize];
        if GUESSED {
            node.front = front;
        }
        let bucket = time >> self.width_bits;
        if bucket.wrapping_sub(self.base) < PLACES as u64 {
            (node.time, node.next) = (time, self.near.put(bucket as usize % PLACES, link));
            if GUESSED {
                self.note_filed(bucket);
            }
        } else {
            self.file_elsewhere(link, time);
        }
    }

    /// Adds an entry of anything else.
    #[inline]
    pub(super) fn push(&mut self, (time, key): Entry) {
        let mut node = self.free;
        if node == NONE {
            node = self.nodes.len() as u32;
            self.nodes.push(Node { time, next: NONE, front: NONE });
            self.keys.push(key);
        } else {
            self.free = self.nodes[node as usize].next;
            self.keys[node as usize] = key;
        }
        self.file(node, time);
    }

    /// The first entry, unless it is after `until`. `GUESSED`: it may be [known](Self::probably_next) where to look.
    #[inline(always)]
    pub(super) fn pop<const GUESSED: bool>(&mut self, until: u64) -> Option<(u64, Popped)> {
        let (time, node) = self.pop_node::<GUESSED>(until)?;
        Some((time, self.popped(node)))
    }

    /// The same, as its node.
    #[inline(always)]
    fn pop_node<const GUESSED: bool>(&mut self, until: u64) -> Option<(u64, u32)> {
        loop {
            let (bucket, place) = match self.first {
                first if GUESSED && first > 0 => (first, first as usize % PLACES),
                _ => self.look_for_first(),
            };
            if bucket >= self.near_until {
                if !self.open.is_empty() {
                    let node = self.pop_open(until)?;
                    return Some((self.nodes[node as usize].time, node));
                }
                if self.turn_page(until) {
                    continue;
                }
                return None;
            }
            let first = self.near.heads[place];
            let Node { time, next, .. } = self.nodes[first as usize];
            if next == NONE {
                if time > until {
                    return None;
                }
                self.near.take(place);
                self.base = bucket;
                if GUESSED {
                    self.first = 0;
                }
                return Some((time, first));
            }
            let Node { time: other, next: rest, .. } = self.nodes[next as usize];
            if rest == NONE && time != other {
                let (found, left) = if other < time { (next, first) } else { (first, next) };
                let time = time.min(other);
                if time > until {
                    return None;
                }
                self.nodes[left as usize].next = NONE;
                self.near.heads[place] = left;
                self.base = bucket;
                return Some((time, found));
            }
            let node = self.pop_of_several(bucket, until)?;
            return Some((self.nodes[node as usize].time, node));
        }
    }

    /// The first of a bucket with several entries, unless it is after `until`. If there are many they are sorted.
    #[inline(never)]
    fn pop_of_several(&mut self, bucket: u64, until: u64) -> Option<u32> {
        let place = bucket as usize % PLACES;
        let (mut first, mut before_first) = (self.near.heads[place], NONE);
        let Node { time: mut best, next: mut after, .. } = self.nodes[first as usize];
        let (mut before, mut node) = (first, after);
        let mut number = 1;
        while node != NONE {
            let Node { time, next, .. } = self.nodes[node as usize];
            if time < best || time == best && self.keys[node as usize] < self.keys[first as usize] {
                (best, first, before_first, after) = (time, node, before, next);
            }
            number += 1;
            if number > CROWD {
                if bucket << self.width_bits > until {
                    return None;
                }
                self.sort(bucket);
                return self.pop_open(until);
            }
            (before, node) = (node, next);
        }
        if best > until {
            return None;
        }
        self.base = bucket;
        if before_first == NONE {
            self.near.heads[place] = after;
        } else {
            self.nodes[before_first as usize].next = after;
        }
        Some(first)
    }

    /// Empties the first bucket with entries; the first node of its list.
    #[inline(always)]
    fn take(&mut self, bucket: u64) -> u32 {
        let place = bucket as usize % PLACES;
        let node = self.near.take(place);
        (self.base, self.first) = (bucket, 0);
        node
    }

    /// The first bucket with entries in `near`.
    #[inline(always)]
    fn first(&self) -> u64 {
        if self.first > 0 { self.first } else { self.look_for_first().0 }
    }

    /// The same, and its place.
    #[inline(always)]
    fn look_for_first(&self) -> (u64, usize) {
        let found = self.near.occupied.find(self.base as usize % PLACES);
        found.map_or((NEVER, 0), |(distance, place)| (self.base + distance as u64, place))
    }

    /// An entry was put into `near`: perhaps before what is known to be the first.
    #[inline(always)]
    fn note_filed(&mut self, bucket: u64) {
        if bucket < self.first {
            self.first = bucket;
        }
    }

    /// Moves a crowded bucket to `open`, sorted; for [`pop_open`](Self::pop_open), which notes it.
    #[inline(never)]
    fn sort(&mut self, bucket: u64) {
        let mut node = self.take(bucket);
        self.base = bucket + 1;
        while node != NONE {
            let Node { time, next, .. } = self.nodes[node as usize];
            self.open.push(((time, self.keys[node as usize]), node));
            node = next;
        }
        self.open.sort_unstable_by(|a, b| b.cmp(a));
    }

    #[inline(never)]
    fn pop_open(&mut self, until: u64) -> Option<u32> {
        let node = self.open.pop_if(|((time, _), _)| *time <= until).map(|(_, node)| node);
        self.note_ends();
        node
    }

    /// Something was opened or taken from there, or the next page is another.
    fn note_ends(&mut self) {
        self.near_until = if self.open.is_empty() { self.turn_at } else { 0 };
    }

    /// The time of the first entry.
    #[inline(never)]
    pub(super) fn next_at(&self) -> Option<u64> {
        // What is open is before all the rest.
        if let Some(((time, _), _)) = self.open.last() {
            return Some(*time);
        }
        let first = self.first();
        let near = if first == NEVER { None } else { self.earliest(self.near.heads[first as usize % PLACES]) };
        if first < self.turn_at {
            return near;
        }
        let page = self.turn_at >> PAGE_BITS;
        let far = if self.turn_at == NEVER { None } else { self.earliest(self.far.heads[page as usize % PLACES]) };
        let beyond = self.beyond.peek().map(|Reverse((time, _))| *time);
        [near, far, beyond].into_iter().flatten().min()
    }

    /// The earliest time of a list.
    fn earliest(&self, head: u32) -> Option<u64> {
        let node = |node: u32| (node != NONE).then(|| self.nodes[node as usize]);
        std::iter::successors(node(head), |last| node(last.next)).map(|node| node.time).min()
    }

    /// The link that is probably next after what was last found, and where its first packet lies. What comes next is then known.
    #[inline(always)]
    pub(super) fn probably_next(&mut self) -> Option<(u32, u32)> {
        self.first = self.first();
        let node = self.near.heads[self.first as usize % PLACES];
        (node < self.links).then(|| (node, self.nodes[node as usize].front))
    }

    /// What a node stands for. A link's stays its own, another is given back.
    #[inline(always)]
    fn popped(&mut self, node: u32) -> Popped {
        if node < self.links {
            return Popped::Link(node);
        }
        self.nodes[node as usize].next = self.free;
        self.free = node;
        Popped::Other(self.keys[node as usize])
    }

    /// Puts a node into its list.
    #[inline(always)]
    fn file(&mut self, node: u32, time: u64) {
        let bucket = time >> self.width_bits;
        if bucket.wrapping_sub(self.base) < PLACES as u64 {
            let next = self.near.put(bucket as usize % PLACES, node);
            let node = &mut self.nodes[node as usize];
            (node.time, node.next) = (time, next);
            self.note_filed(bucket);
        } else {
            self.file_elsewhere(node, time);
        }
    }

    #[inline(never)]
    fn file_elsewhere(&mut self, node: u32, time: u64) {
        let bucket = time >> self.width_bits;
        self.nodes[node as usize].time = time;
        if bucket < self.base {
            let entry = ((time, self.keys[node as usize]), node);
            let place = self.open.iter().rposition(|later| *later > entry).map_or(0, |later| later + 1);
            self.open.insert(place, entry);
            self.note_ends();
            return;
        }
        let page = bucket >> PAGE_BITS;
        if page - (self.base >> PAGE_BITS) >= FAR {
            self.beyond.push(Reverse((time, node)));
        } else {
            self.nodes[node as usize].next = self.far.put(page as usize % PLACES, node);
        }
        self.turn_at = self.turn_at.min(page << PAGE_BITS);
        self.note_ends();
    }

    /// Goes on to the next page with entries in `far` or `beyond`, where `near` has none before it, unless it begins after `until`.
    #[inline(never)]
    fn turn_page(&mut self, until: u64) -> bool {
        if self.turn_at == NEVER || self.turn_at << self.width_bits > until {
            return false;
        }
        self.base = self.turn_at;
        let page = self.base >> PAGE_BITS;
        let mut node = self.far.take(page as usize % PLACES);
        while node != NONE {
            let Node { time, next, .. } = self.nodes[node as usize];
            self.file(node, time);
            node = next;
        }
        while let Some(&Reverse((time, node))) = self.beyond.peek() {
            if self.page_of(time) - page >= FAR {
                break;
            }
            self.beyond.pop();
            self.file(node, time);
        }
        self.turn_at = self.next_page().map_or(NEVER, |page| page << PAGE_BITS);
        self.note_ends();
        true
    }

    /// The next page after that of `base` with entries in `far` or `beyond`.
    fn next_page(&self) -> Option<u64> {
        let start = (self.base >> PAGE_BITS) + 1;
        let far = self.far.occupied.next(start as usize % PLACES);
        let far = far.map(|place| start + ((place as u64).wrapping_sub(start) % PLACES as u64));
        let beyond = self.beyond.peek().map(|Reverse((time, _))| self.page_of(*time));
        [far, beyond].into_iter().flatten().min()
    }

    fn page_of(&self, time: u64) -> u64 {
        time >> self.width_bits >> PAGE_BITS
    }
}

impl Level {
    fn new() -> Level {
        Level { heads: Box::new([NONE; PLACES]), occupied: Bits::new() }
    }

    /// Puts a node at the head of a list; the one that was there.
    #[inline]
    fn put(&mut self, place: usize, node: u32) -> u32 {
        self.occupied.set(place);
        std::mem::replace(&mut self.heads[place], node)
    }

    /// Empties a list; its first node.
    #[inline]
    fn take(&mut self, place: usize) -> u32 {
        self.occupied.clear(place);
        std::mem::replace(&mut self.heads[place], NONE)
    }
}

/// A set of numbers below [`PLACES`] that finds its next member fast: one bit each, and one for each word of these.
#[derive(Clone, Debug)]
struct Bits {
    words: [u64; WORDS],
    summary: [u64; WORDS / 64],
}

const WORDS: usize = PLACES / 64;

impl Bits {
    fn new() -> Bits {
        Bits { words: [0; WORDS], summary: [0; WORDS / 64] }
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

    /// The first member from `from` on, and after the last again from 0.
    fn next(&self, from: usize) -> Option<usize> {
        self.find(from).map(|(_, member)| member)
    }

    /// How far it is to there, and the member.
    #[inline(always)]
    fn find(&self, from: usize) -> Option<(usize, usize)> {
        let rest = self.words[from / 64] >> (from % 64);
        if rest != 0 {
            let distance = rest.trailing_zeros() as usize;
            return Some((distance, (from + distance) % PLACES));
        }
        self.next_word(from / 64).map(|member| (member.wrapping_sub(from) % PLACES, member))
    }

    /// The first member of the words after this one.
    #[inline]
    fn next_word(&self, word: usize) -> Option<usize> {
        let (group, after) = (word / 64, !1 << (word % 64));
        let found = |group: usize, words: u64| {
            let word = ((group * 64) | words.trailing_zeros() as usize) % WORDS;
            Some(((word * 64) | self.words[word].trailing_zeros() as usize) % PLACES)
        };
        let words = self.summary[group] & after;
        if words != 0 {
            return found(group, words);
        }
        for turn in 1..WORDS / 64 {
            let group = (group + turn) % (WORDS / 64);
            if self.summary[group] != 0 {
                return found(group, self.summary[group]);
            }
        }
        let words = self.summary[group] & !after;
        if words == 0 { None } else { found(group, words) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// What a caller does: adds an entry so far after the present, or takes entries up to so far after it; or asks what comes next.
    #[derive(Clone, Debug)]
    enum Op {
        Push { ahead: u64, key: u64 },
        Pop { window: u64, most: usize },
        Guess,
    }

    fn ahead() -> impl Strategy<Value = u64> {
        // Ties, the same bucket, the same page, the far level, and beyond.
        prop_oneof![Just(0), 0u64..4, 0u64..200, 0u64..100_000, 0u64..50_000_000, 0u64..10_000_000_000]
    }

    fn op() -> impl Strategy<Value = Op> {
        prop_oneof![
            3 => (ahead(), 0u64..50).prop_map(|(ahead, key)| Op::Push { ahead, key }),
            2 => (ahead(), 1usize..8).prop_map(|(window, most)| Op::Pop { window, most }),
            1 => Just(Op::Guess),
        ]
    }

    const LINKS: u32 = 4;

    fn found((time, key): Entry) -> (u64, Popped) {
        let link = u32::try_from(key).ok().filter(|&key| key < LINKS);
        (time, link.map_or(Popped::Other(key), Popped::Link))
    }

    /// Does the same with a wheel and a heap. The first keys are links', of which none has two entries.
    fn compare_with_a_heap<const GUESSED: bool>(ops: Vec<Op>, width_bits: u32) -> Result<(), TestCaseError> {
        let mut wheel = Wheel::new(width_bits, (0..LINKS).map(u64::from));
        let mut heap = BinaryHeap::<Reverse<Entry>>::new();
        let mut now = 0;
        for op in ops {
            prop_assert_eq!(wheel.next_at(), heap.peek().map(|Reverse(entry)| entry.0));
            match op {
                Op::Push { ahead, key } => {
                    let entry = (now + ahead, key);
                    match found(entry).1 {
                        Popped::Link(_) if heap.iter().any(|Reverse((_, other))| *other == key) => continue,
                        Popped::Link(link) => wheel.push_link::<GUESSED>(link, entry.0, link + 10),
                        Popped::Other(_) => wheel.push(entry),
                    }
                    heap.push(Reverse(entry));
                }
                Op::Guess if GUESSED => {
                    if let Some((link, front)) = wheel.probably_next() {
                        prop_assert!(
                            front == link + 10 && heap.iter().any(|Reverse(entry)| entry.1 == u64::from(link))
                        );
                    }
                }
                Op::Guess => {}
                Op::Pop { window, most } => {
                    let until = now + window;
                    for turn in 0..most {
                        if GUESSED && turn % 2 == 1 {
                            wheel.probably_next();
                        }
                        let due = heap.peek().is_some_and(|Reverse(entry)| entry.0 <= until);
                        let expected = if due { heap.pop().map(|Reverse(entry)| entry) } else { None };
                        prop_assert_eq!(wheel.pop::<GUESSED>(until), expected.map(found));
                        now = expected.map_or(until, |entry| entry.0);
                        if expected.is_none() {
                            break;
                        }
                    }
                }
            }
        }
        while let Some(Reverse(entry)) = heap.pop() {
            prop_assert_eq!(wheel.pop::<GUESSED>(u64::MAX), Some(found(entry)));
        }
        prop_assert_eq!(wheel.pop::<GUESSED>(u64::MAX), None);
        prop_assert_eq!(wheel.next_at(), None);
        Ok(())
    }

    proptest! {
        #[test]
        fn the_wheel_pops_what_a_heap_pops(
            ops in prop::collection::vec(op(), 1..300), width_bits in 0u32..16, guessed: bool,
        ) {
            if guessed {
                compare_with_a_heap::<true>(ops, width_bits)?;
            } else {
                compare_with_a_heap::<false>(ops, width_bits)?;
            }
        }

        #[test]
        fn the_next_member_is_the_smallest_from_there_on_and_then_the_smallest(
            members in prop::collection::btree_set(0..PLACES, 0..20), from in 0..PLACES,
        ) {
            let mut bits = Bits::new();
            for &member in &members {
                bits.set(member);
            }
            prop_assert_eq!(bits.next(from), members.range(from..).chain(members.range(..from)).next().copied());
            for &member in members.range(..from) {
                bits.clear(member);
            }
            prop_assert_eq!(bits.next(0), members.range(from..).next().copied());
        }
    }

    #[test]
    fn no_bucket_beyond_until_is_passed() {
        let mut wheel = Wheel::new(4, std::iter::empty());
        wheel.push((1_000_000, 1));
        assert_eq!(wheel.pop::<true>(999), None);
        assert_eq!(wheel.base, 0);
    }

    #[test]
    fn a_bucket_is_a_few_arrivals_wide() {
        // 42 links at 1 Gbit/s: an arrival each 293 ns if all are busy. 6,144 links at 10 Gbit/s: five each ns.
        assert_eq!(width_bits(42 * 81_274), 19);
        assert_eq!(width_bits(6_144 * 812_743), 8);
    }
}
