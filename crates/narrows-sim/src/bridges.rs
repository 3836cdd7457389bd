//! The ends of bridges: an [`Edge`] for each direction of each bridge, and how what they send looks in the network.
//!
//! What goes over a bridge is a [`Packet`] like others, so that ports treat it as such. What is put around it on the way
//! lies in a pool beside it.

use narrows_core::edge::dcib::{self, CONTROL_BYTES, Edge, Message, SHIM_BYTES, Segment, Shim, Transmit};
use narrows_core::packet::Ecn;
use narrows_core::rng::Stream;
use narrows_core::units::{Bytes, Time};
use narrows_network::{Entity, Payload};
use narrows_plan::Plan;
use narrows_results::BridgeRow;

use crate::connections::Side;
use crate::packet::Packet;

impl dcib::Packet for Packet {
    /// The connection, and which of its ends sends.
    type Flow = (u32, bool);

    fn ip_bytes(&self) -> Bytes {
        Bytes::new(u64::from(Payload::ip_bytes(self)))
    }

    fn ecn(&self) -> Ecn {
        self.ecn_bits()
    }

    fn set_ecn(&mut self, ecn: Ecn) {
        self.set_ecn_bits(ecn);
    }

    fn segment(&self) -> Option<Segment<(u32, bool)>> {
        if self.is_datagram() || self.is_rdma() {
            return None;
        }
        let to_opener = self.side() == Side::Opener;
        let (payload, syn) = (self.payload(), self.is_syn());
        Some(Segment {
            flow: (self.connection, !to_opener),
            reverse: (self.connection, to_opener),
            seq: self.seq(),
            length: payload + u32::from(syn),
            payload,
            syn,
            ack: self.ack(),
        })
    }
}

/// What is around the packets that are on a bridge, by the place that a packet names, and what stood there in the packet.
#[derive(Debug, Default)]
struct Around {
    places: Vec<(Message<()>, u32)>,
    free: Vec<u32>,
}

impl Around {
    fn keep(&mut self, message: Message<()>, extra: u32) -> u32 {
        match self.free.pop() {
            Some(place) => {
                self.places[place as usize] = (message, extra);
                place
            }
            None => {
                self.places.push((message, extra));
                u32::try_from(self.places.len() - 1).expect("fewer packets under way than 2³²")
            }
        }
    }

    fn take(&mut self, place: u32) -> (Message<()>, u32) {
        self.free.push(place);
        self.places[place as usize].clone()
    }
}

/// One end of a bridge.
struct End {
    edge: Edge<Packet>,
    /// The link that it sends over, and the one that leads to it.
    link: u32,
    back: u32,
    /// The slot of its entity in the agenda, and when that is due.
    slot: u32,
    armed: Time,
}

/// All ends of all bridges of a run.
#[derive(Default)]
pub(crate) struct Bridges {
    ends: Vec<End>,
    /// By link: the end that sends over it.
    senders: Vec<u32>,
    /// By link: the end that it leads to.
    receivers: Vec<u32>,
    around: Around,
}

const NONE: u32 = u32::MAX;

/// What an end has for the network.
pub(crate) enum Sent {
    /// Goes on from the far end of this bridge, which it has crossed.
    On(u32, Packet),
    /// Crosses this bridge, ahead of others or not. Of a marked packet with what it carries.
    Over(u32, Packet, bool, Option<Shim>),
    /// Is dropped.
    Dropped(Packet),
}

impl Bridges {
    /// The bridges of a plan, each end with a slot of the agenda.
    pub(crate) fn new(plan: &Plan, seed: u64, mut slot: impl FnMut() -> u32) -> Bridges {
        let links = &plan.network.links;
        if links.iter().all(|link| link.bridge.is_none()) {
            return Bridges::default();
        }
        let (mut senders, mut receivers) = (vec![NONE; links.len()], vec![NONE; links.len()]);
        let reverses = plan.network.reverses();
        let mut ends = Vec::new();
        for (id, link) in (0_u32..).zip(links) {
            let Some(config) = &link.bridge else { continue };
            // Of parallel links each has its own.
            let back = reverses[id as usize].expect("a bridge has two directions");
            let number = u32::try_from(ends.len()).expect("links have 32-bit identifiers");
            senders[id as usize] = number;
            receivers[back as usize] = number;
            let stream = Stream::named(seed, &format!("bridge/{}", link.name)).small();
            ends.push(End { edge: Edge::new(config, 0, stream), link: id, back, slot: slot(), armed: Time::NEVER });
        }
        Bridges { ends, senders, receivers, around: Around::default() }
    }

    /// A packet is about to enter the bridge `link`: the end that it is at.
    pub(crate) fn enter(&mut self, now: Time, link: u32, packet: Packet) -> usize {
        let end = self.senders[link as usize] as usize;
        self.ends[end].edge.handle_inside(now, packet);
        end
    }

    /// A packet has crossed the bridge `link`: the end that it has come to.
    pub(crate) fn leave(&mut self, now: Time, link: u32, packet: Packet) -> usize {
        let end = self.receivers[link as usize] as usize;
        let message = self.open(packet);
        self.ends[end].edge.handle_outside(now, message);
        end
    }

    /// An end is due.
    pub(crate) fn handle_timeout(&mut self, now: Time, end: usize) {
        self.ends[end].armed = Time::NEVER;
        self.ends[end].edge.handle_timeout(now);
    }

    /// What an end sends next.
    pub(crate) fn poll(&mut self, end: usize) -> Option<Sent> {
        let End { link, back, .. } = self.ends[end];
        Some(match self.ends[end].edge.poll_transmit()? {
            Transmit::Inside(packet) => Sent::On(back, packet),
            Transmit::Dropped(packet) => Sent::Dropped(packet),
            Transmit::Outside(message) => {
                let urgent = message.is_urgent();
                let shim = if let Message::Marked(_, shim) = &message { Some(*shim) } else { None };
                Sent::Over(link, self.close(message), urgent, shim)
            }
        })
    }

    /// A marked packet of an end leaves its port.
    pub(crate) fn note_departure(&mut self, end: usize, shim: &Shim, at: Time) {
        self.ends[end].edge.handle_departure(shim, at);
    }

    /// Where an end's entity is to be armed for, if it is not yet.
    pub(crate) fn rearm(&mut self, base: u64, end: usize) -> Option<(Entity, Time)> {
        let (number, end) = (base + end as u64, &mut self.ends[end]);
        let deadline = end.edge.deadline();
        (deadline != end.armed).then(|| {
            end.armed = deadline;
            (Entity::start(number, end.slot), deadline)
        })
    }

    /// A message as a packet on the bridge.
    fn close(&mut self, message: Message<Packet>) -> Packet {
        let mut keep = |message, extra| self.around.keep(message, extra);
        match message {
            Message::Plain(packet) => packet,
            Message::Disguised(packet) => packet.wrap(keep(Message::Disguised(()), packet.extra()), 0),
            Message::Marked(packet, shim) => {
                packet.wrap(keep(Message::Marked((), shim), packet.extra()), SHIM_BYTES.get())
            }
            Message::Acknowledgement { session, number, tries } => {
                Packet::control(keep(Message::Acknowledgement { session, number, tries }, 0), CONTROL_BYTES.get())
            }
            Message::Greeting { clock, token } => {
                Packet::control(keep(Message::Greeting { clock, token }, 0), CONTROL_BYTES.get())
            }
            Message::Welcome { token, session } => {
                Packet::control(keep(Message::Welcome { token, session }, 0), CONTROL_BYTES.get())
            }
        }
    }

    /// The inverse of [`Bridges::close`].
    fn open(&mut self, packet: Packet) -> Message<Packet> {
        let Some(place) = packet.wrapped() else { return Message::Plain(packet) };
        let (message, extra) = self.around.take(place);
        match message {
            Message::Plain(()) => unreachable!("a plain packet has nothing around it"),
            Message::Disguised(()) => Message::Disguised(packet.unwrap(extra, 0)),
            Message::Marked((), shim) => Message::Marked(packet.unwrap(extra, SHIM_BYTES.get()), shim),
            Message::Acknowledgement { session, number, tries } => Message::Acknowledgement { session, number, tries },
            Message::Greeting { clock, token } => Message::Greeting { clock, token },
            Message::Welcome { token, session } => Message::Welcome { token, session },
        }
    }

    /// A packet that was lost, as its host sent it; `None` if no host did.
    pub(crate) fn lost(&mut self, packet: Packet) -> Option<Packet> {
        match self.open(packet) {
            Message::Plain(packet) | Message::Disguised(packet) | Message::Marked(packet, _) => Some(packet),
            _ => None,
        }
    }

    /// What they have done.
    pub(crate) fn rows(&self) -> Vec<BridgeRow> {
        self.ends.iter().map(|end| BridgeRow::new(end.link, &end.edge)).collect()
    }
}
