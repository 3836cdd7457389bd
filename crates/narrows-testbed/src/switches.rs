//! What the emulated switches tell the hosts in the scope of their congestion points: a sampled packet's sender hears of the
//! congestion that it met, in a datagram as `docs/reference/wire.md` has it.

use std::net::IpAddr;
use std::time::{SystemTime, UNIX_EPOCH};

use etherparse::PacketBuilder;
use narrows_core::queue::Feedback;
use narrows_plan::Graph;
use narrows_wire::notification::{HOP_LIMIT, LENGTH, PORT};
use narrows_wire::{Flow, Key, Notification};

use crate::address;
use crate::packet::Header;

/// Largest IP packet of a notification: IPv6, UDP, the notification.
const LARGEST: usize = 40 + 8 + LENGTH;

/// The identity of the congestion point at a port.
pub(crate) fn identity(graph: &Graph, link: u32) -> u64 {
    u64::from(graph.links[link as usize].from) << 32 | u64::from(link)
}

/// All congestion points of a run.
#[derive(Debug)]
pub(crate) struct Switches {
    /// Hosts have keys that are made of it.
    key: Key,
    /// By link: when its congestion point spoke last, nanoseconds since 1970.
    spoke_ns: Vec<u64>,
}

impl Switches {
    pub(crate) fn new(graph: &Graph, key: Key) -> Switches {
        Switches { key, spoke_ns: vec![0; graph.links.len()] }
    }

    /// The IP packet by which the port of `link` tells the sender of a sampled TCP packet, written to `buffer`; its length.
    /// `None` if there is nobody to tell: it was no TCP packet of a host, or it carries nothing that could be held back.
    pub(crate) fn tell(
        &mut self,
        graph: &Graph,
        link: u32,
        feedback: Feedback,
        sampled: &[u8],
        buffer: &mut [u8],
    ) -> Option<usize> {
        let header = Header::parse(sampled).ok()?;
        let (from, to) = header.ports(sampled)?;
        let payload = header.tcp_payload(sampled).filter(|&payload| payload > 0)?;
        let spoke = &mut self.spoke_ns[link as usize];
        *spoke = now_ns().max(*spoke + 1);
        let told = Notification {
            sender: identity(graph, link),
            sent_ns: *spoke,
            feedback: feedback.quantized,
            offset: clamped(feedback.offset),
            growth: clamped(feedback.growth),
            flow: Flow { source: (header.source, from).into(), destination: (header.destination, to).into() },
            seq: header.tcp_seq(sampled)?,
            payload,
        };
        let datagram = told.seal(&self.key.of_host(header.source));
        let switch = graph.links[link as usize].from;
        let ip = match header.source {
            IpAddr::V4(host) => PacketBuilder::ipv4(address::switch_v4(switch).octets(), host.octets(), HOP_LIMIT),
            IpAddr::V6(host) => PacketBuilder::ipv6(address::switch_v6(switch).octets(), host.octets(), HOP_LIMIT),
        };
        let mut packet = Vec::with_capacity(LARGEST);
        ip.udp(PORT, PORT).write(&mut packet, &datagram).ok()?;
        buffer.get_mut(..packet.len())?.copy_from_slice(&packet);
        Some(packet.len())
    }
}

/// Nanoseconds since 1970.
fn now_ns() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

fn clamped(bytes: i64) -> i32 {
    i32::try_from(bytes).unwrap_or(if bytes < 0 { i32::MIN } else { i32::MAX })
}
