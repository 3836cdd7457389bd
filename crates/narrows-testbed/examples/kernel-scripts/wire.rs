//! Segments as bytes between the kernel's end and the script's, whose numbers begin at 1 and whose clock at the script's zero.

use etherparse::{IpNumber, Ipv4Header, NetSlice, SlicedPacket, TcpHeader, TcpOptionElement, TransportSlice};
use narrows_core::packet::{Ecn, Flags, SackBlocks, Segment, Seq};
use narrows_testbed::address;

/// The kernel's host and the script's.
pub(crate) const HOSTS: [u32; 2] = [0, 1];
/// The kernel's port where it listens, and the script's.
pub(crate) const PORTS: [u16; 2] = [5_000, 6_000];
/// As the model's own ends scale windows.
const WINDOW_SCALE: u8 = 10;
/// The script's initial sequence number.
const SCRIPT_ISN: u32 = 0x1000_0000;
/// What the script's clock of timestamps shows at its zero, milliseconds: before that there is a handshake.
const SCRIPT_STAMP: u32 = 0x2000_0000;

/// Where the numbers of both ends begin.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Numbers {
    /// The kernel's initial sequence number.
    pub(crate) kernel_isn: u32,
    /// The kernel's port.
    pub(crate) port: u16,
    /// Bytes that the script's end has sent before the script begins, and how long that took, milliseconds.
    pub(crate) sent_before: u32,
    pub(crate) ms_before: u32,
}

impl Numbers {
    /// A segment of the script's as a packet. Its timestamps are the script's milliseconds and the kernel's own.
    pub(crate) fn packet(&self, segment: &Segment, stamp_ms: i64, echo: u32) -> Vec<u8> {
        let opens = segment.flags.contains(Flags::SYN);
        let seq = if opens { SCRIPT_ISN } else { (SCRIPT_ISN + self.sent_before).wrapping_add(segment.seq) };
        let window = u32::from(segment.window) << if opens { WINDOW_SCALE } else { 0 };
        let mut header = TcpHeader::new(PORTS[1], self.port, seq, u16::try_from(window).unwrap_or(u16::MAX));
        header.syn = opens;
        header.ack = segment.flags.contains(Flags::ACK);
        header.ece = segment.flags.contains(Flags::ECE);
        header.cwr = segment.flags.contains(Flags::CWR);
        header.psh = segment.flags.contains(Flags::PSH);
        if header.ack {
            header.acknowledgment_number = self.kernel_isn.wrapping_add(segment.ack);
        }
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "timestamps wrap")]
        let stamp = (SCRIPT_STAMP + self.ms_before).wrapping_add(stamp_ms as u32);
        let mut options =
            vec![TcpOptionElement::Noop, TcpOptionElement::Noop, TcpOptionElement::Timestamp(stamp, echo)];
        if opens {
            options.push(TcpOptionElement::MaximumSegmentSize(1460));
            options.extend([TcpOptionElement::Noop, TcpOptionElement::WindowScale(WINDOW_SCALE)]);
            options.extend([TcpOptionElement::Noop, TcpOptionElement::Noop]);
            options.push(TcpOptionElement::SelectiveAcknowledgementPermitted);
        }
        let mut blocks = segment
            .sack
            .iter()
            .map(|(from, to)| (self.kernel_isn.wrapping_add(from), self.kernel_isn.wrapping_add(to)));
        if let Some(first) = blocks.next() {
            let rest = [blocks.next(), blocks.next(), None];
            options.extend([TcpOptionElement::Noop, TcpOptionElement::Noop]);
            options.push(TcpOptionElement::SelectiveAcknowledgement(first, rest));
        }
        header.set_options(&options).expect("they fit");

        let payload = vec![b'n'; usize::from(segment.length)];
        let length = u16::try_from(header.header_len() + payload.len()).expect("a packet");
        let [to, from] = HOSTS.map(|host| address::v4(host).octets());
        let mut ip = Ipv4Header::new(length, 64, IpNumber::TCP, from, to).expect("it is short");
        ip.ecn = (segment.ecn as u8).try_into().expect("two bits");
        ip.dont_fragment = true;
        ip.header_checksum = ip.calc_header_checksum();
        header.checksum = header.calc_checksum_ipv4(&ip, &payload).expect("it is short");
        let mut bytes = Vec::new();
        ip.write(&mut bytes).expect("into memory");
        header.write(&mut bytes).expect("into memory");
        bytes.extend(payload);
        bytes
    }

    /// A packet of the kernel's: the segment, with the script's milliseconds as its echo, and its timestamp as it is. `None` if it is
    /// none of the connection.
    pub(crate) fn segment(&mut self, bytes: &[u8]) -> Option<(Segment, u32)> {
        let packet = SlicedPacket::from_ip(bytes).ok()?;
        let (Some(NetSlice::Ipv4(ip)), Some(TransportSlice::Tcp(tcp))) = (&packet.net, &packet.transport) else {
            return None;
        };
        if tcp.destination_port() != PORTS[1] || tcp.rst() {
            return None;
        }
        if tcp.syn() {
            (self.kernel_isn, self.port) = (tcp.sequence_number(), tcp.source_port());
        }
        let ours = |number: u32| number.wrapping_sub(SCRIPT_ISN + self.sent_before);
        let flags = [
            (Flags::SYN, tcp.syn()),
            (Flags::ACK, tcp.ack()),
            (Flags::ECE, tcp.ece()),
            (Flags::CWR, tcp.cwr()),
            (Flags::PSH, tcp.psh()),
        ];
        let mut segment = Segment {
            seq: tcp.sequence_number().wrapping_sub(self.kernel_isn),
            ack: ours(tcp.acknowledgment_number()),
            length: u16::try_from(tcp.payload().len()).ok()?,
            flags: flags.iter().fold(Flags::NONE, |all, (flag, set)| all.with_if(*flag, *set)),
            ecn: match ip.header().ecn().value() {
                0 => Ecn::NotCapable,
                1 => Ecn::Capable1,
                2 => Ecn::Capable,
                _ => Ecn::Marked,
            },
            window: tcp.window_size(),
            ..Segment::default()
        };
        let mut stamp = 0;
        let mut blocks = SackBlocks::NONE;
        for option in tcp.options_iterator().flatten() {
            match option {
                TcpOptionElement::Timestamp(value, echo) => {
                    (stamp, segment.timestamp_echo) = (value, echo.wrapping_sub(SCRIPT_STAMP + self.ms_before));
                }
                TcpOptionElement::SelectiveAcknowledgement(first, rest) => {
                    for (from, to) in std::iter::once(first).chain(rest.into_iter().flatten()) {
                        blocks.push(Seq::new(u64::from(ours(from))), Seq::new(u64::from(ours(to))));
                    }
                }
                _ => {}
            }
        }
        segment.sack = blocks;
        Some((segment, stamp))
    }
}
