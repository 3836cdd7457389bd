//! Real packets: kept in a pool of buffers, and known to the network by what it asks of a payload.
//!
//! What comes out of a TUN device was written by a kernel, but by whatever program runs there: every length is checked
//! against the bytes at hand. The network's mark is kept beside the buffer and written into the bytes when the packet is
//! delivered: until then nobody reads them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use narrows_core::packet::Ecn;
use narrows_core::rng::mix;
use narrows_network::Payload;

/// Largest IP packet, bytes.
pub const LARGEST_PACKET: usize = 65_535;

/// Why bytes are not a packet that the network can carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// No header, or less of it than it says.
    #[error("the packet ends within its IP header")]
    Short,
    /// Neither IPv4 nor IPv6.
    #[error("the packet is neither IPv4 nor IPv6")]
    Version,
    /// Longer than the bytes at hand, or shorter than its own header.
    #[error("the packet's length contradicts its bytes")]
    Length,
}

/// What the network must know of an IP packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Size of the packet, bytes: at most as many as were at hand.
    pub ip_bytes: u16,
    /// Who sent it.
    pub source: IpAddr,
    /// Whom it is for.
    pub destination: IpAddr,
    /// The number of the protocol that it carries (IPv6: of the first header after its own).
    pub protocol: u8,
    /// Its ECN bits.
    pub ecn: Ecn,
    /// Over how many more switches it may go.
    pub hop_limit: u8,
    /// Bytes of the IP header: where the transport's begins. IPv6: without extension headers.
    pub header_bytes: u8,
    /// Whether the transport's header can be read behind it: the packet is no fragment.
    pub whole: bool,
}

const TCP: u8 = 6;
const UDP: u8 = 17;

impl Header {
    /// Reads the header of an IP packet.
    ///
    /// # Errors
    /// If the bytes are not a whole packet. Never panics, whatever the bytes.
    pub fn parse(bytes: &[u8]) -> Result<Header, Malformed> {
        match bytes.first().ok_or(Malformed::Short)? >> 4 {
            4 => Header::parse_v4(bytes),
            6 => Header::parse_v6(bytes),
            _ => Err(Malformed::Version),
        }
    }

    /// [RFC 791 §3.1]
    fn parse_v4(bytes: &[u8]) -> Result<Header, Malformed> {
        let fixed: &[u8; 20] = bytes.first_chunk().ok_or(Malformed::Short)?;
        let header_bytes = (fixed[0] & 0x0f) * 4;
        let ip_bytes = u16::from_be_bytes([fixed[2], fixed[3]]);
        if header_bytes < 20 || bytes.len() < usize::from(header_bytes) {
            return Err(Malformed::Short);
        }
        if usize::from(ip_bytes) > bytes.len() || ip_bytes < u16::from(header_bytes) {
            return Err(Malformed::Length);
        }
        // "More fragments" and the offset; not "don't fragment".
        let fragment = u16::from_be_bytes([fixed[6], fixed[7]]) & 0x3fff;
        let address = |at: usize| IpAddr::V4(Ipv4Addr::new(fixed[at], fixed[at + 1], fixed[at + 2], fixed[at + 3]));
        Ok(Header {
            ip_bytes,
            source: address(12),
            destination: address(16),
            protocol: fixed[9],
            ecn: ecn(fixed[1]),
            hop_limit: fixed[8],
            header_bytes,
            whole: fragment == 0,
        })
    }

    /// [RFC 8200 §3]
    fn parse_v6(bytes: &[u8]) -> Result<Header, Malformed> {
        let fixed: &[u8; 40] = bytes.first_chunk().ok_or(Malformed::Short)?;
        let payload = u16::from_be_bytes([fixed[4], fixed[5]]);
        let ip_bytes = payload.checked_add(40).ok_or(Malformed::Length)?;
        if usize::from(ip_bytes) > bytes.len() {
            return Err(Malformed::Length);
        }
        let address = |at: usize| {
            let octets: [u8; 16] = std::array::from_fn(|i| fixed[at + i]);
            IpAddr::V6(Ipv6Addr::from(octets))
        };
        Ok(Header {
            ip_bytes,
            source: address(8),
            destination: address(24),
            protocol: fixed[6],
            ecn: ecn(fixed[1] >> 4),
            hop_limit: fixed[7],
            header_bytes: 40,
            whole: true,
        })
    }

    /// The ports of a TCP or UDP packet: source, destination. `None` for other protocols, fragments, and where the bytes
    /// end before them.
    pub fn ports(&self, bytes: &[u8]) -> Option<(u16, u16)> {
        if !self.whole || !matches!(self.protocol, TCP | UDP) {
            return None;
        }
        let ports: &[u8; 4] = self.transport(bytes)?.first_chunk()?;
        Some((u16::from_be_bytes([ports[0], ports[1]]), u16::from_be_bytes([ports[2], ports[3]])))
    }

    /// Bytes of payload that a TCP packet carries; `None` if it is none.
    pub fn tcp_payload(&self, bytes: &[u8]) -> Option<u16> {
        if !self.whole || self.protocol != TCP {
            return None;
        }
        let transport = self.transport(bytes)?;
        let header = usize::from(transport.get(12)? >> 4) * 4;
        u16::try_from(transport.len().checked_sub(header)?).ok()
    }

    /// The sequence number of a TCP packet's first byte; `None` if it is none.
    pub fn tcp_seq(&self, bytes: &[u8]) -> Option<u32> {
        if !self.whole || self.protocol != TCP {
            return None;
        }
        let seq = self.transport(bytes)?.get(4..8)?;
        Some(u32::from_be_bytes([seq[0], seq[1], seq[2], seq[3]]))
    }

    /// A number that all packets of a flow in one direction share.
    pub fn flow_hash(&self, bytes: &[u8]) -> u32 {
        let (from, to) = self.ports(bytes).unwrap_or((0, 0));
        let address = |address: IpAddr| match address {
            IpAddr::V4(address) => u64::from(address.to_bits()),
            IpAddr::V6(address) => {
                let halves = address.to_bits();
                #[allow(clippy::cast_possible_truncation, reason = "both halves are mixed")]
                let (high, low) = ((halves >> 64) as u64, halves as u64);
                mix(high) ^ low
            }
        };
        let ends = mix(mix(address(self.source)) ^ address(self.destination));
        let all = mix(ends ^ u64::from(from) << 32 ^ u64::from(to) << 16 ^ u64::from(self.protocol));
        #[allow(clippy::cast_possible_truncation, reason = "a hash")]
        let hash = all as u32;
        hash
    }

    /// What lies behind the IP header, up to the packet's end.
    fn transport<'a>(&self, bytes: &'a [u8]) -> Option<&'a [u8]> {
        bytes.get(usize::from(self.header_bytes)..usize::from(self.ip_bytes))
    }
}

/// The two low bits of a traffic class.
const fn ecn(class: u8) -> Ecn {
    match class & 3 {
        0 => Ecn::NotCapable,
        1 => Ecn::Capable1,
        2 => Ecn::Capable,
        _ => Ecn::Marked,
    }
}

/// Sets "congestion experienced" in a packet that [`Header::parse`] has accepted, and keeps an IPv4 header's checksum
/// right. A packet that is marked stays as it is.
pub fn set_congestion_experienced(bytes: &mut [u8]) {
    match bytes {
        [version, class, ..] if *version >> 4 == 4 => {
            let word = [*version, *class | 3];
            replace(bytes, 0, word);
        }
        // The class straddles the first two bytes; nothing sums over it [RFC 8200 §8.1].
        [version, class, ..] if *version >> 4 == 6 => *class |= 3 << 4,
        _ => {}
    }
}

/// Takes as many hops off the limit of a packet that [`Header::parse`] has accepted, as switches forwarded it, and keeps an IPv4
/// header's checksum right. `false`, and nothing is changed, if the packet does not go so far [RFC 1812 §5.3.1].
pub fn take_hops(bytes: &mut [u8], switches: u8) -> bool {
    let is_v4 = bytes.first().is_some_and(|version| version >> 4 == 4);
    let at = if is_v4 { 8 } else { 7 };
    let Some(left) = bytes.get(at).and_then(|limit| limit.checked_sub(switches)).filter(|&left| left > 0) else {
        return false;
    };
    if is_v4 {
        let word = [left, bytes[at + 1]];
        replace(bytes, at, word);
    } else {
        bytes[at] = left;
    }
    true
}

/// Replaces a word of an IPv4 header, and keeps its checksum right [RFC 1624 eq. 3].
fn replace(bytes: &mut [u8], at: usize, word: [u8; 2]) {
    let Some(header) = bytes.first_chunk_mut::<20>() else { return };
    let old = u16::from_be_bytes([header[at], header[at + 1]]);
    header[at..at + 2].copy_from_slice(&word);
    let checksum = u16::from_be_bytes([header[10], header[11]]);
    let sum = u32::from(!checksum) + u32::from(!old) + u32::from(u16::from_be_bytes(word));
    // Twice: the first fold may carry.
    let sum = (sum & 0xffff) + (sum >> 16);
    let sum = (sum & 0xffff) + (sum >> 16);
    #[allow(clippy::cast_possible_truncation, reason = "folded into 16 bits")]
    let checksum = !(sum as u16);
    header[10..12].copy_from_slice(&checksum.to_be_bytes());
}

/// A packet inside the emulated network: where its bytes lie, and what the network asks of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Packet {
    /// Its buffer in the [`Pool`].
    pub(crate) buffer: u32,
    /// The node it is for.
    pub(crate) destination: u32,
    pub(crate) flow_hash: u32,
    pub(crate) ip_bytes: u16,
    pub(crate) ecn: Ecn,
    /// Whether it carries data of an application: of TCP, payload; of anything else, that it is there.
    pub(crate) has_data: bool,
}

impl Payload for Packet {
    #[inline]
    fn ip_bytes(&self) -> u32 {
        u32::from(self.ip_bytes)
    }
    #[inline]
    fn destination(&self) -> u32 {
        self.destination
    }
    #[inline]
    fn flow_hash(&self) -> u32 {
        self.flow_hash
    }
    #[inline]
    fn ecn_capable(&self) -> bool {
        self.ecn != Ecn::NotCapable
    }
    #[inline]
    fn is_l4s(&self) -> bool {
        matches!(self.ecn, Ecn::Capable1 | Ecn::Marked)
    }
    fn carries_data(&self) -> bool {
        self.has_data
    }
    #[inline]
    fn mark(&mut self) {
        self.ecn = Ecn::Marked;
    }
}

/// Buffers for packets inside the network, used again and again. Grows up to a bound, never shrinks.
#[derive(Debug)]
pub struct Pool {
    buffers: Vec<Box<[u8]>>,
    free: Vec<u32>,
    size: usize,
    most: u32,
}

impl Pool {
    /// An empty pool of at most `most` buffers with room for packets of up to `size` bytes each, at most
    /// [`LARGEST_PACKET`].
    pub fn new(size: usize, most: u32) -> Pool {
        Pool { buffers: Vec::new(), free: Vec::new(), size: size.min(LARGEST_PACKET), most }
    }

    /// A buffer; `None` if all are in use.
    pub fn take(&mut self) -> Option<u32> {
        if let Some(buffer) = self.free.pop() {
            return Some(buffer);
        }
        let buffer = u32::try_from(self.buffers.len()).ok().filter(|&number| number < self.most)?;
        self.buffers.push(vec![0; self.size].into_boxed_slice());
        Some(buffer)
    }

    /// Takes a buffer back.
    pub fn give_back(&mut self, buffer: u32) {
        debug_assert!(self.in_use() > 0, "more is given back than was taken");
        self.free.push(buffer);
    }

    /// All of a buffer.
    pub fn buffer(&mut self, buffer: u32) -> &mut [u8] {
        &mut self.buffers[buffer as usize]
    }

    /// All of two different buffers.
    pub fn two(&mut self, buffers: [u32; 2]) -> [&mut [u8]; 2] {
        let both = self.buffers.get_disjoint_mut(buffers.map(|buffer| buffer as usize));
        both.expect("they are different").map(|buffer| &mut **buffer)
    }

    /// The bytes of a packet as they are to be delivered: marked, if the network marked it.
    pub fn bytes(&mut self, packet: &Packet) -> &[u8] {
        let bytes = &mut self.buffers[packet.buffer as usize][..usize::from(packet.ip_bytes)];
        if packet.ecn == Ecn::Marked {
            set_congestion_experienced(bytes);
        }
        bytes
    }

    /// Buffers in use.
    pub fn in_use(&self) -> usize {
        self.buffers.len() - self.free.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use etherparse::{IpHeaders, Ipv4Header, NetSlice, PacketBuilder, SlicedPacket, TransportSlice};
    use proptest::prelude::*;

    /// A packet as an independent library builds it.
    fn built(v6: bool, tcp: bool, class: u8, ports: (u16, u16), payload: &[u8]) -> Vec<u8> {
        let ip = if v6 {
            PacketBuilder::ipv6([1; 16], [2; 16], 64)
        } else {
            PacketBuilder::ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64)
        };
        let mut bytes = Vec::new();
        if tcp {
            ip.tcp(ports.0, ports.1, 1, 1_000).write(&mut bytes, payload).unwrap();
        } else {
            ip.udp(ports.0, ports.1).write(&mut bytes, payload).unwrap();
        }
        let (headers, _) = IpHeaders::from_slice(&bytes).map(|(headers, rest)| (headers, rest.payload.len())).unwrap();
        let mut head = Vec::new();
        match headers {
            IpHeaders::Ipv4(mut header, _) => {
                header.dscp = (class >> 2).try_into().unwrap();
                header.ecn = (class & 3).try_into().unwrap();
                header.header_checksum = header.calc_header_checksum();
                header.write(&mut head).unwrap();
            }
            IpHeaders::Ipv6(mut header, _) => {
                header.traffic_class = class;
                header.write(&mut head).unwrap();
            }
        }
        bytes[..head.len()].copy_from_slice(&head);
        bytes
    }

    proptest! {
        #[test]
        fn hostile_bytes_are_refused_or_read_within_bounds(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            if let Ok(header) = Header::parse(&bytes) {
                prop_assert!(usize::from(header.ip_bytes) <= bytes.len());
                header.ports(&bytes);
                header.tcp_payload(&bytes);
                header.flow_hash(&bytes);
            }
            let mut bytes = bytes;
            set_congestion_experienced(&mut bytes);
        }

        /// Mostly whole packets with a few bytes changed or cut: what random bytes hardly ever reach.
        #[test]
        fn broken_packets_are_refused_or_read_within_bounds(v6: bool, tcp: bool, cut in 0usize..100,
            changes in prop::collection::vec((0usize..60, any::<u8>()), 0..6))
        {
            let mut bytes = built(v6, tcp, 2, (80, 81), &[7; 30]);
            for (at, value) in changes {
                let at = at % bytes.len();
                bytes[at] = value;
            }
            bytes.truncate(cut);
            if let Ok(header) = Header::parse(&bytes) {
                prop_assert!(usize::from(header.ip_bytes) <= bytes.len());
                header.ports(&bytes);
                header.tcp_payload(&bytes);
                header.flow_hash(&bytes);
            }
        }

        #[test]
        fn headers_read_as_an_independent_library_reads_them(v6: bool, tcp: bool, class: u8, ports: (u16, u16),
            payload in prop::collection::vec(any::<u8>(), 0..100), trailing in 0usize..4)
        {
            let mut bytes = built(v6, tcp, class, ports, &payload);
            let size = bytes.len();
            bytes.extend(std::iter::repeat_n(0, trailing));
            let header = Header::parse(&bytes).unwrap();
            prop_assert_eq!(usize::from(header.ip_bytes), size);
            prop_assert_eq!(header.ecn as u8, class & 3);
            prop_assert_eq!(header.ports(&bytes), Some(ports));
            prop_assert_eq!(header.tcp_payload(&bytes), tcp.then_some(u16::try_from(payload.len()).unwrap()));
            let sliced = SlicedPacket::from_ip(&bytes[..size]).unwrap();
            let ends = match sliced.net.unwrap() {
                NetSlice::Ipv4(ip) => (IpAddr::V4(ip.header().source_addr()), IpAddr::V4(ip.header().destination_addr())),
                NetSlice::Ipv6(ip) => (IpAddr::V6(ip.header().source_addr()), IpAddr::V6(ip.header().destination_addr())),
                NetSlice::Arp(_) => unreachable!("an IP packet"),
            };
            prop_assert_eq!((header.source, header.destination), ends);
            prop_assert!(matches!(sliced.transport, Some(TransportSlice::Tcp(_)) if tcp)
                || matches!(sliced.transport, Some(TransportSlice::Udp(_)) if !tcp));
        }

        /// [RFC 1624]: the increment agrees with summing anew, and the packet differs in nothing else.
        #[test]
        fn a_marked_header_has_the_checksum_of_a_full_sum(v6: bool, class: u8, id: u16, ttl: u8,
            payload in prop::collection::vec(any::<u8>(), 0..50))
        {
            let mut bytes = built(v6, true, class, (1, 2), &payload);
            if !v6 {
                let (mut header, _) = Ipv4Header::from_slice(&bytes).unwrap();
                (header.identification, header.time_to_live) = (id, ttl);
                header.header_checksum = header.calc_header_checksum();
                let mut head = Vec::new();
                header.write(&mut head).unwrap();
                bytes[..20].copy_from_slice(&head);
            }
            let before = bytes.clone();
            set_congestion_experienced(&mut bytes);
            prop_assert_eq!(Header::parse(&bytes).unwrap().ecn, Ecn::Marked);
            let first = if v6 { 2 } else { 12 };
            prop_assert_eq!(&bytes[first..], &before[first..]);
            if !v6 {
                let (header, _) = Ipv4Header::from_slice(&bytes).unwrap();
                prop_assert_eq!(header.header_checksum, header.calc_header_checksum());
                prop_assert_eq!(&bytes[2..10], &before[2..10]);
            }
            let once = bytes.clone();
            set_congestion_experienced(&mut bytes);
            prop_assert_eq!(bytes, once);
        }
    }

    #[test]
    fn hops_are_taken_and_the_last_switch_keeps_what_has_none_left() {
        for v6 in [false, true] {
            let mut bytes = built(v6, true, 0, (1, 2), &[]);
            let before = Header::parse(&bytes).unwrap();
            assert_eq!(before.hop_limit, 64);
            assert!(take_hops(&mut bytes, 3));
            assert_eq!(Header::parse(&bytes).unwrap(), Header { hop_limit: 61, ..before });
            if !v6 {
                let (header, _) = Ipv4Header::from_slice(&bytes).unwrap();
                assert_eq!(header.header_checksum, header.calc_header_checksum());
            }
            let once = bytes.clone();
            assert!(!take_hops(&mut bytes, 61) && !take_hops(&mut bytes, 255), "nothing would be left");
            assert_eq!(bytes, once);
            assert!(take_hops(&mut bytes, 60));
        }
    }

    #[test]
    fn packets_of_a_flow_share_a_hash_and_other_flows_have_others() {
        let hash = |tcp, ports, payload: &[u8]| {
            let bytes = built(false, tcp, 0, ports, payload);
            Header::parse(&bytes).unwrap().flow_hash(&bytes)
        };
        assert_eq!(hash(true, (1, 2), &[]), hash(true, (1, 2), &[1, 2, 3]));
        let others = [hash(true, (2, 1), &[]), hash(true, (1, 3), &[]), hash(false, (1, 2), &[])];
        assert!(others.iter().all(|&other| other != hash(true, (1, 2), &[])));
    }

    #[test]
    fn fragments_have_no_ports() {
        let mut bytes = built(false, true, 0, (5, 6), &[0; 8]);
        bytes[6] = 0x20;
        let header = Header::parse(&bytes).unwrap();
        assert_eq!((header.ports(&bytes), header.tcp_payload(&bytes)), (None, None));
    }

    #[test]
    fn a_pool_is_bounded_and_marks_what_the_network_marked() {
        let mut pool = Pool::new(1_500, 2);
        let (first, second) = (pool.take().unwrap(), pool.take().unwrap());
        assert_eq!((pool.take(), pool.in_use()), (None, 2));
        pool.give_back(first);
        assert_eq!((pool.take(), pool.in_use()), (Some(first), 2));
        let bytes = built(false, true, 2, (1, 2), &[]);
        pool.buffer(second)[..bytes.len()].copy_from_slice(&bytes);
        let mut packet = Packet {
            buffer: second,
            destination: 0,
            flow_hash: 0,
            ip_bytes: u16::try_from(bytes.len()).unwrap(),
            ecn: Ecn::Capable,
            has_data: true,
        };
        assert_eq!(pool.bytes(&packet), bytes);
        packet.mark();
        assert!(packet.ecn_capable());
        assert_eq!(Header::parse(pool.bytes(&packet)).unwrap().ecn, Ecn::Marked);
    }
}
