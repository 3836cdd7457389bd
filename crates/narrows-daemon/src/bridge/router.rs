//! What becomes of each frame: frames in, messages to and from the machine, frames out. No interface and no clock.

use std::collections::VecDeque;

use narrows_core::edge::dcib::{Config, Edge, Message, Packet, Shim as Mark, Transmit};
use narrows_core::packet::Ecn;
use narrows_core::rng::SmallStream;
use narrows_core::units::{Span, Time};
use narrows_kernel::bridge::{Kind, Side};
use narrows_wire::Keys;
use narrows_wire::tunnel::{End, MAX_TRIES, Names, Opened, Refusal, SALT, Shim};

use super::clamp::clamp;
use super::frame::{Departing, Frame};
use super::limit::Limit;
use super::wrap::{Complaint, Datagram, Way, extra, marked};

/// What a router is given.
#[derive(Clone, Debug)]
pub(super) struct RouterConfig {
    pub(super) config: Config,
    pub(super) keys: Keys,
    pub(super) names: Names,
    /// The tunnel's UDP port.
    pub(super) port: u16,
    /// The DSCP of disguised packets, if there are any.
    pub(super) sign: Option<u8>,
    /// Bytes of a link header.
    pub(super) link: usize,
    /// What the outer interface takes, bytes of an IP packet.
    pub(super) longest: u16,
    /// Nanoseconds since 1970.
    pub(super) clock: u64,
    /// Fills bytes with the system's randomness.
    pub(super) draw: fn(&mut [u8]),
}

/// What became of frames, besides what the machine counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counters {
    /// TCP packets that came, from inside and outside.
    pub(super) packets: [u64; 2],
    /// Frames that are not what they seemed, and were sent on as they were.
    pub(super) untouched: u64,
    /// TCP packets that waited longer than the heartbeat counts.
    pub(super) late: u64,
    /// Connections whose largest segment was lowered, in either direction.
    pub(super) clamped: u64,
    /// Packets with data that would have been too long, marked, and were not.
    pub(super) too_long: u64,
    /// Packets of hosts without ECN that were sent as they came.
    pub(super) plainly: u64,
    /// Those that were disguised.
    pub(super) disguised: u64,
    /// What the far edge said and was believed.
    pub(super) believed: u64,
    /// What was not, by [`Refusal`].
    pub(super) refused: [u64; Refusal::ALL.len()],
    /// Marks of congestion on repairs, which their packets took over.
    pub(super) congested: u64,
    /// Routers' complaints of packets that were too long, and were believed.
    pub(super) complaints: u64,
    /// Other complaints.
    pub(super) other_complaints: u64,
    /// Packets that were lost again and again, and taken to be too long, as shorter ones arrived.
    pub(super) suspected: u64,
    /// Messages of the machine that could not be sealed any more: their session was over.
    pub(super) unsealed: u64,
}

/// Marked packets whose sizes are known, until they arrive.
const SIZES: u32 = 8_192;
/// A packet that is sent so often was lost before.
const DOUBTFUL: u8 = 3;

/// A marked packet.
#[derive(Clone, Copy, Debug, Default)]
struct Size {
    number: u32,
    /// With what is around it; 0 for none.
    bytes: u16,
    v6: bool,
    /// When it was sent first.
    sent: Time,
}

/// A frame that is to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Sent {
    pub(super) side: Side,
    /// It goes first.
    pub(super) urgent: bool,
    pub(super) frame: Departing,
}

/// See the [module](self).
pub(super) struct Router {
    given: RouterConfig,
    edge: Edge<Frame>,
    end: End,
    limit: Limit,
    /// By number.
    sizes: Box<[Size]>,
    out: VecDeque<Sent>,
    /// The session in which this end marks, and since when.
    session: Option<(u32, Time)>,
    /// How many frames from outside had gone past when the last one came.
    past: Option<u32>,
    pub(super) counters: Counters,
}

impl Router {
    /// A router that knows nothing of the far edge.
    pub(super) fn new(given: RouterConfig) -> Router {
        let mut seed = [0; 8];
        (given.draw)(&mut seed);
        let stream = SmallStream::new(u64::from_ne_bytes(seed));
        Router {
            edge: Edge::new(&given.config, given.clock, stream),
            end: End::new(&given.keys, &given.names).with_sign(given.sign.unwrap_or_default()),
            limit: Limit::new(given.longest),
            sizes: vec![Size::default(); SIZES as usize].into_boxed_slice(),
            out: VecDeque::new(),
            session: None,
            past: None,
            counters: Counters::default(),
            given,
        }
    }

    /// A frame has come.
    pub(super) fn handle(&mut self, now: Time, side: Side, kind: Kind, bytes: &[u8], came_ns: u64) {
        let link = self.given.link;
        match (kind, side) {
            (Kind::Tcp, _) => match Frame::read(bytes, link, came_ns) {
                Some(frame) => {
                    self.counters.packets[side as usize] += 1;
                    self.handle_tcp(now, side, frame);
                }
                None => self.pass(side, bytes, came_ns),
            },
            (Kind::Tunnel, Side::Outside) => self.handle_datagram(now, bytes, came_ns),
            (Kind::Error, Side::Outside) => {
                let message = bytes.get(link..).and_then(|packet| Complaint::read(packet, self.given.port));
                let v6 = bytes.get(link).is_some_and(|first| first >> 4 == 6);
                match message {
                    Some(message) => self.handle_complaint(now, v6, message),
                    None => self.pass(side, bytes, came_ns),
                }
            }
            // The kernel hands over no such thing.
            (Kind::Tunnel | Kind::Error, Side::Inside) => self.pass(side, bytes, came_ns),
        }
    }

    /// A frame that waited so long that newer ones overtook it: it is neither marked nor held back.
    pub(super) fn handle_late(&mut self, now: Time, side: Side, kind: Kind, bytes: &[u8], came_ns: u64) {
        self.counters.late += 1;
        if side == Side::Outside {
            self.edge.lose_order();
            self.drain(now, None, 0);
            return self.handle(now, side, kind, bytes, came_ns);
        }
        let frame = (kind == Kind::Tcp).then(|| Frame::read(bytes, self.given.link, came_ns)).flatten();
        let Some(mut frame) = frame else { return self.pass(side, bytes, came_ns) };
        self.counters.packets[side as usize] += 1;
        self.lower_segments(now, &mut frame);
        let departing = match frame.ecn() {
            Ecn::NotCapable if frame.tcp().is_some() => {
                frame.set_ecn(Ecn::Capable);
                self.disguise(frame)
            }
            _ => frame.leave(),
        };
        self.out.push_back(Sent { side: Side::Outside, urgent: false, frame: departing });
    }

    /// Lowers the largest segment that a SYN allows to what fits with the headers around a marked packet, which is returned: bytes of
    /// an IP packet.
    fn lower_segments(&mut self, now: Time, frame: &mut Frame) -> usize {
        let v6 = frame.is_v6();
        let most = usize::from(self.limit.now(now, v6)).saturating_sub(extra(v6));
        if frame.tcp().is_some_and(|segment| segment.syn) {
            // The largest segment is what is left without the headers [RFC 9293 §3.7.1].
            let headers = if v6 { 60 } else { 40 };
            let largest = u16::try_from(most.saturating_sub(headers)).unwrap_or(u16::MAX);
            self.counters.clamped += u64::from(clamp(frame.transport_mut(), largest));
        }
        most
    }

    /// What the outer interface takes, bytes of an IP packet.
    pub(super) const fn interface_longest(&self) -> u16 {
        self.given.longest
    }

    /// The outer interface takes so many bytes of an IP packet from now on.
    pub(super) const fn set_longest(&mut self, longest: u16) {
        self.given.longest = longest;
        self.limit.set_interface(longest);
    }

    /// So many frames of a side have gone past it so far. What of a connection went past from outside nobody waits for.
    pub(super) fn went_past(&mut self, now: Time, side: Side, count: u32) {
        if side == Side::Outside && self.past.replace(count).is_some_and(|before| before != count) {
            self.edge.lose_order();
            self.drain(now, None, 0);
        }
    }

    /// [`Router::deadline`] has come.
    pub(super) fn handle_timeout(&mut self, now: Time) {
        self.edge.handle_timeout(now);
        self.drain(now, None, 0);
    }

    /// When [`Router::handle_timeout`] is to be called.
    pub(super) fn deadline(&self) -> Time {
        self.edge.deadline()
    }

    /// What is to be sent next.
    pub(super) fn poll(&mut self) -> Option<Sent> {
        self.out.pop_front()
    }

    /// The DSCP of disguised packets, if there are any.
    pub(super) const fn sign(&self) -> Option<u8> {
        self.given.sign
    }

    /// That of the far edge, 0 for none; `None` until it has said so, as [`End::far_sign`] has it.
    pub(super) const fn far_sign(&self) -> Option<u8> {
        self.end.far_sign()
    }

    /// Whether the far edge has another sign, or only one of both has one.
    pub(super) fn is_sign_another(&self) -> bool {
        self.far_sign().is_some_and(|far| far != self.given.sign.unwrap_or_default())
    }

    /// The machine, to read.
    pub(super) const fn edge(&self) -> &Edge<Frame> {
        &self.edge
    }

    /// Whether the far edge answers; `None` until this one had a packet to mark, and with it asked.
    pub(super) fn is_connected(&self, now: Time) -> Option<bool> {
        let connected = self.edge.is_connected(now);
        (connected || self.edge.transmitted().far_silent > 0).then_some(connected)
    }

    /// How long the far edge has known this one, if it does.
    pub(super) fn session_age(&self, now: Time) -> Option<Span> {
        self.session.filter(|_| self.edge.is_connected(now)).map(|(_, since)| now.since(since))
    }

    /// Bytes of a packet outside at most: with IPv4, and with IPv6.
    pub(super) fn longest(&self, now: Time) -> [u16; 2] {
        [false, true].map(|v6| self.limit.now(now, v6))
    }

    /// Sends a frame on as it is.
    fn pass(&mut self, side: Side, bytes: &[u8], came_ns: u64) {
        self.counters.untouched += 1;
        let frame = Departing::new(bytes.to_vec(), came_ns);
        self.out.push_back(Sent { side: other(side), urgent: false, frame });
    }

    fn handle_tcp(&mut self, now: Time, side: Side, mut frame: Frame) {
        let most = self.lower_segments(now, &mut frame);
        let came_ns = frame.came_ns;
        if side == Side::Inside {
            frame.fits = frame.packet().len() <= most;
            let has_data = frame.tcp().is_some_and(|segment| segment.payload > 0);
            self.counters.too_long += u64::from(has_data && !frame.fits);
            let way = Way::of(frame.link_header(), frame.path());
            self.edge.handle_inside(now, frame);
            self.drain(now, Some(way), came_ns);
            return;
        }
        let message = if self.given.sign.is_some_and(|sign| frame.dscp() == sign) {
            frame.set_dscp(0);
            Message::Disguised(frame)
        } else {
            Message::Plain(frame)
        };
        self.edge.handle_outside(now, message);
        self.drain(now, None, came_ns);
    }

    fn handle_datagram(&mut self, now: Time, bytes: &[u8], came_ns: u64) {
        let (Some(link), Some(packet)) = (bytes.get(..self.given.link), bytes.get(self.given.link..)) else {
            return self.pass(Side::Outside, bytes, came_ns);
        };
        let Some(datagram) = Datagram::read(packet, self.given.port) else {
            return self.pass(Side::Outside, bytes, came_ns);
        };
        let Some(opened) = self.end.open(datagram.path, datagram.payload) else {
            return self.pass(Side::Outside, bytes, came_ns);
        };
        let message = match opened {
            Err(refusal) => return self.refuse(refusal),
            Ok(Opened::Acknowledgement { session, number, tries }) => {
                let size = self.size(number);
                if size.number == number && size.bytes > 0 {
                    let Size { bytes, v6, sent, .. } = std::mem::take(size);
                    self.limit.arrived(now, v6, bytes, sent);
                }
                Message::Acknowledgement { session, number, tries }
            }
            Ok(Opened::Greeting { clock, token, .. }) => Message::Greeting { clock, token },
            Ok(Opened::Welcome { token, session, .. }) => {
                self.session = Some((session, now));
                self.sizes.fill(Size::default());
                Message::Welcome { token, session }
            }
            Ok(Opened::Marked(shim, inner)) => {
                // Edges send what is TCP, between the hosts that the datagram names.
                let frame = Frame::join(link, inner, came_ns).filter(|frame| frame.path() == datagram.path);
                let Some(frame) = frame else {
                    return self.refuse(Refusal::Malformed);
                };
                let host = ecn(shim.ecn);
                // Who understands ECN is told of congestion that a repair met [RFC 6040 §4.2].
                let told = datagram.ecn == Ecn::Marked && host != Ecn::NotCapable;
                self.counters.congested += u64::from(told);
                let ecn = if told { Ecn::Marked } else { host };
                Message::Marked(frame, Mark { session: shim.session, number: shim.number, ecn, tries: shim.tries })
            }
        };
        self.counters.believed += 1;
        let way = Way::back(link, datagram.path);
        self.edge.handle_outside(now, message);
        self.drain(now, Some(way), came_ns);
    }

    fn handle_complaint(&mut self, now: Time, v6: bool, message: Complaint<'_>) {
        // A quotation that is long enough names the session, which nobody knows who does not see the packets.
        // Of who quotes less nothing is believed; what is too long for him is found out by what arrives.
        let session = message.quoted.get(4..8).map(|bytes| [bytes[0], bytes[1], bytes[2], bytes[3]]);
        let is_ours =
            session.is_some_and(|session| Some(u32::from_be_bytes(session)) == self.session.map(|(number, _)| number));
        match message.too_long.filter(|_| is_ours) {
            Some(most) => {
                self.limit.complain(now, v6, most);
                self.counters.complaints += 1;
            }
            None => self.counters.other_complaints += 1,
        }
    }

    fn refuse(&mut self, refusal: Refusal) {
        self.counters.refused[refusal as usize] += 1;
    }

    /// Makes frames of what the machine says. What the edge says by itself goes this way.
    fn drain(&mut self, now: Time, way: Option<Way>, came_ns: u64) {
        while let Some(transmit) = self.edge.poll_transmit() {
            let (side, urgent) = match &transmit {
                Transmit::Dropped(_) => continue,
                Transmit::Inside(_) => (Side::Inside, false),
                Transmit::Outside(message) => (Side::Outside, message.is_urgent()),
            };
            let frame = match transmit {
                Transmit::Inside(frame) | Transmit::Dropped(frame) => Some(frame.leave()),
                Transmit::Outside(message) => self.seal(now, message, way.as_ref(), came_ns),
            };
            match frame {
                Some(frame) => self.out.push_back(Sent { side, urgent, frame }),
                None => self.counters.unsealed += 1,
            }
        }
    }

    fn seal(&mut self, now: Time, message: Message<Frame>, way: Option<&Way>, came_ns: u64) -> Option<Departing> {
        let port = self.given.port;
        match message {
            Message::Plain(mut frame) if frame.ecn() == Ecn::NotCapable && frame.tcp().is_some() => {
                // The machine leaves alone what is too long to be marked.
                frame.set_ecn(Ecn::Capable);
                Some(self.disguise(frame))
            }
            Message::Plain(frame) => Some(frame.leave()),
            Message::Disguised(frame) => Some(self.disguise(frame)),
            Message::Marked(frame, mark) => Some(self.mark(now, frame, mark)),
            Message::Acknowledgement { session, number, tries } => {
                let said = self.end.acknowledge(session, number, tries)?;
                Some(way?.datagram(&said, port, came_ns))
            }
            Message::Greeting { clock, token } => {
                let way = way?;
                let said = self.end.greet(way.path, &self.drawn(), clock, token);
                Some(way.datagram(&said, port, came_ns))
            }
            Message::Welcome { token, session } => {
                let way = way?;
                let (nonce, salt): ([u8; 24], [u8; SALT]) = (self.drawn(), self.drawn());
                let said = self.end.welcome(way.path, (&nonce, &salt), token, session)?;
                Some(way.datagram(&said, port, came_ns))
            }
        }
    }

    /// A packet that looks ECN-capable outside, if the far edge is told by its DSCP to undo it.
    fn disguise(&mut self, mut frame: Frame) -> Departing {
        match self.given.sign.filter(|_| frame.dscp() == 0 && !self.is_sign_another()) {
            Some(sign) => {
                frame.set_dscp(sign);
                self.counters.disguised += 1;
            }
            None => {
                frame.set_ecn(Ecn::NotCapable);
                self.counters.plainly += 1;
            }
        }
        frame.leave()
    }

    fn mark(&mut self, now: Time, mut frame: Frame, mark: Mark) -> Departing {
        let shim = Shim { session: mark.session, number: mark.number, ecn: mark.ecn as u8, tries: mark.tries };
        let v6 = frame.is_v6();
        let bytes = u16::try_from(frame.packet().len() + extra(v6)).unwrap_or(u16::MAX);
        if mark.tries == 1 {
            *self.size(mark.number) = Size { number: mark.number, bytes, v6, sent: now };
        } else if mark.tries >= DOUBTFUL {
            let known = *self.size(mark.number);
            let is_lost = known.number == mark.number && self.limit.lost(now, v6, bytes, known.sent);
            self.counters.suspected += u64::from(is_lost);
        }
        let fits = bytes <= self.limit.now(now, v6) && mark.tries <= MAX_TRIES;
        let sealed = if fits { self.end.mark(shim, frame.packet()) } else { None };
        let Some(sealed) = sealed else {
            // The limit was lowered after it was sent first: it goes bare.
            self.counters.too_long += 1;
            frame.set_ecn(mark.ecn);
            return frame.leave();
        };
        let outer = frame.ecn();
        marked(frame, &sealed, outer, self.given.port)
    }

    fn size(&mut self, number: u32) -> &mut Size {
        &mut self.sizes[(number % SIZES) as usize]
    }

    fn drawn<const N: usize>(&self) -> [u8; N] {
        let mut bytes = [0; N];
        (self.given.draw)(&mut bytes);
        bytes
    }
}

const fn other(side: Side) -> Side {
    match side {
        Side::Inside => Side::Outside,
        Side::Outside => Side::Inside,
    }
}

const fn ecn(bits: u8) -> Ecn {
    match bits & 3 {
        0 => Ecn::NotCapable,
        1 => Ecn::Capable1,
        2 => Ecn::Capable,
        _ => Ecn::Marked,
    }
}

#[cfg(test)]
mod tests;
