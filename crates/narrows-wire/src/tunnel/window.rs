//! Which marked packets of a session have come, and as which of their tries: none is taken twice.
//!
//! A packet that was retransmitted is another datagram, and the far edge must know that it came, whether or not the first did. What comes
//! a second time as the same try, or as an earlier one, is a replay, or the network's copy: taking it would have it acknowledged again.

/// Numbers that are told apart, as the machine has them. What is older is a replay.
const WINDOW: u32 = 65_536;

/// See the [module](self).
pub(super) struct Window {
    /// By the low bits of the number: the highest try that has come.
    tries: Box<[u8]>,
    /// One more than the highest number that has come; numbers wrap.
    next: u32,
}

impl Window {
    /// Nothing has come.
    pub(super) fn new() -> Window {
        Window { tries: vec![0; WINDOW as usize].into_boxed_slice(), next: 0 }
    }

    /// A packet has come that is genuine: whether it is to be taken.
    pub(super) fn take(&mut self, number: u32, tries: u8) -> bool {
        let ahead = number.wrapping_sub(self.next).cast_signed();
        if ahead >= 0 {
            // What enters the window has not come.
            for before in 0..=ahead.cast_unsigned().min(WINDOW - 1) {
                self.tries[place(number.wrapping_sub(before))] = 0;
            }
            self.next = number.wrapping_add(1);
        } else if ahead.unsigned_abs() > WINDOW {
            return false;
        }
        let highest = &mut self.tries[place(number)];
        let later = tries > *highest;
        *highest = (*highest).max(tries);
        later
    }
}

const fn place(number: u32) -> usize {
    (number % WINDOW) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        /// Against a map of the highest try of all numbers that ever came.
        #[test]
        fn it_is_a_map_with_a_horizon(
            steps in prop::collection::vec((-70_000_i64..70_000, any::<bool>(), 1_u8..4), 1..200),
        ) {
            let mut window = Window::new();
            let mut model: BTreeMap<i64, u8> = BTreeMap::new();
            let mut number = 0_i64;
            for (step, small, tries) in steps {
                number = (number + if small { step % 50 } else { step }).max(0);
                let next = model.last_key_value().map_or(0, |(highest, _)| highest + 1);
                let highest = model.get(&number).copied().unwrap_or(0);
                let expected = tries > highest && next - number <= i64::from(WINDOW);
                prop_assert_eq!(window.take(u32::try_from(number).unwrap(), tries), expected);
                model.insert(number, highest.max(tries));
            }
        }
    }

    #[test]
    fn what_a_number_displaced_does_not_count_for_it() {
        let mut window = Window::new();
        assert!((0..10).all(|number| window.take(number, 3)));
        assert!(window.take(WINDOW + 7, 1));
        assert!((WINDOW..WINDOW + 7).rev().all(|number| window.take(number, 1)));
        assert!(!window.take(7, 4) && window.take(8, 4) && !window.take(9, 3));
    }

    #[test]
    fn numbers_wrap() {
        let mut window = Window::new();
        for number in [1 << 31, u32::MAX - 1, 0, u32::MAX] {
            assert!(window.take(number - u32::from(number == 1 << 31), 1), "{number}");
        }
        assert!(!window.take(0, 1) && window.take(0, 2) && !window.take(u32::MAX, 1));
    }
}
