//! Ports that serve several classes, each from a queue of its own: which packet leaves next is decided when the one before
//! it has left, and known no sooner.
//!
//! Such a port is *served lazily*: a service that ends is no event. Decisions that fell due at `s ≤ now` are taken when the
//! port is touched next, by an arrival at either end or by who reads it, in their order and as of their own time
//! ([`Ports::decide`]). That is soon enough:
//!
//! - A decision at `s` depends on what arrived before `s`, and every arrival touches the port first. So no decision sees a
//!   packet that came after it, and a departure at `t` frees its place, and lets the next packet begin, before an arrival
//!   at `t`.
//! - What is begun at `s` reaches the far end a service and the wire's delay later. The packet before it, which left at `s`,
//!   reaches the far end at `s` plus that delay, and touches the port then, if nothing did before. So while anything waits,
//!   the port's ring holds a packet that has begun, whose arrival is in the agenda and comes no later than what follows must
//!   be known. Nothing else is armed: still one event for each packet and hop.
//!
//! The link's ring holds what has begun: the packet in service, which is what `Port` counts as held, and those on the
//! wire. What waits lies in a ring for each class, with the time at which it came.
//!
//! Each class has the port's AQM and its limit to itself: an equal share of the port's own, and as much of what the
//! pool grants the port. The packet in service counts in its class until its last bit has left. A law that reckons with a
//! rate is told the line's.
//!
//! Invariants: where nothing is in service nothing waits; a class is awake in the scheduler while its ring holds a packet.

use narrows_core::queue::aqm::{self, Aqm, Verdict};
use narrows_core::queue::{Backlog, DeficitRoundRobin, DropReason, Limit};
use narrows_core::rng::Stream;
use narrows_core::units::{Bytes, Packets, Span, Time};
use narrows_plan::{Link, Scheduler};

use super::{First, Kind, NONE, Offered, Ports, wire_bytes};
use crate::link::{Record, Ring};
use crate::network::Payload;

/// The queues of one port, and the law of their turns.
#[derive(Clone, Debug)]
pub(super) struct Classes {
    turns: DeficitRoundRobin,
    queues: Vec<Queue>,
    /// Class of the packet in service; of the last one while there is none.
    serving: usize,
}

/// One class.
#[derive(Clone, Debug)]
struct Queue {
    /// What waits.
    ring: Ring,
    /// What waits, and the packet in service if it is of this class.
    held: Backlog,
    limit: Limit,
    aqm: Option<Aqm>,
    /// When the last bit of its last packet left.
    idle_since: Time,
}

impl Classes {
    pub(super) fn new(scheduler: &Scheduler, link: &Link, seed: u64) -> Classes {
        let Scheduler::Drr { weights } = scheduler;
        let queue = |class: usize| Queue {
            ring: Ring::EMPTY,
            held: Backlog::EMPTY,
            limit: link.limit.share(weights.len() as u64),
            aqm: link.aqm.map(|config| {
                let stream = Stream::named(seed, &format!("aqm/{}/class-{class}", link.name)).small();
                Aqm::new(&config, &aqm::Context { rate: link.rate, stream })
            }),
            idle_since: Time::ZERO,
        };
        Classes { turns: DeficitRoundRobin::new(weights), queues: (0..weights.len()).map(queue).collect(), serving: 0 }
    }

    /// What all classes hold.
    pub(super) fn held(&self) -> Backlog {
        self.queues.iter().fold(Backlog::EMPTY, |all, queue| Backlog {
            bytes: all.bytes + queue.held.bytes,
            packets: all.packets + queue.held.packets,
        })
    }
}

impl<P: Payload> Ports<P> {
    /// Whether the port of `link` serves several classes.
    pub(crate) fn serves_classes(&self, link: u32) -> bool {
        self.ports[link as usize].kind == Kind::Classes
    }

    /// A packet of `link` is about to reach the far end: see the [module](self).
    #[inline(never)]
    pub(crate) fn decide_before(&mut self, now: Time, link: u32) {
        if self.serves_classes(link) {
            self.decide(now, link);
        }
    }

    /// A packet arrives at a port with classes; as [`offer`](Self::offer).
    pub(crate) fn enqueue(&mut self, now: Time, link: u32, mut packet: P) -> (Offered, Option<First>) {
        self.decide(now, link);
        let size = Bytes::new(u64::from(packet.ip_bytes()));
        let class = usize::from(packet.service_class());
        let verdict = self.judge_class(now, link, class, size, packet.ecn_capable());
        self.note(link, size, verdict);
        let marked = match verdict {
            Ok(marked) => marked,
            Err(reason) => return (Offered::Dropped(reason), None),
        };
        if marked {
            packet.mark();
        }
        let port = &mut self.ports[link as usize];
        if port.pool != NONE {
            self.pools[port.pool as usize].pool.take(size);
        }
        port.accepted.bytes += size;
        port.accepted.packets += Packets::new(1);
        let classes = &mut self.classes[port.classes as usize];
        let queue = &mut classes.queues[class];
        queue.held.bytes += size;
        queue.held.packets += Packets::new(1);
        self.store.push(&mut queue.ring, Record { at: now, packet });
        if queue.ring.len() == 1 {
            classes.turns.wake(class);
        }
        port.queue_max = port.queue_max.max(classes.held().bytes);
        if port.held_packets > 0 {
            return (Offered::Accepted { departure: Time::NEVER, marked }, None);
        }
        let first = port.ring.len() == 0;
        self.begin(now, link);
        let port = &self.ports[link as usize];
        let first = first.then(|| First { at: port.free_at + port.delay, front: port.ring.front() });
        (Offered::Accepted { departure: port.free_at, marked }, first)
    }

    /// Law, limit and pool on a packet of a class: whether it is to be marked, or why it is dropped.
    fn judge_class(
        &mut self,
        now: Time,
        link: u32,
        class: usize,
        size: Bytes,
        ecn_capable: bool,
    ) -> Result<bool, DropReason> {
        let (index, pool) = (self.ports[link as usize].classes as usize, self.ports[link as usize].pool);
        let shares = self.classes[index].queues.len() as u64;
        let queue = &mut self.classes[index].queues[class];
        let backlog = queue.held;
        let verdict = queue.aqm.as_mut().map_or(Verdict::Pass, |aqm| {
            aqm.decide(&aqm::Arrival { now, backlog, idle_since: queue.idle_since, ecn_capable })
        });
        if verdict == Verdict::Drop {
            return Err(DropReason::Aqm);
        }
        if !queue.limit.admits(backlog, size) {
            return Err(DropReason::Limit);
        }
        let admits = |ports: &Self| ports.pools[pool as usize].pool.admits_share(backlog.bytes, size, shares);
        if pool != NONE && !admits(self) {
            self.settle_all_of(now, pool);
            if !admits(self) {
                return Err(DropReason::Pool);
            }
        }
        Ok(verdict == Verdict::Mark)
    }

    /// Takes the decisions that are due by `now`, each as of its own time: what has left makes place, and who is next begins.
    #[inline(never)]
    pub(super) fn decide(&mut self, now: Time, link: u32) {
        loop {
            let port = &mut self.ports[link as usize];
            if port.held_packets == 0 || port.free_at > now {
                return;
            }
            let left = Bytes::new(port.held_bytes);
            self.store.settle_all(&mut port.ring);
            (port.held_bytes, port.held_packets) = (0, 0);
            if port.pool != NONE {
                self.pools[port.pool as usize].pool.give_back(left);
            }
            let classes = &mut self.classes[port.classes as usize];
            let queue = &mut classes.queues[classes.serving];
            queue.held.bytes -= left;
            queue.held.packets -= Packets::new(1);
            queue.idle_since = port.free_at;
            let at = port.free_at;
            self.begin(at, link);
        }
    }

    /// At `at` the port is free: the packet whose turn it is begins to leave, if any waits.
    fn begin(&mut self, at: Time, link: u32) {
        let (port, rules) = (&mut self.ports[link as usize], &self.rules[link as usize]);
        let Classes { turns, queues, serving } = &mut self.classes[port.classes as usize];
        let first = |class: usize| self.store.record(queues[class].ring.front()).packet.ip_bytes();
        let Some(class) = turns.choose(|class| Bytes::new(u64::from(first(class)))) else { return };
        let waiting = &mut queues[class].ring;
        let Record { at: came, packet } = *self.store.record(waiting.front());
        self.store.pop(waiting, true);
        if waiting.len() == 0 {
            turns.rest();
        }
        *serving = class;
        let size = packet.ip_bytes();
        let departure = at + Span::from_ps(rules.line.time_for(wire_bytes(size)));
        port.free_at = departure;
        (port.held_bytes, port.held_packets) = (u64::from(size), 1);
        port.queue_integral += u128::from(size) * u128::from(departure.since(came.max(rules.since)).as_ps());
        self.store.push(&mut port.ring, Record { at: departure + port.delay, packet });
    }

    /// Σ size · (now − arrival) over what waits for its turn in a settled port, arrivals before the reset counting from there.
    pub(super) fn waited(&self, now: Time, link: u32) -> u128 {
        let (port, since) = (&self.ports[link as usize], self.rules[link as usize].since);
        let Some(classes) = self.classes.get(port.classes as usize) else { return 0 };
        let rings = classes.queues.iter().map(|queue| &queue.ring);
        rings
            .flat_map(|ring| self.store.unsettled(ring, u64::from(ring.len())))
            .map(|record| {
                let waited = now.since(record.at.max(since));
                u128::from(record.packet.ip_bytes()) * u128::from(waited.as_ps())
            })
            .sum()
    }
}
