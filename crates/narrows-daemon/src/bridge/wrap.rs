//! What goes around marked packets, and what the edges tell each other besides: IP and UDP headers that take them the way of the hosts'
//! packets (docs/reference/wire.md).

use std::net::IpAddr;

use narrows_core::packet::Ecn;
use narrows_testbed::packet::Header;
use narrows_wire::tunnel::{Path, SHIM};

use super::checksum;
use super::frame::{Departing, Frame};

const UDP: u8 = 17;
/// Bytes of a UDP header.
const UDP_BYTES: usize = 8;
/// Hop limit of what the edges say by themselves.
const HOPS: u8 = 64;
/// Source ports of datagrams: [RFC 6335 §6]'s dynamic ones.
const FIRST_PORT: u16 = 0xc000;
/// Most bytes of a link header.
pub(super) const MAX_LINK: usize = 14;

/// Bytes that a marked packet is longer by.
pub(super) const fn extra(v6: bool) -> usize {
    ip_bytes(v6) + UDP_BYTES + SHIM
}

const fn ip_bytes(v6: bool) -> usize {
    if v6 { 40 } else { 20 }
}

/// Outer headers: from whom to whom, and how.
struct Outer {
    path: Path,
    class: u8,
    hop_limit: u8,
    from: u16,
    port: u16,
}

impl Outer {
    /// Writes both headers into `head`, ahead of a payload of these parts.
    fn write(&self, head: &mut [u8], parts: &[&[u8]]) {
        let payload: usize = parts.iter().map(|part| part.len()).sum();
        let size = |bytes: usize| u16::try_from(bytes).expect("a packet is shorter").to_be_bytes();
        let datagram = size(UDP_BYTES + payload);
        let (ip, udp) = head.split_at_mut(head.len() - UDP_BYTES);
        match (self.path.source, self.path.destination) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => {
                ip.fill(0);
                ip[0] = 0x45;
                ip[1] = self.class;
                ip[2..4].copy_from_slice(&size(20 + UDP_BYTES + payload));
                // Never in fragments, so that it needs no identity [RFC 6864 §4].
                ip[6] = 0x40;
                ip[8] = self.hop_limit;
                ip[9] = UDP;
                ip[12..16].copy_from_slice(&source.octets());
                ip[16..20].copy_from_slice(&destination.octets());
                let sum = checksum::of_header(ip);
                ip[10..12].copy_from_slice(&sum.to_be_bytes());
            }
            (source, destination) => {
                let octets = |address: IpAddr| match address {
                    IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
                    IpAddr::V6(address) => address.octets(),
                };
                ip.fill(0);
                ip[0] = 0x60 | self.class >> 4;
                ip[1] = self.class << 4;
                ip[4..6].copy_from_slice(&datagram);
                ip[6] = UDP;
                ip[7] = self.hop_limit;
                ip[8..24].copy_from_slice(&octets(source));
                ip[24..40].copy_from_slice(&octets(destination));
            }
        }
        udp[..2].copy_from_slice(&self.from.to_be_bytes());
        udp[2..4].copy_from_slice(&self.port.to_be_bytes());
        udp[4..6].copy_from_slice(&datagram);
        udp[6..8].fill(0);
        let all: Vec<&[u8]> = std::iter::once(&*udp).chain(parts.iter().copied()).collect();
        let sum = checksum::of_transport(self.path.source, self.path.destination, UDP, &all);
        // Zero would say that there is none [RFC 768].
        let sum = if sum == 0 { 0xffff } else { sum };
        udp[6..8].copy_from_slice(&sum.to_be_bytes());
    }
}

/// A marked packet on its way: the frame with headers and shim around its packet, and these ECN bits outside.
pub(super) fn marked(frame: Frame, shim: &[u8; SHIM], ecn: Ecn, port: u16) -> Departing {
    let outer = Outer {
        path: frame.path(),
        class: frame.dscp() << 2 | ecn as u8,
        hop_limit: frame.hop_limit(),
        from: frame.tcp().map_or(FIRST_PORT, |segment| source_port(segment.flow.hash())),
        port,
    };
    let extra = extra(frame.is_v6());
    let mut head = [0; 40 + UDP_BYTES];
    let head = &mut head[..extra - SHIM];
    outer.write(head, &[shim, frame.packet()]);
    frame.wrapped(extra, |room| {
        let (headers, rest) = room.split_at_mut(extra - SHIM);
        headers.copy_from_slice(head);
        rest.copy_from_slice(shim);
    })
}

/// The same connection's marked packets have the same source port, so that they go one way.
#[allow(clippy::cast_possible_truncation, reason = "a hash")]
const fn source_port(hash: u64) -> u16 {
    FIRST_PORT | (hash as u16 & 0x3fff)
}

/// The way that something goes out: link header and addresses.
#[derive(Clone, Copy, Debug)]
pub(super) struct Way {
    link: [u8; MAX_LINK],
    link_bytes: usize,
    pub(super) path: Path,
}

impl Way {
    /// The way of a frame that goes out.
    pub(super) fn of(link: &[u8], path: Path) -> Way {
        let mut way = Way { link: [0; MAX_LINK], link_bytes: link.len().min(MAX_LINK), path };
        way.link[..way.link_bytes].copy_from_slice(&link[..way.link_bytes]);
        way
    }

    /// The way back to where a frame came from.
    pub(super) fn back(link: &[u8], path: Path) -> Way {
        let mut way = Way::of(link, path.reversed());
        if way.link_bytes == MAX_LINK {
            way.link[..12].rotate_left(6);
        }
        way
    }

    /// A frame with something that an edge says. It is spared where it can be.
    pub(super) fn datagram(&self, said: &[u8], port: u16, came_ns: u64) -> Departing {
        let v6 = self.path.source.is_ipv6();
        let outer = Outer { path: self.path, class: Ecn::Capable as u8, hop_limit: HOPS, from: FIRST_PORT, port };
        let head = self.link_bytes + ip_bytes(v6) + UDP_BYTES;
        let mut bytes = Vec::with_capacity(head + said.len());
        bytes.extend_from_slice(&self.link[..self.link_bytes]);
        bytes.resize(head, 0);
        outer.write(&mut bytes[self.link_bytes..], &[said]);
        bytes.extend_from_slice(said);
        Departing::new(bytes, came_ns)
    }
}

/// A datagram that came.
#[derive(Clone, Copy, Debug)]
pub(super) struct Datagram<'a> {
    pub(super) path: Path,
    pub(super) ecn: Ecn,
    pub(super) payload: &'a [u8],
}

impl<'a> Datagram<'a> {
    /// Reads a packet; `None` if it is no whole datagram to this port.
    pub(super) fn read(packet: &'a [u8], port: u16) -> Option<Datagram<'a>> {
        let header = Header::parse(packet).ok()?;
        let (_, to) = header.ports(packet)?;
        let transport = packet.get(usize::from(header.header_bytes)..usize::from(header.ip_bytes))?;
        let size = usize::from(u16::from_be_bytes([*transport.get(4)?, *transport.get(5)?]));
        let payload = transport.get(UDP_BYTES..size)?;
        let path = Path { source: header.source, destination: header.destination };
        (header.protocol == UDP && to == port).then_some(Datagram { path, ecn: header.ecn, payload })
    }
}

/// What a router says of a datagram of the tunnel's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Complaint<'a> {
    /// It is too long, and this is what it may be; 0 if that is not said. Otherwise it does not arrive for another reason.
    pub(super) too_long: Option<u16>,
    /// What is quoted of the datagram's payload.
    pub(super) quoted: &'a [u8],
}

impl<'a> Complaint<'a> {
    /// Reads an ICMP message; `None` if it is none about a datagram to this port.
    pub(super) fn read(packet: &'a [u8], port: u16) -> Option<Complaint<'a>> {
        let header = Header::parse(packet).ok()?;
        let v6 = header.source.is_ipv6();
        let message = packet.get(usize::from(header.header_bytes)..usize::from(header.ip_bytes))?;
        let (fixed, quoted) = message.split_first_chunk::<8>()?;
        let low = u16::from_be_bytes([fixed[6], fixed[7]]);
        let too_long = match (v6, header.protocol, fixed[0], fixed[1]) {
            // [RFC 1191 §4], [RFC 4443 §3.2]
            (false, 1, 3, 4) => Some(low),
            (true, 58, 2, _) => Some(if fixed[4..6] == [0; 2] { low } else { u16::MAX }),
            (false, 1, 3 | 11, _) | (true, 58, ..128, _) => None,
            _ => return None,
        };
        // The quoted header; its packet is cut.
        let (protocol, at) =
            if v6 { (*quoted.get(6)?, 40) } else { (*quoted.get(9)?, usize::from(quoted.first()? & 0x0f) * 4) };
        let udp = quoted.get(at..)?;
        let to = u16::from_be_bytes([*udp.get(2)?, *udp.get(3)?]);
        let quoted = udp.get(UDP_BYTES..).unwrap_or(&[]);
        (protocol == UDP && to == port).then_some(Complaint { too_long, quoted })
    }
}
