//! The Internet checksum [RFC 1071].

use std::net::IpAddr;

/// Of these bytes and what was summed up before, not folded.
fn add(sum: u64, bytes: &[u8]) -> u64 {
    let mut words = bytes.chunks_exact(4);
    // In the order of this machine: the sum of swapped bytes is the sum, swapped [RFC 1071 §2 B].
    let sum =
        words.by_ref().fold(sum, |sum, word| sum + u64::from(u32::from_ne_bytes([word[0], word[1], word[2], word[3]])));
    let mut rest = [0; 4];
    let left = words.remainder();
    rest[..left.len()].copy_from_slice(left);
    sum + u64::from(u32::from_ne_bytes(rest))
}

/// Folded into 16 bits, in network order.
#[allow(clippy::cast_possible_truncation, reason = "folded into 16 bits")]
const fn fold(sum: u64) -> u16 {
    let sum = (sum & 0xffff_ffff) + (sum >> 32);
    let sum = (sum & 0xffff_ffff) + (sum >> 32);
    let sum = (sum & 0xffff) + (sum >> 16);
    let sum = (sum & 0xffff) + (sum >> 16);
    ((sum & 0xffff) + (sum >> 16)) as u16
}

/// What a transport's checksum is over besides itself: its length is at most that of a packet.
fn pseudo(source: IpAddr, destination: IpAddr, protocol: u8, length: usize) -> u64 {
    let addresses = match (source, destination) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => add(add(0, &source.octets()), &destination.octets()),
        _ => {
            let octets = |address: IpAddr| match address {
                IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
                IpAddr::V6(address) => address.octets(),
            };
            add(add(0, &octets(source)), &octets(destination))
        }
    };
    #[allow(clippy::cast_possible_truncation, reason = "a packet has less than 65 536 bytes")]
    let [high, low] = (length as u16).to_be_bytes();
    add(addresses, &[0, protocol, high, low])
}

/// The checksum of an IPv4 header whose own is zero.
pub(super) fn of_header(header: &[u8]) -> u16 {
    u16::from_be(!fold(add(0, header)))
}

/// The checksum of a transport's header and payload, in parts of which all but the last have an even length, in multiples of 4. The field is zero.
pub(super) fn of_transport(source: IpAddr, destination: IpAddr, protocol: u8, parts: &[&[u8]]) -> u16 {
    let length = parts.iter().map(|part| part.len()).sum();
    let sum = parts.iter().fold(pseudo(source, destination, protocol, length), |sum, part| add(sum, part));
    u16::from_be(!fold(sum))
}

/// Where the field at `at` holds the sum of the pseudo-header alone, which is where a host leaves the rest to its adapter: the whole
/// checksum in its place.
pub(super) fn complete(source: IpAddr, destination: IpAddr, protocol: u8, transport: &mut [u8], at: usize) {
    let head = fold(pseudo(source, destination, protocol, transport.len()));
    let Some(field) = transport.get(at..at + 2) else { return };
    if u16::from_ne_bytes([field[0], field[1]]) != head {
        return;
    }
    transport[at..at + 2].fill(0);
    let sum = of_transport(source, destination, protocol, &[transport]);
    transport[at..at + 2].copy_from_slice(&sum.to_be_bytes());
}

/// A checksum after one of the words that it is over was replaced [RFC 1624 eq. 3].
pub(super) const fn replaced(sum: u16, old: u16, new: u16) -> u16 {
    !fold(!sum as u64 + !old as u64 + new as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Word by word.
    fn plain(bytes: &[u8]) -> u16 {
        let sum: u32 =
            bytes.chunks(2).map(|word| u32::from(word[0]) << 8 | u32::from(*word.get(1).unwrap_or(&0))).sum();
        let sum = (sum & 0xffff) + (sum >> 16);
        !u16::try_from((sum & 0xffff) + (sum >> 16)).unwrap()
    }

    proptest! {
        #[test]
        fn it_is_the_sum_of_words(bytes in prop::collection::vec(any::<u8>(), 0..1_600)) {
            prop_assert_eq!(of_header(&bytes), plain(&bytes));
        }

        #[test]
        fn a_replaced_word_is_as_if_it_had_been_so(mut bytes in prop::collection::vec(any::<u8>(), 4..64), at: prop::sample::Index, new: u16) {
            bytes.truncate(bytes.len() & !1);
            let at = at.index(bytes.len() / 2) * 2;
            let before = plain(&bytes);
            let old = u16::from_be_bytes([bytes[at], bytes[at + 1]]);
            bytes[at..at + 2].copy_from_slice(&new.to_be_bytes());
            let (after, expected) = (replaced(before, old, new), plain(&bytes));
            // Zero has two faces in this arithmetic.
            prop_assert!(after == expected || (after ^ expected == 0xffff && (after == 0 || expected == 0)));
        }
    }
}
