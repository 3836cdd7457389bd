//! Our segments as packets, and packets as our segments: smoltcp's codec writes and reads them.

use narrows_core::packet::{Flags, Segment, Seq};
use narrows_core::tcp::Stack;
use smoltcp::phy::ChecksumCapabilities;
use smoltcp::wire::{
    IpAddress, IpProtocol, Ipv4Address, Ipv4Packet, Ipv4Repr, TcpControl, TcpPacket, TcpRepr, TcpSeqNumber,
    TcpTimestampRepr,
};

use crate::bytes::stream;

pub(crate) const OUR_ADDRESS: Ipv4Address = Ipv4Address::new(192, 0, 2, 1);
pub(crate) const THEIR_ADDRESS: Ipv4Address = Ipv4Address::new(192, 0, 2, 2);
pub(crate) const OUR_PORT: u16 = 40_000;
pub(crate) const THEIR_PORT: u16 = 5_001;
const IP_AND_TCP_BYTES: u16 = 40;

/// What was agreed by the SYNs, and our segments know nothing of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wire {
    our_first: u32,
    our_shift: u8,
    mss: u16,
    their_first: u32,
    their_shift: u8,
}

/// What smoltcp sent.
#[derive(Clone, Debug)]
pub(crate) struct Heard {
    pub(crate) segment: Segment,
    /// The first byte beyond the window that it offers.
    pub(crate) edge: u64,
    pub(crate) payload: Vec<u8>,
}

impl Heard {
    pub(crate) fn ack(&self) -> u64 {
        u64::from(self.segment.ack)
    }
}

/// First byte, and the first after it. Streams of tests are far shorter than 2³² bytes.
pub(crate) fn extent(segment: &Segment) -> (u64, u64) {
    (segment.seq.into(), u64::from(segment.seq) + u64::from(segment.length))
}

impl Wire {
    /// Our SYN has the number `our_first`.
    pub(crate) fn new(our_first: u32, stack: &Stack) -> Wire {
        let mss = stack.mtu.get() - IP_AND_TCP_BYTES;
        Wire { our_first, our_shift: stack.profile.window_scale(), mss, their_first: 0, their_shift: 0 }
    }

    /// The first byte beyond the window that we offer with it.
    pub(crate) fn our_edge(&self, segment: &Segment) -> u64 {
        u64::from(segment.ack) + self.our_window(segment)
    }

    fn our_window(&self, segment: &Segment) -> u64 {
        let window = u64::from(segment.window) << self.our_shift;
        // A SYN has it unscaled [RFC 7323 §2.2].
        if segment.flags.contains(Flags::SYN) { window.min(u16::MAX.into()) } else { window }
    }

    pub(crate) fn encode(&self, segment: &Segment) -> Vec<u8> {
        let (start, end) = extent(segment);
        let payload = stream(start, end);
        let is_syn = segment.flags.contains(Flags::SYN);
        let mut sack_ranges = [None; 3];
        for (range, (start, end)) in sack_ranges.iter_mut().zip(segment.sack.iter()) {
            *range = Some((start.wrapping_add(self.their_first), end.wrapping_add(self.their_first)));
        }
        let pushed = if segment.flags.contains(Flags::PSH) { TcpControl::Psh } else { TcpControl::None };
        let number = |first: u32, offset: u32| TcpSeqNumber(first.wrapping_add(offset).cast_signed());
        let tcp = TcpRepr {
            src_port: OUR_PORT,
            dst_port: THEIR_PORT,
            control: if is_syn { TcpControl::Syn } else { pushed },
            seq_number: number(self.our_first, segment.seq),
            ack_number: segment.flags.contains(Flags::ACK).then(|| number(self.their_first, segment.ack)),
            window_len: match is_syn {
                true => u16::try_from(self.our_window(segment)).expect("a SYN's is not scaled"),
                false => segment.window,
            },
            window_scale: is_syn.then_some(self.our_shift),
            max_seg_size: is_syn.then_some(self.mss),
            sack_permitted: is_syn,
            sack_ranges,
            timestamp: Some(TcpTimestampRepr::new(segment.timestamp, segment.timestamp_echo)),
            payload: &payload,
        };
        let ip = Ipv4Repr {
            src_addr: OUR_ADDRESS,
            dst_addr: THEIR_ADDRESS,
            next_header: IpProtocol::Tcp,
            payload_len: tcp.buffer_len(),
            hop_limit: 64,
        };
        let mut bytes = vec![0; ip.buffer_len() + tcp.buffer_len()];
        // Ours aligns each option, as Linux does [RFC 7323 appendix A], and smoltcp all of them together.
        assert!(bytes.len() as u64 == segment.ip_bytes().get() || !segment.sack.is_empty(), "{segment:?}");
        let checksums = ChecksumCapabilities::default();
        let mut packet = Ipv4Packet::new_unchecked(&mut bytes);
        ip.emit(&mut packet, &checksums);
        let addresses = (IpAddress::Ipv4(OUR_ADDRESS), IpAddress::Ipv4(THEIR_ADDRESS));
        tcp.emit(&mut TcpPacket::new_unchecked(packet.payload_mut()), &addresses.0, &addresses.1, &checksums);
        bytes
    }

    /// Panics if smoltcp would refuse the packet as malformed, or it refuses what it got: a RST, or no TCP.
    pub(crate) fn decode(&mut self, bytes: &[u8]) -> Heard {
        let packet = Ipv4Packet::new_checked(bytes).expect("IPv4");
        let checksums = ChecksumCapabilities::default();
        let ip = Ipv4Repr::parse(&packet, &checksums).expect("an IPv4 header");
        assert_eq!(ip.next_header, IpProtocol::Tcp);
        let packet = TcpPacket::new_checked(packet.payload()).expect("TCP");
        let tcp = TcpRepr::parse(&packet, &ip.src_addr.into(), &ip.dst_addr.into(), &checksums).expect("a TCP header");
        let is_syn = match tcp.control {
            TcpControl::Syn => true,
            TcpControl::None | TcpControl::Psh => false,
            TcpControl::Rst | TcpControl::Fin => panic!("neither end ends the connection: {tcp}"),
        };
        if is_syn {
            self.their_first = tcp.seq_number.0.cast_unsigned();
            self.their_shift = tcp.window_scale.expect("offered, so answered");
        }
        let from = |number: u32, first: u32| number.wrapping_sub(first);
        let window = u64::from(tcp.window_len) << if is_syn { 0 } else { self.their_shift };
        let timestamp = tcp.timestamp.expect("offered, so answered");
        let flags = if is_syn { Flags::SYN } else { Flags::NONE };
        let mut segment = Segment {
            seq: from(tcp.seq_number.0.cast_unsigned(), self.their_first),
            ack: tcp.ack_number.map_or(0, |ack| from(ack.0.cast_unsigned(), self.our_first)),
            length: u16::try_from(tcp.payload.len()).expect("one packet's"),
            flags: flags
                .with_if(Flags::ACK, tcp.ack_number.is_some())
                .with_if(Flags::PSH, tcp.control == TcpControl::Psh),
            // Our segments have the scale of their receiver's profile; what is rounded down is not used.
            window: u16::try_from(window >> self.our_shift).unwrap_or(u16::MAX),
            timestamp: timestamp.tsval,
            timestamp_echo: timestamp.tsecr,
            ..Segment::default()
        };
        for (start, end) in tcp.sack_ranges.into_iter().flatten() {
            let offset = |number: u32| Seq::new(from(number, self.our_first).into());
            segment.sack.push(offset(start), offset(end));
        }
        Heard { segment, edge: u64::from(segment.ack) + window, payload: tcp.payload.to_vec() }
    }

    /// The bytes of ours that a packet carries. Panics if smoltcp would refuse it as malformed.
    pub(crate) fn our_extent(&self, bytes: &[u8]) -> (u64, u64) {
        let packet = Ipv4Packet::new_checked(bytes).expect("IPv4");
        let checksums = ChecksumCapabilities::default();
        let ip = Ipv4Repr::parse(&packet, &checksums).expect("an IPv4 header");
        let packet = TcpPacket::new_checked(packet.payload()).expect("TCP");
        let tcp = TcpRepr::parse(&packet, &ip.src_addr.into(), &ip.dst_addr.into(), &checksums).expect("a TCP header");
        let start = u64::from(tcp.seq_number.0.cast_unsigned().wrapping_sub(self.our_first));
        (start, start + tcp.payload.len() as u64)
    }
}
