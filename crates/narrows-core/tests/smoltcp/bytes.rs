//! What travels: at each place of a stream a byte that its neighbours do not have, so that a wrong place shows.

use proptest::prelude::*;

/// The bytes of a stream from one sequence number to another; its first byte has number 1.
pub(crate) fn stream(from: u64, to: u64) -> Vec<u8> {
    (from..to).map(|seq| seq.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes()[0]).collect()
}

/// How much is sent: often little.
pub(crate) fn lengths() -> impl Strategy<Value = u64> {
    prop_oneof![1u64..10_000, 1u64..300_000]
}

/// Our initial sequence number on the wire: often so that it soon wraps.
pub(crate) fn firsts() -> impl Strategy<Value = u32> {
    prop_oneof![Just(0), any::<u32>(), u32::MAX - 100_000..u32::MAX]
}
