//! One end of the pair.

use alloc::collections::VecDeque;

use super::receive::{ReceiveCounters, Receiver};
use super::transmit::{TransmitCounters, Transmitter};
use super::{Config, Message, Packet, Shim, Transmit};
use crate::rng::SmallStream;
use crate::units::{Bytes, Span, Time};

/// See the [module](super).
#[derive(Clone, Debug)]
pub struct Edge<P: Packet> {
    transmitter: Transmitter<P>,
    receiver: Receiver<P>,
    out: VecDeque<Transmit<P>>,
    /// Duplicate acknowledgements that were not passed on.
    hushed: u64,
}

impl<P: Packet> Edge<P> {
    /// An edge that knows nothing of the far one. `clock` is what a clock reads that advances over restarts: where it was set
    /// back, the far edge listens only some seconds later. The stream chooses packets and names sessions: it must not repeat itself after a
    /// restart.
    pub fn new(config: &Config, clock: u64, mut stream: SmallStream) -> Edge<P> {
        let [choices, sessions] = [(); 2].map(|()| SmallStream::new(stream.next_u64()));
        Edge {
            transmitter: Transmitter::new(config, clock, choices),
            receiver: Receiver::new(config, sessions),
            out: VecDeque::new(),
            hushed: 0,
        }
    }

    /// A packet has come from inside.
    pub fn handle_inside(&mut self, now: Time, packet: P) {
        let out = &mut self.out;
        self.transmitter.handle(now, packet, |message| out.push_back(Transmit::Outside(message)));
    }

    /// A message has come from the far edge. Whether it is really from there the driver has seen to.
    pub fn handle_outside(&mut self, now: Time, message: Message<P>) {
        let out = &mut self.out;
        let hushed = &mut self.hushed;
        let transmitter = &mut self.transmitter;
        let receiver = &mut self.receiver;
        match message {
            Message::Plain(packet) | Message::Disguised(packet) if transmitter.silences(now, &packet) => {
                *hushed += 1;
            }
            Message::Plain(packet) => receiver.plain(now, packet, |sent| out.push_back(sent)),
            Message::Disguised(packet) => receiver.disguised(now, packet, |sent| out.push_back(sent)),
            Message::Marked(packet, shim) => receiver.marked(now, packet, shim, |sent| out.push_back(sent)),
            Message::Greeting { clock, token } => receiver.greeting(now, clock, token, |sent| out.push_back(sent)),
            Message::Welcome { token, session } => transmitter.welcome(now, token, session),
            Message::Acknowledgement { session, number, tries } => {
                transmitter.acknowledge(now, session, number, tries, |sent| out.push_back(Transmit::Outside(sent)));
            }
        }
    }

    /// [`Edge::deadline`] has come.
    pub fn handle_timeout(&mut self, now: Time) {
        let out = &mut self.out;
        self.transmitter.handle_timeout(now, |message| out.push_back(Transmit::Outside(message)));
        self.receiver.handle_timeout(now, |sent| out.push_back(sent));
    }

    /// A marked packet that [`Edge::poll_transmit`] gave leaves the router's own queue at `at`: drivers that know it say so, so that
    /// the wait there does not count as a part of the RTT.
    pub fn handle_departure(&mut self, shim: &Shim, at: Time) {
        self.transmitter.leave(shim, at);
    }

    /// Packets from outside went past this edge to the inside: it does not hold others back for them.
    pub fn lose_order(&mut self) {
        let out = &mut self.out;
        self.receiver.lose_order(|sent| out.push_back(sent));
    }

    /// What is to be sent next.
    pub fn poll_transmit(&mut self) -> Option<Transmit<P>> {
        self.out.pop_front()
    }

    /// When [`Edge::handle_timeout`] is to be called; [`Time::NEVER`] if nothing is due.
    pub fn deadline(&self) -> Time {
        self.transmitter.deadline().min(self.receiver.deadline())
    }

    /// What it has done with packets from inside.
    pub fn transmitted(&self) -> TransmitCounters {
        self.transmitter.counters
    }

    /// What it has done with packets from outside.
    pub fn received(&self) -> ReceiveCounters {
        self.receiver.counters
    }

    /// Duplicate acknowledgements that it did not pass on.
    pub fn hushed(&self) -> u64 {
        self.hushed
    }

    /// Bytes of copies now.
    pub fn stored(&self) -> Bytes {
        self.transmitter.stored()
    }

    /// Bytes of held packets now.
    pub fn held(&self) -> Bytes {
        self.receiver.held()
    }

    /// Whether the far edge has answered, and is not silent while it should speak.
    pub fn is_connected(&self, now: Time) -> bool {
        self.transmitter.is_connected(now)
    }

    /// The RTT to the far edge, smoothed; what was configured until it is measured.
    pub fn round_trip(&self) -> Span {
        self.transmitter.round_trip()
    }
}
