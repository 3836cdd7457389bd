//! What travels: at each place of a stream a byte that its neighbours do not have, so that a wrong place shows.

/// The bytes of a stream from one sequence number to another; its first byte has number 1.
pub(crate) fn stream(from: u64, to: u64) -> Vec<u8> {
    (from..to).map(|seq| seq.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes()[0]).collect()
}
