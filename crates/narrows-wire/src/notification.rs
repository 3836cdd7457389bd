//! A switch tells a sender how congested the port is that its packet came to: QCN's notification [802.1Qau] as a UDP
//! datagram. Everything is in network byte order.
//!
//! | bytes | what |
//! |---|---|
//! | 0 | version, 1 |
//! | 1 | kind, 1: a congestion notification |
//! | 2 | quantised feedback, 1 to 63 |
//! | 3 | what the quoted addresses are: 4 or 6 |
//! | 4–11 | who says so: the congestion point |
//! | 12–19 | when: nanoseconds since 1970 of the switch's clock, later than in its notification before |
//! | 20–23 | backlog less set point, bytes, signed |
//! | 24–27 | backlog less what it was at the sample before, bytes, signed |
//! | 28–29, 30–31 | the quoted packet's TCP ports: source, destination |
//! | 32–35 | its sequence number: of its first byte |
//! | 36–37 | its payload, bytes |
//! | 38–39 | zero |
//! | 40–55, 56–71 | its addresses: source, destination; IPv4 in the first four bytes, zeros behind them |
//! | 72–87 | tag: the first half of HMAC-SHA-256 over the bytes before |

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use crate::admission::Pair;
use crate::key::{Key, TAG};
use crate::refusal::Refusal;

/// Bytes of the datagram's payload: as many as the standard's frame with the packet that it quotes.
pub const LENGTH: usize = 88;
/// Bytes that the tag is over.
const TAGGED: usize = LENGTH - TAG;
/// The UDP port that hosts listen on: the EtherType of the standard's frame, 0x22e7.
pub const PORT: u16 = 0x22e7;
/// The hop limit that switches send with and hosts demand: no router was in between [RFC 5082].
pub const HOP_LIMIT: u8 = 255;
/// Largest feedback.
pub const MAX_FEEDBACK: u8 = 63;

const VERSION: u8 = 1;
const KIND: u8 = 1;

/// The connection and direction that a notification is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Flow {
    /// Who sent the quoted packet: an end of this host.
    pub source: SocketAddr,
    /// Whom it was for. Of the same family.
    pub destination: SocketAddr,
}

/// What a switch tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Notification {
    /// The congestion point.
    pub sender: u64,
    /// Nanoseconds since 1970 of the switch's clock; each is later than the sender's before.
    pub sent_ns: u64,
    /// How congested its queue is: 1 to [`MAX_FEEDBACK`].
    pub feedback: u8,
    /// Backlog less set point, bytes; what does not fit is at the end of the range.
    pub offset: i32,
    /// Backlog less what it was at the sample before, bytes; likewise.
    pub growth: i32,
    /// Whose packet was sampled.
    pub flow: Flow,
    /// The sampled packet's sequence number.
    pub seq: u32,
    /// The sampled packet's payload, bytes.
    pub payload: u16,
}

impl Notification {
    /// The datagram's payload.
    ///
    /// # Panics
    /// If the flow's addresses are of two families.
    pub fn seal(&self, key: &Key) -> [u8; LENGTH] {
        let mut bytes = [0; LENGTH];
        let Flow { source, destination } = self.flow;
        assert_eq!(source.is_ipv4(), destination.is_ipv4(), "a flow has addresses of one family");
        bytes[..4].copy_from_slice(&[VERSION, KIND, self.feedback, if source.is_ipv4() { 4 } else { 6 }]);
        put(&mut bytes, 4, self.sender.to_be_bytes());
        put(&mut bytes, 12, self.sent_ns.to_be_bytes());
        put(&mut bytes, 20, self.offset.to_be_bytes());
        put(&mut bytes, 24, self.growth.to_be_bytes());
        put(&mut bytes, 28, source.port().to_be_bytes());
        put(&mut bytes, 30, destination.port().to_be_bytes());
        put(&mut bytes, 32, self.seq.to_be_bytes());
        put(&mut bytes, 36, self.payload.to_be_bytes());
        put_address(&mut bytes, 40, source.ip());
        put_address(&mut bytes, 56, destination.ip());
        let tag = key.tag(&bytes[..TAGGED]);
        put(&mut bytes, TAGGED, tag);
        bytes
    }
}

/// A datagram of the right layout. Nothing that it says is believed yet.
#[derive(Clone, Copy, Debug)]
pub struct Unverified<'a> {
    bytes: &'a [u8; LENGTH],
    said: Notification,
}

impl<'a> Unverified<'a> {
    /// Reads a datagram's payload. Never panics, whatever the bytes.
    ///
    /// # Errors
    /// [`Refusal::Malformed`].
    pub fn parse(bytes: &'a [u8]) -> Result<Unverified<'a>, Refusal> {
        let bytes: &[u8; LENGTH] = bytes.try_into().map_err(|_| Refusal::Malformed)?;
        let unused: [u8; 2] = take(bytes, 38);
        if bytes[0] != VERSION || bytes[1] != KIND || unused != [0; 2] {
            return Err(Refusal::Malformed);
        }
        let family = bytes[3];
        let end = |address, port| {
            let port = u16::from_be_bytes(take(bytes, port));
            take_address(bytes, address, family).map(|address| SocketAddr::new(address, port))
        };
        let said = Notification {
            sender: u64::from_be_bytes(take(bytes, 4)),
            sent_ns: u64::from_be_bytes(take(bytes, 12)),
            feedback: bytes[2],
            offset: i32::from_be_bytes(take(bytes, 20)),
            growth: i32::from_be_bytes(take(bytes, 24)),
            flow: Flow { source: end(40, 28)?, destination: end(56, 30)? },
            seq: u32::from_be_bytes(take(bytes, 32)),
            payload: u16::from_be_bytes(take(bytes, 36)),
        };
        Ok(Unverified { bytes, said })
    }

    /// Who it says has sent it, and to which address: that of the packet that was sampled.
    pub const fn pair(&self) -> Pair {
        (self.said.sender, self.said.flow.source.ip())
    }

    /// What it says, if who holds the key said so.
    ///
    /// # Errors
    /// [`Refusal::Unauthenticated`].
    pub fn verify(&self, key: &Key) -> Result<Notification, Refusal> {
        let is_genuine = key.is_tag(&self.bytes[..TAGGED], &take(self.bytes, TAGGED));
        if is_genuine { Ok(self.said) } else { Err(Refusal::Unauthenticated) }
    }
}

fn put<const N: usize>(bytes: &mut [u8; LENGTH], at: usize, value: [u8; N]) {
    bytes[at..at + N].copy_from_slice(&value);
}

fn put_address(bytes: &mut [u8; LENGTH], at: usize, address: IpAddr) {
    match address {
        IpAddr::V4(address) => put(bytes, at, address.octets()),
        IpAddr::V6(address) => put(bytes, at, address.octets()),
    }
}

fn take<const N: usize>(bytes: &[u8; LENGTH], at: usize) -> [u8; N] {
    std::array::from_fn(|i| bytes[at + i])
}

fn take_address(bytes: &[u8; LENGTH], at: usize, family: u8) -> Result<IpAddr, Refusal> {
    let octets: [u8; 16] = take(bytes, at);
    match family {
        4 if octets[4..] == [0; 12] => Ok(Ipv4Addr::new(octets[0], octets[1], octets[2], octets[3]).into()),
        6 => Ok(Ipv6Addr::from(octets).into()),
        _ => Err(Refusal::Malformed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const KEY: Key = Key::new([7; 32]);

    fn any_notification() -> impl Strategy<Value = Notification> {
        let ends = prop_oneof![
            any::<([u8; 4], [u8; 4])>().prop_map(|(one, other)| (IpAddr::from(one), IpAddr::from(other))),
            any::<([u8; 16], [u8; 16])>().prop_map(|(one, other)| (IpAddr::from(one), IpAddr::from(other))),
        ];
        let numbers = any::<(u64, u64, u8, i32, i32, u32, u16, u16, u16)>();
        (ends, numbers).prop_map(|((source, destination), numbers)| {
            let (sender, sent_ns, feedback, offset, growth, seq, payload, from, to) = numbers;
            let flow = Flow { source: (source, from).into(), destination: (destination, to).into() };
            Notification { sender, sent_ns, feedback, offset, growth, flow, seq, payload }
        })
    }

    /// As docs/reference/wire.md shows it, byte for byte, tag and all: what another implementation is to be compared with.
    #[test]
    fn the_documents_example_is_what_is_written() {
        let text = include_str!("../../../docs/reference/wire.md");
        let digits = text.split("```hex\n").nth(1).and_then(|rest| rest.split("```").next()).expect("an example");
        let digits: String = digits.split_whitespace().collect();
        let expected: Vec<u8> =
            (0..digits.len()).step_by(2).map(|at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap()).collect();
        let key = Key::parse("000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f").unwrap();
        let said = Notification {
            sender: 0x0000_0003_0000_0007,
            sent_ns: 1_767_225_600_000_000_000,
            feedback: 25,
            offset: 20_000,
            growth: 10_000,
            flow: Flow {
                source: "192.0.2.1:40000".parse().unwrap(),
                destination: "198.51.100.2:5001".parse().unwrap(),
            },
            seq: 123_456_789,
            payload: 1_448,
        };
        assert_eq!(said.seal(&key).as_slice(), expected);
        assert_eq!(Unverified::parse(&expected).unwrap().verify(&key), Ok(said));
    }

    proptest! {
        #[test]
        fn what_is_sealed_is_read(said in any_notification()) {
            let bytes = said.seal(&KEY);
            let read = Unverified::parse(&bytes).unwrap();
            prop_assert_eq!(read.pair(), (said.sender, said.flow.source.ip()));
            prop_assert_eq!(read.verify(&KEY), Ok(said));
            prop_assert_eq!(read.verify(&Key::new([8; 32])), Err(Refusal::Unauthenticated));
        }

        #[test]
        fn a_changed_bit_is_noticed(said in any_notification(), at in 0..LENGTH * 8) {
            let mut bytes = said.seal(&KEY);
            bytes[at / 8] ^= 1 << (at % 8);
            let outcome = Unverified::parse(&bytes).and_then(|read| read.verify(&KEY));
            prop_assert!(matches!(outcome, Err(Refusal::Malformed | Refusal::Unauthenticated)), "{:?}", outcome);
        }

        #[test]
        fn hostile_bytes_are_refused(bytes in prop::collection::vec(any::<u8>(), 0..2 * LENGTH)) {
            let outcome = Unverified::parse(&bytes).and_then(|read| read.verify(&KEY));
            prop_assert!(outcome.is_err());
        }
    }
}
