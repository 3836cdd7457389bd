//! Which marked packets have come already: a window of bits below the highest number, as an anti-replay window has them
//! [RFC 6479].

use alloc::boxed::Box;
use alloc::vec;

/// Numbers that are told apart. What is older counts as seen.
pub(super) const WINDOW: u64 = 65_536;

/// See the [module](self).
#[derive(Clone, Debug)]
pub(super) struct Seen {
    bits: Box<[u64]>,
    /// One more than the highest number that has come.
    next: u64,
}

impl Seen {
    /// Nothing has come.
    pub(super) fn new() -> Seen {
        Seen { bits: vec![0; (WINDOW / 64) as usize].into_boxed_slice(), next: 0 }
    }

    /// Forgets everything.
    pub(super) fn clear(&mut self) {
        self.bits.fill(0);
        self.next = 0;
    }

    /// One more than the highest number that has come.
    pub(super) fn next(&self) -> u64 {
        self.next
    }

    /// A packet with this number has come: whether it is the first. Numbers are the low 32 bits of a count from 0.
    pub(super) fn insert(&mut self, number: u32) -> bool {
        let number = expand(number, self.next);
        if number >= self.next {
            // What enters the window has not come.
            for entering in self.next.max((number + 1).saturating_sub(WINDOW))..number {
                self.set(entering, false);
            }
            self.next = number + 1;
            self.set(number, true);
            return true;
        }
        self.next - number <= WINDOW && !self.set(number, true)
    }

    /// Whether one of these numbers may still come. Numbers that left the window may not.
    pub(super) fn lacks_any(&self, numbers: core::ops::Range<u64>) -> bool {
        let begin = numbers.start.max(self.next.saturating_sub(WINDOW));
        (begin..numbers.end).any(|number| number >= self.next || !self.get(number))
    }

    fn get(&self, number: u64) -> bool {
        let (word, bit) = place(number);
        self.bits[word] & bit != 0
    }

    /// Sets the bit of a number; what it was.
    fn set(&mut self, number: u64, seen: bool) -> bool {
        let (word, bit) = place(number);
        let was = self.bits[word] & bit != 0;
        self.bits[word] = if seen { self.bits[word] | bit } else { self.bits[word] & !bit };
        was
    }
}

/// Where the bit of a number stands.
#[allow(clippy::cast_possible_truncation, reason = "the window is small")]
fn place(number: u64) -> (usize, u64) {
    ((number % WINDOW / 64) as usize, 1 << (number % 64))
}

/// The count nearest to `near` whose low 32 bits are these.
#[allow(clippy::cast_possible_truncation, reason = "the low halves are compared")]
pub(super) fn expand(number: u32, near: u64) -> u64 {
    let distance = i64::from(number.wrapping_sub(near as u32).cast_signed());
    near.checked_add_signed(distance).unwrap_or(u64::from(number))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;
    use std::vec::Vec;

    #[allow(clippy::cast_possible_truncation, reason = "truncation is the meaning")]
    fn low(number: u64) -> u32 {
        number as u32
    }

    proptest! {
        /// Against a set of all numbers that ever came, also where 32 bits wrap.
        #[test]
        fn it_is_a_set_with_a_horizon(
            begin in prop::sample::select(&[0_u64, (1 << 32) - 50_000, (1 << 33) - 3][..]),
            steps in prop::collection::vec((-70_000_i64..70_000, any::<bool>()), 1..300),
        ) {
            let mut seen = Seen::new();
            // Up to where the case begins, as numbers are at most half of 2³² apart.
            let on_the_way: Vec<u64> = (0..=begin).step_by(1 << 30).collect();
            let mut model: BTreeSet<u64> = on_the_way.iter().copied().collect();
            on_the_way.iter().for_each(|&number| assert!(seen.insert(low(number))));
            let mut number = begin;
            for (step, small) in steps {
                number = number.saturating_add_signed(if small { step % 100 } else { step });
                let highest = *model.last().unwrap();
                let first = number + WINDOW > highest && !model.contains(&number);
                prop_assert_eq!(seen.insert(low(number)), first, "{} of {}", number, highest);
                model.insert(number);
                let next = model.last().unwrap() + 1;
                prop_assert_eq!(seen.next(), next);
                let range = next.saturating_sub(WINDOW).max(number.saturating_sub(20))..number;
                let lacks = range.clone().any(|number| !model.contains(&number));
                prop_assert_eq!(seen.lacks_any(range), lacks);
            }
        }
    }

    #[test]
    fn what_has_not_come_yet_is_lacked_and_what_can_come_no_more_is_not() {
        let mut seen = Seen::new();
        assert!(seen.lacks_any(0..1) && !seen.lacks_any(0..0));
        seen.insert(1);
        assert!(seen.lacks_any(0..2) && !seen.lacks_any(1..2) && seen.lacks_any(1..3));
        seen.insert(u32::try_from(WINDOW).unwrap());
        assert!(!seen.lacks_any(0..1) && !seen.insert(0));
        seen.clear();
        assert!(seen.insert(0));
    }
}
