//! Holds back duplicate acknowledgements of what is being repaired, at the edge near the sending host, as Snoop does
//! [Balakrishnan 1995].
//!
//! The first acknowledgement that asks for a byte is passed on, whatever it acknowledges is news; those after it that ask for
//! the same, where that is the first byte of a packet whose copy is kept, are not. If the first one reports what came beyond
//! the hole as well, as one may that answers several segments at once, the sender learns of the hole.

use alloc::collections::BTreeMap;

use super::{Packet, Segment};
use crate::units::{Span, Time};

/// Duplicates that are under way when a repair has arrived come so much after it at most: an RTT in a site.
const AFTERWARDS: Span = Span::from_ms(1);

/// See the [module](self).
#[derive(Clone, Debug)]
pub(super) struct Hush<F> {
    /// By connection, seen from the acknowledging end, and first byte.
    watched: BTreeMap<(F, u32), Watched>,
    hold: Span,
    /// When what nobody will ask for is looked for next: connections may end.
    sweep_at: Time,
}

const SWEEP: Span = Span::from_secs(1);

#[derive(Clone, Copy, Debug)]
struct Watched {
    /// Somebody asked for it.
    asked: bool,
    /// Duplicates pass again from then on.
    until: Time,
}

impl<F: Copy + Ord> Hush<F> {
    pub(super) fn new(hold: Span) -> Hush<F> {
        Hush { watched: BTreeMap::new(), hold, sweep_at: Time::ZERO }
    }

    /// A copy of this segment is kept.
    pub(super) fn watch(&mut self, segment: &Segment<F>) {
        self.watched.insert((segment.reverse, segment.seq), Watched { asked: false, until: Time::NEVER });
    }

    /// Its copy is gone: acknowledged, or given up. If it was `repaired`, duplicates may still come.
    pub(super) fn leave(&mut self, now: Time, segment: &Segment<F>, repaired: bool) {
        let key = (segment.reverse, segment.seq);
        match self.watched.get_mut(&key) {
            Some(watched) if repaired && watched.asked && watched.until > now => {
                watched.until = watched.until.min(now + AFTERWARDS);
            }
            _ => {
                self.watched.remove(&key);
            }
        }
        if now >= self.sweep_at {
            self.watched.retain(|_, watched| watched.until > now);
            self.sweep_at = now + SWEEP;
        }
    }

    /// Whether this packet from outside is not passed on.
    pub(super) fn silences<P: Packet<Flow = F>>(&mut self, now: Time, packet: &P) -> bool {
        let Some(segment) = packet.segment() else { return false };
        let Some(ack) = segment.ack.filter(|_| segment.length == 0) else { return false };
        self.forget_before(segment.flow, ack);
        let Some(watched) = self.watched.get_mut(&(segment.flow, ack)) else { return false };
        if !watched.asked {
            watched.asked = true;
            watched.until = watched.until.min(now + self.hold);
            return false;
        }
        now < watched.until
    }

    /// What a connection acknowledges nobody will ask for again.
    fn forget_before(&mut self, flow: F, ack: u32) {
        let least = ack.wrapping_sub(1 << 30);
        // Sequence numbers wrap: what is earlier may be greater.
        let ranges = if least < ack { [least..ack, 0..0] } else { [least..u32::MAX, 0..ack] };
        for range in ranges {
            while let Some((&key, _)) = self.watched.range((flow, range.start)..(flow, range.end)).next() {
                self.watched.remove(&key);
            }
        }
    }
}
