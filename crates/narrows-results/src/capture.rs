//! Packets of a traced run as a capture file, pcapng, that Wireshark and tshark open.
//!
//! A port is an interface: what it sends is outbound, with the time when its first bit was sent; what reaches the node over the
//! link's other direction is inbound, with the time of its arrival. Packets are raw IPv4 and end behind their headers; their
//! original length is the packet's. A host's address is 10.0.0.0 plus its number; a record names it. The opener's TCP port is
//! 10000 plus the number of its connection, modulo 50000; the other's is 5001. RDMA is sent to UDP port 4791, as messages
//! whose last packet is told apart and whose first is not; its packets are numbered by the offset of their first byte. Comments on data of a sending host's own port tell its sender's state.

use std::borrow::Cow;
use std::io::{self, Write};
use std::net::Ipv4Addr;
use std::time::Duration;

use etherparse::{IpEcn, IpNumber, Ipv4Header, TcpHeader, TcpOptionElement, UdpHeader};
use narrows_core::packet::{Ecn, Flags};
use narrows_plan::{NodeKind, Plan};
use pcap_file::pcapng::PcapNgWriter;
use pcap_file::pcapng::blocks::enhanced_packet::{EnhancedPacketBlock, EnhancedPacketOption};
use pcap_file::pcapng::blocks::interface_description::{InterfaceDescriptionBlock, InterfaceDescriptionOption};
use pcap_file::pcapng::blocks::name_resolution::{Ipv4Record, NameResolutionBlock, Record};
use pcap_file::{DataLink, PcapError};

use crate::trace::{HopRow, SenderRow, Trace};

/// Nanoseconds: the resolution of timestamps, as a power of ten.
const NANOSECONDS: u8 = 9;
/// Directions of packets at an interface, in its flags word.
const INBOUND: u32 = 1;
const OUTBOUND: u32 = 2;
const HOPS: u8 = 64;
/// Where RDMA over UDP goes, codes of its packets, and what a negative acknowledgement says [IBTA §9, IBTA A17].
const ROCE_PORT: u16 = 4_791;
const SEND_MIDDLE: u8 = 1;
const SEND_LAST: u8 = 2;
const ACKNOWLEDGE: u8 = 0x11;
const SEQUENCE_ERROR: u8 = 0x60;
/// An acknowledgement tells of marks: the bit beside the number of the queue pair.
const BECN: u32 = 1 << 30;
/// A positive one, without a limit to credits.
const POSITIVE: u8 = 0x1f;

/// A packet at an interface.
struct Seen<'a> {
    at_ns: u64,
    interface: u32,
    direction: u32,
    hop: &'a HopRow,
}

/// Writes what the ports of these links have sent, and what came over the other directions of the links.
///
/// # Errors
/// If `out` cannot be written.
pub fn write(plan: &Plan, trace: &Trace, ports: &[u32], out: impl Write) -> io::Result<()> {
    let failed = |error: PcapError| match error {
        PcapError::IoError(error) => error,
        other => io::Error::other(other),
    };
    let mut writer = PcapNgWriter::new(out).map_err(failed)?;
    let names =
        plan.network.nodes.iter().enumerate().filter(|(_, node)| node.kind == NodeKind::Host).map(|(host, node)| {
            Record::Ipv4(Ipv4Record {
                ip_addr: Cow::Owned(address(host).octets().to_vec()),
                names: vec![node.name.as_str().into()],
            })
        });
    writer.write_pcapng_block(NameResolutionBlock { records: names.collect(), options: vec![] }).map_err(failed)?;
    for &port in ports {
        let link = &plan.network.links[port as usize];
        let block = InterfaceDescriptionBlock {
            linktype: DataLink::RAW,
            snaplen: 0,
            options: vec![
                InterfaceDescriptionOption::IfName(link.name.as_str().into()),
                InterfaceDescriptionOption::IfSpeed(link.rate.as_bps()),
                InterfaceDescriptionOption::IfTsResol(NANOSECONDS),
            ],
        };
        writer.write_pcapng_block(block).map_err(failed)?;
    }
    // IP and TCP headers without options [RFC 9293 §3.7.1].
    let segment = plan.network.mtu.get() - 40;
    for seen in in_order(plan, trace, ports) {
        let data = headers(seen.hop, segment);
        let mut options = vec![EnhancedPacketOption::Flags(seen.direction)];
        if let Some(comment) = comment(&seen, trace) {
            options.push(EnhancedPacketOption::Comment(comment.into()));
        }
        let block = EnhancedPacketBlock {
            interface_id: seen.interface,
            timestamp: Duration::from_nanos(seen.at_ns),
            original_len: seen.hop.ip_bytes,
            data: data.into(),
            options,
        };
        writer.write_pcapng_block(block).map_err(failed)?;
    }
    writer.into_inner().flush()
}

/// Every packet at every interface, by time.
fn in_order<'a>(plan: &Plan, trace: &'a Trace, ports: &[u32]) -> Vec<Seen<'a>> {
    let reverses = plan.network.reverses();
    let mut seen = Vec::new();
    for (interface, &port) in (0..).zip(ports) {
        let back = reverses[port as usize];
        for hop in &trace.hops {
            if hop.port == port && hop.left {
                seen.push(Seen { at_ns: hop.offered_ns + hop.waited_ns, interface, direction: OUTBOUND, hop });
            }
            if let Some(at_ns) = hop.arrived_ns.filter(|_| Some(hop.port) == back) {
                seen.push(Seen { at_ns, interface, direction: INBOUND, hop });
            }
        }
    }
    seen.sort_by_key(|seen| (seen.at_ns, seen.interface));
    seen
}

#[allow(clippy::cast_possible_truncation, reason = "a run has at most 2¹⁴ hosts")]
fn address(host: usize) -> Ipv4Addr {
    Ipv4Addr::from_bits(Ipv4Addr::new(10, 0, 0, 0).to_bits() + host as u32)
}

/// The IP packet's headers behind the port.
fn headers(hop: &HopRow, segment: u16) -> Vec<u8> {
    let ecn = if hop.marked { Ecn::Marked } else { hop.ecn };
    let [source, destination] = [hop.source, hop.destination].map(|host| address(host as usize).octets());
    let is_rdma = hop.flags.contains(Flags::RDMA);
    let protocol = if hop.is_datagram || is_rdma { IpNumber::UDP } else { IpNumber::TCP };
    let mut ip = Ipv4Header::new(0, HOPS, protocol, source, destination).expect("an empty payload fits");
    ip.total_len = u16::try_from(hop.ip_bytes).unwrap_or(u16::MAX);
    ip.ecn = IpEcn::try_new(ecn as u8).expect("two bits");
    ip.header_checksum = ip.calc_header_checksum();
    let opener = u16::try_from(10_000 + hop.opened % 50_000).expect("below 60 000");
    let ports = if hop.from_opener { (opener, 5_001) } else { (5_001, opener) };
    let payload = vec![0; hop.payload_bytes as usize];
    let mut bytes = Vec::with_capacity(80);
    ip.write(&mut bytes).expect("into memory");
    if hop.is_datagram {
        let udp = UdpHeader::with_ipv4_checksum(ports.0, ports.1, &ip, &payload).expect("a datagram fits");
        udp.write(&mut bytes).expect("into memory");
    } else if is_rdma {
        let beyond = usize::from(ip.total_len) - ip.header_len() - UdpHeader::LEN;
        let udp = UdpHeader::without_ipv4_checksum(ports.0, ROCE_PORT, beyond).expect("it fits");
        udp.write(&mut bytes).expect("into memory");
        bytes.extend(base_transport_header(hop));
    } else {
        tcp(hop, ports, segment, (&ip, &payload)).write(&mut bytes).expect("into memory");
    }
    bytes
}

/// The base transport header of RoCE, and of acknowledgements the extended one [IBTA §9]. Packets are numbered by the offset of
/// their first byte.
fn base_transport_header(hop: &HopRow) -> Vec<u8> {
    let has = |flag| hop.flags.contains(flag);
    let (opcode, number) = match (has(Flags::ACK), has(Flags::END)) {
        (true, _) if has(Flags::NAK) => (ACKNOWLEDGE, hop.ack),
        // Of what is acknowledged, not of what comes next.
        (true, _) => (ACKNOWLEDGE, hop.ack.saturating_sub(1)),
        (false, true) => (SEND_LAST, hop.seq),
        (false, false) => (SEND_MIDDLE, hop.seq),
    };
    let asks = u32::from(has(Flags::ACK_REQUEST) && !has(Flags::ACK)) << 31;
    #[allow(clippy::cast_possible_truncation, reason = "24 bits of it")]
    let number = asks | (number & 0xff_ffff) as u32;
    let mut bytes = vec![opcode, 0, 0xff, 0xff];
    let backward = if has(Flags::ECE) { BECN } else { 0 };
    bytes.extend((backward | hop.connection & 0xff_ffff).to_be_bytes());
    bytes.extend(number.to_be_bytes());
    if has(Flags::ACK) {
        bytes.extend([if has(Flags::NAK) { SEQUENCE_ERROR } else { POSITIVE }, 0, 0, 0]);
    }
    bytes
}

#[allow(clippy::cast_possible_truncation, reason = "sequence numbers wrap on the wire")]
fn tcp(hop: &HopRow, ports: (u16, u16), segment: u16, (ip, payload): (&Ipv4Header, &[u8])) -> TcpHeader {
    let mut tcp = TcpHeader::new(ports.0, ports.1, hop.seq as u32, hop.window);
    let has = |flag| hop.flags.contains(flag);
    (tcp.syn, tcp.ack, tcp.psh) = (has(Flags::SYN), has(Flags::ACK), has(Flags::PSH));
    (tcp.ece, tcp.cwr) = (has(Flags::ECE), has(Flags::CWR));
    if tcp.ack {
        tcp.acknowledgment_number = hop.ack as u32;
    }
    let timestamp = TcpOptionElement::Timestamp(hop.timestamps.0, hop.timestamps.1);
    let options = if tcp.syn {
        let (segment, scale) =
            (TcpOptionElement::MaximumSegmentSize(segment), TcpOptionElement::WindowScale(hop.window_scale));
        vec![segment, TcpOptionElement::SelectiveAcknowledgementPermitted, timestamp, TcpOptionElement::Noop, scale]
    } else {
        let mut blocks = hop.sack.iter();
        let first = blocks.next();
        let rest = [blocks.next(), blocks.next(), None];
        let sack = first.map(|first| {
            [TcpOptionElement::Noop, TcpOptionElement::Noop, TcpOptionElement::SelectiveAcknowledgement(first, rest)]
        });
        let plain = [TcpOptionElement::Noop, TcpOptionElement::Noop, timestamp];
        plain.into_iter().chain(sack.into_iter().flatten()).collect()
    };
    tcp.set_options(&options).expect("three blocks fit beside timestamps");
    tcp.checksum = tcp.calc_checksum_ipv4(ip, payload).expect("a packet fits");
    tcp
}

/// What the sender of data was like when it sent this, at its host's own port; what the port did at another.
fn comment(seen: &Seen<'_>, trace: &Trace) -> Option<String> {
    let hop = seen.hop;
    let mut said = Vec::new();
    if hop.hop == 0 && seen.direction == OUTBOUND && hop.payload_bytes > 0 {
        said.extend(state(hop, &trace.senders));
        if hop.retransmission {
            said.push("retransmission".into());
        }
    }
    if hop.marked && seen.direction == OUTBOUND {
        said.push("marked here".into());
    }
    if hop.dropped && seen.direction == OUTBOUND {
        said.push("lost on the wire".into());
    }
    (!said.is_empty()).then(|| said.join(", "))
}

fn state(hop: &HopRow, senders: &[SenderRow]) -> Option<String> {
    let end = senders.partition_point(|row| row.time_ns <= hop.offered_ns);
    let since = senders[..end].iter().rev().take_while(|row| row.time_ns == hop.offered_ns);
    let row = since.into_iter().find(|row| row.host == hop.source && row.flow == hop.flow)?;
    let mut said = vec![format!("cwnd {} packets", row.window_packets?)];
    said.extend(row.slow_start_threshold_packets.map(|packets| format!("ssthresh {packets}")));
    said.extend(row.pacing_bps.map(|rate| format!("pacing {rate} bit/s")));
    said.extend(row.srtt_ns.map(|span| format!("srtt {span} ns")));
    said.extend(row.in_flight_packets.map(|packets| format!("in flight {packets}")));
    said.extend(row.phase.map(str::to_owned));
    Some(said.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use narrows_core::packet::SackBlocks;

    fn hop(flags: Flags, payload_bytes: u32) -> HopRow {
        HopRow {
            packet: 0,
            hop: 0,
            flow: 0,
            connection: 7,
            port: 0,
            source: 0,
            destination: 1,
            from_opener: true,
            opened: 7,
            offered_ns: 0,
            waited_ns: 0,
            arrived_ns: None,
            dropped: false,
            marked: false,
            ecn: Ecn::Capable,
            flags,
            window: 0,
            window_scale: 10,
            timestamps: (0, 0),
            sack: SackBlocks::NONE,
            is_datagram: false,
            left: true,
            seq: 1_457,
            ack: 2_913,
            payload_bytes,
            ip_bytes: if payload_bytes > 0 { 44 + payload_bytes } else { 48 },
            retransmission: false,
        }
    }

    /// IP and UDP, then the base transport header: opcode, flags, key, queue pair, number [IBTA §9.2].
    #[test]
    fn rdma_is_written_as_roce() {
        let data = headers(&hop(Flags::RDMA.with(Flags::END).with(Flags::ACK_REQUEST), 1_456), 1_460);
        assert_eq!((data.len(), data[9], &data[2..4]), (20 + 8 + 12, 17, &1_500_u16.to_be_bytes()[..]));
        assert_eq!(&data[22..24], 4_791_u16.to_be_bytes());
        assert_eq!(data[28..], [SEND_LAST, 0, 0xff, 0xff, 0, 0, 0, 7, 0x80, 0, 0x05, 0xb1]);
        let ack = headers(&hop(Flags::RDMA.with(Flags::ACK).with(Flags::ECE), 0), 1_460);
        // Of the last byte that has come, with a mark.
        assert_eq!(ack[28..], [ACKNOWLEDGE, 0, 0xff, 0xff, 0x40, 0, 0, 7, 0, 0, 0x0b, 0x60, POSITIVE, 0, 0, 0]);
        let nak = headers(&hop(Flags::RDMA.with(Flags::ACK).with(Flags::NAK), 0), 1_460);
        assert_eq!(nak[36..], [0, 0, 0x0b, 0x61, SEQUENCE_ERROR, 0, 0, 0]);
    }
}
