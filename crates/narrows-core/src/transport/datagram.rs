//! Datagrams at a constant rate [RFC 768]: no connection, no acknowledgement, no congestion control, nothing retransmitted.
//!
//! The sender cuts what is offered into packets of the network's MTU and lets one go each time the wire bytes of the one before
//! it have taken their time at its rate. Like a socket that blocks, it waits while its host's port holds a send buffer full;
//! what it did not send meanwhile is not made up for. What arrives is counted by whoever receives it.

use super::Machine;
use crate::component::{Kind, Settings, Spec, Value, parameters};
use crate::packet::{Flags, Segment, Seq, Tag, wire_bytes};
use crate::tcp::Stack;
use crate::units::{Bytes, Rate, Time};

/// What experiments may choose.
pub const SPEC: Spec = Spec {
    name: "datagram",
    about: "Datagrams at a constant rate: no connection, no congestion control, nothing retransmitted.",
    source: "[RFC 768]",
    parameters: parameters! {
        "rate": Kind::LinkRate, Value::Required,
            "of each flow, on the wire with framing: a rate, at most that of its host's link, or a share of that link";
    },
};

/// Most bytes of a flow in its host's port: the default send buffer of a socket (Linux `net.core.wmem_default`).
const SEND_BUFFER: Bytes = Bytes::new(212_992);
/// Fraction bits of a share.
pub const SHARE_BITS: u8 = 16;

/// How fast each flow sends, framing included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum SendRate {
    /// So many bits per second.
    Fixed(Rate),
    /// This share of its host's link, in units of 2⁻¹⁶.
    Share(u32),
}

/// Its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Config {
    /// Of each flow.
    pub rate: SendRate,
}

impl Config {
    pub(super) fn new(settings: &Settings<'_>) -> Config {
        Config {
            rate: match settings.link_rate("rate") {
                Value::Rate(rate) => SendRate::Fixed(rate),
                Value::Real(share) => SendRate::Share(u32::try_from(share).unwrap_or(u32::MAX)),
                other => unreachable!("`rate` is {other:?}"),
            },
        }
    }

    /// The rate of a flow whose host has a link of `line_rate`.
    pub fn rate(&self, line_rate: Rate) -> Rate {
        match self.rate {
            SendRate::Fixed(rate) => rate,
            SendRate::Share(share) => line_rate.scaled(u64::from(share), 1 << SHARE_BITS),
        }
    }
}

/// The sender of one flow.
#[derive(Clone, Debug)]
pub struct Datagram {
    rate: Rate,
    tag: Tag,
    /// First byte of the next packet.
    seq: Seq,
    /// Bytes that are still to be sent.
    left: u64,
    /// When the next packet may go, at the earliest.
    next: Time,
    waits_for_pacing: bool,
}

impl Datagram {
    /// A flow of a host whose link has this rate; it has nothing to send yet.
    pub fn new(config: &Config, line_rate: Rate) -> Datagram {
        Datagram {
            rate: config.rate(line_rate),
            tag: Tag::default(),
            seq: Seq::FIRST,
            left: 0,
            next: Time::ZERO,
            waits_for_pacing: false,
        }
    }

    /// The flow's bytes.
    pub fn offer(&mut self, bytes: Bytes, tag: Tag) {
        (self.left, self.tag) = (bytes.get(), tag);
    }

    /// Nothing more goes.
    pub fn stop(&mut self) {
        self.left = 0;
    }

    /// Payload sent so far.
    pub fn sent(&self) -> Bytes {
        Bytes::new(self.seq.since(Seq::FIRST))
    }

    /// Bits per second, framing included.
    pub fn rate(&self) -> Rate {
        self.rate
    }
}

impl Machine for Datagram {
    fn poll_into(&mut self, segment: &mut Segment, now: Time, room: bool, stack: &Stack) -> bool {
        self.waits_for_pacing = self.left > 0 && room && now < self.next;
        if self.left == 0 || !room || self.waits_for_pacing {
            return false;
        }
        let full = stack.mtu.datagram_payload();
        let length = u16::try_from(self.left).unwrap_or(full).min(full);
        (segment.seq, segment.length, segment.tag) = (self.seq.wire(), length, self.tag);
        self.left -= u64::from(length);
        self.seq = self.seq.plus(length.into());
        segment.flags = Flags::NONE.with_if(Flags::END, self.left == 0);
        self.next = self.next.max(now) + self.rate.time_for(wire_bytes(segment.ip_bytes()));
        true
    }

    fn handle_timeout(&mut self, _now: Time, _stack: &Stack) {}

    fn deadline(&self) -> Time {
        Time::NEVER
    }

    fn pacing_deadline(&self) -> Time {
        if self.waits_for_pacing { self.next } else { Time::NEVER }
    }

    fn has_room(&self, waiting: Bytes, _stack: &Stack) -> bool {
        waiting < SEND_BUFFER
    }

    fn is_quiescent(&self) -> bool {
        self.left == 0
    }

    fn is_idle(&self) -> bool {
        self.left == 0
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;
    use crate::packet::Mtu;
    use crate::tcp::EcnMode;
    use crate::tcp::profile::Profile;
    use crate::units::Span;

    fn stack(mtu: u16) -> Stack {
        let (profile, mtu) = (Profile::LINUX_6, Mtu::new(mtu).unwrap());
        Stack { profile, ecn: EcnMode::Off, line_rate: Rate::from_gbps(10), delivery_rate: false, mtu }
    }

    /// Packets of a flow, their times and payloads, that is polled whenever it asks to be.
    fn sent(sender: &mut Datagram, stack: &Stack) -> Vec<(Time, u16, bool)> {
        let (mut now, mut sent) = (Time::ZERO, Vec::new());
        loop {
            let mut segment = Segment::default();
            while sender.poll_into(&mut segment, now, true, stack) {
                assert_eq!(segment.tag, Tag(7));
                sent.push((now, segment.length, segment.flags.contains(Flags::END)));
                segment = Segment::default();
            }
            match sender.pacing_deadline() {
                Time::NEVER => return sent,
                next => now = next,
            }
        }
    }

    #[test]
    fn packets_leave_at_the_rate_of_their_wire_bytes() {
        for (mtu, payload) in [(1_500, 1_472), (4_096, 4_068), (9_000, 8_972)] {
            let stack = stack(mtu);
            let config = Config { rate: SendRate::Share(1 << (SHARE_BITS - 1)) };
            let mut sender = Datagram::new(&config, stack.line_rate);
            assert_eq!(sender.rate(), Rate::from_gbps(5));
            sender.offer(Bytes::new(10 * payload + 1), Tag(7));
            let sent = sent(&mut sender, &stack);
            let each = Rate::from_gbps(5).time_for(Bytes::new(u64::from(mtu) + 38));
            let times: Vec<Span> = sent.iter().map(|(at, ..)| at.since(Time::ZERO)).collect();
            assert_eq!(times, (0..11).map(|packet| each * packet).collect::<Vec<_>>());
            let payloads: Vec<u64> = sent.iter().map(|(_, length, _)| u64::from(*length)).collect();
            assert_eq!((payloads[..10].to_vec(), payloads[10]), (alloc::vec![payload; 10], 1));
            assert!(sent.iter().all(|(at, _, last)| *last == (*at == sent[10].0)));
            assert_eq!((sender.is_idle(), sender.sent()), (true, Bytes::new(10 * payload + 1)));
        }
    }

    #[test]
    fn what_a_full_port_held_back_is_not_made_up_for() {
        let stack = stack(1_500);
        let mut sender = Datagram::new(&Config { rate: SendRate::Fixed(Rate::from_gbps(1)) }, stack.line_rate);
        sender.offer(Bytes::new(1 << 20), Tag(7));
        let mut poll = |us, room| {
            let mut segment = Segment::default();
            sender.poll_into(&mut segment, Time::ZERO + Span::from_us(us), room, &stack)
        };
        assert!(poll(0, true));
        assert!(!poll(500, false), "the port is full");
        assert!(poll(1_000, true) && !poll(1_000, true) && poll(1_013, true));
    }

    #[test]
    fn the_port_holds_a_send_buffer_full() {
        let stack = stack(1_500);
        let sender = Datagram::new(&Config { rate: SendRate::Share(1 << SHARE_BITS) }, stack.line_rate);
        assert!(sender.has_room(Bytes::new(212_991), &stack));
        assert!(!sender.has_room(Bytes::new(212_992), &stack));
    }
}
