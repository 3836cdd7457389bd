//! Where a packet is that a port takes.

use narrows_core::units::Time;

use crate::link::{Record, Ring, Store};
use crate::network::Payload;

/// Where a packet is that a port takes.
pub(super) trait Source<P> {
    /// The packet, to be asked and marked.
    fn packet<'a>(&'a mut self, store: &'a mut Store<P>) -> &'a mut P;
    /// Appends it to a ring.
    fn write(self, store: &mut Store<P>, ring: &mut Ring, at: Time);
}

/// It comes from outside.
pub(super) struct ByValue<P>(pub(super) P);

/// It lies at this position, as it has just arrived: it is copied from place to place, where by value each of its fields would be
/// loaded and stored.
pub(super) struct InPlace(pub(super) u32);

impl<P: Payload> Source<P> for ByValue<P> {
    #[inline(always)]
    fn packet<'a>(&'a mut self, _store: &'a mut Store<P>) -> &'a mut P {
        &mut self.0
    }

    #[inline(always)]
    fn write(self, store: &mut Store<P>, ring: &mut Ring, at: Time) {
        store.push(ring, Record { at, packet: self.0 });
    }
}

impl<P: Payload> Source<P> for InPlace {
    #[inline(always)]
    fn packet<'a>(&'a mut self, store: &'a mut Store<P>) -> &'a mut P {
        &mut store.record_mut(self.0).packet
    }

    #[inline(always)]
    fn write(self, store: &mut Store<P>, ring: &mut Ring, at: Time) {
        store.push_again(ring, self.0, at);
    }
}
