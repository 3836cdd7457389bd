//! What a connection's ends say they can take, lowered, so that a packet fits with what is put around it.

use super::checksum;

/// Option kinds [RFC 9293 §3.2].
const END: u8 = 0;
const NOTHING: u8 = 1;
const MAXIMUM_SEGMENT_SIZE: u8 = 2;

/// Lowers the maximum segment size that a SYN's header states to `most`, and keeps the checksum right; whether it was above. One that states
/// none is left: its peer sends no more than 536 bytes [RFC 9293 §3.7.1], or 1 220.
pub(super) fn clamp(transport: &mut [u8], most: u16) -> bool {
    let Some(header) = transport.get(12).map(|offset| usize::from(offset >> 4) * 4) else { return false };
    let header = header.min(transport.len());
    let mut at = 20;
    while at + 1 < header {
        let size = match transport[at] {
            END => return false,
            NOTHING => 1,
            _ => usize::from(transport[at + 1]),
        };
        if transport[at] == MAXIMUM_SEGMENT_SIZE && size == 4 && at + 4 <= header {
            let stated = u16::from_be_bytes([transport[at + 2], transport[at + 3]]);
            if stated <= most {
                return false;
            }
            set(transport, at + 2, most);
            return true;
        }
        if size == 0 || (size == 1 && transport[at] != NOTHING) {
            return false;
        }
        at += size;
    }
    false
}

/// Writes two bytes, which may straddle two words of the sum.
fn set(transport: &mut [u8], at: usize, value: u16) {
    let word_at = at & !1;
    let words = |transport: &[u8]| {
        [word_at, word_at + 2].map(|at| {
            u16::from_be_bytes([transport.get(at).copied().unwrap_or(0), transport.get(at + 1).copied().unwrap_or(0)])
        })
    };
    let before = words(transport);
    transport[at..at + 2].copy_from_slice(&value.to_be_bytes());
    let after = words(transport);
    let mut sum = u16::from_be_bytes([transport[16], transport[17]]);
    for (old, new) in before.into_iter().zip(after) {
        sum = checksum::replaced(sum, old, new);
    }
    transport[16..18].copy_from_slice(&sum.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bridge::sample;
    use proptest::prelude::*;

    const WRONG: &str = "a checksum is wrong";

    fn transport(options: &[u8]) -> Vec<u8> {
        sample::syn(false, 0, options).split_off(20)
    }

    fn is_right(transport: &[u8]) -> bool {
        sample::has_right_sum(false, transport)
    }

    #[test]
    fn it_is_lowered_and_never_raised() {
        for (options, most, expected) in [
            (&[2, 4, 0x05, 0xb4][..], 1_404, Some(1_404)),
            (&[2, 4, 0x05, 0xb4], 1_460, None),
            (&[2, 4, 0x05, 0xb4], 9_000, None),
            (&[1, 2, 4, 0x23, 0x28, 1, 1, 0], 1_404, Some(1_404)),
            (&[3, 3, 7, 2, 4, 0x05, 0xb4, 0], 1_404, Some(1_404)),
            (&[0, 2, 4, 0x05, 0xb4, 0, 0, 0], 1_404, None),
            (&[], 1_404, None),
            (&[2, 4], 1_404, None),
            (&[8, 0, 2, 4, 5, 0xb4, 0, 0], 1_404, None),
        ] {
            let mut bytes = transport(options);
            let before = bytes.clone();
            assert!(is_right(&bytes), "{WRONG}");
            let changed = clamp(&mut bytes, most);
            assert_eq!(changed, expected.is_some(), "{options:?}");
            assert!(is_right(&bytes), "{WRONG}: {options:?}");
            match expected {
                Some(size) => assert!(bytes.windows(4).any(|part| part == [[2, 4], u16::to_be_bytes(size)].concat())),
                None => assert_eq!(bytes, before),
            }
        }
    }

    proptest! {
        #[test]
        fn hostile_options_are_read_within_bounds(bytes in prop::collection::vec(any::<u8>(), 0..80), most: u16) {
            let mut bytes = bytes;
            let size = bytes.len();
            clamp(&mut bytes, most);
            prop_assert_eq!(bytes.len(), size);
        }

        #[test]
        fn sums_stay_right(options in prop::collection::vec(prop_oneof![Just(1_u8), Just(2), Just(4), any::<u8>()], 0..40), most: u16) {
            let mut bytes = transport(&options);
            clamp(&mut bytes, most);
            prop_assert!(is_right(&bytes));
        }
    }
}
