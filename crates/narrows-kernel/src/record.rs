//! What the programs publish: mirrors of `src/bpf/record.h`.

use narrows_core::units::{Packets, Rate, Span};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Bytes of `struct narrows_flow`.
pub(crate) const FLOW_BYTES: usize = 192;
/// Bytes of `struct narrows_counters`.
pub(crate) const COUNTER_BYTES: usize = 24;

/// The state of one flow, as its program published it last: once per RTT, and at every cut.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flow {
    /// The key of its entry: the socket's cookie if it had one when the controller began, else a running number with the
    /// highest bit set.
    pub key: u64,
    /// The socket's cookie (`SO_COOKIE`, `ss --extended`); the kernel gives it when it is first asked for.
    pub cookie: Option<u64>,
    /// When it was published, nanoseconds of the monotonic clock.
    pub updated_ns: u64,
    /// The congestion window in 2⁻¹⁰ packets.
    pub window_q10: u64,
    /// The slow-start threshold, once there is one.
    pub threshold: Option<Packets>,
    /// The pacing rate in IP bits, where the controller paces.
    pub pacing: Option<Rate>,
    /// α, the marked fraction, in 2⁻²⁰; of DCTCP and GEMINI.
    pub alpha_q20: u64,
    /// F in 2⁻¹⁰; of GEMINI [GEMINI §III-C].
    pub factor_q10: u64,
    /// h in 2⁻¹⁰ packets per RTT; of GEMINI [GEMINI §III-B].
    pub step_q10: u64,
    /// The base RTT, once there was a sample; of GEMINI and Vegas.
    pub rtt_base: Option<Span>,
    /// Packets acknowledged, over the life of the flow.
    pub acked: Packets,
    /// Packets reported as marked, over the life of the flow.
    pub marked: Packets,
    /// Cuts of the window by cause.
    pub cuts: Cuts,
    /// Reductions that proved spurious and were taken back.
    pub undone: u64,
    /// Inode of its network namespace; a namespace that begins after this one ended may have the same.
    pub namespace: u32,
    /// Cookie of its network namespace (`SO_NETNS_COOKIE`), which no other has until the machine is switched off.
    pub namespace_cookie: u64,
    /// Whether ECN was negotiated.
    pub ecn: bool,
    /// This end.
    pub local: SocketAddr,
    /// The other end.
    pub remote: SocketAddr,
}

/// How often the window was cut, by what found the congestion.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cuts {
    /// An acknowledgement with ECE.
    pub ecn: u64,
    /// Delay; of GEMINI.
    pub delay: u64,
    /// Both in one acknowledgement: the larger cut was made; of GEMINI.
    pub both: u64,
    /// A loss found by acknowledgements.
    pub loss: u64,
    /// A retransmission timeout.
    pub timeout: u64,
}

/// Totals over a controller's life.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Flows that it controlled.
    pub flows: u64,
    /// Connections whose other end refused ECN. It needs ECN: another controller took them over, if one was named.
    pub ecn_refused: u64,
    /// Flows that could not be published, for there were too many.
    pub unpublished: u64,
}

/// Reads C structures field after field.
pub(crate) struct Fields<'a>(pub(crate) &'a [u8]);

impl Fields<'_> {
    pub(crate) fn take<const N: usize>(&mut self) -> [u8; N] {
        let (field, rest) = self.0.split_first_chunk().expect("the size was compared when the object was loaded");
        self.0 = rest;
        *field
    }
    pub(crate) fn u64(&mut self) -> u64 {
        u64::from_ne_bytes(self.take())
    }
    pub(crate) fn u32(&mut self) -> u32 {
        u32::from_ne_bytes(self.take())
    }
    pub(crate) fn u16(&mut self) -> u16 {
        u16::from_ne_bytes(self.take())
    }
    /// A number for which `u64::MAX` is none.
    fn some(&mut self) -> Option<u64> {
        Some(self.u64()).filter(|value| *value != u64::MAX)
    }
}

impl Flow {
    pub(crate) fn read(key: u64, bytes: &[u8]) -> Flow {
        let mut fields = Fields(bytes);
        let cookie = Some(fields.u64()).filter(|cookie| *cookie != 0);
        let updated_ns = fields.u64();
        let window_q10 = fields.u64();
        let threshold = fields.some().map(Packets::new);
        let pacing = Some(fields.u64()).filter(|bps| *bps != 0).map(Rate::from_bps);
        let alpha_q20 = fields.u64();
        let factor_q10 = fields.u64();
        let step_q10 = fields.u64();
        let rtt_base = fields.some().map(Span::from_us);
        let acked = Packets::new(fields.u64());
        let marked = Packets::new(fields.u64());
        let cuts = Cuts {
            ecn: fields.u64(),
            delay: fields.u64(),
            both: fields.u64(),
            loss: fields.u64(),
            timeout: fields.u64(),
        };
        let undone = fields.u64();
        let namespace_cookie = fields.u64();
        let namespace = fields.u32();
        let ecn = fields.u32() != 0;
        let family = fields.u32();
        let (local_port, remote_port) = (fields.u16(), fields.u16());
        let local = SocketAddr::new(address(family, fields.take()), local_port);
        let remote = SocketAddr::new(address(family, fields.take()), remote_port);
        Flow {
            key,
            cookie,
            updated_ns,
            window_q10,
            threshold,
            pacing,
            alpha_q20,
            factor_q10,
            step_q10,
            rtt_base,
            acked,
            marked,
            cuts,
            undone,
            namespace,
            namespace_cookie,
            ecn,
            local,
            remote,
        }
    }
}

impl Counters {
    pub(crate) fn read(bytes: &[u8]) -> Counters {
        let mut fields = Fields(bytes);
        Counters { flows: fields.u64(), ecn_refused: fields.u64(), unpublished: fields.u64() }
    }
}

/// `AF_INET` is 2 on Linux.
pub(crate) fn address(family: u32, bytes: [u8; 16]) -> IpAddr {
    if family == 2 {
        let [a, b, c, d, ..] = bytes;
        IpAddr::V4(Ipv4Addr::new(a, b, c, d))
    } else {
        IpAddr::V6(Ipv6Addr::from(bytes)).to_canonical()
    }
}
