//! The limiter of a flow in its host's adapter: frames that wait there leave later than the transport handed them over.

use narrows_core::nic::{Handed, RateLimiter};
use narrows_core::rng::SmallStream;
use narrows_core::tcp::Stack;
use narrows_core::units::{Bytes, Time};
use narrows_network::{Network, Offered, Payload};

use crate::connections::{UNTOLD, Waiting};
use crate::packet::Packet;

/// One flow's.
#[derive(Clone, Debug)]
pub(crate) struct Nic {
    limiter: RateLimiter<Packet>,
    /// What found the queue full, until the driver has taken note of it.
    pub(crate) dropped: Vec<Packet>,
}

/// Whether an end has such a limiter, known where the code is compiled: nobody else pays for the question.
pub(crate) trait Limiter {
    fn nic(&mut self) -> Option<&mut Nic>;
}

impl Limiter for () {
    #[inline(always)]
    fn nic(&mut self) -> Option<&mut Nic> {
        None
    }
}

impl Limiter for Nic {
    #[inline(always)]
    fn nic(&mut self) -> Option<&mut Nic> {
        Some(self)
    }
}

impl Nic {
    pub(crate) fn new(stream: SmallStream) -> Nic {
        Nic { limiter: RateLimiter::new(stream), dropped: Vec::new() }
    }

    /// A congestion notification has come.
    pub(crate) fn notify(&mut self, now: Time, feedback: u8, stack: &Stack) {
        if let Some(config) = &stack.profile.nic_limiter {
            self.limiter.notify(now, feedback, stack.line_rate, config);
        }
    }

    /// The transport hands over a packet: to the port now, or to the queue.
    pub(crate) fn send(
        &mut self,
        now: Time,
        port: u32,
        packet: Packet,
        waiting: &mut Waiting,
        stack: &Stack,
        network: &mut Network<Packet>,
    ) {
        let config = stack.profile.nic_limiter.as_ref().expect("the flow has a limiter");
        let size = Bytes::new(u64::from(packet.ip_bytes()));
        match self.limiter.offer(now, packet, size, stack.line_rate, config) {
            Handed::Passed => match network.offer(now, port, packet) {
                Offered::Accepted { departure, .. } if packet.payload() > 0 => {
                    waiting.push(departure.min(UNTOLD), packet.ip_bytes());
                }
                Offered::Accepted { .. } => {}
                Offered::Dropped(_) => self.dropped.push(packet),
            },
            Handed::Queued if packet.payload() > 0 => waiting.push_behind(packet.ip_bytes()),
            Handed::Queued => {}
            Handed::Dropped => self.dropped.push(packet),
        }
    }

    /// What may go by now goes to the port.
    pub(crate) fn release(
        &mut self,
        now: Time,
        port: u32,
        waiting: &mut Waiting,
        stack: &Stack,
        network: &mut Network<Packet>,
    ) {
        let config = stack.profile.nic_limiter.as_ref().expect("the flow has a limiter");
        while let Some(packet) = self.limiter.release(now, stack.line_rate, config) {
            let departure = match network.offer(now, port, packet) {
                Offered::Accepted { departure, .. } => departure.min(UNTOLD),
                Offered::Dropped(_) => {
                    self.dropped.push(packet);
                    now
                }
            };
            if packet.payload() > 0 {
                waiting.release(departure);
            }
        }
    }

    /// When the next packet goes at the latest.
    pub(crate) fn wake_at(&self) -> Time {
        self.limiter.wake_at()
    }

    /// The flow's end is gone: what waits goes at once.
    pub(crate) fn drain(&mut self, now: Time, port: u32, network: &mut Network<Packet>) {
        for packet in self.limiter.drain() {
            if let Offered::Dropped(_) = network.offer(now, port, packet) {
                self.dropped.push(packet);
            }
        }
    }

    /// Notifications so far.
    pub(crate) const fn cuts(&self) -> u32 {
        self.limiter.cuts()
    }
}
