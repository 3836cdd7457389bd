//! A frame with a TCP packet: its bytes as they came, and what the edge must know of it. What the edge changes is kept beside the bytes
//! and written when it leaves.

use std::net::IpAddr;

use narrows_core::edge::dcib::{Packet, Segment};
use narrows_core::packet::Ecn;
use narrows_core::rng::mix;
use narrows_core::units::Bytes;
use narrows_testbed::packet::Header;
use narrows_wire::tunnel::Path;

use super::checksum;

/// Room ahead of a frame for what is put around it: headers of IPv6 and UDP, and the shim.
pub(super) const HEADROOM: usize = 40 + 8 + 28;
/// Bytes of a TCP header without options.
const TCP_HEADER: usize = 20;
const TCP: u8 = 6;

/// One direction of a TCP connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Flow {
    /// Ports first: they tell most connections apart.
    ports: [u16; 2],
    /// As of IPv6.
    source: u128,
    destination: u128,
}

impl Flow {
    const fn reversed(self) -> Flow {
        let [from, to] = self.ports;
        Flow { ports: [to, from], source: self.destination, destination: self.source }
    }

    /// A number that differs between most connections, and is the same for all packets of one.
    pub(super) const fn hash(&self) -> u64 {
        let [from, to] = self.ports;
        mix(fold(self.source) ^ mix(fold(self.destination) ^ ((from as u64) << 16 | to as u64)))
    }
}

#[allow(clippy::cast_possible_truncation, reason = "both halves are mixed")]
const fn fold(address: u128) -> u64 {
    mix((address >> 64) as u64) ^ address as u64
}

/// See the [module](self).
#[derive(Clone, Debug)]
pub(super) struct Frame {
    /// [`HEADROOM`] bytes of room, then the frame.
    buffer: Vec<u8>,
    /// Where it begins.
    begin: usize,
    /// Bytes of its link header.
    link: usize,
    header: Header,
    /// What it leaves with.
    ecn: Ecn,
    segment: Option<Segment<Flow>>,
    /// It may be marked: with what is put around it it is not too long.
    pub(super) fits: bool,
    /// When it came, nanoseconds of `CLOCK_MONOTONIC`.
    pub(super) came_ns: u64,
}

impl Frame {
    /// Takes a frame whose packet is TCP and whole. `None` if it is not: it is to be sent on as it is.
    pub(super) fn read(bytes: &[u8], link: usize, came_ns: u64) -> Option<Frame> {
        Frame::join(bytes.get(..link)?, bytes.get(link..)?, came_ns)
    }

    /// As [`Frame::read`], of a link header and a packet.
    pub(super) fn join(link: &[u8], packet: &[u8], came_ns: u64) -> Option<Frame> {
        let header = Header::parse(packet).ok()?;
        // What is behind the packet pads the frame.
        let packet = &packet[..usize::from(header.ip_bytes)];
        let segment = segment(&header, packet)?;
        let mut buffer = Vec::with_capacity(HEADROOM + link.len() + packet.len());
        buffer.resize(HEADROOM, 0);
        buffer.extend_from_slice(link);
        buffer.extend_from_slice(packet);
        let mut frame = Frame {
            buffer,
            begin: HEADROOM,
            link: link.len(),
            ecn: header.ecn,
            header,
            segment: Some(segment),
            fits: true,
            came_ns,
        };
        frame.complete_checksum();
        Some(frame)
    }

    /// The sum that a host leaves to its adapter: a virtual adapter may hand packets on without it.
    fn complete_checksum(&mut self) {
        let (source, destination) = (self.header.source, self.header.destination);
        let at = usize::from(self.header.header_bytes);
        let transport = &mut self.packet_mut()[at..];
        checksum::complete(source, destination, TCP, transport, 16);
    }

    /// Whether it goes by IPv6.
    pub(super) fn is_v6(&self) -> bool {
        self.header.source.is_ipv6()
    }

    /// From whom to whom.
    pub(super) fn path(&self) -> Path {
        Path { source: self.header.source, destination: self.header.destination }
    }

    pub(super) fn hop_limit(&self) -> u8 {
        self.header.hop_limit
    }

    /// Its link header.
    pub(super) fn link_header(&self) -> &[u8] {
        &self.buffer[self.begin..self.begin + self.link]
    }

    /// The IP packet.
    pub(super) fn packet(&self) -> &[u8] {
        &self.buffer[self.begin + self.link..]
    }

    fn packet_mut(&mut self) -> &mut [u8] {
        let at = self.begin + self.link;
        &mut self.buffer[at..]
    }

    /// The segment, whether or not it may be marked.
    pub(super) fn tcp(&self) -> Option<&Segment<Flow>> {
        self.segment.as_ref()
    }

    /// The TCP header and what is behind it.
    pub(super) fn transport_mut(&mut self) -> &mut [u8] {
        let at = usize::from(self.header.header_bytes);
        &mut self.packet_mut()[at..]
    }

    /// Its DSCP.
    pub(super) fn dscp(&self) -> u8 {
        class(self.packet()) >> 2
    }

    /// Writes DSCP and ECN bits, and keeps an IPv4 header's checksum right.
    fn set_class(&mut self, new: u8) {
        let packet = self.packet_mut();
        if packet[0] >> 4 == 6 {
            // Nothing sums over it [RFC 8200 §8.1].
            packet[0] = packet[0] & 0xf0 | new >> 4;
            packet[1] = packet[1] & 0x0f | new << 4;
            return;
        }
        let old = u16::from_be_bytes([packet[0], packet[1]]);
        packet[1] = new;
        let word = u16::from_be_bytes([packet[0], new]);
        let sum = u16::from_be_bytes([packet[10], packet[11]]);
        packet[10..12].copy_from_slice(&checksum::replaced(sum, old, word).to_be_bytes());
    }

    /// Sets its DSCP in its bytes.
    pub(super) fn set_dscp(&mut self, dscp: u8) {
        let class = dscp << 2 | class(self.packet()) & 3;
        self.set_class(class);
    }

    /// The frame as it leaves, with the ECN bits that it was given.
    pub(super) fn leave(mut self) -> Departing {
        let now = class(self.packet());
        let wanted = now & !3 | self.ecn as u8;
        if wanted != now {
            self.set_class(wanted);
        }
        Departing { bytes: self.buffer, begin: self.begin, came_ns: self.came_ns }
    }

    /// The frame with something between its link header and its packet, of [`HEADROOM`] bytes at most, which `fill` writes. The packet is as
    /// its host sent it.
    pub(super) fn wrapped(mut self, extra: usize, fill: impl FnOnce(&mut [u8])) -> Departing {
        let (old, link) = (self.begin, self.link);
        let begin = old.checked_sub(extra).expect("there is room for what goes around a packet, once");
        self.buffer.copy_within(old..old + link, begin);
        fill(&mut self.buffer[begin + link..old + link]);
        Departing { bytes: self.buffer, begin, came_ns: self.came_ns }
    }
}

impl Packet for Frame {
    type Flow = Flow;

    fn ip_bytes(&self) -> Bytes {
        Bytes::new(self.header.ip_bytes.into())
    }

    fn ecn(&self) -> Ecn {
        self.ecn
    }

    fn set_ecn(&mut self, ecn: Ecn) {
        self.ecn = ecn;
    }

    fn segment(&self) -> Option<Segment<Flow>> {
        self.segment.filter(|_| self.fits)
    }
}

/// A frame that is to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Departing {
    bytes: Vec<u8>,
    begin: usize,
    /// When the frame that it comes from came.
    pub(super) came_ns: u64,
}

impl Departing {
    /// These bytes.
    pub(super) fn new(bytes: Vec<u8>, came_ns: u64) -> Departing {
        Departing { bytes, begin: 0, came_ns }
    }

    /// From its link header on.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes[self.begin..]
    }
}

/// The eight bits of DSCP and ECN.
pub(super) fn class(packet: &[u8]) -> u8 {
    match packet {
        [version, class, ..] if version >> 4 == 4 => *class,
        [version, class, ..] => version << 4 | class >> 4,
        _ => 0,
    }
}

/// What an edge must know of a packet; `None` if it is not TCP, or a part of it alone.
fn segment(header: &Header, packet: &[u8]) -> Option<Segment<Flow>> {
    if header.protocol != TCP || !header.whole {
        return None;
    }
    let transport = packet.get(usize::from(header.header_bytes)..)?;
    let fixed: &[u8; TCP_HEADER] = transport.first_chunk()?;
    let size = usize::from(fixed[12] >> 4) * 4;
    if size < TCP_HEADER || size > transport.len() {
        return None;
    }
    let word = |at: usize| u32::from_be_bytes([fixed[at], fixed[at + 1], fixed[at + 2], fixed[at + 3]]);
    let address = |address: IpAddr| match address {
        IpAddr::V4(address) => address.to_ipv6_mapped().to_bits(),
        IpAddr::V6(address) => address.to_bits(),
    };
    let ports = [u16::from_be_bytes([fixed[0], fixed[1]]), u16::from_be_bytes([fixed[2], fixed[3]])];
    let flow = Flow { ports, source: address(header.source), destination: address(header.destination) };
    let flags = fixed[13];
    let (fin, syn, ack) = (flags & 1 != 0, flags & 2 != 0, flags & 16 != 0);
    let payload = u32::try_from(transport.len() - size).ok()?;
    Some(Segment {
        flow,
        reverse: flow.reversed(),
        seq: word(4),
        length: payload + u32::from(fin) + u32::from(syn),
        payload,
        syn,
        ack: ack.then(|| word(8)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bridge::sample;
    use proptest::prelude::*;

    #[test]
    fn a_segment_is_what_its_header_says() {
        let bytes = sample::tcp(false, 14, 2, 1_000, &[7; 100]);
        let frame = Frame::read(&bytes, 14, 5).unwrap();
        let segment = frame.segment().unwrap();
        assert_eq!((segment.seq, segment.length, segment.payload, segment.syn), (1_000, 100, 100, false));
        assert_eq!(segment.reverse.reversed(), segment.flow);
        assert_eq!((frame.ecn(), frame.ip_bytes(), frame.dscp()), (Ecn::Capable, Bytes::new(140), 0));
        assert_eq!(frame.leave().bytes(), bytes);
    }

    proptest! {
        #[test]
        fn what_is_not_changed_leaves_as_it_came(v6: bool, raw: bool, class: u8, seq: u32, payload in prop::collection::vec(any::<u8>(), 0..1_400), pad in 0_usize..4) {
            let link = if raw { 0 } else { 14 };
            let bytes = sample::tcp(v6, link, class, seq, &payload);
            let padded = [&bytes[..], &vec![0; pad]].concat();
            let frame = Frame::read(&padded, link, 0).unwrap();
            let left = frame.clone().leave();
            prop_assert_eq!(left.bytes(), &bytes[..]);
            let wrapped = frame.wrapped(HEADROOM, |room| room.fill(9));
            prop_assert_eq!(&wrapped.bytes()[..link], &bytes[..link]);
            prop_assert_eq!(&wrapped.bytes()[link + HEADROOM..], &bytes[link..]);
        }

        #[test]
        fn other_bits_leave_a_right_checksum(v6: bool, class: u8, dscp in 0_u8..64, ecn in 0_u8..4) {
            let bytes = sample::tcp(v6, 0, class, 1, &[1; 10]);
            let mut frame = Frame::read(&bytes, 0, 0).unwrap();
            frame.set_dscp(dscp);
            frame.set_ecn([Ecn::NotCapable, Ecn::Capable1, Ecn::Capable, Ecn::Marked][usize::from(ecn)]);
            let (left, expected) = (frame.leave(), sample::tcp(v6, 0, dscp << 2 | ecn, 1, &[1; 10]));
            prop_assert_eq!(left.bytes(), &expected[..]);
        }

        #[test]
        fn hostile_bytes_are_read_within_bounds(mut bytes in prop::collection::vec(any::<u8>(), 0..120), v6: bool) {
            if let Some(first) = bytes.first_mut() {
                *first = if v6 { 0x60 } else { 0x45 };
            }
            if let Some(frame) = Frame::read(&bytes, 0, 0) {
                prop_assert!(frame.leave().bytes().len() <= bytes.len());
            }
        }

        #[test]
        fn a_sum_that_was_left_to_an_adapter_is_made(v6: bool, payload in prop::collection::vec(any::<u8>(), 0..300)) {
            let bytes = sample::tcp(v6, 14, 0, 77, &payload);
            let left = Frame::read(&sample::partial(&bytes, 14), 14, 0).unwrap().leave();
            prop_assert_eq!(left.bytes(), &bytes[..]);
        }
    }
}
