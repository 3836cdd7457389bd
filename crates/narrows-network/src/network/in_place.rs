//! What comes next in few words: a packet that has arrived stays where it lies, and rare events are put aside.

use narrows_core::units::Time;

use super::{Event, Network, Payload};
use crate::agenda::Entity;

/// What [`Network::next_in_place`] finds: few words, where an event is copied with its packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// A packet reached a host.
    Arrival {
        /// The host: an index into the graph's nodes.
        host: u32,
        /// Where the [packet](Network::packet) lies.
        place: Place,
    },
    /// An entity that the driver armed is due. It is not armed any more.
    Due(Entity),
    /// Anything else, to be taken from [`Network::event`] before the next is asked for.
    Aside,
}

/// Where a packet lies that has just arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place(pub(super) u32);

impl<P: Payload> Network<P> {
    /// What [`next_in_place`](Self::next_in_place) has just found, as an event.
    #[inline(always)]
    pub fn event(&mut self, next: Next) -> Event<P> {
        match next {
            Next::Arrival { host, place } => Event::Arrival { host, packet: *self.packet(place) },
            Next::Due(entity) => Event::Due(entity),
            Next::Aside => self.aside.take().expect("it was put aside"),
        }
    }

    /// For [`event`](Self::event) to take.
    #[inline(never)]
    pub(super) fn put_aside(&mut self, now: Time, event: Event<P>) -> Option<(Time, Next)> {
        debug_assert!(self.aside.is_none(), "the last event was not taken");
        self.aside = Some(event);
        Some((now, Next::Aside))
    }

    /// A packet that has just arrived, until the next is offered or asked for.
    #[inline(always)]
    pub fn packet(&self, place: Place) -> &P {
        self.ports.packet_at(place.0)
    }
}
