//! Frames for tests, as an independent library builds them.

use etherparse::{NetSlice, PacketBuilder, SlicedPacket, TransportSlice};

const LINK: [u8; 14] = [2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0];

fn built(
    v6: bool,
    link: usize,
    class: u8,
    write: impl FnOnce(etherparse::PacketBuilderStep<etherparse::IpHeaders>, &mut Vec<u8>),
) -> Vec<u8> {
    let headers = if v6 {
        let header = etherparse::Ipv6Header {
            traffic_class: class,
            hop_limit: 61,
            source: [1; 16],
            destination: [2; 16],
            ..etherparse::Ipv6Header::default()
        };
        etherparse::IpHeaders::Ipv6(header, etherparse::Ipv6Extensions::default())
    } else {
        let header = etherparse::Ipv4Header {
            dscp: (class >> 2).try_into().unwrap(),
            ecn: (class & 3).try_into().unwrap(),
            time_to_live: 61,
            source: [10, 0, 0, 1],
            destination: [10, 0, 0, 2],
            dont_fragment: true,
            ..etherparse::Ipv4Header::default()
        };
        etherparse::IpHeaders::Ipv4(header, etherparse::Ipv4Extensions::default())
    };
    let mut bytes = LINK[..link].to_vec();
    if link > 0 && v6 {
        bytes[12..].copy_from_slice(&[0x86, 0xdd]);
    }
    write(PacketBuilder::ip(headers), &mut bytes);
    bytes
}

/// A segment from 10.0.0.1:40000 to 10.0.0.2:5001, or between addresses of IPv6.
pub(super) fn tcp(v6: bool, link: usize, class: u8, seq: u32, payload: &[u8]) -> Vec<u8> {
    built(v6, link, class, |packet, bytes| {
        packet.tcp(40_000, 5_001, seq, 1_000).ack(5).write(bytes, payload).unwrap();
    })
}

/// A SYN with these options, padded to whole words.
pub(super) fn syn(v6: bool, link: usize, options: &[u8]) -> Vec<u8> {
    built(v6, link, 0, |packet, bytes| {
        packet.tcp(40_000, 5_001, 9, 1_000).syn().options_raw(options).unwrap().write(bytes, &[]).unwrap();
    })
}

/// The frame with its checksum left to an adapter.
pub(super) fn partial(frame: &[u8], link: usize) -> Vec<u8> {
    let mut bytes = frame.to_vec();
    let v6 = bytes[link] >> 4 == 6;
    let (addresses, at) = if v6 { (link + 8..link + 40, link + 40) } else { (link + 12..link + 20, link + 20) };
    let length = u32::try_from(bytes.len() - at).unwrap();
    let mut sum: u32 = bytes[addresses].chunks(2).map(|word| u32::from(word[0]) << 8 | u32::from(word[1])).sum();
    sum += length + 6;
    let sum = (sum & 0xffff) + (sum >> 16);
    let sum = u16::try_from((sum & 0xffff) + (sum >> 16)).unwrap();
    bytes[at + 16..at + 18].copy_from_slice(&sum.to_be_bytes());
    bytes
}

/// Whether all checksums of a packet are right.
pub(super) fn is_sound(packet: &[u8]) -> bool {
    let Ok(sliced) = SlicedPacket::from_ip(packet) else { return false };
    let (Some(net), Some(transport)) = (&sliced.net, &sliced.transport) else { return false };
    match (net, transport) {
        (NetSlice::Ipv4(ip), transport) => {
            let header = ip.header().to_header();
            let sum = match transport {
                TransportSlice::Tcp(tcp) => {
                    tcp.to_header().calc_checksum_ipv4(&header, tcp.payload()).ok() == Some(tcp.checksum())
                }
                TransportSlice::Udp(udp) => {
                    udp.to_header().calc_checksum_ipv4(&header, udp.payload()).ok() == Some(udp.checksum())
                }
                _ => false,
            };
            header.calc_header_checksum() == header.header_checksum && sum
        }
        (NetSlice::Ipv6(ip), TransportSlice::Tcp(tcp)) => {
            let header = ip.header().to_header();
            tcp.to_header().calc_checksum_ipv6(&header, tcp.payload()).ok() == Some(tcp.checksum())
        }
        (NetSlice::Ipv6(ip), TransportSlice::Udp(udp)) => {
            let header = ip.header().to_header();
            udp.to_header().calc_checksum_ipv6(&header, udp.payload()).ok() == Some(udp.checksum())
        }
        _ => false,
    }
}

/// Whether a TCP header's checksum is right between the addresses of these samples.
pub(super) fn has_right_sum(v6: bool, transport: &[u8]) -> bool {
    let mut packet = if v6 { tcp(true, 0, 0, 0, &[]) } else { tcp(false, 0, 0, 0, &[]) };
    packet.truncate(if v6 { 40 } else { 20 });
    packet.extend_from_slice(transport);
    let source: std::net::IpAddr = if v6 { [1; 16].into() } else { [10, 0, 0, 1].into() };
    let destination: std::net::IpAddr = if v6 { [2; 16].into() } else { [10, 0, 0, 2].into() };
    let mut zeroed = transport.to_vec();
    let sum = u16::from_be_bytes([zeroed[16], zeroed[17]]);
    zeroed[16..18].fill(0);
    let expected = super::checksum::of_transport(source, destination, 6, &[&zeroed]);
    sum == expected || (sum ^ expected == 0xffff && (sum == 0 || expected == 0))
}
