//! The pending set: a two-level timing wheel with a heap for what is far away, and the store of all packets on their way.
//!
//! Time is cut into narrow buckets and those into pages. Nodes of the current page lie in the *near* level by bucket,
//! nodes of later pages in the *far* level by page, the rest in the heap *beyond*. Lists are unsorted; the first of a
//! bucket's few nodes is looked for when it is wanted, by (time, key), and only a bucket that turns out to be crowded
//! is sorted. The order therefore never depends on the structure, only the speed does.
//!
//! A *flight* is a packet on its way: it keeps its node, and with it its cache line, from host to host, and goes from list
//! to list. An *entry* is anything else that is due.
//!
//! [`Wheel::pop`] passes no bucket that begins after `until`: what its caller adds next may be due before it.
//!
//! # Width
//! What costs is touching many lists and moving nodes from page to page; a second or third node in a bucket costs little.
//! So buckets are about as wide as nodes are apart: as they were over the last pages, which is looked at between two
//! pages, when the near level is empty. A page is at most 2³² ps, so that a node keeps half a time.
//!
//! Invariants: every node in `near`, `far` or `beyond` belongs to a bucket at or after `horizon`; `open` is sorted, latest
//! first, and holds all others; a page's far list is moved to `near` before any of its buckets is looked at.

#![allow(
    clippy::cast_possible_truncation,
    reason = "offsets are masked to 32 bits, places to their level; the arenas fit into memory"
)]

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::Entity;
use crate::prefetch::prefetch;

const NONE: u32 = u32::MAX;
/// Set in the number of a node that is an entry.
const ENTRY: u32 = 1 << 31;
/// Lists in a level, buckets in a page, pages in the far level: the square of 64, so that one word tells which words of
/// a [`Bits`] to look at.
const PLACES: usize = 4_096;
const PAGE_BITS: u32 = PLACES.ilog2();
const FAR: u64 = PLACES as u64;
const WIDEST: u32 = u32::BITS - PAGE_BITS;
/// Nodes of one bucket among which the first is looked for each time; more are sorted.
const CROWD: u32 = 8;

/// Nodes found since the width was last thought about, before it is thought about again.
const TUNED_EVERY: u64 = 8 * PLACES as u64;

/// The width of a bucket, as a power of two in picoseconds, where nodes are so far apart on average.
fn width_bits(distance: u64) -> u32 {
    distance.max(1).ilog2().saturating_sub(2).clamp(4, WIDEST)
}

/// See the [module](self).
#[derive(Clone, Debug)]
pub(super) struct Wheel<P> {
    /// A bucket is 2^`width_bits` picoseconds wide.
    width_bits: u32,
    free_flight: u32,
    /// The first bucket that may have nodes.
    horizon: u64,
    page: u64,
    near: Level,
    flights: Vec<Flight<P>>,
    entries: Vec<Entry>,
    free_entry: u32,
    open: Vec<((u64, u64), u32)>,
    far: Level,
    beyond: BinaryHeap<Reverse<(u64, u32)>>,
    /// Nodes found, and their number and the time when the width was last thought about.
    found: u64,
    tuned_at: (u64, u64),
}

/// A packet on its way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Flight<P> {
    /// When it arrives, since the beginning of its page.
    offset: u32,
    next: u32,
    /// The link that it is on, in its queue or on its wire.
    pub(super) link: u32,
    pub(super) packet: P,
}

const _: () = assert!(size_of::<Flight<[u32; 8]>>() == 44, "a packet of 32 bytes takes 44");

/// Anything else that is due.
#[derive(Clone, Copy, Debug)]
struct Entry {
    key: u64,
    offset: u32,
    next: u32,
}

/// Lists of nodes, and which of them are not empty.
#[derive(Clone, Debug)]
struct Level {
    heads: Box<[u32; PLACES]>,
    occupied: Bits,
}

/// What [`Wheel::pop`] finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Popped {
    /// A flight has arrived. It is in no list, and stays where it is until it [goes on](Wheel::go_on) or
    /// [lands](Wheel::land).
    Flight(u32),
    /// The entry with this key. It is gone.
    Entry(u64),
}

impl<P: Copy> Wheel<P> {
    /// An empty wheel for nodes that are so many picoseconds apart: a guess will do.
    pub(super) fn new(distance: u64) -> Wheel<P> {
        Wheel {
            width_bits: width_bits(distance),
            free_flight: NONE,
            horizon: 0,
            page: 0,
            near: Level::new(),
            flights: Vec::new(),
            entries: Vec::new(),
            free_entry: NONE,
            open: Vec::with_capacity(64),
            far: Level::new(),
            beyond: BinaryHeap::new(),
            found: 0,
            tuned_at: (0, 0),
        }
    }

    /// A packet sets out on `link` and arrives at `time`.
    #[inline(always)]
    pub(super) fn set_out(&mut self, link: u32, time: u64, packet: P) {
        let mut node = self.free_flight;
        if node == NONE {
            node = self.new_flight(link, packet);
        } else {
            let flight = &mut self.flights[node as usize];
            self.free_flight = flight.next;
            flight.link = link;
            flight.packet = packet;
        }
        self.file_flight(node, time);
    }

    /// A flight that has arrived goes on over `link`.
    #[inline(always)]
    pub(super) fn go_on(&mut self, flight: u32, link: u32, time: u64) {
        self.flights[flight as usize].link = link;
        self.file_flight(flight, time);
    }

    /// A flight that has arrived.
    #[inline(always)]
    pub(super) fn flight(&self, flight: u32) -> &Flight<P> {
        &self.flights[flight as usize]
    }

    /// The same, to be marked.
    pub(super) fn flight_mut(&mut self, flight: u32) -> &mut Flight<P> {
        &mut self.flights[flight as usize]
    }

    /// A flight that has arrived is over; its packet.
    #[inline(always)]
    pub(super) fn land(&mut self, flight: u32) -> P {
        let place = &mut self.flights[flight as usize];
        place.next = self.free_flight;
        self.free_flight = flight;
        place.packet
    }

    /// Memory grows by an eighth: what is out at most is all that there ever is.
    #[cold]
    fn new_flight(&mut self, link: u32, packet: P) -> u32 {
        if self.flights.len() == self.flights.capacity() {
            self.flights.reserve_exact((self.flights.len() / 8).max(1_024));
        }
        self.flights.push(Flight { offset: 0, next: NONE, link, packet });
        let node = self.flights.len() as u32 - 1;
        assert!(node < ENTRY, "2³¹ packets are out at once");
        node
    }

    /// Adds an entry.
    #[inline]
    pub(super) fn push(&mut self, time: u64, key: u64) {
        let mut node = self.free_entry;
        if node == NONE {
            node = self.entries.len() as u32 | ENTRY;
            self.entries.push(Entry { key, offset: 0, next: NONE });
        } else {
            let entry = &mut self.entries[(node & !ENTRY) as usize];
            self.free_entry = entry.next;
            entry.key = key;
        }
        self.file(node, time);
    }

    /// What comes first, unless it is after `until`.
    #[inline(always)]
    pub(super) fn pop(&mut self, until: u64) -> Option<(u64, Popped)> {
        loop {
            if !self.open.is_empty() {
                return self.pop_open(until);
            }
            let from = self.horizon as usize % PLACES;
            let in_page = self.horizon >> PAGE_BITS == self.page;
            let Some(place) = (if in_page { self.near.occupied.next(from) } else { None }) else {
                if self.turn_page(until) {
                    continue;
                }
                return None;
            };
            let first = self.near.heads[place];
            if first & ENTRY == 0 {
                let Flight { offset, next, .. } = self.flights[first as usize];
                if next == NONE {
                    let time = self.begin_of_page() | u64::from(offset);
                    if time > until {
                        return None;
                    }
                    self.horizon = self.page << PAGE_BITS | place as u64;
                    self.near.take(place);
                    self.found += 1;
                    return Some((time, Popped::Flight(first)));
                }
            }
            if let Some(popped) = self.pop_of_several(place, until) {
                return popped;
            }
        }
    }

    /// Asks for the memory of the flight that is probably next.
    #[inline(always)]
    pub(super) fn prefetch_next(&self) {
        if let Some(place) = self.near.occupied.next(self.horizon as usize % PLACES) {
            prefetch(&self.flights, self.near.heads[place] as usize);
        }
    }

    /// The first of a bucket with several nodes, or with an entry; `Some(None)` if it is after `until`, and `None` if there
    /// were so many that they have been sorted.
    #[inline(never)]
    #[allow(clippy::option_option, reason = "whether it was decided here, and what was decided")]
    fn pop_of_several(&mut self, place: usize, until: u64) -> Option<Option<(u64, Popped)>> {
        let mut node = self.near.heads[place];
        let (mut first, mut before_first) = (node, NONE);
        let (mut best, mut next) = self.node(node);
        let mut number = 1;
        while next != NONE {
            let before = std::mem::replace(&mut node, next);
            let (offset, after) = self.node(node);
            if offset < best || offset == best && self.key(node) < self.key(first) {
                (best, first, before_first) = (offset, node, before);
            }
            number += 1;
            if number > CROWD {
                if (self.page << PAGE_BITS | place as u64) << self.width_bits > until {
                    return Some(None);
                }
                self.sort(place);
                return None;
            }
            next = after;
        }
        let time = self.begin_of_page() | u64::from(best);
        if time > until {
            return Some(None);
        }
        self.horizon = self.page << PAGE_BITS | place as u64;
        let (_, after) = self.node(first);
        if before_first != NONE {
            self.set_next(before_first, after);
        } else if after != NONE {
            self.near.heads[place] = after;
        } else {
            self.near.take(place);
        }
        Some(Some((time, self.popped(first))))
    }

    /// Moves a crowded bucket to `open`, sorted.
    #[inline(never)]
    fn sort(&mut self, place: usize) {
        self.horizon = (self.page << PAGE_BITS | place as u64) + 1;
        let mut node = self.near.take(place);
        while node != NONE {
            let (offset, next) = self.node(node);
            self.open.push(((self.begin_of_page() | u64::from(offset), self.key(node)), node));
            node = next;
        }
        self.open.sort_unstable_by(|a, b| b.cmp(a));
    }

    #[inline(never)]
    fn pop_open(&mut self, until: u64) -> Option<(u64, Popped)> {
        let ((time, _), node) = self.open.pop_if(|((time, _), _)| *time <= until)?;
        Some((time, self.popped(node)))
    }

    /// What a node stands for; an entry's is given back.
    fn popped(&mut self, node: u32) -> Popped {
        self.found += 1;
        if node & ENTRY == 0 {
            return Popped::Flight(node);
        }
        let entry = &mut self.entries[(node & !ENTRY) as usize];
        entry.next = self.free_entry;
        self.free_entry = node;
        Popped::Entry(entry.key)
    }

    fn begin_of_page(&self) -> u64 {
        self.page << PAGE_BITS << self.width_bits
    }

    /// Offset and next of a node.
    #[inline(always)]
    fn node(&self, node: u32) -> (u32, u32) {
        if node & ENTRY == 0 {
            let Flight { offset, next, .. } = self.flights[node as usize];
            (offset, next)
        } else {
            let Entry { offset, next, .. } = self.entries[(node & !ENTRY) as usize];
            (offset, next)
        }
    }

    /// What decides between equal times.
    fn key(&self, node: u32) -> u64 {
        if node & ENTRY == 0 {
            Entity::arrival(self.flights[node as usize].link).0
        } else {
            self.entries[(node & !ENTRY) as usize].key
        }
    }

    fn set_next(&mut self, node: u32, next: u32) {
        if node & ENTRY == 0 {
            self.flights[node as usize].next = next;
        } else {
            self.entries[(node & !ENTRY) as usize].next = next;
        }
    }

    fn offset(&self, time: u64) -> u32 {
        (time & ((1 << (PAGE_BITS + self.width_bits)) - 1)) as u32
    }

    /// Puts a flight into its list.
    #[inline(always)]
    fn file_flight(&mut self, node: u32, time: u64) {
        let bucket = time >> self.width_bits;
        let offset = self.offset(time);
        let flight = &mut self.flights[node as usize];
        flight.offset = offset;
        if bucket >> PAGE_BITS == self.page && bucket >= self.horizon {
            flight.next = self.near.put(bucket as usize % PLACES, node);
        } else {
            self.file_elsewhere(node, time);
        }
    }

    /// Puts a node into its list.
    fn file(&mut self, node: u32, time: u64) {
        if node & ENTRY == 0 {
            self.file_flight(node, time);
            return;
        }
        let bucket = time >> self.width_bits;
        self.entries[(node & !ENTRY) as usize].offset = self.offset(time);
        if bucket >> PAGE_BITS == self.page && bucket >= self.horizon {
            let next = self.near.put(bucket as usize % PLACES, node);
            self.entries[(node & !ENTRY) as usize].next = next;
        } else {
            self.file_elsewhere(node, time);
        }
    }

    #[inline(never)]
    fn file_elsewhere(&mut self, node: u32, time: u64) {
        let bucket = time >> self.width_bits;
        if bucket < self.horizon {
            let entry = ((time, self.key(node)), node);
            let place = self.open.iter().rposition(|later| *later > entry).map_or(0, |later| later + 1);
            self.open.insert(place, entry);
            return;
        }
        let page = bucket >> PAGE_BITS;
        if page - self.page >= FAR {
            self.beyond.push(Reverse((time, node)));
        } else {
            let next = self.far.put(page as usize % PLACES, node);
            self.set_next(node, next);
        }
    }

    /// Makes the next page with nodes the current one, unless it begins after `until`.
    #[inline(never)]
    fn turn_page(&mut self, until: u64) -> bool {
        if self.found - self.tuned_at.0 >= TUNED_EVERY && self.tune() {
            // The page of the present may have nodes now.
            return true;
        }
        let Some(page) = self.next_page() else { return false };
        if page << PAGE_BITS << self.width_bits > until {
            return false;
        }
        self.page = page;
        self.horizon = page << PAGE_BITS;
        let begin = self.begin_of_page();
        let mut node = self.far.take(page as usize % PLACES);
        while node != NONE {
            let (offset, next) = self.node(node);
            if next != NONE && next & ENTRY == 0 {
                prefetch(&self.flights, next as usize);
            }
            self.file(node, begin | u64::from(offset));
            node = next;
        }
        while let Some(&Reverse((time, node))) = self.beyond.peek() {
            if self.page_of(time) - page >= FAR {
                break;
            }
            self.beyond.pop();
            self.file(node, time);
        }
        true
    }

    /// Makes buckets as wide as nodes have been apart, unless they are nearly so; whether it did.
    #[cold]
    fn tune(&mut self) -> bool {
        let now = self.horizon << self.width_bits;
        let (found, time) = std::mem::replace(&mut self.tuned_at, (self.found, now));
        let width_bits = width_bits((now - time) / (self.found - found));
        let off = width_bits.abs_diff(self.width_bits) > 1;
        if off {
            self.widen(width_bits);
        }
        off
    }

    /// Changes the width of the buckets, between two pages.
    fn widen(&mut self, width_bits: u32) {
        // What is still to come is not before the bucket of what was found last.
        let now = self.horizon << self.width_bits;
        let mut nodes: Vec<(u64, u32)> = self.beyond.drain().map(|Reverse(far)| far).collect();
        while let Some(page) = self.next_page() {
            let begin = page << PAGE_BITS << self.width_bits;
            let mut node = self.far.take(page as usize % PLACES);
            while node != NONE {
                let (offset, next) = self.node(node);
                nodes.push((begin | u64::from(offset), node));
                node = next;
            }
        }
        self.width_bits = width_bits;
        self.horizon = now >> width_bits;
        self.page = self.horizon >> PAGE_BITS;
        for (time, node) in nodes {
            self.file(node, time);
        }
    }

    /// The next page with nodes.
    fn next_page(&self) -> Option<u64> {
        let start = (self.page + 1) as usize % PLACES;
        let far = self.far.occupied.next(start).or_else(|| self.far.occupied.next(0));
        let far = far.map(|place| self.page + 1 + ((place as u64).wrapping_sub(start as u64) & (FAR - 1)));
        let beyond = self.beyond.peek().map(|Reverse((time, _))| self.page_of(*time));
        match (far, beyond) {
            (Some(far), Some(beyond)) => Some(far.min(beyond)),
            (far, beyond) => far.or(beyond),
        }
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

    /// What a caller does: adds a flight or an entry so far after the present, or takes what comes up to so far after it.
    #[derive(Clone, Debug)]
    enum Op {
        Push {
            ahead: u64,
            id: u32,
            flight: bool,
        },
        Pop {
            window: u64,
            most: usize,
        },
        /// Changes the width where the wheel itself might.
        Widen {
            width_bits: u32,
        },
    }

    fn ahead() -> impl Strategy<Value = u64> {
        // Ties, the same bucket, the same page, the far level, and beyond.
        prop_oneof![Just(0), 0u64..4, 0u64..200, 0u64..100_000, 0u64..50_000_000, 0u64..10_000_000_000]
    }

    fn op() -> impl Strategy<Value = Op> {
        prop_oneof![
            3 => (ahead(), 0u32..50, any::<bool>()).prop_map(|(ahead, id, flight)| Op::Push { ahead, id, flight }),
            2 => (ahead(), 1usize..8).prop_map(|(window, most)| Op::Pop { window, most }),
            1 => (0u32..=WIDEST).prop_map(|width_bits| Op::Widen { width_bits }),
        ]
    }

    /// Takes the first, as time and key; one flight in three goes on over the same link.
    fn pop(wheel: &mut Wheel<u32>, heap: &mut BinaryHeap<Reverse<(u64, u64)>>, until: u64) -> Option<(u64, u64)> {
        let (time, popped) = wheel.pop(until)?;
        let key = match popped {
            Popped::Entry(key) => key,
            Popped::Flight(flight) => {
                let Flight { link, packet, .. } = *wheel.flight(flight);
                assert_eq!(link, packet, "a flight keeps its packet");
                if time.is_multiple_of(3) {
                    wheel.go_on(flight, link, time + 1_000);
                    heap.push(Reverse((time + 1_000, Entity::arrival(link).0)));
                } else {
                    wheel.land(flight);
                }
                Entity::arrival(link).0
            }
        };
        Some((time, key))
    }

    proptest! {
        #[test]
        fn the_wheel_pops_what_a_heap_pops(
            ops in prop::collection::vec(op(), 1..300), distance in 0u64..1 << 16,
        ) {
            let mut wheel = Wheel::new(distance);
            let mut heap = BinaryHeap::new();
            let mut now = 0;
            let mut last = u64::MAX;
            for op in ops.into_iter().chain([Op::Pop { window: 1 << 40, most: 10_000 }]) {
                match op {
                    Op::Push { ahead, id, flight } => {
                        let key = if flight {
                            wheel.set_out(id, now + ahead, id);
                            Entity::arrival(id)
                        } else {
                            let entity = Entity::timer(u64::from(id), 0);
                            wheel.push(now + ahead, entity.0);
                            entity
                        };
                        heap.push(Reverse((now + ahead, key.0)));
                    }
                    Op::Widen { width_bits } => {
                        if wheel.open.is_empty() && wheel.near.occupied.next(0).is_none() {
                            wheel.widen(width_bits);
                        }
                    }
                    Op::Pop { window, most } => {
                        let until = now + window;
                        for _ in 0..most {
                            let due = heap.peek().is_some_and(|Reverse(first)| first.0 <= until);
                            let expected = if due { heap.pop().map(|Reverse(first)| first) } else { None };
                            prop_assert_eq!(pop(&mut wheel, &mut heap, until), expected);
                            now = expected.map_or(until, |(time, _)| time);
                            if expected.is_none() {
                                break;
                            }
                            last = now;
                        }
                    }
                }
            }
            prop_assert!(last == u64::MAX || last <= now);
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
    fn no_bucket_beyond_until_is_passed() {
        let mut wheel = Wheel::<u32>::new(8);
        wheel.push(1_000_000, 1);
        assert_eq!(wheel.pop(999), None);
        assert!(wheel.horizon << wheel.width_bits <= 999);
    }

    #[test]
    fn the_width_follows_the_distance() {
        // Nodes 1 us apart in a wheel made for 100 ps, then 10 ns apart: twice that in picoseconds is below 2²⁰ and 2¹⁴.
        let mut wheel = Wheel::new(100);
        let mut now = 0;
        for (distance, expected) in [(1_000_000, 20), (10_000, 14)] {
            for _ in 0..20 * TUNED_EVERY {
                now += distance;
                wheel.set_out(0, now, 7_u32);
                let Some((at, Popped::Flight(flight))) = wheel.pop(u64::MAX) else { panic!("one flight is out") };
                assert_eq!((at, wheel.land(flight)), (now, 7));
            }
            assert!(wheel.width_bits.abs_diff(expected) <= 1, "{} for {expected}", wheel.width_bits);
        }
    }
}
