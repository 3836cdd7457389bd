//! What a packet means, never its bytes: drivers build and parse those at their own border.

use crate::units::{Bytes, Time};

/// Absolute offset in a connection's byte stream; the SYN occupies 0, the first byte of data is 1. Never wraps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Seq(u64);

impl Seq {
    /// The SYN's sequence number.
    pub const SYN: Seq = Seq(0);
    /// The sequence number of the first byte of data.
    pub const FIRST: Seq = Seq(1);

    /// The sequence number at this offset.
    pub const fn new(offset: u64) -> Seq {
        Seq(offset)
    }
    /// The offset.
    pub const fn get(self) -> u64 {
        self.0
    }
    /// `bytes` further on.
    pub const fn plus(self, bytes: u64) -> Seq {
        Seq(self.0 + bytes)
    }
    /// Bytes from `earlier` to here; zero if `earlier` is in fact later.
    pub const fn since(self, earlier: Seq) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
    /// The 32 bits that travel [RFC 9293 §3.4].
    #[allow(clippy::cast_possible_truncation, reason = "truncation is the meaning")]
    pub const fn wire(self) -> u32 {
        self.0 as u32
    }
    /// The sequence number nearest to `near` whose low 32 bits are `wire`. The inverse of [`Seq::wire`] for any peer
    /// less than 2³¹ bytes away.
    #[allow(clippy::cast_possible_truncation, reason = "the low half is compared")]
    pub const fn expand(wire: u32, near: Seq) -> Seq {
        let distance = wire.wrapping_sub(near.0 as u32) as i32;
        Seq(near.0.wrapping_add_signed(distance as i64))
    }
}

/// The two ECN bits of the IP header [RFC 3168 §5].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Ecn {
    /// The sender does not understand ECN: a queue may only drop.
    #[default]
    NotCapable = 0,
    /// ECT(1), which says that the sender is scalable: L4S [RFC 9331].
    Capable1 = 1,
    /// ECT(0).
    Capable = 2,
    /// Congestion experienced.
    Marked = 3,
}

/// TCP header flags, as a set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Flags(u8);

impl Flags {
    /// No flag.
    pub const NONE: Flags = Flags(0);
    /// Opens a connection.
    pub const SYN: Flags = Flags(1);
    /// The acknowledgement field is meaningful.
    pub const ACK: Flags = Flags(2);
    /// ECE [RFC 3168 §6.1].
    pub const ECE: Flags = Flags(4);
    /// Congestion window reduced [RFC 3168 §6.1].
    pub const CWR: Flags = Flags(8);
    /// Nothing follows soon: the receiver hands it up at once.
    pub const PSH: Flags = Flags(16);
    /// A packet of an RDMA connection, not a TCP segment; with [`Flags::ACK`] an acknowledgement, without it data.
    pub const RDMA: Flags = Flags(32);
    /// Of an RDMA acknowledgement: the packet that was expected is missing. The bit is [`Flags::CWR`] of TCP.
    pub const NAK: Flags = Flags(8);
    /// Of RDMA data: an acknowledgement is to go at once. The bit is [`Flags::PSH`] of TCP.
    pub const ACK_REQUEST: Flags = Flags(16);
    /// Its last byte ends a message. No flag of TCP, whose applications learn it from the bytes.
    pub const END: Flags = Flags(64);

    /// Both sets together.
    pub const fn with(self, other: Flags) -> Flags {
        Flags(self.0 | other.0)
    }
    /// `other` added if `condition`.
    pub const fn with_if(self, other: Flags, condition: bool) -> Flags {
        if condition { self.with(other) } else { self }
    }
    /// Whether every flag of `other` is set.
    pub const fn contains(self, other: Flags) -> bool {
        self.0 & other.0 == other.0
    }
    /// The set as bits, for a driver's compact record.
    pub const fn bits(self) -> u8 {
        self.0
    }
    /// The set with these bits, the inverse of [`Flags::bits`].
    pub const fn from_bits(bits: u8) -> Flags {
        Flags(bits)
    }
}

/// Up to three ranges of bytes that arrived out of order, newest first [RFC 2018 §4]; a leading range below the
/// acknowledgement reports a duplicate [RFC 2883 §4]. Three is what fits beside timestamps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct SackBlocks {
    blocks: [(u32, u32); 3],
    len: u8,
}

impl SackBlocks {
    /// No block.
    pub const NONE: SackBlocks = SackBlocks { blocks: [(0, 0); 3], len: 0 };

    /// Adds `[start, end)`; the fourth and later ones are left out, as in the option field.
    pub fn push(&mut self, start: Seq, end: Seq) {
        self.push_wire((start.wire(), end.wire()));
    }
    /// The same in wire numbers.
    pub fn push_wire(&mut self, block: (u32, u32)) {
        if usize::from(self.len) < self.blocks.len() {
            self.blocks[usize::from(self.len)] = block;
            self.len += 1;
        }
    }
    /// The blocks in order, each `[start, end)` in wire numbers.
    pub fn iter(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        self.blocks[..usize::from(self.len)].iter().copied()
    }
    /// Number of blocks, 0–3.
    pub const fn len(&self) -> usize {
        self.len as usize
    }
    /// Whether there is none.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }
}

/// What the application says of the bytes that a segment carries: stands for the header that a real message begins
/// with, so that a receiver learns of messages from packets alone. Zero is no tag.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tag(pub u32);

/// One TCP segment in one IP packet; with [`Flags::RDMA`] a packet of an RDMA connection, which has no `window`; or, without that,
/// [`Flags::ACK`] and [`Flags::SYN`], a datagram, of which `seq`, `length`, `tag` and [`Flags::END`] alone have a meaning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Segment {
    /// First byte carried, low 32 bits.
    pub seq: u32,
    /// Next byte expected by the segment's sender, low 32 bits; meaningful with [`Flags::ACK`].
    pub ack: u32,
    /// Bytes of payload.
    pub length: u16,
    /// Header flags.
    pub flags: Flags,
    /// ECN bits of the IP header.
    pub ecn: Ecn,
    /// Receive window, scaled as its host's profile says, rounded down.
    pub window: u16,
    /// Sender's clock in milliseconds [RFC 7323 §3]. Of RDMA, the number of the transmission: it stands for an adapter's timestamp
    /// and tells repetitions apart.
    pub timestamp: u32,
    /// The peer's clock, echoed.
    pub timestamp_echo: u32,
    /// Selective acknowledgements.
    pub sack: SackBlocks,
    /// The message that this segment's bytes belong to.
    pub tag: Tag,
}

/// IP and TCP headers with the timestamp option.
pub const HEADER_BYTES: u64 = 52;
/// A SYN or SYN-ACK: IP, TCP and the options MSS, SACK permitted, timestamps, window scale.
pub const SYN_BYTES: u64 = 60;
/// IP and UDP headers [RFC 768].
pub const DATAGRAM_HEADER_BYTES: u64 = 28;
/// Around data of RDMA over IP: IP, UDP, the base transport header and the check over all of it [IBTA A17].
pub const RDMA_HEADER_BYTES: u64 = 44;
/// An acknowledgement of RDMA: the same and its extended header [IBTA §9.7].
pub const RDMA_ACK_BYTES: u64 = 48;
/// What a negative one is longer by if it says which packet came out of order [IRN §3.1].
pub const RDMA_SELECTIVE_BYTES: u64 = 4;

/// Ethernet framing around an IP packet: header and check, preamble, gap.
pub const FRAMING_BYTES: u64 = 38;
/// The shortest frame with its preamble and gap.
pub const MIN_WIRE_BYTES: u64 = 84;

/// What an IP packet of this size occupies on the wire.
#[inline]
pub const fn wire_bytes(ip_bytes: Bytes) -> Bytes {
    let framed = ip_bytes.get() + FRAMING_BYTES;
    Bytes::new(if framed > MIN_WIRE_BYTES { framed } else { MIN_WIRE_BYTES })
}

/// The largest IP packet of a network, bytes: 576 [RFC 1122 §3.3.2] to 9216.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Mtu(u16);

impl Mtu {
    /// The least and the largest.
    pub const RANGE: (u16, u16) = (576, 9_216);
    /// Ethernet's.
    pub const ETHERNET: Mtu = Mtu(1_500);

    /// This many bytes, if they are within the range.
    pub const fn new(bytes: u16) -> Option<Mtu> {
        if Mtu::RANGE.0 <= bytes && bytes <= Mtu::RANGE.1 { Some(Mtu(bytes)) } else { None }
    }
    /// As a number.
    pub const fn get(self) -> u16 {
        self.0
    }
    /// IP bytes of a full packet.
    pub const fn packet(self) -> Bytes {
        Bytes::new(self.0 as u64)
    }
    /// Bytes of a full packet on the wire, with [`FRAMING_BYTES`].
    pub const fn frame(self) -> Bytes {
        Bytes::new(self.0 as u64 + FRAMING_BYTES)
    }
    /// Payload of a full TCP segment, bytes.
    #[allow(clippy::cast_possible_truncation, reason = "headers are short")]
    pub const fn segment_payload(self) -> u16 {
        self.0 - HEADER_BYTES as u16
    }
    /// Payload of a full datagram, bytes.
    #[allow(clippy::cast_possible_truncation, reason = "headers are short")]
    pub const fn datagram_payload(self) -> u16 {
        self.0 - DATAGRAM_HEADER_BYTES as u16
    }
    /// Payload of a full packet of RDMA, bytes.
    #[allow(clippy::cast_possible_truncation, reason = "headers are short")]
    pub const fn rdma_payload(self) -> u16 {
        self.0 - RDMA_HEADER_BYTES as u16
    }
    /// Whether it is Ethernet's: then plans leave it out.
    pub fn is_ethernet(&self) -> bool {
        *self == Mtu::ETHERNET
    }
}

impl Default for Mtu {
    fn default() -> Mtu {
        Mtu::ETHERNET
    }
}

impl Segment {
    /// Size of the IP packet: what queues, limits and thresholds count.
    #[inline(always)]
    pub const fn ip_bytes(&self) -> Bytes {
        if self.flags.bits() & Flags::SYN.with(Flags::ACK).with(Flags::RDMA).bits() != Flags::ACK.bits() {
            return self.special_ip_bytes();
        }
        let sack = if self.sack.is_empty() { 0 } else { 4 + 8 * self.sack.len() as u64 };
        Bytes::new(HEADER_BYTES + sack + self.length as u64)
    }

    /// The same of all but segments of open connections.
    const fn special_ip_bytes(&self) -> Bytes {
        Bytes::new(if self.flags.contains(Flags::SYN) {
            SYN_BYTES
        } else if !self.flags.contains(Flags::RDMA) {
            DATAGRAM_HEADER_BYTES + self.length as u64
        } else if !self.flags.contains(Flags::ACK) {
            RDMA_HEADER_BYTES + self.length as u64
        } else if self.sack.is_empty() {
            RDMA_ACK_BYTES
        } else {
            RDMA_ACK_BYTES + RDMA_SELECTIVE_BYTES
        })
    }
}

/// A TCP timestamp: milliseconds, wrapping [RFC 7323 §5.4].
#[allow(clippy::cast_possible_truncation, reason = "timestamps wrap")]
pub const fn timestamp(now: Time) -> u32 {
    now.as_ms() as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn expanding_undoes_wire_near_the_peer(near in 0u64..1 << 40, distance in -(1i64 << 31) + 1..1i64 << 31) {
            prop_assume!(near as i64 + distance >= 0);
            let seq = Seq::new((near as i64 + distance) as u64);
            prop_assert_eq!(Seq::expand(seq.wire(), Seq::new(near)), seq);
        }
    }

    #[test]
    fn sizes_are_those_of_linux_with_timestamps() {
        let mut ack = Segment { flags: Flags::ACK, ..Segment::default() };
        assert_eq!(ack.ip_bytes(), Bytes::new(52));
        ack.sack.push(Seq::new(1), Seq::new(2));
        assert_eq!(ack.ip_bytes(), Bytes::new(64));
        ack.sack.push(Seq::new(4), Seq::new(5));
        ack.sack.push(Seq::new(7), Seq::new(8));
        assert_eq!(ack.ip_bytes(), Bytes::new(80));
        for bytes in [576, 1_500, 4_096, 9_000, 9_216] {
            let mtu = Mtu::new(bytes).unwrap();
            let data = Segment { length: mtu.segment_payload(), flags: Flags::ACK, ..Segment::default() };
            let datagram = Segment { length: mtu.datagram_payload(), ..Segment::default() };
            let rdma = Segment { length: mtu.rdma_payload(), flags: Flags::RDMA, ..Segment::default() };
            assert_eq!([data, datagram, rdma].map(|segment| segment.ip_bytes()), [Bytes::new(bytes.into()); 3]);
        }
        let mut ack = Segment { flags: Flags::RDMA.with(Flags::ACK), ..Segment::default() };
        assert_eq!(ack.ip_bytes(), Bytes::new(48));
        ack.sack.push(Seq::new(1), Seq::new(2));
        assert_eq!(ack.ip_bytes(), Bytes::new(52));
        assert_eq!((Mtu::ETHERNET.segment_payload(), Mtu::ETHERNET.frame()), (1_448, Bytes::new(1_538)));
        assert_eq!([575, 9_217].map(Mtu::new), [None; 2]);
    }
}
