//! FIFO ports that can be paused, or whose packets count for the links that they came over: computed as plain ones are, until
//! somebody must be paused.
//!
//! A pause changes departures that were accepted. Then the port is *recalled*: what has not begun to leave is taken off the
//! wire, and the port is [served](super::served) packet by packet. It is *computed again* as soon as nothing waits, nobody is
//! paused by its switch, and nothing urgent is on its wire.
//!
//! A recalled packet of a host is told to the driver, which knew its departure.

use narrows_core::queue::scheduler::Discipline;
use narrows_core::queue::{Backlog, DropReason};
use narrows_core::units::{Bytes, Span, Time};
use std::collections::VecDeque;

use super::ingress::Origin;
use super::{First, Kind, NONE, Offered, Ports, wire_bytes};
use crate::link::Record;
use crate::network::Payload;

/// What such a port knows beyond a plain one while it is computed; little, as every packet reads it.
#[derive(Clone, Debug)]
pub(super) struct Counted {
    /// Where each packet that it holds came from, and its IP bytes.
    pub(super) origins: VecDeque<(Origin, u32)>,
    /// Whether that counts.
    pub(super) by_origin: bool,
    /// Whether the port pauses whoever fills it.
    pub(super) pauses: bool,
    /// Of a host's port: its stack, which a packet passes before it comes to the port, so that none of it is beyond a pause.
    pub(super) stack: Span,
}

impl<P: Payload> Ports<P> {
    /// Whether the port of `link` is one of those that are served packet by packet, always or at times.
    #[inline(always)]
    pub(crate) fn is_served(&self, link: u32) -> bool {
        self.ports[link as usize].served != NONE
    }

    /// A packet arrives at such a port, over the link `from` if it was not offered from outside; as [`offer`](Self::offer).
    #[inline(always)]
    pub(crate) fn offer_served(&mut self, now: Time, link: u32, from: u32, packet: P) -> (Offered, Option<First>) {
        if self.ports[link as usize].kind == Kind::Served {
            self.decide(now, link);
        }
        if self.ports[link as usize].kind == Kind::Served {
            return (self.enqueue(now, link, from, packet), None);
        }
        self.offer_pausable(now, link, from, packet)
    }

    /// As above, where the departure can be told.
    #[inline(always)]
    fn offer_pausable(&mut self, now: Time, link: u32, from: u32, packet: P) -> (Offered, Option<First>) {
        let ready = if self.ports[link as usize].jittery { self.ready(now, link) } else { now };
        let index = self.ports[link as usize].served as usize;
        let ready = ready + self.counted[index].stack;
        let size = Bytes::new(u64::from(packet.ip_bytes()));
        let origin = self.origin(from, packet.service_class());
        if !self.ingress_admits(now, origin, size) {
            self.note(link, size, Err(DropReason::Limit));
            return (Offered::Dropped(DropReason::Limit), None);
        }
        let (offered, first) = self.admit(now, ready, link, packet);
        if let Offered::Dropped(_) = offered {
            return (offered, None);
        }
        let counted = &mut self.counted[index];
        if counted.by_origin {
            counted.origins.push_back((origin, packet.ip_bytes()));
            self.ingress_takes(now, link, origin, size);
        }
        (offered, first)
    }

    pub(super) fn counted(&self, link: u32) -> &Counted {
        &self.counted[self.ports[link as usize].served as usize]
    }

    /// So many packets have left a port that is computed: they count no more for the links that they came over.
    pub(super) fn count_left(&mut self, link: u32, packets: u32) {
        let index = self.ports[link as usize].served as usize;
        if !self.counted[index].by_origin {
            return;
        }
        for _ in 0..packets {
            let (origin, bytes) = self.counted[index].origins.pop_front().expect("one for each packet");
            self.forget_held(origin, Bytes::new(u64::from(bytes)));
        }
    }

    /// From now on the port is served packet by packet: what has not begun to leave waits again.
    pub(super) fn recall(&mut self, now: Time, link: u32) {
        self.settle(now, link);
        let (port, rules) = (&mut self.ports[link as usize], &mut self.rules[link as usize]);
        if port.kind != Kind::Pausable {
            return;
        }
        let served = &mut self.served[port.served as usize];
        let queue = &mut served.queues[0];
        (port.kind, port.special) = (Kind::Served, true);
        std::mem::swap(&mut queue.aqm, &mut rules.aqm);
        let counted = &mut self.counted[port.served as usize];
        std::mem::swap(&mut queue.origins, &mut counted.origins);
        (queue.held, served.held) = (port.held(), port.held());
        queue.idle_since = port.free_at;
        if port.held_packets == 0 {
            return;
        }
        // When a held packet begins to leave: later than that none of it can, whatever is paused.
        let delay = port.delay;
        let begins = |record: &Record<P>| {
            let service = rules.line.time_for(wire_bytes(record.packet.ip_bytes()));
            Time::from_ps(record.at.as_ps() - delay.as_ps() - service)
        };
        let first = self.store.first_unsettled(&port.ring);
        let begun = begins(first) <= now;
        port.free_at = if begun { Time::from_ps(first.at.as_ps() - delay.as_ps()) } else { now };
        let held = u64::from(port.held_packets);
        let recalled: Vec<Record<P>> =
            self.store.unsettled(&port.ring, held).skip(usize::from(begun)).copied().collect();
        self.store.cut(&mut port.ring, port.held_packets, u32::from(begun));
        served.is_armed = !begun && port.ring.len() == 0;
        port.held_bytes -= recalled.iter().map(|record| u64::from(record.packet.ip_bytes())).sum::<u64>();
        port.held_packets = u32::from(begun);
        if begun && counted.by_origin {
            served.origin = queue.origins.pop_front().expect("one for each packet").0;
        }
        served.is_told = begun;
        for record in recalled {
            if served.of_host {
                served.ready.push_back(begins(&record));
                self.recalled.push(record.packet);
            }
            let departure = Time::from_ps(record.at.as_ps() - delay.as_ps());
            port.queue_integral -= u128::from(record.packet.ip_bytes()) * u128::from(departure.since(now).as_ps());
            self.store.push(&mut queue.ring, Record { at: now, packet: record.packet });
        }
        if queue.ring.len() > 0 {
            served.scheduler.wake(0);
        }
        if self.must_tell(link) {
            self.tell_end(link);
        }
    }

    /// The port is computed again, if what it does can be told.
    pub(super) fn compute_again(&mut self, link: u32) {
        let port = &mut self.ports[link as usize];
        let served = &mut self.served[port.served as usize];
        let is_idle = served.can_be_computed
            && served.pauses.mask == 0
            && served.queues[0].ring.len() == 0
            && served.urgent.len() == 0
            && served.frame_about.is_none()
            && served.urgent_on_wire == 0
            && !(served.sends_beside || served.is_armed || served.of_host && port.held_packets > 0);
        if !is_idle || self.has_paused(link) {
            return;
        }
        let (port, rules) = (&mut self.ports[link as usize], &mut self.rules[link as usize]);
        let served = &mut self.served[port.served as usize];
        let queue = &mut served.queues[0];
        (port.kind, port.special) = (Kind::Pausable, rules.wire != NONE || self.looks_at_all);
        std::mem::swap(&mut queue.aqm, &mut rules.aqm);
        let counted = &mut self.counted[port.served as usize];
        std::mem::swap(&mut queue.origins, &mut counted.origins);
        (queue.held, served.held) = (Backlog::EMPTY, Backlog::EMPTY);
        if port.held_packets == 0 {
            // What was urgent may have left since.
            port.free_at = queue.idle_since;
        } else if counted.by_origin {
            counted.origins.push_front((served.origin, u32::try_from(port.held_bytes).expect("one packet")));
        }
        served.serving = 0;
    }

    /// A link's entry in the agenda is due, and no packet of it may be: those it was armed for were recalled.
    pub(super) fn is_void(&mut self, now: Time, link: u32) -> bool {
        let port = &self.ports[link as usize];
        let served = &mut self.served[port.served as usize];
        if !std::mem::take(&mut served.is_armed) {
            return false;
        }
        if port.ring.len() == 0 {
            return true;
        }
        let (at, front) = (self.store.record(port.ring.front()).at, port.ring.front());
        if at > now {
            self.firsts.push_back((link, First { at, front }));
        }
        at > now
    }

    /// A link or urgent queue has a first packet: for the agenda, unless its entry is still there.
    pub(super) fn note_first(&mut self, link: u32, first: First) {
        let served = self.ports[link as usize].served;
        if served == NONE || !self.served[served as usize].is_armed {
            self.firsts.push_back((link, first));
        }
    }

    /// What is urgent has come over the wire of a served port.
    pub(crate) fn urgent_has_come(&mut self, link: u32) {
        let served = self.ports[link as usize].served as usize;
        self.served[served].urgent_on_wire -= 1;
    }

    /// What was recalled from a host's port since this was asked last, in the order in which it would have left.
    pub(crate) fn take_recalled(&mut self) -> Vec<P> {
        std::mem::take(&mut self.recalled)
    }

    /// Whether anything was.
    pub(crate) fn has_recalled(&self) -> bool {
        !self.recalled.is_empty()
    }
}
