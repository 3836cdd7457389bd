//! The limiter that a host's adapter has for all that goes to one other host: frames that wait there leave later than the
//! transport handed them over. And what else may lie between an end and its host's port.

use narrows_core::nic::{Handed, RateLimiter};
use narrows_core::rng::SmallStream;
use narrows_core::tcp::Stack;
use narrows_core::tcp::near_source::ReactionPoint;
use narrows_core::telemetry::Hop;
use narrows_core::units::{Bytes, Rate, Time};
use narrows_network::{Entity, Network, Offered, Payload};

use crate::connections::{UNTOLD, Waiting};
use crate::packet::Packet;

/// One host's, towards one other.
#[derive(Clone, Debug)]
pub(crate) struct Nic {
    limiter: RateLimiter<Packet>,
    config: ReactionPoint,
    line: Rate,
    /// The host's port.
    port: u32,
    /// What the agenda wakes it by, and what that was last told.
    entity: Entity,
    armed: Time,
    /// What found the queue or the port full, until the driver has taken note of it.
    dropped: Vec<Packet>,
}

/// What lies between an end and its host's port, known where the code is compiled: nobody else pays for the question.
pub(crate) trait Handing {
    /// The limiter that its packets pass.
    fn nic(&mut self) -> Option<&mut Nic>;
    /// Telemetry that a packet carries back.
    fn echo(&mut self, packet: &mut Packet, network: &mut Network<Packet>);
}

impl Handing for () {
    #[inline(always)]
    fn nic(&mut self) -> Option<&mut Nic> {
        None
    }

    #[inline(always)]
    fn echo(&mut self, _packet: &mut Packet, _network: &mut Network<Packet>) {}
}

/// Of an end that has a limiter, telemetry to carry back, or both.
pub(crate) struct Specially<'a> {
    pub(crate) nic: Option<&'a mut Nic>,
    pub(crate) telemetry: Option<Vec<Hop>>,
}

impl Handing for Specially<'_> {
    fn nic(&mut self) -> Option<&mut Nic> {
        self.nic.as_deref_mut()
    }

    /// The next packet without data carries it: one with data has telemetry of its own.
    fn echo(&mut self, packet: &mut Packet, network: &mut Network<Packet>) {
        if packet.payload() == 0
            && let Some(hops) = self.telemetry.take()
        {
            network.put_telemetry(packet, hops);
        }
    }
}

impl Nic {
    /// Without a limit, with the reaction point of this stack.
    ///
    /// # Panics
    /// If the stack's hosts have none.
    pub(crate) fn new(stream: SmallStream, stack: &Stack, port: u32, entity: Entity) -> Nic {
        let config = stack.profile.nic_limiter.expect("the adapter takes notifications");
        let (limiter, dropped) = (RateLimiter::new(stream), Vec::new());
        Nic { limiter, config, line: stack.line_rate, port, entity, armed: Time::NEVER, dropped }
    }

    /// A congestion notification has come.
    pub(crate) fn notify(&mut self, now: Time, feedback: u8) {
        self.limiter.notify(now, feedback, self.line, &self.config);
    }

    /// A transport hands over a packet: to the port now, or to the queue.
    pub(crate) fn send(&mut self, now: Time, packet: Packet, waiting: &mut Waiting, network: &mut Network<Packet>) {
        let size = Bytes::new(u64::from(packet.ip_bytes()));
        match self.limiter.offer(now, packet, size, self.line, &self.config) {
            Handed::Passed => match network.offer(now, self.port, packet) {
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

    /// The next packet whose time has come, handed to the port, and when it leaves that.
    pub(crate) fn release(&mut self, now: Time, network: &mut Network<Packet>) -> Option<(Packet, Time)> {
        let packet = self.limiter.release(now, self.line, &self.config)?;
        let departure = match network.offer(now, self.port, packet) {
            Offered::Accepted { departure, .. } => departure.min(UNTOLD),
            Offered::Dropped(_) => {
                self.dropped.push(packet);
                now
            }
        };
        Some((packet, departure))
    }

    /// Tells the agenda when the next packet goes at the latest, if that has changed.
    pub(crate) fn arm(&mut self, now: Time, network: &mut Network<Packet>) {
        let at = self.limiter.wake_at().max(now);
        if at != self.armed {
            self.armed = at;
            network.arm(self.entity, at);
        }
    }

    /// The agenda has woken it.
    pub(crate) fn note_woken(&mut self) {
        self.armed = Time::NEVER;
    }

    /// What was dropped since this was asked last.
    pub(crate) fn take_dropped(&mut self) -> Vec<Packet> {
        std::mem::take(&mut self.dropped)
    }
}
