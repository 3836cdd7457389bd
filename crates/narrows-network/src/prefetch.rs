//! Asking for memory before it is needed: the one place with `unsafe` in this crate.
//!
//! On a fat-tree nearly every event finds its port and its packet outside the nearest cache, and the next event's are known
//! while this one is handled: the agenda's entry says where both lie, so that neither waits for the other. `docs/explanation/engine.md`
//! has the figures; small networks live in the cache and do not ask.

/// Asks for the cache line where `slice[index]` begins. Any index will do: nothing is read.
#[inline(always)]
#[cfg_attr(not(target_arch = "x86_64"), allow(unused_variables, reason = "no request to make"))]
pub(crate) fn prefetch<T>(slice: &[T], index: usize) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        let address = slice.as_ptr().wrapping_add(index).cast();
        // SAFETY: a prefetch neither reads nor writes memory that a program can observe, and never faults, whatever the
        // address; it needs SSE, which every x86-64 has.
        #[allow(unsafe_code, reason = "see the module's documentation")]
        unsafe {
            _mm_prefetch::<_MM_HINT_T0>(address);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_index_will_do() {
        let slice = [1, 2, 3];
        for index in [0, 2, 3, 1 << 40, usize::MAX / 8] {
            prefetch(&slice, index);
        }
        prefetch::<u64>(&[], 0);
        assert_eq!(slice, [1, 2, 3]);
    }
}
