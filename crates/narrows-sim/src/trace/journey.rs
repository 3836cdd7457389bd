//! A packet's way from the host that sends it, hop by hop.

use narrows_core::packet::{Ecn, Flags, SackBlocks, Seq};
use narrows_core::units::Time;
use narrows_network::Payload;
use narrows_plan::Plan;

use super::EndLog;
use crate::packet::{Packet, SidePool};

/// A packet at one port.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hop {
    pub(crate) link: u32,
    /// When it came to the port.
    pub(crate) offered: Time,
    /// When it would have reached the far end with the link's least delay, where that says more than `arrived`.
    pub(crate) crossed: Option<Time>,
    pub(crate) arrived: Option<Time>,
    /// With which bits it came, and whether the port marked it.
    pub(crate) ecn: Ecn,
    pub(crate) marked: bool,
}

/// See the [module](self).
#[derive(Clone, Debug)]
pub(crate) struct Journey {
    pub(crate) connection: u32,
    pub(crate) host: u32,
    pub(crate) destination: u32,
    /// When the transport handed it to the port.
    pub(crate) sent: Time,
    /// When it reached its host.
    pub(crate) arrived: Option<Time>,
    /// When that host's stack got it.
    pub(crate) handed_up: Option<Time>,
    pub(crate) dropped: bool,
    pub(crate) tag: u32,
    /// Offsets in the streams of its direction and of the other.
    pub(crate) seq: u64,
    pub(crate) ack: u64,
    pub(crate) payload: u32,
    pub(crate) ip_bytes: u32,
    pub(crate) flags: Flags,
    pub(crate) window: u16,
    pub(crate) timestamps: (u32, u32),
    pub(crate) sack: SackBlocks,
    pub(crate) service_class: u8,
    pub(crate) is_datagram: bool,
    /// All of its data had been sent before.
    pub(crate) is_retransmission: bool,
    /// The look at its sender after the event that it was sent in: an index of those of its end.
    pub(crate) look: u32,
    pub(crate) hops: Vec<Hop>,
    /// It is a copy of another, whose hops the first of its are.
    pub(crate) copied_hops: usize,
}

impl Journey {
    /// A packet that `host` hands to its port now. `end` has sent it, and the other end's data has come as far as `other`.
    pub(super) fn new(
        at: Time,
        link: u32,
        host: u32,
        packet: &Packet,
        pool: &SidePool,
        end: &mut EndLog,
        other: u64,
    ) -> Journey {
        let segment = packet.segment(pool);
        let seq = Seq::expand(segment.seq, Seq::new(end.latest[0]));
        let ack = if segment.flags.contains(Flags::ACK) { Seq::expand(segment.ack, Seq::new(other)) } else { Seq::SYN };
        let payload = u32::from(segment.length);
        let last = seq.plus(payload.into()).get();
        let is_retransmission = payload > 0 && last <= end.latest[0];
        end.latest = [end.latest[0].max(last), end.latest[1].max(ack.get())];
        Journey {
            connection: packet.connection,
            host,
            destination: packet.destination(),
            sent: at,
            arrived: None,
            handed_up: None,
            dropped: false,
            tag: segment.tag.0,
            seq: seq.get(),
            ack: ack.get(),
            payload,
            ip_bytes: packet.ip_bytes(),
            flags: segment.flags,
            window: segment.window,
            timestamps: (segment.timestamp, segment.timestamp_echo),
            sack: segment.sack,
            service_class: packet.service_class(),
            is_datagram: packet.is_datagram(),
            is_retransmission,
            look: u32::try_from(end.looks.len()).expect("fewer events than 2³²"),
            hops: vec![Hop { link, offered: at, crossed: None, arrived: None, ecn: segment.ecn, marked: false }],
            copied_hops: 0,
        }
    }

    /// The hop on a link with a pair of edge routers, if it has come to one.
    pub(super) fn bridge(&self, plan: &Plan) -> Option<usize> {
        self.hops.iter().position(|hop| plan.network.links[hop.link as usize].bridge.is_some())
    }

    /// That of a copy, which a pair of edge routers makes, and which may now be at this link: at the pair's own, or behind it.
    pub(super) fn copied_to(&self, link: u32, plan: &Plan) -> Option<Journey> {
        let bridge = self.bridge(plan)?;
        let copied = |hops: usize| Journey {
            hops: self.hops[..hops].to_vec(),
            copied_hops: hops,
            arrived: None,
            handed_up: None,
            dropped: false,
            ..self.clone()
        };
        let hops = if self.hops[bridge].link == link { bridge } else { bridge + 1 };
        (hops > 0).then(|| copied(hops)).filter(|copy| copy.may_be_at(link, plan))
    }

    pub(crate) fn is_syn(&self) -> bool {
        self.flags.contains(Flags::SYN)
    }

    /// End of its data.
    pub(crate) fn end(&self) -> u64 {
        self.seq + u64::from(self.payload)
    }

    /// Whether the packet may now be at this link: it has come to its port, or to the node that the link begins at.
    pub(super) fn may_be_at(&self, link: u32, plan: &Plan) -> bool {
        let last = self.hops.last().expect("it has one from the beginning");
        let links = &plan.network.links;
        match last.arrived {
            None => last.link == link,
            Some(_) => links[last.link as usize].to == links[link as usize].from,
        }
    }

    /// The hop at this link, which begins now if the packet has not come to it yet.
    fn at(&mut self, link: u32, packet: &Packet, now: Time) -> &mut Hop {
        let last = self.hops.last().expect("it has one from the beginning");
        if last.arrived.is_some() || last.link != link {
            let offered = last.arrived.unwrap_or(now);
            let ecn = if last.marked { Ecn::Marked } else { last.ecn };
            self.hops.push(Hop { link, offered, crossed: None, arrived: None, ecn, marked: false });
        }
        let hop = self.hops.last_mut().expect("one was there or pushed");
        hop.marked = packet.ecn_bits() == Ecn::Marked && hop.ecn != Ecn::Marked;
        hop
    }

    /// A port refused it: the next on its way, if it has come through the last.
    pub(super) fn note_dropping_port(&mut self, path: &[u32]) {
        let last = self.hops.last().expect("it has one from the beginning");
        if let (Some(offered), Some(&link)) = (last.arrived, path.get(self.hops.len())) {
            let ecn = if last.marked { Ecn::Marked } else { last.ecn };
            self.hops.push(Hop { link, offered, crossed: None, arrived: None, ecn, marked: false });
        }
    }

    /// It is handed to the port of `link`, which may be some time after it has arrived at the node.
    pub(super) fn come_to(&mut self, now: Time, link: u32, packet: &Packet) {
        let is_there = self.hops.last().is_some_and(|last| last.link == link && last.arrived.is_none());
        let hop = self.at(link, packet, now);
        if !is_there {
            hop.offered = now;
        }
    }

    pub(super) fn cross(&mut self, now: Time, link: u32, packet: &Packet) {
        self.at(link, packet, now).crossed = Some(now);
    }

    pub(super) fn arrive(&mut self, now: Time, link: u32, packet: &Packet) {
        self.at(link, packet, now).arrived = Some(now);
    }
}
