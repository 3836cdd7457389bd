//! Links between parts of a run: what a port has accepted for another part is taken from where it lies, and what another part's
//! port has accepted is put on the wire here.

use narrows_core::units::Time;

use super::{First, Ports};
use crate::link::Record;
use crate::network::Payload;

/// A cut link's ring is trimmed if it has so many records.
const TRIM_FROM: u32 = 64;

impl<P: Payload> Ports<P> {
    /// Packets that another part's port has accepted are on the wire of `link`, the first of which arrives `at`; told if none
    /// was before.
    #[inline(always)]
    pub(crate) fn import(&mut self, link: u32, at: Time, packets: impl Iterator<Item = (Time, P)>) -> Option<First> {
        let port = &mut self.ports[link as usize];
        let first = port.ring.len() == 0;
        self.store.extend(&mut port.ring, packets.map(|(at, packet)| Record { at, packet }));
        first.then(|| First { at, front: port.ring.front() })
    }

    /// The position of the packet that the port of `link` accepts next; `None` if its ring has not begun, and it will be its front.
    #[inline(always)]
    pub(crate) fn next_place(&self, link: u32) -> Option<u32> {
        self.ports[link as usize].ring.back()
    }

    /// The position of the oldest packet of `link`.
    pub(crate) fn front(&self, link: u32) -> u32 {
        self.ports[link as usize].ring.front()
    }

    /// The packet at a position, and when it arrives.
    #[inline(always)]
    pub(crate) fn on_the_way(&self, position: u32) -> (Time, P) {
        let record = self.store.record(position);
        (record.at, record.packet)
    }

    /// Forgets what has left the port of `link`, which carries it to another part: no arrival here takes it out of the
    /// ring. That is done if it pays: of a link that sends no more what was last in its queue may stay.
    #[inline(always)]
    pub(crate) fn trim(&mut self, now: Time, link: u32) {
        let port = &self.ports[link as usize];
        if port.ring.len() >= TRIM_FROM && self.store.record(port.ring.front()).at <= now + port.delay {
            self.trim_now(now, link);
        }
    }

    #[inline(never)]
    fn trim_now(&mut self, now: Time, link: u32) {
        self.settle(now, link);
        let port = &mut self.ports[link as usize];
        self.store.pop_settled(&mut port.ring, port.held_packets);
    }
}
