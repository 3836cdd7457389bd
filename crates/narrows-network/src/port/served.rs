//! Ports whose queues are served one packet at a time: which packet leaves next is decided when the one before it has left, and
//! known no sooner. They have several queues, an AQM that judges packets that leave, write telemetry, or can be paused.
//!
//! Such a port is *served lazily*: a service that ends is no event. Decisions that fell due at `s ≤ now` are taken when the
//! port is touched next, by an arrival at either end or by who reads it, in their order and as of their own time
//! ([`Ports::decide`]). That is soon enough:
//!
//! - A decision at `s` depends on what arrived before `s`, and every arrival touches the port first. So no decision sees a
//!   packet that came after it, and a departure at `t` frees its place, and lets the next packet begin, before an arrival
//!   at `t`.
//! - What is begun at `s` reaches the far end a service and the wire's delay later. The packet before it, which left at `s`,
//!   reaches the far end at `s` plus that delay, and touches the port then, if nothing did before. So while anything waits
//!   that may be sent, the port's ring holds a packet that has begun, whose arrival is in the agenda and comes no later than
//!   what follows must be known. Nothing else is armed: still one event for each packet and hop.
//!
//! What such an AQM drops, or a flow queue loses to another, is told as soon as it is decided: later than it happened, if the
//! port was not touched in between.
//!
//! Only while somebody must be told at the very moment is the end of a service an event ([`Ports::take_wake`]): a host, which
//! fills its port again; and at a switch that has paused a link, whoever is resumed by the departure.
//!
//! The link's ring holds what has begun: the packet in service, which is what `Port` counts as held, and those on the
//! wire. What waits lies in a ring for each queue, with the time at which it came.
//!
//! Each class' queue has the port's AQM and its limit to itself: an equal share of the port's own, and as much of what the
//! pool grants the port. Flow queues have the port's together: beyond it the longest one loses its first packet. The packet in
//! service counts in its queue until its last bit has left. An AQM that reckons with a rate is told the line's. What is urgent
//! waits in a queue of its own, goes before all others, is never paused or dropped, and is not counted, as in
//! [`urgent`](super::urgent).
//!
//! Invariants: where nothing is in service, whatever waits is paused, or still in a host's stack; a queue is awake in the
//! scheduler while its ring holds a packet and its class is not paused; `held` is the sum over all queues.

use narrows_core::queue::aqm::{self, Aqm, Verdict};
use narrows_core::queue::pfc::{PRIORITIES, Thresholds};
use narrows_core::queue::scheduler::{Aqms, Arriving, Discipline, Queues};
use narrows_core::queue::{Backlog, DropReason, Limit, Scheduler};
use narrows_core::rng::Stream;
use narrows_core::telemetry::Hop;
use narrows_core::units::{Bytes, Packets, Rate, Span, Time};
use narrows_plan::Link;
use std::collections::VecDeque;

use super::ingress::Origin;
use super::{First, Kind, NONE, Offered, Ports, wire_bytes};
use crate::link::{Record, Ring};
use crate::network::Payload;

/// The queues of one port, and the scheduler that serves them.
#[derive(Clone, Debug)]
pub(super) struct Served {
    pub(super) scheduler: Scheduler,
    pub(super) queues: Vec<Queue>,
    /// What all of them hold.
    pub(super) held: Backlog,
    /// Of flow queues: what one begins as, and the limit of all together.
    pub(super) flow_queue: Option<Box<(Queue, Limit)>>,
    /// What has a queue of its own.
    by: Queues,
    /// Whether the scheduler judges packets that leave.
    pub(super) judges_itself: bool,
    /// Whether it does, or AQMs do.
    pub(super) judges_departures: bool,
    /// Whether it is computed while nobody is paused: one queue, no pool, and a line that does not change.
    pub(super) can_be_computed: bool,
    /// What goes before all of them; and how much of it is on the port's own wire.
    pub(super) urgent: Ring,
    pub(super) urgent_on_wire: u32,
    /// The link about which a frame goes out next, before all else: see [`Ports::request_frame`].
    pub(super) frame_about: Option<u32>,
    /// The urgent queue whose wire it takes: towards a host, where it ends below the stack and comes sooner than what left before.
    /// [`NONE`]: the port's own.
    pub(super) urgent_wire: u32,
    /// Whether one of it is in service, on its way to that wire.
    pub(super) sends_beside: bool,
    /// Queue of the packet in service; of the last one while there is none; [`URGENT`].
    pub(super) serving: usize,
    /// IP bytes of the packet in service, if it counts.
    pub(super) in_service: Bytes,
    /// Where the packet in service came from; whether its departure was told when the port was computed.
    pub(super) origin: Origin,
    pub(super) is_told: bool,
    pub(super) pauses: Pauses,
    /// Whether a host hears of each departure.
    pub(super) of_host: bool,
    /// When each packet that waits there has passed it.
    pub(super) ready: VecDeque<Time>,
    /// Whether the link has an entry in the agenda for a packet that was recalled.
    pub(super) is_armed: bool,
    /// Whether what comes over its link stays inside of a site: notifications go no further.
    pub(super) is_inside: bool,
    /// Bytes sent on the wire, framing included, where the port writes telemetry into packets.
    telemetry: Option<Bytes>,
    /// Whom this port pauses itself, where it pauses anybody.
    pub(super) feeders: Option<Feeders>,
}

/// The packet in service is an urgent one.
const URGENT: usize = usize::MAX;

/// One queue.
#[derive(Clone, Debug)]
pub(super) struct Queue {
    /// What waits.
    pub(super) ring: Ring,
    /// Where each packet of it came from, where that counts, and its IP bytes.
    pub(super) origins: VecDeque<(Origin, u32)>,
    /// What waits, and the packet in service if it is of this queue.
    pub(super) held: Backlog,
    limit: Limit,
    pub(super) aqm: Option<Aqm>,
    /// When the last bit of its last packet left.
    pub(super) idle_since: Time,
}

/// Which priorities of a port are paused.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pauses {
    pub(super) mask: u8,
    until: [Time; PRIORITIES],
    /// Since when any is, since the counters' reset; how long any was before, and the longest without a break.
    since: Time,
    before: Span,
    longest: Span,
}

impl Pauses {
    const NONE: Pauses =
        Pauses { mask: 0, until: [Time::ZERO; PRIORITIES], since: Time::ZERO, before: Span::ZERO, longest: Span::ZERO };

    /// When the first pause ends, if nobody asks for it again.
    fn first_end(&self) -> Time {
        let paused = (0..PRIORITIES).filter(|priority| self.mask & 1 << priority != 0);
        paused.map(|priority| self.until[priority]).min().unwrap_or(Time::NEVER)
    }

    fn set(&mut self, now: Time, mask: u8) {
        if self.mask == 0 && mask != 0 {
            self.since = now;
        } else if self.mask != 0 && mask == 0 {
            self.before += now.since(self.since);
            self.longest = self.longest.max(now.since(self.since));
        }
        self.mask = mask;
    }
}

/// The links that fill a port which pauses them.
#[derive(Clone, Debug)]
pub(super) struct Feeders {
    pub(super) thresholds: Thresholds,
    /// Those that it has paused, while it does: by origin.
    pub(super) paused: Vec<Origin>,
}

impl Served {
    pub(super) fn new(link: &Link, of_host: bool, is_inside: bool, seed: u64) -> Served {
        let flows_seed = Stream::named(seed, &format!("flow-queues/{}", link.name)).next_u64();
        let scheduler = Scheduler::new(link.scheduler.as_ref(), flows_seed);
        let (queues, aqms) = link
            .scheduler
            .as_ref()
            .map_or((Queues::Classes(1), Aqms::OfPort), |config| (config.queues(), config.aqm()));
        let aqm = match aqms {
            Aqms::OfPort => link.aqm,
            Aqms::Each(aqm) => Some(aqm),
            Aqms::None | Aqms::Own(_) => None,
        };
        let count = scheduler.queues();
        let judges_itself = matches!(aqms, Aqms::Own(_));
        let judges_departures = judges_itself || aqm.is_some_and(|aqm| aqm.judges_departures());
        // Where departures are computed, the port owns the AQM, and lends it to the queue while that is served packet by packet.
        // A recall must know when a packet began to leave: from its departure, at a line of one rate.
        let keeps_rate = link.events.is_empty();
        let can_be_computed =
            link.scheduler.is_none() && !link.pooled && !link.telemetry && !judges_departures && keeps_rate;
        let queue = |queue: usize, limit: Limit| Queue {
            ring: Ring::EMPTY,
            origins: VecDeque::new(),
            held: Backlog::EMPTY,
            limit,
            aqm: aqm.filter(|_| !can_be_computed).map(|config| {
                let name = if count <= 1 { String::new() } else { format!("/class-{queue}") };
                let stream = Stream::named(seed, &format!("aqm/{}{name}", link.name)).small();
                Aqm::new(&config, &aqm::Context { rate: link.rate, stream })
            }),
            idle_since: Time::ZERO,
        };
        Served {
            queues: (0..count).map(|number| queue(number, link.limit.share(queues.classes() as u64))).collect(),
            held: Backlog::EMPTY,
            flow_queue: (queues == Queues::Flows).then(|| Box::new((queue(0, Limit::Unlimited), link.limit))),
            by: queues,
            judges_itself,
            judges_departures,
            scheduler,
            can_be_computed,
            is_inside,
            urgent: Ring::EMPTY,
            urgent_on_wire: 0,
            frame_about: None,
            urgent_wire: NONE,
            sends_beside: false,
            serving: 0,
            in_service: Bytes::ZERO,
            origin: Origin::NONE,
            is_told: false,
            pauses: Pauses::NONE,
            of_host,
            ready: VecDeque::new(),
            is_armed: false,
            telemetry: link.telemetry.then_some(Bytes::ZERO),
            feeders: link.pauses.map(|thresholds| Feeders { thresholds, paused: Vec::new() }),
        }
    }

    /// A packet of this size waits in a queue.
    fn take(&mut self, queue: usize, size: Bytes) {
        for held in [&mut self.held, &mut self.queues[queue].held] {
            held.bytes += size;
            held.packets += Packets::new(1);
        }
    }

    /// One has left, or was dropped.
    pub(super) fn give_back(&mut self, queue: usize, size: Bytes) {
        for held in [&mut self.held, &mut self.queues[queue].held] {
            held.bytes -= size;
            held.packets -= Packets::new(1);
        }
    }

    /// Where a packet waits; a flow's queue is made when its first packet comes.
    fn queue_of(&mut self, packet: &impl Payload) -> usize {
        let queue = self.scheduler.queue_of(&Arriving {
            class: packet.service_class(),
            flow_hash: packet.flow_hash(),
            is_l4s: packet.is_l4s(),
        });
        if let Some(flow_queue) = self.flow_queue.as_ref().filter(|_| queue == self.queues.len()) {
            self.queues.push(flow_queue.0.clone());
        }
        queue
    }

    /// Whether the packet in service is one of those that count.
    pub(super) fn counts(&self) -> bool {
        self.serving != URGENT
    }

    /// Whether there is a queue for each service class.
    fn has_classes(&self) -> bool {
        matches!(self.by, Queues::Classes(2..))
    }

    /// Whether all queues are paused: without classes they are if any priority is.
    pub(super) fn is_stopped(&self) -> bool {
        self.pauses.mask != 0 && !self.has_classes()
    }

    /// Whether the class of this queue is paused.
    fn is_paused(&self, queue: usize) -> bool {
        self.has_classes() && self.pauses.mask & 1 << queue != 0
    }

    /// Sets which priorities are paused: classes leave the scheduler or come back.
    fn set_pauses(&mut self, now: Time, mask: u8) {
        let before = self.pauses.mask;
        self.pauses.set(now, mask);
        if !self.has_classes() {
            return;
        }
        for queue in 0..self.queues.len() {
            if self.queues[queue].ring.len() > 0 {
                match (before & 1 << queue != 0, self.is_paused(queue)) {
                    (false, true) => self.scheduler.leave(queue),
                    (true, false) => self.scheduler.wake(queue),
                    _ => {}
                }
            }
        }
    }

    /// How long any priority was paused since the counters were reset; and how long at most without a break.
    pub(super) fn paused(&self, now: Time) -> [Span; 2] {
        let running = if self.pauses.mask == 0 { Span::ZERO } else { now.since(self.pauses.since) };
        [self.pauses.before + running, self.pauses.longest.max(running)]
    }

    /// Counts pauses anew.
    pub(super) fn reset(&mut self, now: Time) {
        (self.pauses.before, self.pauses.longest) = (Span::ZERO, Span::ZERO);
        self.pauses.since = now;
    }
}

impl<P: Payload> Ports<P> {
    fn served(&mut self, link: u32) -> &mut Served {
        &mut self.served[self.ports[link as usize].served as usize]
    }

    /// A packet of `link` is about to reach the far end: see the [module](self). False if it was recalled.
    #[inline]
    pub(crate) fn decide_before(&mut self, now: Time, link: u32) -> bool {
        match self.ports[link as usize].kind {
            Kind::Pausable => self.settle(now, link),
            Kind::Served => {
                self.decide(now, link);
                return !self.is_void(now, link);
            }
            Kind::Fifo | Kind::PooledFifo => {}
        }
        true
    }

    /// A packet arrives at such a port, where all that is due has been decided, over the link `from` if it was not offered from
    /// outside; as [`offer`](Self::offer), but for the agenda, which learns from [`take_first`](Self::take_first).
    #[inline(never)]
    pub(super) fn enqueue(&mut self, now: Time, link: u32, from: u32, mut packet: P) -> Offered {
        let ready = if self.ports[link as usize].jittery { self.ready(now, link) } else { now };
        let of_host = self.served(link).of_host;
        let (ready, counts_origins) = {
            let counted = self.counted(link);
            (ready + counted.stack, counted.by_origin)
        };
        let size = Bytes::new(u64::from(packet.ip_bytes()));
        let queue = self.served(link).queue_of(&packet);
        let origin = self.origin(from, packet.service_class());
        let verdict = if !self.ingress_admits(now, origin, size) {
            Err(DropReason::Limit)
        } else if self.is_down(now, link) {
            Err(DropReason::Outage)
        } else {
            self.judge_queue(now, link, queue, size, packet.ecn_capable())
        };
        self.note(link, size, verdict);
        let marked = match verdict {
            Ok(marked) => marked,
            Err(reason) => return Offered::Dropped(reason),
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
        let is_due = port.accepted.bytes.get() > self.rules[link as usize].sample_beyond;
        let served = &mut self.served[port.served as usize];
        served.take(queue, size);
        let waiting = &mut served.queues[queue];
        self.store.push(&mut waiting.ring, Record { at: now, packet });
        if of_host {
            served.ready.push_back(ready);
        }
        if counts_origins {
            waiting.origins.push_back((origin, packet.ip_bytes()));
        }
        if waiting.ring.len() == 1 && !served.is_paused(queue) {
            served.scheduler.wake(queue);
        }
        self.ingress_takes(now, link, origin, size);
        while let Some(longest) = self.served(link).longest_beyond_limit() {
            self.drop_first(now, link, longest, DropReason::Limit);
        }
        let held = self.served(link).held.bytes;
        let port = &mut self.ports[link as usize];
        port.queue_max = port.queue_max.max(held);
        if is_due {
            self.sample(now, link);
        }
        let departure = self.begin_if_free(now, link);
        Offered::Accepted { departure: if of_host { Time::NEVER } else { departure }, marked }
    }

    /// A packet that is urgent arrives at such a port. It is never refused.
    pub(crate) fn enqueue_urgent(&mut self, now: Time, link: u32, packet: P) -> Offered {
        self.recall(now, link);
        let index = self.ports[link as usize].served as usize;
        self.store.push(&mut self.served[index].urgent, Record { at: now, packet });
        if self.served[index].urgent_wire != NONE {
            self.tell_end(link);
        }
        Offered::Accepted { departure: self.begin_if_free(now, link), marked: false }
    }

    /// If the port is free, what waits begins to leave now: when it will have left.
    pub(super) fn begin_if_free(&mut self, now: Time, link: u32) -> Time {
        if self.is_busy(link) {
            return Time::NEVER;
        }
        self.begin(now, link);
        let port = &self.ports[link as usize];
        if port.held_packets > 0 { port.free_at } else { Time::NEVER }
    }

    /// AQM, limit and pool on a packet of a queue: whether it is to be marked, or why it is dropped.
    fn judge_queue(
        &mut self,
        now: Time,
        link: u32,
        queue: usize,
        size: Bytes,
        ecn_capable: bool,
    ) -> Result<bool, DropReason> {
        let (index, pool) = (self.ports[link as usize].served as usize, self.ports[link as usize].pool);
        let served = &mut self.served[index];
        // Only classes have shares. Flow queues exceed the limit first, and then the longest is dropped from.
        let (by, all) = (served.by, served.held);
        let share = if matches!(by, Queues::Classes(_)) { served.queues[queue].held.bytes } else { all.bytes };
        let shares = by.classes() as u64;
        let queue = &mut served.queues[queue];
        let backlog = queue.held;
        let verdict = queue.aqm.as_mut().map_or(Verdict::Pass, |aqm| {
            aqm.decide(&aqm::Arrival { now, size, backlog, idle_since: queue.idle_since, ecn_capable })
        });
        if verdict == Verdict::Drop {
            return Err(DropReason::Aqm);
        }
        if !queue.limit.admits(if by == Queues::Kinds { all } else { backlog }, size) {
            return Err(DropReason::Limit);
        }
        let admits = |ports: &Self| ports.pools[pool as usize].pool.admits_share(share, size, shares);
        if pool != NONE && !admits(self) {
            self.settle_all_of(now, pool);
            if !admits(self) {
                return Err(DropReason::Pool);
            }
        }
        Ok(verdict == Verdict::Mark)
    }

    /// Whether a packet is in service.
    fn is_busy(&self, link: u32) -> bool {
        let port = &self.ports[link as usize];
        port.held_packets > 0 || self.served[port.served as usize].sends_beside
    }

    /// Takes the decisions that are due by `now`, each as of its own time: what has left makes place, and who is next begins.
    #[inline(never)]
    pub(crate) fn decide(&mut self, now: Time, link: u32) {
        loop {
            let is_busy = self.is_busy(link);
            let port = &mut self.ports[link as usize];
            if !is_busy || port.free_at > now {
                self.compute_again(link);
                return;
            }
            let (at, left) = (port.free_at, Bytes::new(port.held_bytes));
            if std::mem::take(&mut self.served[port.served as usize].sends_beside) {
                self.begin(at, link);
                continue;
            }
            let served = &mut self.served[port.served as usize];
            if !std::mem::take(&mut served.is_told) && served.of_host {
                let record = self.store.first_unsettled(&port.ring);
                self.left.push_back((link, record.packet));
            }
            port.ring.settle_if(true);
            (port.held_bytes, port.held_packets) = (0, 0);
            let served = &mut self.served[port.served as usize];
            if served.counts() {
                if port.pool != NONE {
                    self.pools[port.pool as usize].pool.give_back(left);
                }
                let (queue, origin) = (served.serving, served.origin);
                served.give_back(queue, left);
                served.queues[queue].idle_since = at;
                served.in_service = Bytes::ZERO;
                self.ingress_gives_back(at, link, origin, left);
            }
            if self.goes_down_at(at, link) {
                self.drop_all(at, link, DropReason::Outage);
            }
            self.begin(at, link);
        }
    }

    /// At `at` the port is free: the packet whose turn it is begins to leave, if any waits that is not paused.
    fn begin(&mut self, at: Time, link: u32) {
        let index = self.ports[link as usize].served as usize;
        let served = &mut self.served[index];
        if served.pauses.mask != 0 && served.pauses.first_end() <= at {
            let ended = |priority: &usize| served.pauses.until[*priority] <= at;
            let mask = (0..PRIORITIES).filter(ended).fold(served.pauses.mask, |mask, priority| mask & !(1 << priority));
            served.set_pauses(at, mask);
        }
        let writes = served.telemetry.is_some();
        let rate = if writes { self.rate(at, link) } else { Rate::default() };
        let served = &mut self.served[index];
        let frame_about = served.frame_about.take();
        let is_urgent = frame_about.is_some() || served.urgent.len() > 0;
        if let Some(&ready) = served.ready.front().filter(|&&ready| ready > at && !is_urgent) {
            self.wakes.push_back((link, ready));
            return;
        }
        let chosen = if is_urgent { Some((URGENT, false)) } else { self.choose(at, link) };
        let frame = frame_about.map(|about| self.frame(at, about));
        let served = &mut self.served[index];
        let Some((queue, marks)) = chosen else {
            if served.pauses.mask != 0 && served.queues.iter().any(|queue| queue.ring.len() > 0) {
                self.wakes.push_back((link, served.pauses.first_end()));
            }
            return;
        };
        let (port, rules) = (&mut self.ports[link as usize], &mut self.rules[link as usize]);
        let counts_origins = self.counted[index].by_origin;
        let Served {
            scheduler,
            queues,
            urgent,
            urgent_on_wire,
            urgent_wire,
            sends_beside,
            serving,
            in_service,
            origin,
            ready,
            telemetry,
            held,
            ..
        } = served;
        let ring = if is_urgent { urgent } else { &mut queues[queue].ring };
        let (came, mut packet) = match frame {
            Some(frame) => (at, frame),
            None => {
                let Record { at: came, packet } = *self.store.record(ring.front());
                self.store.pop(ring, true);
                (came, packet)
            }
        };
        if marks {
            packet.mark();
            rules.marked += Packets::new(1);
        }
        let is_last = ring.len() == 0;
        *serving = queue;
        let size = packet.ip_bytes();
        if let Some(sent) = telemetry {
            if queue != URGENT && packet.carries_data() {
                let waiting = held.bytes - Bytes::new(u64::from(size));
                self.telemetry.write_into(&mut packet, Hop { at, queue: waiting, sent: *sent, rate });
            }
            *sent += Bytes::new(wire_bytes(size));
        }
        let wire = self.wires.get_mut(rules.wire as usize);
        let changing = wire.and_then(|wire| wire.finish(at, at, wire_bytes(size), Bytes::new(size.into())));
        let departure = changing.unwrap_or_else(|| at + Span::from_ps(rules.line.time_for(wire_bytes(size))));
        port.free_at = departure;
        if queue == URGENT && *urgent_wire != NONE {
            *sends_beside = true;
            let urgent_wire = *urgent_wire;
            let wire = &mut self.ports[urgent_wire as usize];
            let (first, at) = (wire.ring.len() == 0, departure + wire.delay);
            self.store.push(&mut wire.ring, Record { at, packet });
            if first {
                self.firsts.push_back((urgent_wire, First { at, front: wire.ring.front() }));
            }
            self.wakes.push_back((link, departure));
            return;
        }
        (port.held_bytes, port.held_packets) = (u64::from(size), 1);
        if queue != URGENT {
            *in_service = Bytes::new(u64::from(size));
            ready.pop_front();
            if counts_origins {
                *origin = queues[queue].origins.pop_front().expect("one for each packet").0;
            }
            if is_last {
                scheduler.rest();
            }
            port.queue_integral += u128::from(size) * u128::from(departure.since(came.max(rules.since)).as_ps());
        } else {
            *urgent_on_wire += 1;
        }
        let (first, at) = (port.ring.len() == 0, departure + port.delay);
        self.store.push(&mut port.ring, Record { at, packet });
        if first {
            let front = port.ring.front();
            self.note_first(link, First { at, front });
        }
        if self.must_tell(link) {
            self.wakes.push_back((link, departure));
        }
    }

    /// Whether the end of a service at this port must be told at its very moment.
    pub(super) fn must_tell(&self, link: u32) -> bool {
        let port = &self.ports[link as usize];
        let served = &self.served[port.served as usize];
        served.of_host
            || served.pauses.mask != 0
            || served.frame_about.is_some()
            || served.urgent_wire != NONE && served.urgent.len() > 0
            || self.has_paused(link)
    }

    /// The port is told to pause these priorities for so long, and to resume the others.
    pub(crate) fn pause(&mut self, now: Time, link: u32, priorities: u8, time: Span) {
        if !self.is_served(link) || priorities == 0 && self.ports[link as usize].kind == Kind::Pausable {
            return;
        }
        self.recall(now, link);
        let served = self.served(link);
        served.pauses.until = [now + time; PRIORITIES];
        served.set_pauses(now, priorities);
        self.begin_if_free(now, link);
    }

    /// Σ size · (now − arrival) over what waits for its turn in a settled port, arrivals before the reset counting from there.
    pub(super) fn waited(&self, now: Time, link: u32) -> u128 {
        let (port, since) = (&self.ports[link as usize], self.rules[link as usize].since);
        let Some(served) = self.served.get(port.served as usize) else { return 0 };
        let rings = served.queues.iter().map(|queue| &queue.ring);
        rings
            .flat_map(|ring| self.store.unsettled(ring, u64::from(ring.len())))
            .map(|record| {
                let waited = now.since(record.at.max(since));
                u128::from(record.packet.ip_bytes()) * u128::from(waited.as_ps())
            })
            .sum()
    }

    /// Whether any of the following is there to take.
    #[inline(always)]
    pub(crate) fn has_news(&self) -> bool {
        self.wakes.len() + self.firsts.len() + self.frames.len() + self.dropped.len() > 0
    }

    /// A port of which the end of a service, or of a pause, is to be told then: for the agenda, where the last that is said of a port
    /// counts.
    #[inline(always)]
    pub(crate) fn take_wake(&mut self) -> Option<(u32, Time)> {
        self.wakes.pop_front()
    }

    /// A link or urgent queue that was empty and has a first packet now: for the agenda.
    #[inline(always)]
    pub(crate) fn take_first(&mut self) -> Option<(u32, First)> {
        self.firsts.pop_front()
    }

    /// Whether notifications go on over `link`.
    pub(crate) fn takes_notifications(&self, link: u32) -> bool {
        self.served[self.ports[link as usize].served as usize].is_inside
    }

    /// What has left a host's port.
    #[inline(always)]
    pub(crate) fn take_left(&mut self) -> Option<(u32, P)> {
        self.left.pop_front()
    }

    /// The end of a service or of a pause is due.
    pub(crate) fn serve(&mut self, now: Time, link: u32) {
        self.settle(now, link);
        if self.ports[link as usize].kind == Kind::Served {
            self.begin_if_free(now, link);
        }
    }

    /// Has the end of the service be told that goes on at this port, if one does.
    pub(super) fn tell_end(&mut self, link: u32) {
        if self.is_busy(link) {
            self.wakes.push_back((link, self.ports[link as usize].free_at));
        }
    }
}
