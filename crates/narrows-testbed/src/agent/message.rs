//! What a message begins with: the name of its flow, so that the other end learns of it from the message alone. The plan, which
//! every agent has, says the rest.

use narrows_core::units::Bytes;
use narrows_plan::flows::Name;

/// Bytes of a name: the least size of a message of an opener. A shorter one is lengthened to it.
pub(crate) const NAME_BYTES: usize = 8;

/// A name as it goes over the wire.
pub(crate) fn to_bytes(name: Name) -> [u8; NAME_BYTES] {
    (u64::from(name.traffic) << 32 | u64::from(name.sequence)).to_be_bytes()
}

/// The name that these bytes say.
#[allow(clippy::cast_possible_truncation, reason = "two halves")]
pub(crate) fn from_bytes(bytes: [u8; NAME_BYTES]) -> Name {
    let both = u64::from_be_bytes(bytes);
    Name { traffic: (both >> 32) as u32, sequence: both as u32 }
}

/// Bytes that a message of this size takes with its name in it.
pub(crate) fn with_name(size: Bytes) -> u64 {
    size.get().max(NAME_BYTES as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_survives_the_wire() {
        let name = Name { traffic: 7, sequence: u32::MAX - 1 };
        assert_eq!(from_bytes(to_bytes(name)), name);
        assert_eq!([with_name(Bytes::new(1)), with_name(Bytes::new(9))], [8, 9]);
    }
}
