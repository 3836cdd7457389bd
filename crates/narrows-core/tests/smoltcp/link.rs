//! A link in memory that does to each packet what a test drew for it.

use std::collections::VecDeque;

use narrows_core::units::{Span, Time};
use proptest::prelude::*;

/// An end of the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Ours,
    Theirs,
}

/// What becomes of a packet.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Fate {
    Arrives,
    IsLost,
    /// By so many microseconds, so that later ones overtake it.
    IsLate(u64),
    /// And the second one is late by so many microseconds.
    ComesTwice(u64),
}

/// What becomes of the packets of one direction, in the order of their sending; of those after them, nothing bad.
pub(crate) fn fates() -> impl Strategy<Value = VecDeque<Fate>> {
    let late = || prop_oneof![1u64..3_000, 1u64..200_000];
    let fate = move |good: u32| {
        prop_oneof![
            good => Just(Fate::Arrives),
            2 => Just(Fate::IsLost),
            2 => late().prop_map(Fate::IsLate),
            1 => late().prop_map(Fate::ComesTwice),
        ]
    };
    let some = |good| prop::collection::vec(fate(good), 0..300).prop_map(VecDeque::from);
    prop_oneof![some(80), some(20), some(4)]
}

/// All arrive but one, which so many come before.
pub(crate) fn all_but_one(before: usize) -> VecDeque<Fate> {
    let arrive = std::iter::repeat_n(Fate::Arrives, before);
    arrive.chain([Fate::IsLost]).collect()
}

#[derive(Debug)]
struct Packet {
    arrives: Time,
    order: u64,
    to: End,
    bytes: Vec<u8>,
}

/// Both directions.
pub(crate) struct Link {
    delay: Span,
    /// For what goes to us, and to them.
    fates: [VecDeque<Fate>; 2],
    air: Vec<Packet>,
    order: u64,
}

impl Link {
    pub(crate) fn new(delay: Span, to_us: VecDeque<Fate>, to_them: VecDeque<Fate>) -> Link {
        Link { delay, fates: [to_us, to_them], air: Vec::new(), order: 0 }
    }

    pub(crate) fn send(&mut self, now: Time, to: End, bytes: Vec<u8>) {
        let fate = self.fates[usize::from(to == End::Theirs)].pop_front().unwrap_or(Fate::Arrives);
        let arrives = now + self.delay;
        match fate {
            Fate::Arrives => self.put(arrives, to, bytes),
            Fate::IsLost => {}
            Fate::IsLate(us) => self.put(arrives + Span::from_us(us), to, bytes),
            Fate::ComesTwice(us) => {
                self.put(arrives, to, bytes.clone());
                self.put(arrives + Span::from_us(us), to, bytes);
            }
        }
    }

    fn put(&mut self, arrives: Time, to: End, bytes: Vec<u8>) {
        self.order += 1;
        self.air.push(Packet { arrives, order: self.order, to, bytes });
    }

    /// When the next packet arrives.
    pub(crate) fn due(&self) -> Time {
        self.air.iter().map(|packet| packet.arrives).min().unwrap_or(Time::NEVER)
    }

    /// The next packet that arrives by now.
    pub(crate) fn take(&mut self, now: Time) -> Option<(End, Vec<u8>)> {
        let place = (0..self.air.len()).min_by_key(|&place| (self.air[place].arrives, self.air[place].order))?;
        if self.air[place].arrives > now {
            return None;
        }
        let Packet { to, bytes, .. } = self.air.swap_remove(place);
        Some((to, bytes))
    }
}
