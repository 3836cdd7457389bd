//! A queue in a ring of memory, of what may be copied.
//!
//! It is the standard library's queue, but that appending is a few instructions where the caller stands: that one calls a function,
//! once or twice for each packet.

use alloc::vec::Vec;
use core::fmt::{self, Debug, Formatter};
use core::ops::{Index, IndexMut};

/// See the [module](self).
#[derive(Clone)]
pub struct Ring<T> {
    /// What lies beyond the queue is of no matter.
    places: Vec<T>,
    front: u32,
    len: u32,
}

impl<T> Default for Ring<T> {
    fn default() -> Ring<T> {
        Ring { places: Vec::new(), front: 0, len: 0 }
    }
}

/// The queue, as a list.
impl<T: Debug> Debug for Ring<T> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl<T> Ring<T> {
    /// Number of elements.
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.len as usize
    }

    /// Whether there are none.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether the next element needs more memory.
    #[inline(always)]
    pub fn is_full(&self) -> bool {
        self.len() == self.places.len()
    }

    /// Where the element with this index lies, or, after the last, would lie.
    #[inline(always)]
    fn place(&self, index: usize) -> usize {
        let place = self.front as usize + index;
        if place >= self.places.len() { place - self.places.len() } else { place }
    }

    /// The oldest element.
    #[inline(always)]
    pub fn front(&self) -> Option<&T> {
        if self.len == 0 { None } else { Some(&self.places[self.front as usize]) }
    }

    /// Removes the oldest element, of one or more.
    #[inline(always)]
    #[allow(clippy::cast_possible_truncation, reason = "as many elements do not fit into memory")]
    pub fn pop_front(&mut self) {
        debug_assert!(self.len > 0, "there is none");
        self.front = self.place(1) as u32;
        self.len -= 1;
    }

    /// The element with this index, if there are so many.
    #[inline(always)]
    pub fn get(&self, index: usize) -> Option<&T> {
        if index < self.len() { Some(&self.places[self.place(index)]) } else { None }
    }

    fn slices(&self) -> (&[T], &[T]) {
        let (last, first) = self.places.split_at(self.front as usize);
        let in_first = first.len().min(self.len());
        (&first[..in_first], &last[..self.len() - in_first])
    }

    /// All elements, oldest first.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &T> {
        let (first, last) = self.slices();
        first.iter().chain(last)
    }

    /// The same, to be changed.
    pub fn iter_mut(&mut self) -> impl DoubleEndedIterator<Item = &mut T> {
        let len = self.len();
        let (last, first) = self.places.split_at_mut(self.front as usize);
        let in_first = first.len().min(len);
        first[..in_first].iter_mut().chain(&mut last[..len - in_first])
    }

    /// Number of elements at the front for which `is_before` holds, after which it holds for none.
    pub fn partition_point(&self, mut is_before: impl FnMut(&T) -> bool) -> usize {
        let (first, last) = self.slices();
        if last.first().is_some_and(&mut is_before) {
            first.len() + last.partition_point(is_before)
        } else {
            first.partition_point(is_before)
        }
    }
}

impl<T: Copy> Ring<T> {
    /// Appends an element. Memory that is full doubles; who wants less asks for it [before](Self::reserve_exact).
    #[inline(always)]
    pub fn push_back(&mut self, element: T) {
        if self.is_full() {
            self.reserve_exact(self.len().max(4), element);
        }
        let place = self.place(self.len());
        self.places[place] = element;
        self.len += 1;
    }

    /// Makes room for so many more, where there is none; `any` will do to fill it.
    #[cold]
    #[inline(never)]
    pub fn reserve_exact(&mut self, more: usize, any: T) {
        self.places.rotate_left(self.front as usize);
        self.front = 0;
        self.places.reserve_exact(more);
        self.places.resize(self.places.len() + more, any);
    }
}

impl<T> Index<usize> for Ring<T> {
    type Output = T;

    #[inline(always)]
    fn index(&self, index: usize) -> &T {
        debug_assert!(index < self.len(), "no such element");
        &self.places[self.place(index)]
    }
}

impl<T> IndexMut<usize> for Ring<T> {
    #[inline(always)]
    fn index_mut(&mut self, index: usize) -> &mut T {
        debug_assert!(index < self.len(), "no such element");
        let place = self.place(index);
        &mut self.places[place]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::VecDeque;
    use alloc::vec::Vec;
    use proptest::prelude::*;

    proptest! {
        /// Numbers that ascend, against the standard library's queue.
        #[test]
        fn a_ring_is_a_queue(ops in prop::collection::vec(0u8..5, 1..400), more in 1usize..9) {
            let (mut ring, mut queue) = (Ring::default(), VecDeque::new());
            for (number, op) in ops.into_iter().enumerate() {
                match op {
                    0 | 1 if !queue.is_empty() => {
                        ring.pop_front();
                        queue.pop_front();
                    }
                    2 => {
                        if ring.is_full() {
                            ring.reserve_exact(more, 0);
                        }
                        ring.push_back(2 * number);
                        queue.push_back(2 * number);
                    }
                    _ => {
                        ring.push_back(2 * number);
                        queue.push_back(2 * number);
                    }
                }
                prop_assert_eq!((ring.len(), ring.is_empty()), (queue.len(), queue.is_empty()));
                prop_assert_eq!((ring.front(), ring.get(number / 2)), (queue.front(), queue.get(number / 2)));
                prop_assert!(ring.iter().eq(&queue) && ring.iter_mut().rev().eq(queue.iter_mut().rev()));
                prop_assert!(queue.iter().enumerate().all(|(index, element)| ring[index] == *element));
                prop_assert_eq!(
                    ring.partition_point(|element| *element < number),
                    queue.partition_point(|element| *element < number)
                );
            }
            for index in 0..queue.len() {
                ring[index] += 1;
                queue[index] += 1;
            }
            prop_assert_eq!(ring.iter().copied().collect::<Vec<_>>(), Vec::from(queue));
        }
    }
}
