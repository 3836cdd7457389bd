//! What a served port drops after it has accepted it: heads that an AQM would not let leave [RFC 8289], heads of the
//! longest flow queue beyond the limit [RFC 8290 §4.1], and all that waits when the link goes down.
//!
//! Each has its own time, that of the decision, and counts as if it had been dropped then. The driver is told when the port
//! is touched next.

use narrows_core::queue::aqm::{self, Verdict};
use narrows_core::queue::scheduler::Discipline;
use narrows_core::queue::{Backlog, DropReason, Limit};
use narrows_core::units::{Bytes, Packets, Time};

use super::served::{Queue, Served};
use super::{NONE, Ports};
use crate::link::{Record, Ring, Store};
use crate::network::Payload;

impl Served {
    /// Of flow queues that together hold more than they may, the one of which most bytes wait, the first of equal ones.
    pub(super) fn longest_beyond_limit(&self) -> Option<usize> {
        let (_, limit) = **self.flow_queue.as_ref()?;
        let is_within = match limit {
            Limit::Unlimited => true,
            Limit::Packets(most) => self.held.packets <= most,
            Limit::Bytes(most) => self.held.bytes <= most,
        };
        if is_within {
            return None;
        }
        let waits = |&queue: &usize| self.queues[queue].ring.len() > 0;
        let bytes = |queue: usize| {
            let in_service = if queue == self.serving { self.in_service } else { Bytes::ZERO };
            self.queues[queue].held.bytes - in_service
        };
        (0..self.queues.len()).rev().filter(waits).max_by_key(|&queue| bytes(queue))
    }

    /// A scheduler with an AQM of its own takes the steps that are due by `at`, before what waits first is another.
    fn advance<P: Payload>(&mut self, at: Time, store: &Store<P>) {
        if self.judges_itself {
            let came = |ring: &Ring| (ring.len() > 0).then(|| store.record(ring.front()).at);
            self.scheduler.advance(at, |queue| came(&self.queues[queue].ring));
        }
    }
}

impl<P: Payload> Ports<P> {
    /// The queue whose first packet leaves at `at`, if any may, and whether that is marked. What AQMs drop of those that
    /// would leave is dropped.
    pub(super) fn choose(&mut self, at: Time, link: u32) -> Option<(usize, bool)> {
        let index = self.ports[link as usize].served as usize;
        loop {
            let served = &mut self.served[index];
            if served.is_stopped() {
                return None;
            }
            served.advance(at, &self.store);
            let Served { scheduler, queues, judges_departures, judges_itself, .. } = served;
            let first = |queue: usize| {
                let record = self.store.record(queues[queue].ring.front());
                Bytes::new(u64::from(record.packet.ip_bytes()))
            };
            let chosen = scheduler.choose(first)?;
            if !*judges_departures {
                return Some((chosen, false));
            }
            let size = first(chosen);
            let Queue { ring, held, aqm, .. } = &mut queues[chosen];
            let Record { at: came, packet } = self.store.record(ring.front());
            let backlog = Backlog { bytes: held.bytes - size, packets: held.packets - Packets::new(1) };
            let (sojourn, ecn_capable) = (at.since(*came), packet.ecn_capable());
            let departure = aqm::Departure { now: at, sojourn, size, backlog, ecn_capable };
            let verdict = match aqm {
                _ if *judges_itself => scheduler.leaves(chosen, &departure),
                Some(aqm) => aqm.leaves(&departure),
                None => Verdict::Pass,
            };
            if verdict != Verdict::Drop {
                return Some((chosen, verdict == Verdict::Mark));
            }
            scheduler.refund(size);
            self.drop_first(at, link, chosen, DropReason::Aqm);
        }
    }

    /// At `at` the first packet that waits in a queue is dropped.
    pub(super) fn drop_first(&mut self, at: Time, link: u32, queue: usize, reason: DropReason) {
        let (port, rules) = (&mut self.ports[link as usize], &mut self.rules[link as usize]);
        let served = &mut self.served[port.served as usize];
        let waiting = &mut served.queues[queue];
        let Record { at: came, packet } = *self.store.record(waiting.ring.front());
        self.store.pop(&mut waiting.ring, true);
        let origin = waiting.origins.pop_front();
        if waiting.ring.len() == 0 {
            served.scheduler.leave(queue);
        }
        let size = Bytes::new(u64::from(packet.ip_bytes()));
        served.give_back(queue, size);
        rules.dropped[reason as usize] += Packets::new(1);
        rules.withdrawn.bytes += size;
        rules.withdrawn.packets += Packets::new(1);
        port.queue_integral += u128::from(size.get()) * u128::from(at.since(came.max(rules.since)).as_ps());
        if port.pool != NONE {
            self.pools[port.pool as usize].pool.give_back(size);
        }
        self.dropped.push_back(packet);
        if let Some((origin, _)) = origin {
            self.ingress_gives_back(at, link, origin, size);
        }
    }

    /// At `at` all that waits is dropped.
    pub(super) fn drop_all(&mut self, at: Time, link: u32, reason: DropReason) {
        let index = self.ports[link as usize].served as usize;
        self.served[index].advance(at, &self.store);
        for queue in 0..self.served[index].queues.len() {
            if self.served[index].queues[queue].ring.len() > 0 {
                // It held packets until now.
                self.served[index].queues[queue].idle_since = at;
            }
            while self.served[index].queues[queue].ring.len() > 0 {
                self.drop_first(at, link, queue, reason);
            }
        }
    }

    /// What was dropped after it was accepted. The first one first.
    pub(crate) fn take_dropped(&mut self) -> Option<P> {
        self.dropped.pop_front()
    }

    /// Whether anything was.
    pub(crate) fn has_dropped(&self) -> bool {
        !self.dropped.is_empty()
    }
}
