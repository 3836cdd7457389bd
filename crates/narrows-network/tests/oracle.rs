//! The explicit port, with an event per departure and nothing clever, against the computed and the lazily served one: on
//! random small networks both must give the same arrivals, drops, marks, pauses, backlogs and counters. So must links that
//! change during the run: here each change is an event.
#![allow(clippy::unwrap_used, reason = "a test may")]

mod support;

use narrows_core::link::{
    Change, Context, Event as LinkEvent, Fate, Function, FunctionConfig, gilbert_elliott, reorder,
};
use narrows_core::queue::aqm::Size;
use narrows_core::queue::pfc::{Thresholds, pause_time};
use narrows_core::queue::{AqmConfig, DropReason, Limit, PoolConfig};
use narrows_core::rng::Stream;
use narrows_core::units::{Bytes, Packets, Rate, Span, Time};
use narrows_network::{Class, Entity, Event, Network, Offered, Payload};
use narrows_plan::{Graph, Ingress, Link, NodeKind, Scheduler};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, VecDeque};
use support::{Packet, connect, graph};

/// 84 bytes at 1 Gbit/s. Delays, injections and most service times are multiples, so that times often tie.
const TICK: u64 = 672_000;

/// Everything that both models must agree on, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Seen {
    Arrived(u64, u32, Packet),
    /// When, and which packet.
    Dropped(u64, u32),
    /// When a packet has left a host's port, and which.
    Left(u64, u32, u32),
    Backlog(u64, u32, u64, u64),
    /// Sent packets and bytes, largest backlog, its integral, how long the packet in service had been so at the reset and is,
    /// drops by reason, marks, how long it was paused, and at most without a break, pause frames, packets late on the wire.
    Counters(u32, u64, u64, u64, u128, [u64; 2], [u64; DropReason::COUNT], [u64; 5]),
}

/// In which order departures are compared: some are told ahead.
fn order(seen: &Seen) -> (u64, u32) {
    let Seen::Left(at, link, _) = seen else { unreachable!("of departures") };
    (*at, *link)
}

#[derive(Clone, Debug)]
struct Case {
    graph: Graph,
    /// When, where, what.
    packets: Vec<(u64, u32, Packet)>,
    samples: Vec<u64>,
    reset: u64,
    end: u64,
    /// Steps in which the driver asks for events.
    windows: Vec<u64>,
}

// --- The explicit model ---------------------------------------------------------------------------------------------

/// A packet in a port, and the link over which it came.
type Held = (Packet, Option<usize>);

/// Added to a link, what is urgent on it, where it comes by a wire of its own.
const LANE: u32 = 1_000;
/// Added to a link, what is late on its wire.
const LATE: u32 = 100_000;
/// One bit, where rates are per second and times in picoseconds.
const BIT: u128 = 1_000_000_000_000;
/// Of all random streams.
const SEED: u64 = 7;

struct Port {
    scheduler: Option<Scheduler>,
    /// What waits, by queue; and what goes before.
    waiting: Vec<VecDeque<Held>>,
    /// When what waits has passed the host's stack.
    ready: VecDeque<u64>,
    urgent: VecDeque<Packet>,
    /// Urgent ones have no origin, and do not count.
    in_service: Option<Held>,
    is_urgent: bool,
    /// When it went into service.
    begun_at: u64,
    begun_before: u64,
    /// Deficit round robin as published: queues that wait in the order of their turns, what each has been given and not
    /// sent, and whether the first has had its quantum in this turn.
    turns: VecDeque<usize>,
    quanta: Vec<u64>,
    deficits: Vec<u64>,
    given: bool,
    /// By priority.
    paused: [bool; 8],
    paused_since: u64,
    paused_for: u64,
    longest_pause: u64,
    frames: u64,
    /// Whom the port itself has paused.
    feeders: Vec<(usize, u8)>,
    /// On the wire, and when each left.
    wire: VecDeque<(Packet, u64)>,
    rate: u64,
    is_down: bool,
    /// What is left to do of the packet in service, as of the last change, and when it will be done.
    work: u128,
    worked_at: u64,
    service_due: u64,
    functions: Vec<Function>,
    /// When the last packet that kept its place arrives; what is late, by arrival and number; how many came so far.
    in_order: u64,
    late: BTreeMap<(u64, u64), Packet>,
    came: u64,
    were_late: u64,
    lane: VecDeque<Packet>,
    sent: (u64, u64),
    dropped: [u64; DropReason::COUNT],
    marked: u64,
    max: u64,
    integral: u128,
    touched: u64,
}

impl Port {
    fn new(link: &Link) -> Port {
        let scheduler = link.scheduler.as_ref();
        let function = |config: &FunctionConfig| {
            let stream = Stream::named(SEED, &format!("{}/{}", config.key().name(), link.name)).small();
            Function::new(config, Context { stream })
        };
        let weights = match scheduler {
            None => vec![1],
            Some(Scheduler::StrictPriority { classes }) => vec![1; usize::from(*classes)],
            Some(Scheduler::Drr { weights }) => weights.clone(),
        };
        Port {
            scheduler: scheduler.cloned(),
            waiting: vec![VecDeque::new(); weights.len()],
            ready: VecDeque::new(),
            urgent: VecDeque::new(),
            in_service: None,
            is_urgent: false,
            begun_at: 0,
            begun_before: 0,
            turns: VecDeque::new(),
            deficits: vec![0; weights.len()],
            quanta: weights.into_iter().map(|weight| 1_500 * u64::from(weight)).collect(),
            given: false,
            paused: [false; 8],
            paused_since: 0,
            paused_for: 0,
            longest_pause: 0,
            frames: 0,
            feeders: Vec::new(),
            wire: VecDeque::new(),
            rate: link.rate.as_bps(),
            is_down: false,
            work: 0,
            worked_at: 0,
            service_due: u64::MAX,
            functions: link.functions.iter().map(function).collect(),
            in_order: 0,
            late: BTreeMap::new(),
            came: 0,
            were_late: 0,
            lane: VecDeque::new(),
            sent: (0, 0),
            dropped: [0; DropReason::COUNT],
            marked: 0,
            max: 0,
            integral: 0,
            touched: 0,
        }
    }
    fn queue_of(&self, packet: &Packet) -> usize {
        if self.waiting.len() == 1 { 0 } else { usize::from(packet.class) }
    }
    fn held(&self) -> impl Iterator<Item = &Held> {
        self.waiting.iter().flatten().chain(self.in_service.iter().filter(|_| !self.is_urgent))
    }
    fn packets_of(&self, queue: usize) -> impl Iterator<Item = &Held> {
        self.held().filter(move |(packet, _)| self.queue_of(packet) == queue)
    }
    fn bytes_of(&self, queue: usize) -> u64 {
        self.packets_of(queue).map(|(packet, _)| u64::from(packet.size)).sum()
    }
    fn bytes(&self) -> u64 {
        self.held().map(|(packet, _)| u64::from(packet.size)).sum()
    }
    fn is_paused(&self, queue: usize) -> bool {
        if self.scheduler.is_none() { self.paused.contains(&true) } else { self.paused[queue] }
    }
    /// The next packet goes into service, if any may: its size.
    fn begin(&mut self, now: u64) -> Option<u64> {
        if let Some(packet) = self.urgent.pop_front() {
            (self.in_service, self.is_urgent) = (Some((packet, None)), true);
            return Some(u64::from(packet.size));
        }
        self.is_urgent = false;
        if self.ready.front().is_some_and(|&ready| ready > now) {
            return None;
        }
        if !matches!(self.scheduler, Some(Scheduler::Drr { .. })) {
            let queue =
                (0..self.waiting.len()).find(|&queue| !self.waiting[queue].is_empty() && !self.is_paused(queue))?;
            self.in_service = self.waiting[queue].pop_front();
            self.ready.pop_front();
            return Some(u64::from(self.in_service.unwrap().0.size));
        }
        loop {
            let &queue = self.turns.front()?;
            if !std::mem::replace(&mut self.given, true) {
                self.deficits[queue] += self.quanta[queue];
            }
            let size = u64::from(self.waiting[queue][0].0.size);
            if size > self.deficits[queue] {
                let queue = self.turns.pop_front().unwrap();
                self.turns.push_back(queue);
                self.given = false;
                continue;
            }
            self.deficits[queue] -= size;
            self.in_service = self.waiting[queue].pop_front();
            if self.waiting[queue].is_empty() {
                self.turns.pop_front();
                (self.deficits[queue], self.given) = (0, false);
            }
            return Some(size);
        }
    }
    fn set_pause(&mut self, now: u64, priority: u8, paused: bool) {
        let (any, queues) = (self.paused.contains(&true), self.waiting.len());
        let before: Vec<bool> = (0..queues).map(|queue| self.is_paused(queue)).collect();
        self.paused[usize::from(priority)] = paused;
        match (any, self.paused.contains(&true)) {
            (false, true) => self.paused_since = now,
            (true, false) => {
                self.paused_for += now - self.paused_since;
                self.longest_pause = self.longest_pause.max(now - self.paused_since);
            }
            _ => {}
        }
        for (queue, was_paused) in before.into_iter().enumerate() {
            match (was_paused, self.is_paused(queue)) {
                (false, true) => {
                    self.given &= self.turns.front() != Some(&queue);
                    self.turns.retain(|&other| other != queue);
                    self.deficits[queue] = 0;
                }
                (true, false) if !self.waiting[queue].is_empty() => self.turns.push_back(queue),
                _ => {}
            }
        }
    }
    /// How long the packet in service has been so.
    fn begun(&self, now: u64) -> u64 {
        self.in_service.filter(|_| !self.is_urgent).map_or(0, |_| now - self.begun_at)
    }
    /// Adds the time since the last change to the integral.
    fn pass(&mut self, now: u64) {
        self.integral += u128::from(self.bytes()) * u128::from(now - self.touched);
        self.touched = now;
    }
}

/// Kinds of events at equal times, in their order.
const CHANGE: u32 = 0;
const SERVICE: u32 = 1;
const READY: u32 = 2;
const FRAME: u32 = 3;
const ARRIVAL: u32 = 4;
const START: u32 = 5;
const SAMPLE: u32 = 6;

struct Explicit<'a> {
    case: &'a Case,
    ports: Vec<Port>,
    served: Vec<bool>,
    /// Time, kind, identifier.
    events: BinaryHeap<Reverse<(u64, u32, u32)>>,
    /// Frames to send: over which link, with which priority, and whether it pauses.
    frames: Vec<(usize, u8, bool)>,
    /// By link and priority: whether too much came over it.
    over: BTreeSet<(usize, u8)>,
    /// By link and priority: by how many reasons it is paused.
    claims: BTreeMap<(usize, u8), u32>,
    seen: Vec<Seen>,
    left: Vec<Seen>,
}

impl Explicit<'_> {
    /// Links of this case come in pairs, one for each direction.
    fn back(link: usize) -> usize {
        link ^ 1
    }

    fn is_host(&self, node: u32) -> bool {
        self.case.graph.nodes[node as usize].kind == NodeKind::Host
    }

    fn of_switch(&self, node: u32) -> impl Iterator<Item = &Held> {
        let links = self.case.graph.links.iter();
        self.ports.iter().zip(links).filter(move |(_, link)| link.from == node).flat_map(|(port, _)| port.held())
    }

    /// What the switch at its end holds of a link, of one priority or all.
    fn memory(&self, link: usize, priority: Option<u8>) -> u64 {
        self.of_switch(self.case.graph.links[link].to)
            .filter(|(packet, from)| *from == Some(link) && priority.is_none_or(|priority| packet.class == priority))
            .map(|(packet, _)| u64::from(packet.size))
            .sum()
    }

    fn claim(&mut self, now: u64, link: usize, priority: u8, more: bool) {
        let claims = self.claims.entry((link, priority)).or_default();
        let before = *claims;
        if more {
            *claims += 1
        } else {
            *claims -= 1
        }
        if before == 0 || *claims == 0 {
            self.frames.push((Self::back(link), priority, more));
            self.events.push(Reverse((now, FRAME, u32::try_from(self.frames.len() - 1).unwrap())));
        }
    }

    fn offer(&mut self, now: u64, link: u32, from: Option<usize>, mut packet: Packet) {
        let description = &self.case.graph.links[link as usize];
        let port = &self.ports[link as usize];
        let (queue, shares) = (port.queue_of(&packet), port.waiting.len() as u64);
        let (bytes, packets) = (port.bytes_of(queue), port.packets_of(queue).count() as u64);
        let size = u64::from(packet.size);
        let ingress = from.and_then(|from| self.case.graph.links[from].ingress);
        if let Some(narrows_plan::Ingress { limit: Limit::Bytes(most), .. }) = ingress
            && self.memory(from.unwrap(), None) + size > most.get()
        {
            return self.drop(now, link, DropReason::Limit, packet);
        }
        if self.ports[link as usize].is_down {
            return self.drop(now, link, DropReason::Outage, packet);
        }
        let fits = match description.limit {
            Limit::Unlimited => true,
            Limit::Packets(most) => packets < most.get() / shares,
            Limit::Bytes(most) => bytes + size <= most.get() / shares,
        };
        if !fits {
            return self.drop(now, link, DropReason::Limit, packet);
        }
        if description.pooled {
            let pool = self.case.graph.nodes[description.from as usize].pool.unwrap();
            let ports = self.ports.iter().zip(&self.case.graph.links);
            let used: u64 =
                ports.filter(|(_, l)| l.pooled && l.from == description.from).map(|(port, _)| port.bytes()).sum();
            let free = pool.size.get() - used;
            if size > free || (bytes + size) * shares * 65_536 > u64::from(pool.alpha) * free {
                return self.drop(now, link, DropReason::Pool, packet);
            }
        }
        let above = match description.aqm {
            Some(AqmConfig::Threshold(narrows_core::queue::aqm::threshold::Config { mark_at: Size::Packets(k) })) => {
                packets > k.get()
            }
            Some(AqmConfig::Threshold(narrows_core::queue::aqm::threshold::Config { mark_at: Size::Bytes(k) })) => {
                bytes > k.get()
            }
            _ => false,
        };
        if above && packet.capable {
            packet.marked = true;
            self.ports[link as usize].marked += 1;
        }
        let of_served_host = self.is_host(description.from) && self.served[link as usize];
        let port = &mut self.ports[link as usize];
        port.pass(now);
        port.waiting[queue].push_back((packet, from));
        if of_served_host {
            let ready = now + description.stack.as_ps();
            port.ready.push_back(ready);
            self.events.push(Reverse((ready, READY, link)));
        }
        if port.waiting[queue].len() == 1 && !port.is_paused(queue) {
            port.turns.push_back(queue);
        }
        port.max = port.max.max(port.bytes());
        if let Some(from) = from {
            self.pause_whoever_fills(now, link as usize, from, packet.class);
        }
        if self.ports[link as usize].in_service.is_none() {
            self.begin(now, link);
        }
    }

    fn pause_whoever_fills(&mut self, now: u64, link: usize, from: usize, priority: u8) {
        let graph = &self.case.graph;
        if let Some(thresholds) = graph.links[from].ingress.and_then(|memory| memory.thresholds)
            && self.memory(from, Some(priority)) > thresholds.xoff.get()
            && self.over.insert((from, priority))
        {
            self.claim(now, from, priority, true);
        }
        if let Some(thresholds) = graph.links[link].pauses {
            let port = &self.ports[link];
            let pauses = port.bytes() > thresholds.xoff.get() || !port.feeders.is_empty();
            if pauses && !port.feeders.contains(&(from, priority)) {
                self.ports[link].feeders.push((from, priority));
                self.claim(now, from, priority, true);
            }
        }
    }

    fn resume_whoever_fills(&mut self, now: u64, link: usize, (packet, from): Held) {
        let (graph, priority) = (&self.case.graph, packet.class);
        let Some(from) = from else { return };
        if let Some(thresholds) = graph.links[from].ingress.and_then(|memory| memory.thresholds)
            && self.memory(from, Some(priority)) <= thresholds.xon.get()
            && self.over.remove(&(from, priority))
        {
            self.claim(now, from, priority, false);
        }
        if let Some(thresholds) = graph.links[link].pauses
            && self.ports[link].bytes() <= thresholds.xon.get()
        {
            for (from, priority) in std::mem::take(&mut self.ports[link].feeders) {
                self.claim(now, from, priority, false);
            }
        }
    }

    fn drop(&mut self, now: u64, link: u32, reason: DropReason, packet: Packet) {
        self.ports[link as usize].dropped[reason as usize] += 1;
        self.seen.push(Seen::Dropped(now, packet.id));
    }

    fn begin(&mut self, now: u64, link: u32) {
        if let Some(size) = self.ports[link as usize].begin(now) {
            let port = &mut self.ports[link as usize];
            (port.work, port.worked_at, port.begun_at) = (u128::from((size + 38).max(84)) * 8 * BIT, now, now);
            self.expect_end(now, link);
        }
    }

    /// The packet in service ends when its rest is done at the rate of now.
    fn expect_end(&mut self, now: u64, link: u32) {
        let port = &mut self.ports[link as usize];
        port.service_due = now + u64::try_from(port.work.div_ceil(u128::from(port.rate))).unwrap();
        self.events.push(Reverse((port.service_due, SERVICE, link)));
    }

    fn change(&mut self, now: u64, link: u32, change: Change) {
        let port = &mut self.ports[link as usize];
        match change {
            Change::Rate(rate) => {
                let done = u128::from(now - port.worked_at) * u128::from(port.rate);
                (port.work, port.worked_at) = (port.work.saturating_sub(done), now);
                port.rate = rate.as_bps();
                if port.in_service.is_some() {
                    self.expect_end(now, link);
                }
            }
            Change::Down => {
                port.pass(now);
                let waiting: Vec<Held> = port.in_service.take().into_iter().chain(port.waiting[0].drain(..)).collect();
                port.dropped[DropReason::Outage as usize] += waiting.len() as u64;
                (port.is_down, port.service_due) = (true, u64::MAX);
                for (packet, _) in waiting {
                    port.wire.push_back((packet, now));
                    let at = now + self.case.graph.links[link as usize].least_delay().as_ps();
                    self.events.push(Reverse((at, ARRIVAL, link)));
                }
            }
            Change::Up => port.is_down = false,
            Change::Delay(_) | Change::Loss(_) => {}
        }
    }

    /// What becomes of a packet on the wire of a link that it has left at `left`: when it arrives, and whether it is late;
    /// `None` if it is lost.
    fn crosses(&mut self, link: u32, left: u64, packet: &Packet) -> Option<(u64, bool)> {
        let events = &self.case.graph.links[link as usize].events;
        let delay = events.iter().rev().find_map(|event| match event.change {
            Change::Delay(delay) if event.at.as_ps() <= left => Some(delay),
            _ => None,
        });
        let port = &mut self.ports[link as usize];
        let went_down = |from: u64, until: u64| {
            events.iter().any(|event| event.change == Change::Down && (from..until).contains(&event.at.as_ps()))
        };
        if went_down(left, left + 1) {
            return None;
        }
        let arrival = port.in_order.max(left + delay.unwrap_or(self.case.graph.links[link as usize].delay).as_ps());
        port.in_order = arrival;
        if went_down(left, arrival) {
            port.dropped[DropReason::Cut as usize] += 1;
            return None;
        }
        let mut extra = 0;
        for function in &mut port.functions {
            match function.decide(packet.size > 0) {
                Fate::Arrives => {}
                Fate::Late(more) => extra += more.as_ps(),
                Fate::Lost => {
                    port.dropped[DropReason::Impairment as usize] += 1;
                    return None;
                }
            }
        }
        port.were_late += u64::from(extra > 0);
        Some((arrival + extra, extra > 0))
    }

    fn service_ends(&mut self, now: u64, link: u32) {
        let description = &self.case.graph.links[link as usize];
        let port = &mut self.ports[link as usize];
        // A change of the line may have moved it.
        if port.service_due != now {
            return;
        }
        port.service_due = u64::MAX;
        port.pass(now);
        let held = port.in_service.take().unwrap();
        let (is_urgent, stack) = (port.is_urgent, description.stack.as_ps());
        let beside = is_urgent && stack > 0;
        if beside {
            port.lane.push_back(held.0)
        } else {
            port.wire.push_back((held.0, now))
        }
        if !is_urgent {
            port.sent.0 += 1;
            port.sent.1 += u64::from(held.0.size);
            self.resume_whoever_fills(now, link as usize, held);
            if self.served[link as usize] && self.is_host(description.from) {
                self.left.push(Seen::Left(now, link, held.0.id));
            }
        }
        self.begin(now, link);
        // A host's stack is before its port where that is served.
        let before = beside || self.served[link as usize] && self.is_host(description.from);
        let at = now + description.least_delay().as_ps() - if before { stack } else { 0 };
        self.events.push(Reverse((at, ARRIVAL, if beside { LANE + link } else { link })));
    }

    fn arrives(&mut self, now: u64, link: u32) {
        if link >= LATE {
            let (_, packet) = self.ports[(link - LATE) as usize].late.pop_first().unwrap();
            return self.reaches(now, link - LATE, packet);
        }
        let (beside, link) = (link >= LANE, link % LANE);
        let port = &mut self.ports[link as usize];
        let (packet, left) =
            if beside { (port.lane.pop_front().unwrap(), now) } else { port.wire.pop_front().unwrap() };
        if let Some((priority, time)) = packet.pause {
            let paused = Self::back(link as usize);
            self.ports[paused].set_pause(now, priority, time > 0);
            if self.ports[paused].in_service.is_none() {
                self.begin(now, u32::try_from(paused).unwrap());
            }
            return;
        }
        if beside || self.served[link as usize] {
            return self.reaches(now, link, packet);
        }
        let Some((at, _)) = self.crosses(link, left, &packet) else {
            self.seen.push(Seen::Dropped(now, packet.id));
            return;
        };
        let port = &mut self.ports[link as usize];
        let is_turn = port.late.keys().all(|(late, _)| *late > now);
        if at == now && is_turn {
            return self.reaches(now, link, packet);
        }
        port.came += 1;
        port.late.insert((at, port.came), packet);
        self.events.push(Reverse((at, ARRIVAL, LATE + link)));
    }

    fn reaches(&mut self, now: u64, link: u32, packet: Packet) {
        let node = self.case.graph.links[link as usize].to;
        match self.case.graph.nodes[node as usize].kind {
            NodeKind::Host => self.seen.push(Seen::Arrived(now, node, packet)),
            NodeKind::Switch => {
                self.offer(now, towards(&self.case.graph, node, packet.destination), Some(link as usize), packet);
            }
        }
    }

    fn run(mut self) -> Vec<Seen> {
        let graph = &self.case.graph;
        self.events.extend((0..).zip(&self.case.packets).map(|(i, packet)| Reverse((packet.0, START, i))));
        self.events.extend((0..).zip(&self.case.samples).map(|(i, &at)| Reverse((at, SAMPLE, i))));
        self.events.push(Reverse((self.case.reset, SAMPLE, u32::MAX)));
        let links = (0..).zip(&graph.links);
        let changes: Vec<(u32, LinkEvent)> =
            links.flat_map(|(link, of)| of.events.iter().map(move |event| (link, *event))).collect();
        self.events.extend((0..).zip(&changes).map(|(i, (_, event))| Reverse((event.at.as_ps(), CHANGE, i))));
        while let Some(Reverse((now, class, id))) = self.events.pop() {
            if now > self.case.end {
                break;
            }
            match class {
                CHANGE => {
                    let (link, event) = changes[id as usize];
                    self.change(now, link, event.change);
                }
                SERVICE => self.service_ends(now, id),
                FRAME => {
                    let (over, priority, pauses) = self.frames[id as usize];
                    let time = if pauses { pause_time(graph.links[Self::back(over)].rate) } else { Span::ZERO };
                    let port = &mut self.ports[over];
                    port.frames += 1;
                    port.urgent.push_back(Packet::pause(priority, time).unwrap());
                    if port.in_service.is_none() {
                        self.begin(now, u32::try_from(over).unwrap());
                    }
                }
                READY => {
                    if self.ports[id as usize].in_service.is_none() {
                        self.begin(now, id);
                    }
                }
                ARRIVAL => self.arrives(now, id),
                START => {
                    let (_, host, packet) = self.case.packets[id as usize];
                    self.offer(now, towards(graph, host, packet.destination), None, packet);
                }
                _ if id == u32::MAX => {
                    for port in &mut self.ports {
                        port.begun_before = port.begun(now);
                        (port.dropped, port.marked, port.were_late) = ([0; DropReason::COUNT], 0, 0);
                        (port.sent, port.max, port.integral, port.touched) = ((0, 0), port.bytes(), 0, now);
                        (port.paused_for, port.longest_pause, port.paused_since, port.frames) = (0, 0, now, 0);
                    }
                }
                _ => {
                    for (link, port) in (0..).zip(&self.ports) {
                        self.seen.push(Seen::Backlog(now, link, port.bytes(), port.held().count() as u64));
                    }
                }
            }
        }
        let end = self.case.end;
        self.left.sort_by_key(order);
        self.seen.append(&mut self.left);
        for (link, port) in (0..).zip(&mut self.ports) {
            port.pass(end);
            let changes = !self.case.graph.links[link as usize].events.is_empty();
            let begun = [port.begun_before, port.begun(end)].map(|begun| if changes { 0 } else { begun });
            let running = if port.paused.contains(&true) { end - port.paused_since } else { 0 };
            let Port { sent, max, integral, dropped, marked, frames, .. } = *port;
            let told = [marked, port.paused_for + running, port.longest_pause.max(running), frames, port.were_late];
            self.seen.push(Seen::Counters(link, sent.0, sent.1, max, integral, begun, dropped, told));
        }
        self.seen
    }
}

fn explicit(case: &Case) -> Vec<Seen> {
    let ports = case.graph.links.iter().map(Port::new).collect();
    let (events, frames, seen, left) = (BinaryHeap::new(), Vec::new(), Vec::new(), Vec::new());
    let (over, claims) = (BTreeSet::new(), BTreeMap::new());
    Explicit { case, ports, served: case.graph.served(), events, frames, over, claims, seen, left }.run()
}

/// The link towards `destination` in a tree: the one behind which it can be found.
fn towards(graph: &Graph, from: u32, destination: u32) -> u32 {
    fn leads(graph: &Graph, link: usize, destination: u32) -> bool {
        let (back, here) = (graph.links[link].from, graph.links[link].to);
        here == destination
            || (0..graph.links.len()).any(|next| {
                graph.links[next].from == here && graph.links[next].to != back && leads(graph, next, destination)
            })
    }
    let link = (0..graph.links.len()).find(|&link| graph.links[link].from == from && leads(graph, link, destination));
    u32::try_from(link.unwrap()).unwrap()
}

// --- The model under test -------------------------------------------------------------------------------------------

fn computed(case: &Case) -> Vec<Seen> {
    let mut network: Network<Packet> = Network::new(&case.graph, SEED).unwrap();
    let (mut seen, mut left, served) = (Vec::new(), Vec::new(), case.graph.served());
    for (slot, &(at, ..)) in (0..).zip(&case.packets) {
        network.arm(Entity::start(u64::from(slot), slot), Time::from_ps(at));
    }
    for (slot, &at) in (0..).zip(&case.samples) {
        network.arm(Entity::sample(u64::from(slot), slot), Time::from_ps(at));
    }
    let reset = Entity::sample(u64::from(u32::MAX), u32::try_from(case.samples.len()).unwrap());
    network.arm(reset, Time::from_ps(case.reset));
    let mut windows = case.windows.iter().cycle();
    let mut until = 0;
    while until < case.end {
        until = case.end.min(until + windows.next().unwrap());
        while let Some((now, event)) = network.next(Time::from_ps(until)) {
            match event {
                Event::Arrival { host, packet } => seen.push(Seen::Arrived(now.as_ps(), host, packet)),
                Event::Dropped { packet } => seen.push(Seen::Dropped(now.as_ps(), packet.id)),
                Event::Sampled { .. } => unreachable!("nothing is sampled"),
                Event::Left { link, packet } => left.push(Seen::Left(now.as_ps(), link, packet.id)),
                Event::Recalled { .. } => {
                    let recalled: Vec<u32> = network.take_recalled().iter().map(|packet| packet.id).collect();
                    left.retain(
                        |seen| !matches!(seen, Seen::Left(at, _, id) if recalled.contains(id) && *at > now.as_ps()),
                    );
                }
                Event::Entering { .. } | Event::Crossed { .. } => unreachable!("nothing is bridged"),
                Event::Due(entity) if entity == reset => network.reset_counters(now),
                Event::Due(entity) if entity.class() == Class::Sample => {
                    for link in 0..u32::try_from(case.graph.links.len()).unwrap() {
                        let (bytes, packets) = network.backlog(now, link);
                        seen.push(Seen::Backlog(now.as_ps(), link, bytes.get(), packets.get()));
                    }
                }
                Event::Due(entity) => {
                    let (_, host, packet) = case.packets[entity.slot() as usize];
                    let link = network.host_link(host);
                    match network.offer(now, link, packet) {
                        Offered::Accepted { departure: Time::NEVER, .. } => {}
                        Offered::Accepted { departure, .. } if served[link as usize] => {
                            left.push(Seen::Left(departure.as_ps(), link, packet.id));
                        }
                        Offered::Accepted { .. } => {}
                        Offered::Dropped(_) => seen.push(Seen::Dropped(now.as_ps(), packet.id)),
                    }
                }
            }
        }
    }
    left.retain(|seen| matches!(seen, Seen::Left(at, ..) if *at <= case.end));
    left.sort_by_key(order);
    seen.extend(left);
    for (link, counters) in (0..).zip(network.finish(Time::from_ps(case.end))) {
        let (sent, max) = (counters.sent, counters.queue_max.get());
        // At a line that changes, what has gone is told in units of the line as it begins.
        let changes = !case.graph.links[link as usize].events.is_empty();
        let begun = [counters.begun_before, counters.begun].map(|begun| if changes { 0 } else { begun.as_ps() });
        let (integral, dropped) = (counters.queue_integral, counters.dropped.map(Packets::get));
        let paused = [counters.paused, counters.longest_pause].map(Span::as_ps);
        let told = [counters.marked.get(), paused[0], paused[1], counters.pause_frames.get(), counters.late.get()];
        seen.push(Seen::Counters(link, sent.packets.get(), sent.bytes.get(), max, integral, begun, dropped, told));
    }
    seen
}

// --- Random cases ---------------------------------------------------------------------------------------------------

#[derive(Clone, Debug)]
struct Wire {
    rate: u64,
    delay: u64,
    stack: u64,
    limit: Limit,
    pooled: bool,
    aqm: Option<AqmConfig>,
    scheduler: Option<Scheduler>,
    ingress: Option<Ingress>,
    pauses: Option<Thresholds>,
    functions: Vec<FunctionConfig>,
    events: Vec<LinkEvent>,
}

/// Packets are of the classes below this.
const CLASSES: u8 = 3;

fn wire() -> impl Strategy<Value = Wire> {
    let rate = prop_oneof![4 => Just(1_000_000_000u64), 1 => Just(10_000_000_000), 1 => 100_000_000u64..3_000_000_000];
    let delay = prop_oneof![3 => (0u64..20).prop_map(|ticks| ticks * TICK), 1 => 0u64..20 * TICK];
    let limit = prop_oneof![
        Just(Limit::Unlimited),
        (0u64..12).prop_map(|most| Limit::Packets(Packets::new(most))),
        (0u64..15_000).prop_map(|most| Limit::Bytes(Bytes::new(most))),
    ];
    let mark_at = prop_oneof![
        (0u64..8).prop_map(|k| Size::Packets(Packets::new(k))),
        (0u64..9_000).prop_map(|k| Size::Bytes(Bytes::new(k))),
    ];
    let aqm = prop::option::of(
        mark_at.prop_map(|mark_at| AqmConfig::Threshold(narrows_core::queue::aqm::threshold::Config { mark_at })),
    );
    let weights = prop::collection::vec(prop_oneof![3 => 1u16..4, 1 => 1u16..=1_000], usize::from(CLASSES)..=8);
    let scheduler = prop_oneof![
        Just(None),
        (CLASSES..=8).prop_map(|classes| Some(Scheduler::StrictPriority { classes })),
        weights.prop_map(|weights| Some(Scheduler::Drr { weights })),
    ];
    let thresholds = || {
        (0u64..1_500, 0u64..1_500).prop_map(|(xon, more)| Thresholds {
            xon: Bytes::new(xon),
            xoff: Bytes::new(xon + more),
            may_lose: true,
        })
    };
    let memory = prop_oneof![Just(Limit::Unlimited), (0u64..15_000).prop_map(|most| Limit::Bytes(Bytes::new(most)))];
    let ingress = (memory, prop::option::weighted(0.9, thresholds()))
        .prop_map(|(limit, thresholds)| Ingress { limit, thresholds });
    let pauses = prop::option::weighted(0.3, thresholds());
    let stack = prop_oneof![Just(0u64), (0u64..20).prop_map(|ticks| ticks * TICK), 0u64..20 * TICK];
    let switching = (scheduler, prop::option::weighted(0.9, ingress), pauses);
    ((rate, delay, stack), limit, any::<bool>(), aqm, switching, (functions(), events())).prop_map(
        |((rate, delay, stack), limit, pooled, aqm, (scheduler, ingress, pauses), (functions, events))| Wire {
            rate,
            delay,
            stack,
            limit,
            pooled,
            aqm,
            scheduler,
            ingress,
            pauses,
            functions,
            events,
        },
    )
}

/// What happens on a wire.
fn functions() -> impl Strategy<Value = Vec<FunctionConfig>> {
    let probability = || prop_oneof![0u64..1 << 31, Just(1 << 32), Just(1 << 30)];
    let loss = (1u64..1 << 32, 1u64..1 << 32, probability()).prop_map(|(p, r, loss_bad)| {
        FunctionConfig::GilbertElliott(gilbert_elliott::Config { p, r, loss_bad, loss_good: 0 })
    });
    let reorder = (probability(), 0u64..20, prop_oneof![Just(0), 0u64..20 * TICK]).prop_map(|(share, ticks, more)| {
        let delay = Span::from_ps(ticks * TICK);
        FunctionConfig::Reorder(reorder::Config { share, delay, delay_max: delay + Span::from_ps(more) })
    });
    (prop::option::of(loss), prop::option::of(reorder))
        .prop_map(|(loss, reorder)| loss.into_iter().chain(reorder).collect())
}

/// What changes at a link: rates and delays in any order, and outages that do not overlap.
fn events() -> impl Strategy<Value = Vec<LinkEvent>> {
    let time = || prop_oneof![3 => (0u64..120).prop_map(|ticks| ticks * TICK), 1 => 0u64..120 * TICK];
    let rate = prop_oneof![Just(1_000_000_000u64), Just(10_000_000_000), 50_000_000u64..3_000_000_000];
    let rates = prop::collection::vec((time(), rate.prop_map(|bps| Change::Rate(Rate::from_bps(bps)))), 0..4);
    let delay = (0u64..30).prop_map(|ticks| Change::Delay(Span::from_ps(ticks * TICK)));
    let delays = prop::collection::vec((time(), delay), 0..4);
    let outages = prop::collection::btree_set(time(), 0..5).prop_map(|times| {
        let changes = [Change::Down, Change::Up].into_iter().cycle();
        times.into_iter().zip(changes).collect::<Vec<(u64, Change)>>()
    });
    (rates, delays, outages).prop_map(|(rates, delays, outages)| {
        let all = rates.into_iter().chain(delays).chain(outages);
        let mut events: Vec<LinkEvent> = all.map(|(at, change)| LinkEvent { at: Time::from_ps(at), change }).collect();
        events.sort_by_key(|event| event.at);
        events
    })
}

/// What a case draws in beside plain ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ports {
    Computed,
    Changing,
    Queues,
    Pausable,
}

/// A random network with such ports.
fn case(ports: Ports) -> impl Strategy<Value = Case> {
    let tick = prop_oneof![3 => (0u64..150).prop_map(|ticks| ticks * TICK), 1 => 0u64..150 * TICK];
    // 84, 168, 1538 and odd numbers of bytes on the wire.
    let size = prop_oneof![Just(46u32), Just(20), Just(130), Just(1_500), 20u32..1_500];
    let packet = (tick.clone(), any::<u32>(), any::<u32>(), size, 0..CLASSES, prop::bool::weighted(0.8));
    (
        (prop::collection::vec(any::<u32>(), 1..4), prop::collection::vec(any::<u32>(), 2..7)),
        prop::collection::vec(wire(), 1..20),
        prop::collection::vec((0u64..40_000, 0u32..4 * 65_536), 4),
        prop::collection::vec(packet, 1..200),
        prop::collection::vec(tick.clone(), 0..10),
        (tick, 1u64..300, prop::collection::vec(prop_oneof![1u64..TICK, 1u64..100 * TICK], 1..5)),
    )
        .prop_map(move |((parents, places), wires, pools, packets, samples, (reset, end, windows))| {
            let (hosts, switches) = (places.len(), parents.len());
            let mut graph = graph(hosts, switches);
            let id = |index: usize| u32::try_from(index).unwrap();
            for (switch, parent) in parents.iter().enumerate().skip(1) {
                let parent = hosts + *parent as usize % switch;
                connect(&mut graph, id(hosts + switch), id(parent), Rate::from_bps(1), Span::ZERO);
            }
            for (host, place) in places.iter().enumerate() {
                connect(&mut graph, id(host), id(hosts + *place as usize % switches), Rate::from_bps(1), Span::ZERO);
            }
            for (switch, &(size, alpha)) in pools.iter().enumerate().take(switches) {
                graph.nodes[hosts + switch].pool = Some(PoolConfig { size: Bytes::new(size), alpha });
            }
            for (link, wire) in graph.links.iter_mut().zip(wires.iter().cycle()) {
                link.rate = Rate::from_bps(wire.rate);
                link.delay = Span::from_ps(wire.delay);
                (link.limit, link.aqm) = (wire.limit, wire.aqm);
                link.pooled = wire.pooled && link.from as usize >= hosts;
                let (of_switch, to_switch) = (link.from as usize >= hosts, link.to as usize >= hosts);
                let has_queues = matches!(ports, Ports::Queues | Ports::Pausable);
                link.scheduler = wire.scheduler.clone().filter(|_| has_queues && of_switch);
                if ports == Ports::Changing {
                    (link.functions, link.events) = (wire.functions.clone(), wire.events.clone());
                }
                link.ingress = wire.ingress.filter(|_| ports == Ports::Pausable && to_switch);
                if ports == Ports::Pausable && !(of_switch && to_switch) {
                    link.stack = Span::from_ps(wire.stack);
                    link.delay += link.stack;
                }
                link.pauses = wire.pauses.filter(|_| ports == Ports::Pausable && of_switch);
            }
            let packets = (0..)
                .zip(packets)
                .map(|(id, (at, from, to, size, class, capable))| {
                    // Close together where queues are to grow.
                    let at = if ports == Ports::Pausable { at / 4 } else { at };
                    let from = from % u32::try_from(hosts).unwrap();
                    let to = (from + 1 + to % u32::try_from(hosts - 1).unwrap()) % u32::try_from(hosts).unwrap();
                    (
                        at,
                        from,
                        Packet { id, destination: to, flow: id, size, class, capable, marked: false, pause: None },
                    )
                })
                .collect();
            let end = end * TICK;
            Case { graph, packets, samples, reset: reset.min(end), end, windows }
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]
    #[test]
    fn computed_departures_equal_explicit_ones(case in case(Ports::Computed)) {
        prop_assert_eq!(computed(&case), explicit(&case));
    }

    #[test]
    fn links_that_change_do_as_links_with_an_event_for_each_change(case in case(Ports::Changing)) {
        prop_assert_eq!(computed(&case), explicit(&case));
    }

    #[test]
    fn queues_served_lazily_leave_as_queues_served_by_an_event_each(case in case(Ports::Queues)) {
        prop_assert_eq!(computed(&case), explicit(&case));
    }

    #[test]
    fn switches_that_pause_links_pause_and_resume_them_as_explicit_ones_do(case in case(Ports::Pausable)) {
        prop_assert_eq!(computed(&case), explicit(&case));
    }
}

/// The random cases are about what they are named for: in most of them ports are paused, and in some packets come again after.
#[test]
fn most_random_switches_that_may_pause_do() {
    let mut runner = TestRunner::deterministic();
    let cases = (0..200).map(|_| case(Ports::Pausable).new_tree(&mut runner).unwrap().current());
    let (mut pausing, mut resumed) = (0, 0);
    for case in cases {
        let counters = computed(&case).into_iter().filter_map(|seen| match seen {
            Seen::Counters(_, sent, .., [_, paused, _, frames, _]) => Some((sent, paused, frames)),
            _ => None,
        });
        let (mut paused, mut goes_on) = (false, false);
        for (sent, time, frames) in counters {
            paused |= frames > 0;
            goes_on |= time > 0 && sent > 0;
        }
        pausing += u32::from(paused);
        resumed += u32::from(goes_on);
    }
    assert!(pausing > 60 && resumed > 40, "{pausing}, {resumed}");
}

/// And of networks that change, many lose packets at a port that is down and on a wire that is cut, and delay some.
#[test]
fn many_random_links_that_change_lose_and_reorder() {
    let mut runner = TestRunner::deterministic();
    let cases = (0..200).map(|_| case(Ports::Changing).new_tree(&mut runner).unwrap().current());
    let mut found = [0; 4];
    for case in cases {
        let mut seen = [0; 4];
        for one in computed(&case) {
            if let Seen::Counters(.., dropped, [.., late]) = one {
                let reasons = [DropReason::Outage, DropReason::Cut, DropReason::Impairment];
                let counts = reasons.map(|reason| dropped[reason as usize]).into_iter().chain([late]);
                seen.iter_mut().zip(counts).for_each(|(seen, count)| *seen += count);
            }
        }
        found.iter_mut().zip(seen).for_each(|(found, count)| *found += u32::from(count > 0));
    }
    assert!(found.into_iter().all(|cases| cases > 30), "{found:?}");
}
